//! New entries of a blog, and the changes that announce them.

use super::list::DATE_SLACK;
use super::{Change, Code, Detail, HoldReason, Next};
use crate::blogs::config::Rules;
use crate::blogs::events::BlogEvent;
use crate::blogs::model::{Detector, FoundEntry};
use crate::channel::outbox;
use crate::config::value::FirstRun;
use crate::time::Timestamp;

/// The most entries that are stored with one change; a site that rewrites itself may have tens of thousands.
const KEPT: usize = 500;

/// Entries to announce.
pub(super) struct News {
    pub(super) entries: Vec<FoundEntry>,
    pub(super) held_because: Option<HoldReason>,
    pub(super) gap: bool,
}

impl News {
    pub(super) fn new(entries: Vec<FoundEntry>) -> Self {
        Self { entries, held_because: None, gap: false }
    }

    /// Holds them if there are too many.
    pub(super) fn unless_too_many(mut self, rules: &Rules) -> Self {
        if outbox::should_hold(self.entries.len(), rules.hold_above, true) {
            let (entries, hold_above) = (self.entries.len(), rules.hold_above);
            self.held_because = Some(HoldReason::TooMany { entries, hold_above });
        }
        self
    }
}

/// Pages of a sitemap read for the first time that `lastmod` proves new. If most addresses have a new date, the site
/// was rebuilt, and that proves nothing.
pub(super) fn proven_new(
    entries: &[FoundEntry],
    unseen: &[&FoundEntry],
    since: Timestamp,
    now: Timestamp,
) -> Vec<FoundEntry> {
    let is_new =
        |entry: &&&FoundEntry| entry.published_at.is_some_and(|at| since < at && at <= now.plus(DATE_SLACK));
    let new: Vec<FoundEntry> = unseen.iter().filter(is_new).map(|entry| (*entry).clone()).collect();
    if new.len() * 2 > entries.len() { Vec::new() } else { new }
}

/// The entries that a first check announces.
pub(super) fn first_news(entries: &[FoundEntry], first_run: FirstRun) -> Vec<FoundEntry> {
    match first_run {
        FirstRun::Baseline => Vec::new(),
        FirstRun::All => entries.to_vec(),
        FirstRun::Latest(count) => {
            let mut newest: Vec<&FoundEntry> = entries.iter().collect();
            if newest.iter().all(|entry| entry.published_at.is_some()) {
                newest.sort_by_key(|entry| std::cmp::Reverse(entry.published_at));
            }
            newest.into_iter().take(count as usize).cloned().collect()
        }
    }
}

pub(super) fn announce(next: &mut Next, detector: Detector, rules: &Rules, mut news: News) {
    if news.entries.is_empty() {
        return;
    }
    next.check.changed = true;
    next.state.last_change_at = Some(next.now);
    let first = news
        .entries
        .iter()
        .take(5)
        .map(|entry| Some(entry.name().unwrap_or(&entry.key).to_owned()))
        .collect();
    let (entries, held) = (news.entries.len(), news.held_because.clone());
    next.events.push(BlogEvent::New { detector, entries, first, held });
    // Each has a separate message, unless all of them need approval.
    if !rules.digest && news.held_because.is_none() && news.entries.len() <= KEPT {
        let detail = Detail { detector: Some(detector), gap: news.gap, ..Detail::default() };
        // The oldest comes first, by the order of the document.
        next.changes.extend(news.entries.into_iter().rev().map(|entry| Change {
            code: Code::New,
            held: false,
            detail: Detail { entries: vec![entry], ..detail.clone() },
        }));
        return;
    }
    let more = news.entries.len().saturating_sub(KEPT);
    news.entries.truncate(KEPT);
    next.changes.push(Change {
        code: Code::New,
        held: news.held_because.is_some(),
        detail: Detail {
            entries: news.entries,
            more,
            detector: Some(detector),
            held_because: news.held_because,
            gap: news.gap,
            ..Detail::default()
        },
    });
}
