//! Basic types that every crate of tsuzuki uses: times, validated names, hashes, text for people, crash points for
//! tests.
//!
//! ```
//! use tsuzuki_stdx::time::{Clock, Timestamp};
//!
//! let clock = Clock::manual("2026-01-15T00:02:11.123Z".parse::<Timestamp>()?);
//! assert_eq!(clock.now().to_text(), "2026-01-15T00:02:11.123Z");
//! # Ok::<(), tsuzuki_stdx::time::NotATime>(())
//! ```

pub mod fail;
pub mod hash;
pub mod id;
pub mod phrase;
pub mod text;
pub mod time;
pub mod word_enum;

#[doc(hidden)]
pub use {linkme, macros, serde};
