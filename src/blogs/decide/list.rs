//! Interprets a list of entries: which are new, which need a second sighting, and which lists are suspect.

use std::collections::HashSet;
use std::time::Duration;

use super::beside::newest_of;
use super::news::{News, announce, first_news, proven_new};
use super::{
    HoldReason, Next, Record, SURE_AFTER, SeenEntries, adopt_settings, same_settings, unconfirmed_links,
};
use crate::blogs::config::{Blog, Rules};
use crate::blogs::detect;
use crate::blogs::events::BlogEvent;
use crate::blogs::model::{
    CheckFailure, CheckFailureKind, Detector, FoundEntry, RECENT_KEYS, RecentKeys, State, Unconfirmed,
};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// The tolerance for dates in feeds: some are those of a draft, or in a wrong zone.
pub(super) const DATE_SLACK: Duration = Duration::from_secs(24 * 60 * 60);
/// Below this many addresses a list is too short to be called shrunken or rewritten.
const SHORT_LIST: usize = 4;

/// A list that is not accepted yet.
pub(super) struct Suspected {
    pub(super) trouble: CheckFailure,
    pub(super) unconfirmed: Option<Unconfirmed>,
}

/// Rejects a list that is empty or less than half its previous size, like that of an error page.
///
/// A list that stays short is accepted in the end.
pub(super) fn suspicion(
    state: &State,
    blog: &Blog,
    detector: Detector,
    entries: &[FoundEntry],
    total: usize,
) -> Result<(), Suspected> {
    let before =
        if state.decided_by == Some(detector) && same_settings(blog, state) { state.url_count } else { 0 };
    let refuse = |kind, message: Phrase, unconfirmed| {
        Err(Suspected { trouble: CheckFailure { kind, message }, unconfirmed })
    };
    let kept = state.unconfirmed.clone();
    let times = match kept {
        Some(Unconfirmed::Shrunken(times)) => times.saturating_add(1),
        _ => 1,
    };
    let lost = CheckFailureKind::Lost(detector);
    match detector {
        // A new feed may be empty. One that had entries is empty only if it lists current things: papers of the day,
        // warnings.
        Detector::Feed if total == 0 && before > 0 && times < SURE_AFTER => {
            let message = phrase!(
                "the feed is empty; it had {before} entries",
                "フィードが空です（以前は {before} 件）"
            );
            refuse(lost, message, Some(Unconfirmed::Shrunken(times)))
        }
        Detector::Feed => Ok(()),
        Detector::Sitemap if entries.is_empty() => {
            let message = phrase!(
                "the sitemap lists no address that counts",
                "サイトマップに対象となるアドレスがありません"
            );
            refuse(lost, message, kept)
        }
        Detector::Html if entries.is_empty() => {
            let message = phrase!("the page has no link that counts", "ページに対象となるリンクがありません");
            refuse(CheckFailureKind::Other, message, kept)
        }
        // The content of such a list may differ each time: a news sitemap moves on.
        _ if before >= SHORT_LIST && entries.len() * 2 < before && times < SURE_AFTER => {
            let message = phrase!(
                "the {what} lists only {count} of {before} addresses: it looks broken",
                "{what} のアドレスが {before} 件から {count} 件に減りました（壊れているようです）",
                what = detector.word(),
                count = entries.len()
            );
            refuse(CheckFailureKind::Other, message, Some(Unconfirmed::Shrunken(times)))
        }
        _ => Ok(()),
    }
}

/// How new entries are determined.
enum Mode {
    /// The blog was never read: all entries are the baseline.
    First,
    /// This document was never read, or under other settings: only entries dated after this moment are new.
    Careful(Timestamp),
    /// Entries that were never seen are new.
    Usual,
}

/// Takes an accepted list into `next`.
pub(super) fn read(
    next: &mut Next,
    blog: &Blog,
    rules: &Rules,
    state: &State,
    (detector, entries, total): (Detector, &[FoundEntry], usize),
    seen: &SeenEntries,
) {
    let mode = match state.last_success_at {
        None => Mode::First,
        Some(at) if state.first_read_at(detector).is_none() || !same_settings(blog, state) => {
            Mode::Careful(at)
        }
        // Another sitemap lists other pages; that alone makes none of them new.
        Some(at) if detector == Detector::Sitemap && sitemap_changed(next, state) => Mode::Careful(at),
        Some(_) => Mode::Usual,
    };
    let unseen: Vec<&FoundEntry> = if is_plainly_known(state, detector, entries) {
        Vec::new()
    } else {
        entries.iter().filter(|entry| !seen.knows(entry)).collect()
    };
    let mut news = News::new(Vec::new());
    let mut waiting: Vec<String> = Vec::new();
    match mode {
        Mode::First => {
            news.entries = first_news(entries, rules.first_run);
            if detector == Detector::Feed {
                next.state.silence.begin(entries.iter().filter_map(|entry| entry.published_at), next.now);
            }
            let (entries, announced) = (entries.len(), news.entries.len());
            next.events.push(BlogEvent::Baseline { detector, entries, announced });
        }
        Mode::Careful(since) => {
            news.entries = match detector {
                Detector::Feed => {
                    unseen.iter().filter(|entry| is_after(entry, since)).map(|e| (*e).clone()).collect()
                }
                Detector::Sitemap => proven_new(entries, &unseen, since, next.now),
                Detector::Html => Vec::new(),
            };
            let (entries, announced) = (entries.len(), news.entries.len());
            next.events.push(BlogEvent::NewBaseline { detector, entries, announced });
        }
        Mode::Usual => match detector {
            Detector::Feed => usual_feed(next, state, entries, (&unseen, seen), &mut news),
            Detector::Sitemap | Detector::Html => {
                let mut confirmed = unseen.clone();
                if detector == Detector::Html && blog.confirm.unwrap_or(true) {
                    let before = unconfirmed_links(state);
                    confirmed.retain(|entry| before.contains(entry.key.as_str()));
                    waiting = unseen
                        .iter()
                        .filter(|entry| !before.contains(entry.key.as_str()))
                        .map(|entry| entry.key.clone())
                        .collect();
                }
                let known = entries.len() - unseen.len();
                if state.url_count >= SHORT_LIST && known * 4 < state.url_count && !confirmed.is_empty() {
                    news.held_because = Some(HoldReason::FewLeft { left: known, known: state.url_count });
                }
                news.entries = confirmed.into_iter().cloned().collect();
            }
        },
    }
    if !matches!(mode, Mode::First) {
        news = news.unless_too_many(rules);
    }
    record(next, &mode, entries, &unseen, &waiting, seen);
    remember(next, blog, detector, entries, total, waiting);
    announce(next, detector, rules, news);
}

/// Whether the state alone shows that nothing is new.
pub(super) fn is_plainly_known(state: &State, detector: Detector, entries: &[FoundEntry]) -> bool {
    match detector {
        Detector::Feed => {
            state.last_success_at.is_some() && {
                let recent: HashSet<String> = state.recent_entry_keys.list().into_iter().collect();
                entries.iter().all(|entry| recent.contains(&entry.key))
            }
        }
        _ => {
            state.unconfirmed.is_none()
                && state.decided_by == Some(detector)
                && state.url_fingerprint.as_deref() == Some(&detect::fingerprint(entries))
        }
    }
}

fn sitemap_changed(next: &Next, state: &State) -> bool {
    match (&state.sitemap_url, &next.state.sitemap_url) {
        (Some(before), Some(now)) => !super::same_address(before, now) && next.state.moved == state.moved,
        (before, now) => before.is_some() != now.is_some(),
    }
}

fn is_after(entry: &FoundEntry, since: Timestamp) -> bool {
    entry.published_at.is_some_and(|at| at > since.minus(DATE_SLACK))
}

/// When no known entry of a feed is left, either entries were missed or the feed was rewritten: the dates show which.
fn usual_feed(
    next: &mut Next,
    state: &State,
    entries: &[FoundEntry],
    (unseen, seen): (&[&FoundEntry], &SeenEntries),
    news: &mut News,
) {
    if !seen.replacing.is_empty() {
        next.events.push(BlogEvent::Rewritten { entries: seen.replacing.len() });
    }
    if unseen.is_empty() {
        return;
    }
    let recent = state.recent_entry_keys.list();
    let gap = !recent.is_empty() && unseen.len() == entries.len();
    news.entries = unseen.iter().map(|entry| (*entry).clone()).collect();
    if !gap {
        let older = list_moved_up(state, entries, seen);
        if !older.is_empty() {
            news.entries.retain(|entry| !older.contains(entry.key.as_str()));
            next.events.push(BlogEvent::MovedUp { entries: older.len() });
        }
        return;
    }
    let since = state.last_success_at.unwrap_or(next.now);
    news.entries.retain(|entry| entry.published_at.is_none() || is_after(entry, since));
    let rewritten = unseen.len() - news.entries.len();
    if rewritten > 0 {
        next.events.push(BlogEvent::Rewritten { entries: rewritten });
    }
    if news.entries.is_empty() {
        return;
    }
    // A feed of one entry never lists an older one; in all others some may have been missed.
    news.gap = rewritten == 0 && entries.len() > 1;
    if news.entries.len() > 1 && news.entries.iter().any(|entry| entry.published_at.is_none()) {
        news.held_because = Some(HoldReason::NoDates);
    }
    if news.gap {
        next.events.push(BlogEvent::Gap { entries: news.entries.len(), known_before: recent.len() });
    }
}

/// Entries that were beyond the end of the feed until one before them was removed, or until the feed listed more: they
/// come after all known ones, and are older than these and than the first check.
fn list_moved_up<'a>(state: &State, entries: &'a [FoundEntry], seen: &SeenEntries) -> HashSet<&'a str> {
    let last_known = entries.iter().rposition(|entry| seen.knows(entry));
    let (known, behind) = entries.split_at(last_known.map_or(0, |last| last + 1));
    let oldest = known.iter().filter(|entry| seen.knows(entry)).filter_map(|entry| entry.published_at).min();
    let Some(oldest) = oldest.min(state.feed_first_read_at) else { return HashSet::new() };
    let is_older = |entry: &&FoundEntry| entry.published_at.is_some_and(|at| at < oldest);
    behind.iter().filter(is_older).map(|entry| entry.key.as_str()).collect()
}

/// Adds unknown entries, and new addresses of known ones, to those seen.
fn record(
    next: &mut Next,
    mode: &Mode,
    entries: &[FoundEntry],
    unseen: &[&FoundEntry],
    waiting: &[String],
    seen: &SeenEntries,
) {
    if matches!(mode, Mode::First) {
        next.record = Record::All;
        return;
    }
    let waiting: HashSet<&str> = waiting.iter().map(String::as_str).collect();
    let mut record: Vec<FoundEntry> =
        unseen.iter().filter(|entry| !waiting.contains(entry.key.as_str())).map(|e| (*e).clone()).collect();
    for entry in entries.iter().filter(|entry| seen.knows(entry)) {
        match &entry.url_key {
            _ if !seen.keys.contains(&entry.key) => record.push(entry.clone()),
            Some(url) if !seen.url_keys.contains(url) => {
                record.push(FoundEntry { key: url.clone(), ..entry.clone() });
            }
            _ => {}
        }
    }
    next.record = Record::These(record);
}

pub(super) fn remember(
    next: &mut Next,
    blog: &Blog,
    detector: Detector,
    entries: &[FoundEntry],
    total: usize,
    waiting: Vec<String>,
) {
    let state = &mut *next.state;
    state.unconfirmed = (!waiting.is_empty()).then_some(Unconfirmed::Links(waiting));
    match detector {
        Detector::Feed => {
            let recent: Vec<&str> =
                entries.iter().take(RECENT_KEYS).map(|entry| entry.key.as_str()).collect();
            state.recent_entry_keys = RecentKeys::new(&recent);
            state.feed_newest_at = newest_of(entries, next.now).or(state.feed_newest_at);
            state.url_count = total;
        }
        Detector::Sitemap | Detector::Html => {
            let print = detect::fingerprint(entries);
            next.check.url_fingerprint = Some(print.clone());
            state.url_fingerprint = Some(print);
            state.url_count = entries.len();
        }
    }
    adopt_settings(state, blog);
}
