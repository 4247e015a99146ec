//! The state machine of the seed as a pure table: an item and an event give a transition.

use std::time::Duration;

use super::events::ItemCode;
use super::model::{Item, Reason, Status};
use crate::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Worth a summary, by the model.
    Worth,
    /// Not worth a summary, by the model.
    NotWorth,
    /// The page is not complete yet, by the model.
    NotReady,
    /// The page is unchanged since the item was deferred, and its verdict is known.
    Unchanged,
    /// The same, and the longest wait is over.
    WaitOver,
    /// The page or a file could not be fetched.
    DownloadFailed,
    /// All its files are too large.
    FilesTooLarge,
    /// The model has no usable answer for it.
    ModelFailed,
    /// Its post was accepted.
    Posted,
    /// Its post was refused, or every attempt failed.
    PostFailed,
    /// A user skipped its post or the item.
    Skipped,
    /// A user retried it.
    Retried,
    /// The retry limit had been reached before.
    LimitReached,
    /// Its page or a file could not be fetched, and neither can its whole host.
    OutOfReach,
}

impl Event {
    pub fn code(self) -> ItemCode {
        match self {
            Event::Worth => ItemCode::Worth,
            Event::NotWorth => ItemCode::NotValuable,
            Event::NotReady => ItemCode::PageNotReady,
            Event::Unchanged => ItemCode::Unchanged,
            Event::WaitOver => ItemCode::WaitOver,
            Event::DownloadFailed => ItemCode::DownloadFailed,
            Event::FilesTooLarge => ItemCode::LargeFileSkipped,
            Event::ModelFailed => ItemCode::ModelFailed,
            Event::Posted => ItemCode::Posted,
            Event::PostFailed => ItemCode::PostFailed,
            Event::Skipped => ItemCode::Skipped,
            Event::Retried => ItemCode::Retried,
            Event::LimitReached => ItemCode::Closed,
            Event::OutOfReach => ItemCode::OutOfReach,
        }
    }
}

/// How often and how long a job tries an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// An item is closed after more failed attempts than this.
    pub max_retries: u32,
    /// What to do with an item that is not worth a summary.
    pub not_valuable: NotValuable,
    /// How long an item whose page does not change is checked again.
    pub wait_for_page: Duration,
}

impl RetryLimits {
    fn are_exceeded_by(&self, retry_count: u32) -> bool {
        retry_count > self.max_retries
    }
}

/// What to do with an item that is not worth a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotValuable {
    /// Defer it, as in the seed: the page may change.
    #[default]
    Defer,
    Close,
    /// Post it without a summary.
    PostTitle,
}

/// The new values of an item. `last_checked_at` is always set to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    pub status: Status,
    /// None unless deferred or processed.
    pub reason: Option<Reason>,
    pub retry_count: u32,
    pub last_checked_at: Timestamp,
    /// Not processed before this moment.
    pub not_before: Option<Timestamp>,
    /// Since when it is deferred.
    pub deferred_since: Option<Timestamp>,
}

impl Transition {
    /// Extends `not_before` to the end of the wait that a server has earliest for.
    #[must_use]
    pub fn not_within(self, wait: Option<Duration>) -> Self {
        let earliest = wait.map(|wait| self.last_checked_at.plus(wait.min(GAPS[GAPS.len() - 1])));
        Self {
            not_before: self.not_before.map(|at| earliest.map_or(at, |earliest| earliest.max(at))),
            ..self
        }
    }
}

/// The delays between tries; the last one repeats.
const GAPS: [Duration; 4] = [
    Duration::from_secs(15 * 60),
    Duration::from_secs(3600),
    Duration::from_secs(6 * 3600),
    Duration::from_secs(24 * 3600),
];

/// The longest deferral; the tolerance is for machines whose clocks differ.
pub const LONGEST_WAIT: Duration = GAPS[GAPS.len() - 1].saturating_add(Duration::from_secs(10 * 60));

/// Whether an item has already exceeded the retry limit: its last failure was a post, which does not apply the limit,
/// or the limit was lowered since.
pub fn retries_exhausted(item: &Item, limits: &RetryLimits) -> bool {
    limits.are_exceeded_by(item.retry_count)
}

/// The transition of `item` by `event`, or `None` when the event does not apply in its current status.
///
/// A processed item stays processed; only a user can open it again. Without `limits` (where there is no config) nothing
/// is closed, and the next check applies the limit.
pub fn after(item: &Item, event: Event, limits: Option<&RetryLimits>, now: Timestamp) -> Option<Transition> {
    use Status::{Deferred, Pending, Processed, Unprocessed};
    let over = |reason, retry_count| Transition {
        status: Processed,
        reason: Some(reason),
        retry_count,
        last_checked_at: now,
        not_before: None,
        deferred_since: item.deferred_since,
    };
    let on_its_way = |status, retry_count| Transition {
        status,
        reason: None,
        retry_count,
        last_checked_at: now,
        not_before: None,
        deferred_since: None,
    };
    let put_off = |reason| defer_or_close(item, reason, limits, now);
    match (item.status, event) {
        (Processed, Event::Retried) | (Unprocessed | Deferred, Event::Retried) => {
            Some(on_its_way(Unprocessed, 0))
        }
        // A user sent a post that had failed or was no longer expected.
        (Processed, Event::Posted) if item.reason.is_some_and(|reason| reason != Reason::None) => {
            Some(over(Reason::None, item.retry_count))
        }
        (Processed, _) => None,
        (_, Event::Skipped) => Some(over(Reason::None, item.retry_count)),
        (_, Event::LimitReached) => Some(over(Reason::RetryLimitExceeded, item.retry_count)),
        // A server or network that is down says nothing about the item, which only moves behind the others.
        (_, Event::OutOfReach) => Some(Transition {
            status: item.status,
            reason: item.reason,
            retry_count: item.retry_count,
            last_checked_at: now,
            not_before: Some(now.plus(GAPS[0])),
            deferred_since: item.deferred_since,
        }),
        (_, Event::DownloadFailed) => Some(put_off(Reason::DownloadFailed)),
        (_, Event::ModelFailed) => Some(put_off(Reason::ApiFailed)),

        (Unprocessed | Deferred, Event::Worth) => Some(on_its_way(Pending, item.retry_count)),
        (Unprocessed | Deferred, Event::NotWorth) => Some(match limits.map(|limits| limits.not_valuable) {
            Some(NotValuable::Defer) | None => put_off(Reason::NotValuable),
            Some(NotValuable::Close) => over(Reason::NotValuable, item.retry_count.saturating_add(1)),
            Some(NotValuable::PostTitle) => on_its_way(Pending, item.retry_count),
        }),
        (Unprocessed | Deferred, Event::NotReady) => Some(put_off(Reason::PageNotReady)),

        (Deferred, Event::Unchanged) => Some(Transition {
            reason: item.reason,
            not_before: Some(now.plus(next_gap(item))),
            deferred_since: deferred_since(item, now),
            ..on_its_way(Deferred, item.retry_count)
        }),
        (Deferred, Event::WaitOver) => Some(over(Reason::RetryLimitExceeded, item.retry_count)),

        (Pending, Event::FilesTooLarge) => Some(put_off(Reason::LargeFileSkipped)),
        (_, Event::Posted) => Some(over(Reason::None, item.retry_count)),
        (Pending, Event::PostFailed) => Some(put_off(Reason::ApiFailed)),
        (Pending, Event::Retried) => Some(on_its_way(Pending, 0)),

        (Unprocessed | Deferred, Event::FilesTooLarge | Event::PostFailed)
        | (Unprocessed, Event::Unchanged | Event::WaitOver)
        | (Pending, Event::Worth | Event::NotWorth | Event::NotReady | Event::Unchanged | Event::WaitOver) => {
            None
        }
    }
}

/// The event for an unchanged page with a known verdict: neither a try nor an event while the item is deferred for the
/// same reason, until the longest wait is over.
pub fn on_unchanged(item: &Item, verdict: Event, limits: &RetryLimits, now: Timestamp) -> Event {
    let reason = match (verdict, limits.not_valuable) {
        (Event::NotReady, _) => Reason::PageNotReady,
        (Event::NotWorth, NotValuable::Defer) => Reason::NotValuable,
        _ => return verdict,
    };
    if item.status != Status::Deferred || item.reason != Some(reason) {
        return verdict;
    }
    match item.deferred_since {
        Some(since) if since.plus(limits.wait_for_page) <= now => Event::WaitOver,
        _ => Event::Unchanged,
    }
}

fn defer_or_close(item: &Item, reason: Reason, limits: Option<&RetryLimits>, now: Timestamp) -> Transition {
    let retry_count = item.retry_count.saturating_add(1);
    if limits.is_some_and(|limits| limits.are_exceeded_by(retry_count)) {
        return Transition {
            status: Status::Processed,
            reason: Some(Reason::RetryLimitExceeded),
            retry_count,
            last_checked_at: now,
            not_before: None,
            deferred_since: item.deferred_since,
        };
    }
    Transition {
        status: Status::Deferred,
        reason: Some(reason),
        retry_count,
        last_checked_at: now,
        not_before: Some(now.plus(gap_after(retry_count))),
        deferred_since: deferred_since(item, now),
    }
}

/// Since when it is deferred; ignores a moment in the future, which a wrong clock wrote.
fn deferred_since(item: &Item, now: Timestamp) -> Option<Timestamp> {
    Some(item.deferred_since.filter(|since| *since <= now).unwrap_or(now))
}

/// The delay after the last one.
fn next_gap(item: &Item) -> Duration {
    let last = item.not_before.map_or(Duration::ZERO, |until| until.since(item.last_checked_at));
    GAPS.into_iter().find(|gap| *gap > last).unwrap_or(GAPS[GAPS.len() - 1])
}

fn gap_after(retry_count: u32) -> Duration {
    let index = usize::try_from(retry_count.saturating_sub(1)).unwrap_or(usize::MAX);
    GAPS[index.min(GAPS.len() - 1)]
}

#[cfg(test)]
mod tests;
