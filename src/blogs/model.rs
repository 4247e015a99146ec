//! What a blog is between two checks, and what a check brings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::silence::Silence;
use crate::fetch::Validators;
pub use crate::fetch::{Moved, SURE_AFTER};
pub use crate::hash::bounded_key;
use crate::parse::Cut;
use crate::parse::url::{Url, comparison_key};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::word_enum;

/// Keys of a feed that are remembered in its state; the long memory is `blog_entries`.
pub const RECENT_KEYS: usize = 50;

word_enum! {
    /// What decides whether a blog has something new, in the order in which they are tried.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Detector {
        /// Entries of its feed.
        Feed = "feed",
        /// Addresses in its sitemap.
        Sitemap = "sitemap",
        /// Links on its page.
        Html = "html",
    }
}

impl Detector {
    /// What it reads.
    pub fn document(self) -> Phrase {
        match self {
            Detector::Feed => phrase!("feed", "フィード"),
            Detector::Sitemap => phrase!("sitemap", "サイトマップ"),
            Detector::Html => phrase!("page", "ページ"),
        }
    }

    /// What it is called.
    pub fn phrase(self) -> Phrase {
        match self {
            Detector::Feed => phrase!("feed", "フィード"),
            Detector::Sitemap => phrase!("sitemap", "サイトマップ"),
            Detector::Html => phrase!("page links", "ページのリンク"),
        }
    }
}

/// What a server said about one document, and which detector reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDocument {
    /// Who reads it.
    pub detector: Detector,
    /// Where it is, after redirects.
    #[serde(with = "as_text")]
    pub url: Url,
    /// Its `ETag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Its `Last-Modified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// For a sitemap inside a sitemap: what the outer one says about its age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<Timestamp>,
}

impl KnownDocument {
    /// What `validators` say, if they say anything.
    pub fn new(detector: Detector, validators: &Validators) -> Option<Self> {
        Some(Self {
            detector,
            url: validators.url.clone().filter(|_| !validators.is_empty())?,
            etag: validators.etag.clone(),
            last_modified: validators.last_modified.clone(),
            lastmod: None,
        })
    }

    /// In the form that requests take.
    pub fn validators(&self) -> Validators {
        Validators {
            etag: self.etag.clone(),
            last_modified: self.last_modified.clone(),
            url: Some(self.url.clone()),
        }
    }
}

/// An address in JSON.
mod as_text {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::Url;

    pub(super) fn serialize<S: Serializer>(url: &Url, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(url.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What is remembered about a blog. The default is a blog that was never checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// What servers said about its documents; the first is the one that decided.
    pub known: Vec<KnownDocument>,
    /// Hash of the addresses that sitemap or page listed.
    pub url_fingerprint: Option<String>,
    /// Its feed; `None` when none was found.
    pub feed_url: Option<Url>,
    /// Feeds that its page names and that are not read.
    pub other_feeds: Vec<String>,
    /// Its sitemap; `None` when none was found.
    pub sitemap_url: Option<Url>,
    /// The first keys of its feed.
    pub recent_entry_keys: RecentKeys,
    /// The last check, good or bad.
    pub last_check_at: Option<Timestamp>,
    /// The last check that found something new.
    pub last_change_at: Option<Timestamp>,
    /// Who decided at the last success.
    pub decided_by: Option<Detector>,
    /// The settings under which all this was found.
    pub settings_hash: Option<String>,
    /// When to search for a feed again.
    pub next_feed_discovery_at: Option<Timestamp>,
    /// When to search for a sitemap again.
    pub next_sitemap_discovery_at: Option<Timestamp>,
    pub feed_first_read_at: Option<Timestamp>,
    pub sitemap_first_read_at: Option<Timestamp>,
    /// When the page was first read.
    pub html_first_read_at: Option<Timestamp>,
    /// The last check that went well.
    pub last_success_at: Option<Timestamp>,
    /// The last check that read everything.
    pub last_full_read_at: Option<Timestamp>,
    /// How many addresses or entries there were then.
    pub url_count: usize,
    /// Keys of links that were seen once and wait to be seen again; with a fingerprint, a list that waits.
    pub unconfirmed: Option<Unconfirmed>,
    /// Where permanent redirects lead.
    pub moved: Moved,
    /// Failures since the last success.
    pub failures_in_a_row: u32,
    /// The first of them.
    pub failing_since: Option<Timestamp>,
    /// When the readers were last told.
    pub warned_at: Option<Timestamp>,
    /// The server asked us to stay away until then.
    pub not_before: Option<Timestamp>,
    /// How often it brings something, and whether it has fallen silent.
    pub silence: Silence,
    /// What was left out when it was last read.
    pub cut: Option<Cut>,
    /// The date of the newest entry of its feed.
    pub feed_newest_at: Option<Timestamp>,
    /// When the sitemap beside a feed that has stopped was last read.
    pub looked_beside_at: Option<Timestamp>,
    /// The feed has stopped while the site goes on, so that it does not decide; since when.
    pub feed_stopped_at: Option<Timestamp>,
}

/// The first keys of a feed, as they are stored: read only when a list is compared with them, which most checks
/// never do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentKeys(Option<String>);

impl RecentKeys {
    /// These keys.
    pub fn new(keys: &[&str]) -> Self {
        Self((!keys.is_empty()).then(|| serde_json::to_string(keys).expect("texts become JSON")))
    }

    /// What the database has.
    pub fn from_stored(json: Option<String>) -> Self {
        Self(json)
    }

    /// What the database is to have.
    pub fn stored(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The keys; what cannot be read is as good as nothing: it is only a memory aid.
    pub fn list(&self) -> Vec<String> {
        self.0.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }
}

/// What was seen once and waits for a second sighting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unconfirmed {
    /// New links, by key.
    Links(Vec<String>),
    /// A list that is empty or so short that it may be broken: how often in a row.
    Shrunken(u32),
}

impl State {
    /// When `detector` was first read.
    pub fn first_read_at(&self, detector: Detector) -> Option<Timestamp> {
        match detector {
            Detector::Feed => self.feed_first_read_at,
            Detector::Sitemap => self.sitemap_first_read_at,
            Detector::Html => self.html_first_read_at,
        }
    }

    /// The place of that moment.
    pub fn first_read_at_mut(&mut self, detector: Detector) -> &mut Option<Timestamp> {
        match detector {
            Detector::Feed => &mut self.feed_first_read_at,
            Detector::Sitemap => &mut self.sitemap_first_read_at,
            Detector::Html => &mut self.html_first_read_at,
        }
    }
}

/// One entry of a feed, address of a sitemap or link of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundEntry {
    /// What it is recognised by.
    pub key: String,
    /// Its address as it is compared; `None` when the address does not tell entries apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_key: Option<String>,
    /// Its address as found.
    pub url: Option<String>,
    /// Its title or link text.
    pub title: Option<String>,
    /// When it was published, as far as that is said.
    pub published_at: Option<Timestamp>,
    /// Its text, where messages are to have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl FoundEntry {
    /// What people call it: its title, or its address where it has none.
    pub fn name(&self) -> Option<&str> {
        let title = self.title.as_deref().filter(|title| !title.trim().is_empty());
        title.or(self.url.as_deref())
    }

    /// An id that is nothing but the address says no more than the address: then that is the key, as on sitemaps and
    /// pages. An id with a fragment or with parameters that addresses are compared without is more, and stays.
    pub fn prefer_address(&mut self) {
        let Some(address) = &self.url_key else { return };
        let id = self.key.strip_prefix("id:");
        let id = id.and_then(|id| id.strip_prefix("https:").or_else(|| id.strip_prefix("http:")));
        if id.or_else(|| self.key.strip_prefix("link:")) == Some(address) {
            self.key.clone_from(address);
        }
    }

    /// The keys that the same entry has when its id is its address in one reading of the document and not in another:
    /// its link was edited, or is shared with a second entry. And those that it has when its site is called with `www.` now and
    /// without before, or the other way round.
    pub fn other_keys(&self) -> Vec<String> {
        if let Some(address) = self.key.strip_prefix("//") {
            let other = address
                .strip_prefix("www.")
                .map_or_else(|| format!("//www.{address}"), |bare| format!("//{bare}"));
            let ids = ["https", "http"].map(|scheme| format!("id:{scheme}:{}", self.key));
            return [other].into_iter().chain(ids).collect();
        }
        let address = self.key.strip_prefix("id:https:").or_else(|| self.key.strip_prefix("id:http:"));
        address.filter(|address| address.starts_with("//")).map(str::to_owned).into_iter().collect()
    }
}

/// The key under which the address of an entry is compared.
pub fn url_key(url: &Url) -> String {
    bounded_key(comparison_key(url))
}

/// What a check brought.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub checked_at: Timestamp,
    /// The HTTP status that decided.
    pub http_status: Option<u16>,
    /// What was read, or what went wrong.
    pub outcome: Result<DetectorResult, CheckFailure>,
    /// A feed was searched for: what was found.
    pub feed_search: Option<Option<Url>>,
    /// Feeds that the page names beside the one that was found.
    pub other_feeds: Vec<String>,
    /// A sitemap was searched for: what was found.
    pub sitemap_search: Option<Option<Url>>,
    /// Where permanent redirects of the deciding document lead.
    pub moved_to: Option<Url>,
    /// The sitemap beside a feed that has stopped, if it was read.
    pub beside: Option<DetectorResult>,
    /// A feed that had stopped was looked at, and has nothing newer.
    pub still_stopped: bool,
}

/// What a document said.
#[derive(Clone, Debug)]
pub enum DetectorResult {
    /// Nothing changed since the version we know.
    Unchanged {
        detector: Detector,
        /// What servers say now.
        known: Vec<KnownDocument>,
    },
    /// It was read.
    Entries {
        detector: Detector,
        /// Everything on it that counts, in its order.
        entries: Vec<FoundEntry>,
        /// What servers say about what was read; the deciding document first.
        known: Vec<KnownDocument>,
        /// How many there are, also those that do not count.
        total: usize,
        /// What was left out at a limit.
        cut: Option<Cut>,
    },
}

/// Why a check brought nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    /// What to do about it.
    pub kind: CheckFailureKind,
    /// For people.
    pub message: Phrase,
}

/// What to do about a failed check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckFailureKind {
    /// The blog itself was removed for good.
    Gone,
    /// The document is not what it was: missing, or something else. Search for it again if that lasts.
    Lost(Detector),
    /// The server asks us to come back after a while.
    Later(std::time::Duration),
    /// Only another config ends it.
    Blocked,
    /// Anything else; it may pass.
    Other,
}
