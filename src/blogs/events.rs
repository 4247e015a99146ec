//! Events of blogs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::decide::HoldReason;
use super::model::Detector;
use crate::engine::cut;
use crate::engine::silence::SilenceNotice;
use crate::ledger::Subject;
use crate::ledger::event::EventDetail;
use crate::parse::Cut;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// The word before the id of a blog.
pub const BLOG: &str = "blog";

/// A blog, as events and pauses refer to it.
pub fn subject(blog_id: &str) -> Subject {
    Subject::new(BLOG, blog_id)
}

/// The word before the number of a change.
pub const CHANGE: &str = "change";

/// A change, by its number.
pub fn change_subject(id: i64) -> Subject {
    Subject::new(CHANGE, id.to_string())
}

/// An event with its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum BlogEvent {
    /// It was read for the first time.
    Baseline {
        detector: Detector,
        /// Entries that were there.
        entries: usize,
        /// How many of them are announced.
        #[serde(alias = "told")]
        announced: usize,
    },
    /// It was read by another detector for the first time.
    NewBaseline {
        detector: Detector,
        /// Entries that were there.
        entries: usize,
        /// How many of them are announced.
        #[serde(alias = "told")]
        announced: usize,
    },
    New {
        detector: Detector,
        /// How many entries are new.
        entries: usize,
        /// The first of them.
        first: Vec<Option<String>>,
        /// Why it needs approval.
        held: Option<HoldReason>,
    },
    /// No known entry is left in the feed: some may have been missed.
    Gap {
        /// How many entries are new.
        entries: usize,
        known_before: usize,
    },
    /// Entries changed their addresses.
    Rewritten {
        entries: usize,
    },
    /// Entries from before the first check appeared at the end of the feed.
    MovedUp {
        entries: usize,
    },
    FeedFound(Discovery),
    /// No feed was found, or the known one is gone.
    FeedNotFound(Loss),
    SitemapFound(Discovery),
    /// No sitemap was found, or the known one is gone.
    SitemapNotFound(Loss),
    /// Its address moved permanently.
    Moved {
        what: Detector,
        to: String,
        /// Whether the new address is used from now on; an address in the config is not.
        adopted: bool,
    },
    /// Another detector is used.
    DetectorChanged {
        before: Option<Detector>,
        now: Detector,
    },
    /// It can be read again.
    Recovered {
        /// How often it failed.
        failures: Option<u32>,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// It cannot be read.
    Failing(Failing),
    /// It is gone for good.
    Gone(Failing),
    /// A user resumed it.
    Resumed,
    /// A user paused it.
    Paused,
    /// Its feed has stopped while its sitemap grows.
    FeedStopped {
        /// The date of the newest entry of the feed.
        newest: Option<Timestamp>,
    },
    /// It has had no new entry for much longer than usual.
    Silent {
        /// When it had its last new entry.
        last: Timestamp,
        usual_gap_secs: u64,
    },
    /// It has new entries again.
    SilenceOver,
    /// A part of it exceeds a limit and is not read.
    ReadInPart {
        cut: Cut,
    },
    /// It is read in full again.
    ReadWhole,
}

impl From<SilenceNotice> for BlogEvent {
    fn from(notice: SilenceNotice) -> Self {
        match notice {
            SilenceNotice::Silent { last, usual_gap } => {
                BlogEvent::Silent { last, usual_gap_secs: usual_gap.as_secs() }
            }
            SilenceNotice::Over => BlogEvent::SilenceOver,
        }
    }
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Discovery {
    pub url: String,
    /// The address that was known.
    pub before: Option<String>,
    /// Others that were found and are not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

/// A search without a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// The address that was known.
    pub before: Option<String>,
    pub search_again_at: Timestamp,
}

/// Why a blog cannot be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failing {
    #[serde(with = "crate::phrase::stored")]
    pub error: Phrase,
    /// How often in a row.
    pub failures: u32,
    /// Since when.
    pub since: Timestamp,
}

impl EventDetail for BlogEvent {
    const SUBJECT: &'static str = BLOG;

    fn phrase(&self) -> Phrase {
        match self {
            BlogEvent::Baseline { detector, entries, announced: 0 } => phrase!(
                "first run: {entries existing entry} recorded, no notification (read by {by})",
                "初回：既存の {entries} 件を記録（通知なし、{by} で確認）",
                by = detector.phrase()
            ),
            BlogEvent::Baseline { detector, entries, announced } => phrase!(
                "first run: {entries existing entry} recorded, {sent} of them announced (read by {by})",
                "初回：既存の {entries} 件を記録し、うち {sent} 件を通知（{by} で確認）",
                sent = *announced,
                by = detector.phrase()
            ),
            BlogEvent::NewBaseline { detector, entries, announced } => phrase!(
                "now read by {by}: {entries existing entry} recorded, {sent} of them announced",
                "{by} での確認に切り替え：既存の {entries} 件を記録、うち {sent} 件を通知",
                by = detector.phrase(),
                sent = *announced
            ),
            BlogEvent::New { entries, first, held, .. } => {
                let first: Vec<Value> = first.iter().flatten().map(Value::from).collect();
                match held {
                    None => phrase!("{entries new entry}: {first}", "新着 {entries} 件：{first}"),
                    Some(why) => phrase!(
                        "{entries new entry}, waiting for approval ({why}): {first}",
                        "新着 {entries} 件、確認待ち（{why}）：{first}",
                        why = why.phrase()
                    ),
                }
            }
            BlogEvent::Gap { entries, known_before } => phrase!(
                "none of the {known_before known entry} is left among {entries new entry}: some may have been missed",
                "既知の {known_before} 件がすべて消え、新着が {entries} 件：見逃しがあるかもしれません"
            ),
            BlogEvent::Rewritten { entries } => phrase!(
                "{entries entry} changed their address; not announced as new",
                "{entries} 件のアドレスが変わりました（新着としては通知しません）"
            ),
            BlogEvent::MovedUp { entries } => phrase!(
                "{entries older entry} came up at the end of the feed; recorded, no notification",
                "フィードの末尾に以前の記事 {entries} 件が現れました（記録のみで、通知なし）"
            ),
            BlogEvent::FeedFound(found) => {
                phrase!("feed found: {url}", "フィードを発見：{url}", url = Value::link(&found.url))
            }
            BlogEvent::SitemapFound(found) => {
                phrase!("sitemap found: {url}", "サイトマップを発見：{url}", url = Value::link(&found.url))
            }
            BlogEvent::FeedNotFound(lost) => phrase!(
                "no feed found; searched for again {at}",
                "フィードなし。次の探索：{at}",
                at = lost.search_again_at
            ),
            BlogEvent::SitemapNotFound(lost) => phrase!(
                "no sitemap found; searched for again {at}",
                "サイトマップなし。次の探索：{at}",
                at = lost.search_again_at
            ),
            BlogEvent::Moved { what, to, adopted: true } => phrase!(
                "{what} moved to {to}; read there from now on",
                "{what} が {to} に移転。以後は新しいアドレスを使います",
                what = what.phrase(),
                to = Value::link(to)
            ),
            BlogEvent::Moved { what, to, adopted: false } => phrase!(
                "{what} moved to {to}; change the address in the config",
                "{what} が {to} に移転。設定のアドレスを変更してください",
                what = what.phrase(),
                to = Value::link(to)
            ),
            BlogEvent::DetectorChanged { before: Some(before), now } => phrase!(
                "read by {now} instead of {before}",
                "{before} から {now} に切り替え",
                now = now.phrase(),
                before = before.phrase()
            ),
            BlogEvent::DetectorChanged { before: None, now } => {
                phrase!("read by {now}", "{now} で確認", now = now.phrase())
            }
            BlogEvent::Recovered { failures, .. } => phrase!(
                "can be read again after {failures failure}",
                "{failures} 回の失敗のあと復旧",
                failures = failures.unwrap_or(1)
            ),
            BlogEvent::Failing(failing) => phrase!(
                "failing since {since} ({failures check} in a row): {error}",
                "{since} から {failures} 回連続で失敗：{error}",
                failures = failing.failures,
                since = failing.since,
                error = &failing.error
            ),
            BlogEvent::Gone(failing) => {
                phrase!("gone, paused: {error}", "消滅のため一時停止：{error}", error = &failing.error)
            }
            BlogEvent::Resumed => phrase!("resumed", "再開"),
            BlogEvent::Paused => phrase!("paused by hand", "手動で一時停止"),
            BlogEvent::FeedStopped { newest: Some(newest) } => phrase!(
                "the feed has stopped (newest entry {newest}) while the sitemap grows",
                "サイトマップは増えていますが、フィードは止まっています（最新の記事：{newest}）"
            ),
            BlogEvent::FeedStopped { newest: None } => phrase!(
                "the feed has stopped while the sitemap grows",
                "サイトマップは増えていますが、フィードは止まっています"
            ),
            BlogEvent::Silent { last, usual_gap_secs } => phrase!(
                "nothing new since {last}; usually something comes every {gap}",
                "{last} 以降の新着なし（通常は {gap} ごと）",
                gap = Duration::from_secs(*usual_gap_secs)
            ),
            BlogEvent::SilenceOver => phrase!("something new again", "新着が再開"),
            BlogEvent::ReadInPart { cut } => {
                phrase!("read in part: {why}", "一部のみ読み込み：{why}", why = cut::phrase(*cut))
            }
            BlogEvent::ReadWhole => phrase!("read whole again", "すべて読み込み"),
        }
    }
}
