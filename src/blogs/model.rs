//! The stored state of a blog, and the result of a check.

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

/// How many keys of a feed are stored in its state; `blog_entries` has all of them.
pub const RECENT_KEYS: usize = 50;

word_enum! {
    /// The ways to detect new entries, in the order in which they are tried.
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
    /// What it is called.
    pub fn phrase(self) -> Phrase {
        match self {
            Detector::Feed => phrase!("feed", "フィード"),
            Detector::Sitemap => phrase!("sitemap", "サイトマップ"),
            Detector::Html => phrase!("page links", "ページのリンク"),
        }
    }
}

/// The validators of one document, and the detector that reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDocument {
    pub detector: Detector,
    /// Where it is, after redirects.
    #[serde(with = "as_text")]
    pub url: Url,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// For a sitemap inside a sitemap: its `lastmod` in the outer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<Timestamp>,
}

impl KnownDocument {
    /// The document with `validators`, unless they are empty.
    pub fn new(detector: Detector, validators: &Validators) -> Option<Self> {
        Some(Self {
            detector,
            url: validators.url.clone().filter(|_| !validators.is_empty())?,
            etag: validators.etag.clone(),
            last_modified: validators.last_modified.clone(),
            lastmod: None,
        })
    }

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

/// The stored state of a blog. The default is that of a blog that was never checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The validators of its documents; the first one decided.
    pub known: Vec<KnownDocument>,
    /// Hash of the addresses that sitemap or page listed.
    pub url_fingerprint: Option<String>,
    /// Its feed; `None` when none was found.
    pub feed_url: Option<Url>,
    /// Feeds that its page names and that are not used.
    pub other_feeds: Vec<String>,
    /// Its sitemap; `None` when none was found.
    pub sitemap_url: Option<Url>,
    /// The first keys of its feed.
    pub recent_entry_keys: RecentKeys,
    /// The last check, successful or not.
    pub last_check_at: Option<Timestamp>,
    /// The last check that found something new.
    pub last_change_at: Option<Timestamp>,
    /// The detector of the last successful check.
    pub decided_by: Option<Detector>,
    /// The hash of the settings of this state.
    pub settings_hash: Option<String>,
    /// When to search for a feed again.
    pub next_feed_discovery_at: Option<Timestamp>,
    /// When to search for a sitemap again.
    pub next_sitemap_discovery_at: Option<Timestamp>,
    pub feed_first_read_at: Option<Timestamp>,
    pub sitemap_first_read_at: Option<Timestamp>,
    /// When the page was first read.
    pub html_first_read_at: Option<Timestamp>,
    /// The last successful check.
    pub last_success_at: Option<Timestamp>,
    /// The last full check.
    pub last_full_read_at: Option<Timestamp>,
    /// How many addresses or entries it had.
    pub url_count: usize,
    /// Links or a short list that need a second sighting.
    pub unconfirmed: Option<Unconfirmed>,
    /// Where permanent redirects lead.
    pub moved: Moved,
    /// Failures since the last success.
    pub failures_in_a_row: u32,
    /// The first of them.
    pub failing_since: Option<Timestamp>,
    /// When the last warning was recorded.
    pub warned_at: Option<Timestamp>,
    /// The end of the wait that the server asked for.
    pub not_before: Option<Timestamp>,
    /// How often it has new entries, and whether it is silent.
    pub silence: Silence,
    /// The part that exceeded a limit at the last check.
    pub cut: Option<Cut>,
    /// The date of the newest entry of its feed.
    pub feed_newest_at: Option<Timestamp>,
    /// When the sitemap was last read in addition to a stopped feed.
    pub looked_beside_at: Option<Timestamp>,
    /// Since when the feed is not used, because it has stopped while the site continues.
    pub feed_stopped_at: Option<Timestamp>,
}

/// The first keys of a feed, as they are stored: loaded only when a list is compared with them, which most checks
/// never do. Without a value they were not loaded, or no feed was read yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentKeys(Option<String>);

impl RecentKeys {
    pub fn new(keys: &[&str]) -> Self {
        Self(Some(serde_json::to_string(keys).expect("texts become JSON")))
    }

    pub fn from_stored(json: Option<String>) -> Self {
        Self(json)
    }

    pub fn stored(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The keys; empty if they cannot be parsed, because they are only an optimisation.
    pub fn list(&self) -> Vec<String> {
        self.0.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }
}

/// What needs a second sighting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unconfirmed {
    /// New links, by key.
    Links(Vec<String>),
    /// A list that is empty or so short that it may be broken, and how often in a row.
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

    /// The same, mutable.
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
    pub key: String,
    /// The comparison key of its address; `None` when the address does not identify it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_key: Option<String>,
    /// Its address as found.
    pub url: Option<String>,
    /// Its title or link text.
    pub title: Option<String>,
    /// When it was published, if known.
    pub published_at: Option<Timestamp>,
    /// Its text, if messages contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl FoundEntry {
    /// Its title, or its address if it has none.
    pub fn name(&self) -> Option<&str> {
        let title = self.title.as_deref().filter(|title| !title.trim().is_empty());
        title.or(self.url.as_deref())
    }

    /// Uses the address as the key if the id is only the address, as for sitemaps and pages. An id with a fragment or
    /// with parameters that comparisons ignore is more specific and stays.
    pub fn prefer_address(&mut self) {
        let Some(address) = &self.url_key else { return };
        let id = self.key.strip_prefix("id:");
        let id = id.and_then(|id| id.strip_prefix("https:").or_else(|| id.strip_prefix("http:")));
        if id.or_else(|| self.key.strip_prefix("link:")) == Some(address) {
            self.key.clone_from(address);
        }
    }

    /// Other keys of the same entry, for an id that is its address in one version of the document and not in another:
    /// its link was edited, or is shared with a second entry.
    pub fn other_keys(&self) -> Vec<String> {
        if self.key.starts_with("//") {
            return ["https", "http"].map(|scheme| format!("id:{scheme}:{}", self.key)).into();
        }
        let address = self.key.strip_prefix("id:https:").or_else(|| self.key.strip_prefix("id:http:"));
        address.filter(|address| address.starts_with("//")).map(str::to_owned).into_iter().collect()
    }
}

/// The comparison key of the address of an entry.
pub fn url_key(url: &Url) -> String {
    bounded_key(comparison_key(url))
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub checked_at: Timestamp,
    /// The HTTP status that decided.
    pub http_status: Option<u16>,
    pub outcome: Result<DetectorResult, CheckFailure>,
    /// The result of a search for a feed, if there was one.
    pub feed_search: Option<Option<Url>>,
    /// Feeds that the page names in addition to the one that is used.
    pub other_feeds: Vec<String>,
    /// The result of a search for a sitemap, if there was one.
    pub sitemap_search: Option<Option<Url>>,
    /// The end of permanent redirects of the deciding document.
    pub moved_to: Option<Url>,
    /// The sitemap that was read in addition to a stopped feed.
    pub beside: Option<DetectorResult>,
    /// A stopped feed was checked and has nothing newer.
    pub still_stopped: bool,
}

/// The result of reading a document.
#[derive(Clone, Debug)]
pub enum DetectorResult {
    /// Unchanged since the known version.
    Unchanged {
        detector: Detector,
        /// The current validators.
        known: Vec<KnownDocument>,
    },
    /// It was read.
    Entries {
        detector: Detector,
        /// The entries that match the filters, in its order.
        entries: Vec<FoundEntry>,
        /// The validators of the documents; the deciding one first.
        known: Vec<KnownDocument>,
        /// How many entries it has, including filtered ones.
        total: usize,
        /// The part that exceeds a limit.
        cut: Option<Cut>,
    },
}

/// Why a check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    /// What to do about it.
    pub kind: CheckFailureKind,
    pub message: Phrase,
}

/// What to do about a failed check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckFailureKind {
    /// The blog itself is gone (410).
    Gone,
    /// The document is missing or is something else. Search for it again if that lasts.
    Lost(Detector),
    /// The server asks us to wait.
    Later(std::time::Duration),
    /// It fails until the config changes.
    Blocked,
    /// Anything else; it may be temporary.
    Other,
}
