//! Feeds of every dialect as one plain shape: RSS 0.90 to 2.0, RDF, Atom 0.3 and 1.0, CDF, JSON Feed.
//!
//! ```text
//! bytes ─decode─▶ text ─┬─ xml (recovering tokens) ─▶ reader (rss, atom) ─┬─▶ Feed ─▶ keys
//!                       └─ json ──────────────────────────────────────────┘
//! ```
//!
//! Titles are plain text at once; summaries and contents keep what the publisher wrote together with its base,
//! and are cleaned only when somebody wants to show them ([`Content::html`]).

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

/// How many entries of one document are read; the others are ignored and the feed says so.
pub const ENTRY_LIMIT: usize = 10_000;

/// How many links, categories, people and files of one entry are kept.
const LIST_LIMIT: usize = 256;

/// How long one text may be; the rest of a longer one is left out.
const TEXT_LIMIT: usize = 1 << 20;

/// What is known about a document besides its bytes.
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
    /// The zone of dates that say none; without it they are UTC.
    pub zone: Option<TimeZone>,
}

/// Whether the texts of entries are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Texts {
    Kept,
    /// Stepped over where that is quicker than reading them.
    Spared,
}

/// Reads a feed, or says why the document is none.
pub fn parse(bytes: &[u8], context: &Context) -> Result<Feed, FeedError> {
    read(bytes, context, Texts::Kept)
}

/// As [`parse`], but summaries and contents of entries may be missing; for those who ask only what is new.
///
/// The keys are the same: where texts are needed to tell entries apart, they are read.
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

/// Where relative addresses of a document start.
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
