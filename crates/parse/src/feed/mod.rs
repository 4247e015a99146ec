//! Feeds of every dialect in one form: RSS 0.90 to 2.0, RDF, Atom 0.3 and 1.0, CDF, JSON Feed.
//!
//! ```text
//! bytes ─decode─▶ text ─┬─ xml (recovering tokens) ─▶ reader (rss, atom) ─┬─▶ Feed ─▶ keys
//!                       └─ json ──────────────────────────────────────────┘
//! ```
//!
//! Titles are converted to plain text at once; summaries and contents are kept as published with their base address,
//! and are only sanitised when they are shown ([`Content::html`]).

use std::sync::Arc;

use jiff::tz::TimeZone;
use url::Url;

use super::decode::{self, Kind};
use super::resolver::is_usable_base;
use super::url::resolve;

mod address;
mod atom;
pub mod date;
mod fields;
pub mod inspect;
mod json;
mod key;
mod links;
mod model;
mod names;
mod reader;
mod recover;
mod root;
mod rss;
mod scope;
mod tag;
mod xml;

pub use xml::DEPTH_LIMIT;

pub use model::{Content, Enclosure, Entry, Feed, FeedError, Format, Link, Person, Tag, TextKind};

/// Entries to read from one document; the feed reports if there were more.
pub const ENTRY_LIMIT: usize = 10_000;

/// Links, categories, persons and files to keep of one entry.
const LIST_LIMIT: usize = 256;

/// The longest text; the rest is cut.
const TEXT_LIMIT: usize = 1 << 20;

/// Metadata of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The address it was fetched from, after redirects.
    pub url: Option<Url>,
    /// `Content-Type` as sent.
    pub content_type: Option<String>,
    /// `Content-Location` as sent; relative addresses start there.
    pub content_location: Option<String>,
    /// `Content-Language` as sent.
    pub content_language: Option<String>,
    /// The zone of dates without one; UTC if `None`.
    pub zone: Option<TimeZone>,
}

/// Whether the texts of entries are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Texts {
    Kept,
    /// Not read where skipping them is faster.
    Spared,
}

/// Parses a feed, or explains why the document is not one.
pub fn parse(bytes: &[u8], context: &Context) -> Result<Feed, FeedError> {
    read(bytes, context, Texts::Kept)
}

/// Like [`parse`], but summaries and contents of entries may be missing: for checks for new entries.
///
/// The keys are the same: texts are read if they are needed to distinguish entries.
pub fn parse_heads(bytes: &[u8], context: &Context) -> Result<Feed, FeedError> {
    read(bytes, context, Texts::Spared)
}

fn read(bytes: &[u8], context: &Context, texts: Texts) -> Result<Feed, FeedError> {
    let (decoded, encoding) = decode::decode_in_place(bytes, context.content_type.as_deref(), Kind::Xml);
    let text = decoded.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let mut feed = match text.as_bytes().first() {
        None => return Err(FeedError::Empty),
        Some(b'{') => json::read(text, context)?,
        Some(b'[') => return Err(FeedError::OtherJson),
        Some(_) => reader::read(&rss::repaired(text), context, texts)?,
    };
    feed.encoding = encoding;
    if feed.language.is_none() {
        feed.language = context.content_language.clone().filter(|language| !language.contains(','));
    }
    match key::assign(&mut feed.entries) {
        key::TellsApart::ByText if texts == Texts::Spared => read(bytes, context, Texts::Kept),
        _ => Ok(feed),
    }
}

/// The base of relative addresses in a document.
fn base_of(context: &Context) -> Option<Arc<Url>> {
    let web = |url: &Url| matches!(url.scheme(), "http" | "https" | "ftp" | "file");
    context
        .content_location
        .as_deref()
        .and_then(|location| resolve(context.url.as_ref(), location))
        .filter(|base| web(base) && is_usable_base(base))
        .or_else(|| context.url.clone().filter(is_usable_base))
        .map(Arc::new)
}
