//! Decides a failed check: counted, reported once it lasts, never taken for a change.

use std::time::Duration;

use super::{Change, Check, Code, Decision, Detail, Next, Record, SURE_AFTER, adopt_settings, same_settings};
use crate::blogs::config::{Blog, Rules};
use crate::blogs::events::{BlogEvent, Failing};
use crate::blogs::model::{CheckFailure, CheckFailureKind, Detector, Sighting, State};

/// How often a reminder of a failing blog is recorded.
const REMIND_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// Runs do not begin exactly on time: a reminder may come this much early.
const REMIND_SLACK: Duration = Duration::from_secs(5 * 60);
/// The longest wait that a server can ask for.
const MAX_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn decide_check(
    blog: &Blog,
    rules: &Rules,
    state: &State,
    sighting: &Sighting,
    trouble: &CheckFailure,
) -> Decision {
    let now = sighting.checked_at;
    let check = Check { error_message: Some(trouble.message.clone()), ..Check::default() };
    let mut next = Next::new(blog, state, sighting, check);
    let mut pause = None;
    let remembered = &mut *next.state;
    remembered.last_check_at = Some(now);
    remembered.failures_in_a_row = remembered.failures_in_a_row.saturating_add(1);
    remembered.not_before = None;
    let since = *remembered.failing_since.get_or_insert(now);
    let failures = remembered.failures_in_a_row;
    match trouble.kind {
        CheckFailureKind::Later(after) => remembered.not_before = Some(now.plus(after.min(MAX_PAUSE))),
        // Search in the next check: this one has made enough requests.
        CheckFailureKind::Lost(Detector::Feed) if failures >= SURE_AFTER => {
            remembered.next_feed_discovery_at.get_or_insert(now);
        }
        CheckFailureKind::Lost(Detector::Sitemap) if failures >= SURE_AFTER => {
            remembered.next_sitemap_discovery_at.get_or_insert(now);
        }
        CheckFailureKind::Gone => {
            pause = Some(trouble.message.clone());
            // It is paused under the current settings: only other settings resume it.
            if !same_settings(blog, remembered) {
                forget_documents(remembered);
            }
            adopt_settings(remembered, blog);
        }
        _ => {}
    }
    if remembered.settings_hash.is_none() {
        adopt_settings(remembered, blog);
    }
    let detail = Detail {
        error: Some(trouble.message.clone()),
        failures: Some(failures),
        since: Some(since),
        ..Detail::default()
    };
    let failing = Failing { error: trouble.message.clone(), failures, since };
    if pause.is_some() {
        remembered.warned_at = Some(now);
        next.events.push(BlogEvent::Gone(failing));
        next.changes.push(Change { code: Code::Gone, held: false, detail });
    } else if failures >= rules.warn_after {
        let again = remembered.warned_at.is_some();
        let is_time = remembered.warned_at.is_none_or(|at| now.since(at) + REMIND_SLACK >= REMIND_EVERY);
        if is_time {
            remembered.warned_at = Some(now);
            next.events.push(BlogEvent::Failing(failing));
            next.changes.push(Change {
                code: Code::Failing,
                held: false,
                detail: Detail { again, ..detail },
            });
        }
    }
    Decision {
        state: Some(next.state),
        check: next.check,
        record: Record::These(Vec::new()),
        changes: next.changes,
        events: next.events,
        pause,
    }
}

/// Discards documents that were found under other settings; seen entries stay.
fn forget_documents(state: &mut State) {
    state.known.clear();
    (state.feed_url, state.sitemap_url) = (None, None);
    state.other_feeds.clear();
    (state.next_feed_discovery_at, state.next_sitemap_discovery_at) = (None, None);
    (state.feed_first_read_at, state.sitemap_first_read_at, state.html_first_read_at) = (None, None, None);
}
