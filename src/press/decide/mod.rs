//! The state machine of the seed as a pure table: an item, an event, and what becomes of it.

use std::time::Duration;

use super::events::ItemCode;
use super::model::{Item, Reason, Status};
use crate::time::Timestamp;

/// What happened to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The model finds it worth a summary.
    Worth,
    /// The model finds it not worth a summary.
    NotWorth,
    /// The model finds the page not finished yet.
    NotReady,
    /// The page is as it was when it was put off, and what the model said about it is known.
    Unchanged,
    /// The same, and it was waited for long enough.
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
    /// A person decided against its post, or against the item.
    Skipped,
    /// A person wants it looked at again.
    Retried,
    /// It was found to have been tried too often already.
    LimitReached,
    /// Its page or a file could not be fetched, and neither can anything else where it is.
    OutOfReach,
}

impl Event {
    /// The code of its event.
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
    /// What becomes of an item that is not worth a summary.
    pub not_valuable: NotValuable,
    /// How long an item whose page does not change is checked again.
    pub wait_for_page: Duration,
}

impl RetryLimits {
    fn are_exceeded_by(&self, retry_count: u32) -> bool {
        retry_count > self.max_retries
    }
}

/// What becomes of an item that is not worth a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotValuable {
    /// It is put off, as in the seed: the page may change.
    #[default]
    Defer,
    /// It is closed at once.
    Close,
    /// It is posted with its title alone.
    PostTitle,
}

/// What an item becomes. `last_checked_at` becomes now, always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The new status.
    pub status: Status,
    /// The new reason; none while it is on its way.
    pub reason: Option<Reason>,
    /// The new number of failed attempts.
    pub retry_count: u32,
    pub last_checked_at: Timestamp,
    /// Not to be looked at earlier.
    pub not_before: Option<Timestamp>,
    /// Since when it is put off.
    pub deferred_since: Option<Timestamp>,
}

impl Transition {
    /// The same, but not before the wait is over that a server has asked for.
    #[must_use]
    pub fn not_within(self, wait: Option<Duration>) -> Self {
        let asked = wait.map(|wait| self.last_checked_at.plus(wait.min(GAPS[GAPS.len() - 1])));
        Self { not_before: self.not_before.map(|at| asked.map_or(at, |asked| asked.max(at))), ..self }
    }
}

/// The gaps between tries; the last one repeats.
const GAPS: [Duration; 4] = [
    Duration::from_secs(15 * 60),
    Duration::from_secs(3600),
    Duration::from_secs(6 * 3600),
    Duration::from_secs(24 * 3600),
];

/// No item is put off for longer; the slack is for machines whose clocks differ.
pub const LONGEST_WAIT: Duration = GAPS[GAPS.len() - 1].saturating_add(Duration::from_secs(10 * 60));

/// Whether an item was tried too often already: its last failure was a post, which knows no limits, or the limit was
/// lowered since.
pub fn retries_exhausted(item: &Item, limits: &RetryLimits) -> bool {
    limits.are_exceeded_by(item.retry_count)
}

/// What `item` becomes by `event`, or `None` when the event does not concern an item that stands where it does.
///
/// An item that is processed stays processed, whatever happens; only a person can open it again. Where the config is
/// not at hand there are no `limits`: nothing is closed then, and the next look finds out whether it is spent.
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
        // A person sent the post that had failed, or that nobody waited for any more.
        (Processed, Event::Posted) if item.reason.is_some_and(|reason| reason != Reason::None) => {
            Some(over(Reason::None, item.retry_count))
        }
        (Processed, _) => None,
        (_, Event::Skipped) => Some(over(Reason::None, item.retry_count)),
        (_, Event::LimitReached) => Some(over(Reason::RetryLimitExceeded, item.retry_count)),
        // A server or a line that is down says nothing about the item, which only gives way to others.
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

/// What a verdict comes to that was known before, about a page that is as it was: no try and no story while it is put off for
/// the same reason, until it was waited for long enough.
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

/// Since when it is put off; a clock that was ahead does not count.
fn deferred_since(item: &Item, now: Timestamp) -> Option<Timestamp> {
    Some(item.deferred_since.filter(|since| *since <= now).unwrap_or(now))
}

/// The gap above the last one.
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
