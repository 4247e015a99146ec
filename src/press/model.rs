//! An item, its statuses and its reasons, with the numbers of the seed.

use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::word_enum;

word_enum! {
    pub enum Status {
        /// 0: not screened yet.
        Unprocessed = "unprocessed",
        /// 1: screened or failed, to be retried later.
        Deferred = "deferred",
        /// 2: valuable; waits for its summary or its post.
        Pending = "pending",
        /// 3: finished; kept so that its address is known.
        Processed = "processed",
    }
}

word_enum! {
    /// Why an item is deferred or processed.
    pub enum Reason {
        /// 0: none; it was posted or skipped.
        None = "none",
        /// 1: not worth a summary, by the model.
        NotValuable = "not_valuable",
        /// 2: the page is not complete yet, by the model.
        PageNotReady = "page_not_ready",
        /// 3: the page or a file could not be fetched.
        DownloadFailed = "download_failed",
        /// 4: its files are too large.
        LargeFileSkipped = "large_file_skipped",
        /// 5: the model or the channel failed.
        ApiFailed = "api_failed",
        /// 6: too many retries.
        RetryLimitExceeded = "retry_limit_exceeded",
    }
}

impl Reason {
    pub fn phrase(self) -> Phrase {
        match self {
            Reason::None => phrase!("no reason", "理由なし"),
            Reason::NotValuable => phrase!("not worth a post", "投稿する価値なし"),
            Reason::PageNotReady => phrase!("the page is not complete yet", "ページが未完成"),
            Reason::DownloadFailed => phrase!("could not be fetched", "取得に失敗"),
            Reason::LargeFileSkipped => phrase!("its files are too large", "ファイルが大きすぎるため対象外"),
            Reason::ApiFailed => phrase!("the model or the post failed", "モデルまたは投稿の失敗"),
            Reason::RetryLimitExceeded => phrase!("too many failed attempts", "失敗が多いため終了"),
        }
    }
}

crate::db::from_code!(Status = "a status" Reason = "a reason");

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, crate::db::FromRow)]
pub struct Item {
    pub id: i64,
    pub job_name: String,
    pub url: String,
    pub title: String,
    /// When it was published, by the feed.
    pub published_at: Timestamp,
    pub status: Status,
    pub reason: Option<Reason>,
    /// How many attempts failed.
    pub retry_count: u32,
    pub created_at: Timestamp,
    pub last_checked_at: Timestamp,
    /// Not processed before this moment.
    pub not_before: Option<Timestamp>,
    /// Since when it is deferred without having been valuable.
    pub deferred_since: Option<Timestamp>,
    /// The hash of its page at the last check.
    pub page_hash: Option<String>,
    /// Whether its post waits for approval.
    pub is_held: bool,
    /// Its description in the feed.
    pub excerpt: Option<String>,
    /// Whether it is posted without a summary.
    pub is_short: bool,
    /// The summary as queued for posting.
    pub summary: Option<String>,
    /// The last verdict of the model.
    pub verdict: Option<String>,
    /// Whether the next call of the model bypasses the cache, because a user retried the item.
    pub bypass_cache: bool,
}

/// Why an entry is only recorded as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It was there at the first fetch.
    Baseline,
    /// The feed lists old entries under new addresses.
    Rewritten,
    /// It was beyond the end of the feed until an entry before it was removed, or until the feed listed more.
    MovedUp,
    /// Excluded by `include` or `exclude`.
    Filtered,
}

/// An entry of a feed that may become an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    pub url: String,
    pub title: String,
    pub published_at: Timestamp,
    /// Its key in the feed.
    pub entry_key: String,
    /// Whether the key is an id from the feed.
    pub has_id: bool,
    /// Its address for comparisons; `None` where several entries of the document share it.
    pub url_key: Option<String>,
    /// Not processed before this moment.
    pub not_before: Option<Timestamp>,
    /// Its description in the feed.
    pub excerpt: Option<String>,
    /// Why it is only recorded, if it is.
    pub recorded: Option<Recorded>,
}
