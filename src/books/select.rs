//! Selects the books of a digest: undelivered ones, else a few that were sent long ago.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::filter::BookFilter;
use super::model::Book;
use super::store;
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::time::Timestamp;

/// How long a job makes no digest after a refused one; `delivery retry` sends the refused one at once.
const REFUSAL_PAUSE: Duration = Duration::from_secs(23 * 60 * 60);

/// The least time before a book is sent again.
const LONG_AGO: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Which books a digest may have, and how many.
#[derive(Clone, Debug)]
pub struct DigestLimits {
    /// Of books that are new to the reader.
    pub mail_limit: u32,
    /// Of books that are sent again.
    pub fallback_limit: u32,
    /// The zone of the calendar day; a day with another digest gets no repeats.
    pub zone: TimeZone,
    /// The filter, for new books and repeats.
    pub wanted: BookFilter,
}

/// The selected books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Books that this job has not delivered.
    New(Vec<Book>),
    /// Books that it delivered long ago, to be repeated.
    Repeats(Vec<Book>),
    Nothing,
}

impl Selection {
    /// The books of either kind.
    pub fn books(&self) -> &[Book] {
        match self {
            Selection::New(books) | Selection::Repeats(books) => books,
            Selection::Nothing => &[],
        }
    }
}

/// Selects the books of the next digest of `job`.
pub fn choose(
    tx: &mut Tx<'_>,
    job: &JobName,
    limits: &DigestLimits,
    now: Timestamp,
) -> db::Result<Selection> {
    if next_digest_at(tx, job, now)?.is_some() {
        return Ok(Selection::Nothing);
    }
    let new =
        list_wanted(limits.mail_limit, &limits.wanted, |limit| store::list_undelivered(tx, job, limit, now))?;
    if !new.is_empty() {
        return Ok(Selection::New(new));
    }
    let undelivered = store::count_undelivered(tx, job)?;
    let on_their_way = store::count_waiting(tx, job)?;
    let last_digest_at = store::last_digest_at(tx, job)?;
    if !may_repeat(undelivered, on_their_way, last_digest_at, limits, now) {
        return Ok(Selection::Nothing);
    }
    let repeats = list_wanted(limits.fallback_limit, &limits.wanted, |limit| {
        store::list_repeatable(tx, job, now.minus(LONG_AGO), limit, now)
    })?;
    Ok(if repeats.is_empty() { Selection::Nothing } else { Selection::Repeats(repeats) })
}

/// The first `limit` matching books of a list. `list` returns its first books, as many as requested.
fn list_wanted(
    limit: u32,
    wanted: &BookFilter,
    mut list: impl FnMut(u32) -> db::Result<Vec<Book>>,
) -> db::Result<Vec<Book>> {
    let mut count = limit;
    loop {
        let mut books = list(count)?;
        let is_all = books.len() < count as usize;
        books.retain(|book| wanted.fits(book));
        if is_all || books.len() >= limit as usize {
            books.truncate(limit as usize);
            return Ok(books);
        }
        count = count.saturating_mul(10);
    }
}

/// When `job` makes its next digest, if it is paused because the last one was refused.
pub fn next_digest_at(tx: &mut Tx<'_>, job: &JobName, now: Timestamp) -> db::Result<Option<Timestamp>> {
    Ok(pause_end(store::refused_at(tx, job)?, now))
}

/// The end of the pause after a refusal: a server that refused will not change its mind within hours. Ignores a refusal
/// in the future, which a wrong clock wrote.
fn pause_end(refused_at: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    refused_at
        .filter(|at| *at <= now.with_skew() && now.since(*at) < REFUSAL_PAUSE)
        .map(|at| at.plus(REFUSAL_PAUSE))
}

/// Whether old books may be repeated: no other book is undelivered or queued, and no digest was made today.
///
/// Without the last condition a job that runs every hour would send repeats around the clock, and the first of them an
/// hour after its last new book.
fn may_repeat(
    undelivered: i64,
    on_their_way: i64,
    last_digest_at: Option<Timestamp>,
    limits: &DigestLimits,
    now: Timestamp,
) -> bool {
    let today = now.date_in(&limits.zone);
    undelivered == 0
        && on_their_way == 0
        && limits.fallback_limit > 0
        && last_digest_at.is_none_or(|at| at.date_in(&limits.zone) != today)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_not_answered_with_the_next_digest() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-01-15T12:00:00Z");
        for (refused, expected) in [
            (None, None),
            (Some("2026-01-15T11:00:00Z"), Some("2026-01-16T10:00:00Z")),
            (Some("2026-01-14T13:00:01Z"), Some("2026-01-15T12:00:01Z")),
            (Some("2026-01-14T13:00:00Z"), None),
            (Some("2026-01-15T12:00:01Z"), Some("2026-01-16T11:00:01Z")),
            (Some("2037-01-01T00:00:00Z"), None),
        ] {
            assert_eq!(pause_end(refused.map(at), now), expected.map(at), "{refused:?}");
        }
    }

    #[test]
    fn repeats_are_told_when_nothing_else_is_and_once_a_day() {
        let zone = TimeZone::get("Asia/Tokyo").unwrap();
        let limits = |fallback_limit| DigestLimits {
            mail_limit: 5,
            fallback_limit,
            zone: zone.clone(),
            wanted: BookFilter::default(),
        };
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-01-15T15:00:00Z"); // midnight of the 16th in Tokyo
        for (undelivered, on_their_way, last, fallback_limit, expected) in [
            (0, 0, None, 3, true),
            (0, 0, None, 0, false),
            (1, 0, None, 3, false),
            (0, 1, None, 3, false),
            (0, 0, Some("2026-01-15T14:59:59.999Z"), 3, true),
            (0, 0, Some("2026-01-15T15:00:00Z"), 3, false),
        ] {
            let may = may_repeat(undelivered, on_their_way, last.map(at), &limits(fallback_limit), now);
            assert_eq!(may, expected, "{undelivered} {on_their_way} {last:?} {fallback_limit}");
        }
    }
}
