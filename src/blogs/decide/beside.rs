//! A feed that has stopped while its site continues: when to read the sitemap, too, and when that takes over.

use std::time::Duration;

use super::list;
use super::news::{self, News};
use super::{Next, SEARCH_EVERY, SeenEntries, same_settings};
use crate::blogs::config::{Blog, Rules};
use crate::blogs::events::BlogEvent;
use crate::blogs::model::{Detector, DetectorResult, FoundEntry, KnownDocument, State};
use crate::time::Timestamp;

/// A feed whose newest entry is older than this may be abandoned.
const STOPPED_AFTER: Duration = Duration::from_secs(180 * 24 * 60 * 60);
/// How often the sitemap is read in addition to such a feed.
const CROSS_CHECK_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether to read the sitemap in addition to a feed with the result `reading`. A configured feed is the user's choice.
pub fn should_cross_check(blog: &Blog, state: &State, reading: &DetectorResult, now: Timestamp) -> bool {
    let newest = match reading {
        DetectorResult::Entries { entries, .. } => newest_of(entries, now),
        DetectorResult::Unchanged { .. } => state.feed_newest_at,
    };
    let is_old = |at: Timestamp| at.plus(STOPPED_AFTER) < now;
    state.last_success_at.is_some()
        && blog.uses(Detector::Sitemap)
        && blog.feed.is_none()
        && newest.is_some_and(is_old)
        && state.last_change_at.is_none_or(is_old)
        && state.looked_beside_at.is_none_or(|at| at > now || now.since(at) >= CROSS_CHECK_EVERY)
}

/// Whether a stopped feed has newer entries.
pub fn has_resumed(state: &State, reading: &DetectorResult, now: Timestamp) -> bool {
    match reading {
        DetectorResult::Entries { entries, .. } => newest_of(entries, now) > state.feed_newest_at,
        DetectorResult::Unchanged { .. } => false,
    }
}

/// The date of the newest entry; ignores future dates.
pub(super) fn newest_of(entries: &[FoundEntry], now: Timestamp) -> Option<Timestamp> {
    entries.iter().filter_map(|entry| entry.published_at).filter(|at| *at <= now).max()
}

/// Whether the feed is not used because it has stopped.
pub(super) fn is_stopped(blog: &Blog, state: &State) -> bool {
    state.feed_stopped_at.is_some() && blog.feed.is_none() && same_settings(blog, state)
}

/// Takes the sitemap into `next`; returns whether it is used from now on.
///
/// The first read only sets the baseline, except for pages that `lastmod` proves new.
pub(super) fn read(
    next: &mut Next,
    blog: &Blog,
    rules: &Rules,
    state: &State,
    (entries, known): (&[FoundEntry], &[KnownDocument]),
    seen: &SeenEntries,
) -> bool {
    let now = next.now;
    next.state.looked_beside_at = Some(now);
    next.state.sitemap_first_read_at.get_or_insert(now);
    let unseen: Vec<&FoundEntry> = entries.iter().filter(|entry| !seen.knows(entry)).collect();
    next.record.add(unseen.iter().map(|entry| (*entry).clone()));
    let unannounced: Vec<FoundEntry> = match (state.last_success_at, state.sitemap_first_read_at) {
        (None, _) => Vec::new(),
        (Some(since), None) => news::proven_new(entries, &unseen, since, now),
        (Some(_), Some(_)) => unseen.into_iter().cloned().collect(),
    };
    if unannounced.is_empty() {
        return false;
    }
    next.events.push(BlogEvent::FeedStopped { newest: state.feed_newest_at });
    next.state.feed_stopped_at = Some(now);
    next.state.next_feed_discovery_at = Some(now.plus(SEARCH_EVERY));
    next.state.known = known.to_vec();
    list::remember(next, blog, Detector::Sitemap, entries, entries.len(), Vec::new());
    news::announce(next, Detector::Sitemap, rules, News::new(unannounced).unless_too_many(rules));
    true
}
