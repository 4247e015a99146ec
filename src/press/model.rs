//! An item and its words: statuses and reasons by the numbers of the seed.

use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::word_enum;

word_enum! {
    /// Where an item stands.
    pub enum Status {
        /// 0: nobody has looked at it.
        Unprocessed = "unprocessed",
        /// 1: it was looked at and put off.
        Deferred = "deferred",
        /// 2: it is worth a summary, and waits for it or for its post.
        Pending = "pending",
        /// 3: it is over; it only keeps its address from being taken again.
        Processed = "processed",
    }
}

word_enum! {
    /// Why an item was put off or is over.
    pub enum Reason {
        /// 0: no reason; it was posted, or nobody wanted it.
        None = "none",
        /// 1: the model finds it not worth a summary.
        NotValuable = "not_valuable",
        /// 2: the model finds the page not finished yet.
        PageNotReady = "page_not_ready",
        /// 3: the page or a file could not be fetched.
        DownloadFailed = "download_failed",
        /// 4: its files are too large.
        LargeFileSkipped = "large_file_skipped",
        /// 5: the model or the place of the post failed.
        ApiFailed = "api_failed",
        /// 6: it was tried too often.
        RetryLimitExceeded = "retry_limit_exceeded",
    }
}

impl Reason {
    /// What it is called.
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

/// An item as it stands in the database.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, crate::db::FromRow)]
pub struct Item {
    pub id: i64,
    /// The job that found it.
    pub job_name: String,
    pub url: String,
    pub title: String,
    /// When it was published, as far as the feed says.
    pub published_at: Timestamp,
    pub status: Status,
    pub reason: Option<Reason>,
    /// How many attempts failed.
    pub retry_count: u32,
    /// When we found it.
    pub created_at: Timestamp,
    /// When we last checked it.
    pub last_checked_at: Timestamp,
    /// Not to be looked at earlier.
    pub not_before: Option<Timestamp>,
    /// Since when it is put off without having been found worth a summary.
    pub deferred_since: Option<Timestamp>,
    /// What its page was when we last looked, hashed.
    pub page_hash: Option<String>,
    /// Whether its post waits for a person.
    pub is_held: bool,
    /// What the feed says about it.
    pub excerpt: Option<String>,
    /// Whether it is posted with its title alone.
    pub is_short: bool,
    /// The summary as queued for posting.
    pub summary: Option<String>,
    /// What the model said about it last.
    pub verdict: Option<String>,
    /// Whether the model is asked even if its answer is known, because a person wants the item looked at again.
    pub bypass_cache: bool,
}

/// Why an entry is only recorded as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It was there at the first look.
    Baseline,
    /// The feed tells its old entries under new addresses.
    Rewritten,
    /// It was behind the end of the feed until one before it was removed, or until the feed listed more.
    MovedUp,
    /// `include` or `exclude` leave it out.
    Filtered,
}

/// An entry of a feed that may become an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    pub url: String,
    pub title: String,
    pub published_at: Timestamp,
    /// What the feed recognises it by.
    pub entry_key: String,
    /// Whether that is an id which the feed gives it.
    pub has_id: bool,
    /// Its address for comparisons; `None` where several entries of the document share it.
    pub url_key: Option<String>,
    /// Not to be looked at earlier.
    pub not_before: Option<Timestamp>,
    /// What the feed says about it.
    pub excerpt: Option<String>,
    /// Whether it is only recorded, and why.
    pub recorded: Option<Recorded>,
}
