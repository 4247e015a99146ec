//! Pure parsers for documents from the web: from bytes to plain data or a typed error.
//!
//! They do not use the network, the clock or the disk, and do not panic on any input.
//!
//! ```
//! use tsuzuki_parse::feed::{self, Context};
//!
//! let rss = b"<rss><channel><title>News</title><item><title>First &amp; best</title></item></channel></rss>";
//! let feed = feed::parse(rss, &Context::default())?;
//! assert_eq!(feed.entries[0].title.as_deref(), Some("First & best"));
//! # Ok::<(), feed::FeedError>(())
//! ```

pub mod codepage;
mod cut;
pub mod decode;
mod elements;
pub mod feed;
pub mod html;
pub mod markup;
pub mod opml;
pub mod pdf;
mod resolver;
pub mod robots;
pub mod sanitize;
pub mod sitemap;
pub mod url;

pub use cut::Cut;
