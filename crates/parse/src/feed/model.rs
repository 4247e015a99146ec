//! A parsed feed: one form for every dialect.

use std::borrow::Cow;
use std::sync::Arc;
use stdx::phrase;
use stdx::phrase::Phrase;

use url::Url;

use crate::Cut;
use crate::markup;
use crate::sanitize::{self, Sanitizer};
use stdx::time::Timestamp;
use stdx::word_enum;

/// Why a document is not a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedError {
    Empty,
    /// It is a web page.
    Html,
    Sitemap,
    /// It is a list of feeds.
    Opml,
    /// It is XML of another kind.
    OtherXml {
        /// The name of its first element.
        root: String,
    },
    /// It is JSON of another kind.
    OtherJson,
    /// It looks like JSON but is invalid.
    BrokenJson {
        /// The error of the JSON parser.
        why: String,
    },
    /// It is neither XML nor JSON.
    NotAFeed,
}

impl FeedError {
    /// Why, in one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            FeedError::Empty => phrase!("the document is empty", "文書が空です"),
            FeedError::Html => {
                phrase!("this is an HTML page, not a feed", "フィードではなく HTML ページです")
            }
            FeedError::Sitemap => {
                phrase!("this is a sitemap, not a feed", "フィードではなくサイトマップです")
            }
            FeedError::Opml => {
                phrase!("this is an OPML list, not a feed", "フィードではなく OPML の一覧です")
            }
            FeedError::OtherXml { root } => phrase!(
                "this is XML with root `{root}`, not a feed",
                "フィードではない XML です（ルート要素 `{root}`）"
            ),
            FeedError::OtherJson => {
                phrase!("this is JSON, but not a JSON Feed", "JSON ですが、JSON Feed ではありません")
            }
            FeedError::BrokenJson { why } => {
                phrase!("the JSON is broken: {why}", "JSON が壊れています：{why}")
            }
            FeedError::NotAFeed => phrase!(
                "this is not a feed: no feed element was found",
                "フィードではありません（フィードの要素が見つかりません）"
            ),
        }
    }
}

stdx::error_in_english!(FeedError);

word_enum! {
    /// The dialect of a feed.
    #[allow(missing_docs, reason = "the names are the dialects")]
    #[derive(Default)]
    pub enum Format {
        Rss090 = "rss090",
        Rss091 = "rss091u",
        Rss092 = "rss092",
        Rss093 = "rss093",
        Rss094 = "rss094",
        Rss10 = "rss10",
        Rss20 = "rss20",
        #[default]
        Rss = "rss",
        Atom03 = "atom03",
        Atom10 = "atom10",
        Atom = "atom",
        Cdf = "cdf",
        Json10 = "json10",
        Json11 = "json11",
    }
}

impl Format {
    /// Whether text without a type is plain text rather than HTML.
    pub(super) fn is_atom(self) -> bool {
        matches!(self, Format::Atom03 | Format::Atom10 | Format::Atom)
    }
}

/// A parsed feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feed {
    pub format: Format,
    /// The encoding of the document.
    pub encoding: String,
    /// Its title as plain text.
    pub title: Option<String>,
    /// The site it belongs to.
    pub link: Option<String>,
    /// Its own identifier.
    pub id: Option<String>,
    pub description: Option<Content>,
    /// Atom 0.3: a note for people who open the feed itself.
    pub info: Option<Content>,
    /// Its language tag.
    pub language: Option<String>,
    /// When it last changed.
    pub updated: Option<Timestamp>,
    /// When it was published.
    pub published: Option<Timestamp>,
    /// Copyright notice.
    pub rights: Option<Content>,
    /// The software that made it.
    pub generator: Option<String>,
    /// Address of its picture.
    pub image: Option<String>,
    /// Address of its icon.
    pub icon: Option<String>,
    /// For how many minutes it may be cached, as written.
    pub ttl: Option<String>,
    /// Who is responsible.
    pub authors: Vec<Person>,
    pub contributors: Vec<Person>,
    /// All links, including `link`.
    pub links: Vec<Link>,
    pub tags: Vec<Tag>,
    /// In document order.
    pub entries: Vec<Entry>,
    /// Why it was read only in part.
    pub cut: Option<Cut>,
    /// Whether the document was malformed and had to be repaired.
    pub damaged: bool,
}

/// One entry of a feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Its guid or id, as written.
    pub id: Option<String>,
    /// Its title as plain text.
    pub title: Option<String>,
    pub link: Option<String>,
    /// When it was published.
    pub published: Option<Timestamp>,
    /// When it last changed.
    pub updated: Option<Timestamp>,
    /// When it was written, if the dialect distinguishes that.
    pub created: Option<Timestamp>,
    /// As published.
    pub summary: Option<Content>,
    /// Its full texts, as published.
    pub content: Vec<Content>,
    pub authors: Vec<Person>,
    pub contributors: Vec<Person>,
    /// All links, including `link`.
    pub links: Vec<Link>,
    pub tags: Vec<Tag>,
    /// Attached files.
    pub enclosures: Vec<Enclosure>,
    /// Copyright notice.
    pub rights: Option<Content>,
    /// Address of its picture.
    pub image: Option<String>,
    /// Its language tag.
    pub language: Option<String>,
    /// The page with comments.
    pub comments: Option<String>,
    pub(super) key: String,
}

impl Entry {
    /// The key of this entry, by which it is recognised when the feed is fetched again; the same for duplicates.
    ///
    /// Its id; else its normalised link; else, if several entries share that, link and date; else title and text.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Only the key, without a copy.
    pub fn into_key(self) -> String {
        self.key
    }

    /// When it appeared: published, else updated, else created.
    pub fn date(&self) -> Option<Timestamp> {
        self.published.or(self.updated).or(self.created)
    }

    /// The short text, or the full one when there is no other.
    pub fn summary_or_content(&self) -> Option<&Content> {
        self.summary.as_ref().or_else(|| self.content.first())
    }
}

/// A link of a feed or an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Link {
    /// The address, absolute when it can be.
    pub href: String,
    /// Its relation to the entry: `alternate`, `self`, `enclosure`…
    pub rel: Cow<'static, str>,
    #[serde(rename = "type")]
    pub kind: Option<Cow<'static, str>>,
    pub title: Option<String>,
    /// The language of its target.
    #[serde(rename = "hreflang")]
    pub language: Option<String>,
    /// Size in bytes, as written.
    #[serde(skip)]
    pub length: Option<String>,
}

/// A person of a feed or an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Person {
    pub name: Option<String>,
    /// The mail address.
    pub email: Option<String>,
    /// The person's page.
    pub url: Option<String>,
    /// The original text, if the dialect has only one for a person.
    #[serde(skip)]
    pub text: Option<String>,
}

impl Person {
    /// The person on one line.
    pub fn line(&self) -> String {
        match (&self.text, &self.name, &self.email) {
            (Some(text), ..) => text.clone(),
            (None, Some(name), Some(email)) => format!("{name} ({email})"),
            (None, Some(one), None) | (None, None, Some(one)) => one.clone(),
            (None, None, None) => self.url.clone().unwrap_or_default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.name.is_none() && self.email.is_none() && self.url.is_none() && self.text.is_none()
    }
}

/// A category of a feed or an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tag {
    pub term: String,
    /// The vocabulary it comes from.
    pub scheme: Option<String>,
    /// For display.
    pub label: Option<String>,
}

/// A file that belongs to an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Enclosure {
    pub url: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Size in bytes, as written.
    pub length: Option<String>,
}

/// A text with its type and the base of its relative addresses; not sanitised yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// As published.
    pub value: String,
    pub kind: TextKind,
    pub base: Option<Arc<Url>>,
    /// Its language tag.
    pub language: Option<String>,
    /// The address of the content, if it is not included.
    pub src: Option<String>,
}

/// The markup of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextKind {
    /// Plain text.
    Text,
    /// HTML, or XHTML converted to HTML.
    #[default]
    Html,
}

impl Content {
    /// As HTML that is safe to show, with absolute addresses.
    pub fn html(&self) -> String {
        self.html_with(&mut Sanitizer::default())
    }

    /// The same with a sanitizer that is reused.
    pub fn html_with(&self, sanitizer: &mut Sanitizer) -> String {
        match self.kind {
            TextKind::Text => sanitize::escaped(&self.value),
            TextKind::Html => sanitizer.clean(&self.value, self.base.as_ref()),
        }
    }

    /// Without markup, on one line.
    pub fn text(&self) -> String {
        match self.kind {
            TextKind::Text => markup::single_spaced(&self.value),
            TextKind::Html => markup::text_of(&self.value),
        }
    }

    /// Whether the text is empty and has no address.
    pub fn is_empty(&self) -> bool {
        self.value.trim().is_empty() && self.src.is_none()
    }
}
