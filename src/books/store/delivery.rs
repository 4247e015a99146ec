//! Undelivered and delivered books: `delivery_items` is the truth, digests are what the outbox carries.

use std::time::Duration;

use super::books::select_books;
use crate::books::deliver::{SUBJECT, TOPIC};
use crate::books::model::{Book, Isbn13};
use crate::db::{self, FromRow, Tx};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest pause of a book after refusals.
const MAX_PAUSE: Duration = Duration::from_secs(32 * 24 * 60 * 60);

/// A digest in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedDigest {
    /// Its number; its subject in the outbox is `digest:ID`.
    pub id: i64,
    pub job_name: JobName,
    /// Whether it repeats books.
    pub is_repeat: bool,
    /// The delivery that its first acceptance wrote.
    pub delivery_id: Option<i64>,
    /// In order.
    pub isbns: Vec<Isbn13>,
}

/// The undelivered books of a job that are neither paused nor in a queued message, newest first.
///
/// The newest is the one found last; among those found together, the one published last.
pub fn list_undelivered(tx: &mut Tx<'_>, job: &JobName, limit: u32, now: Timestamp) -> db::Result<Vec<Book>> {
    tx.list(
        sql!(concat!(select_books!(), " FROM job_books j JOIN books b ON b.isbn13 = j.isbn13
             WHERE j.job_name = ?1 AND j.is_waiting = 1
               AND (j.rests_until IS NULL OR j.rests_until <= ?3 OR j.rests_until > ?4)
               AND NOT EXISTS (SELECT 1 FROM delivery_items d WHERE d.job_name = j.job_name AND d.isbn13 = j.isbn13)
               AND NOT EXISTS (
                 SELECT 1 FROM book_digest_items i JOIN book_digests g ON g.id = i.digest_id
                   JOIN outbox o ON o.topic = ?5 AND o.subject = ?6 || CAST(g.id AS TEXT)
                 WHERE i.isbn13 = j.isbn13 AND g.job_name = j.job_name
                   AND o.state IN ('ready', 'sending', 'unknown', 'held'))
             ORDER BY j.first_seen_at DESC, COALESCE(b.published_date, '') DESC, j.isbn13
             LIMIT ?2"
        )),
        // Ignore a pause that ends implausibly late: the clock was wrong when it was written.
        params![job, limit, now, now.plus(MAX_PAUSE), TOPIC, SUBJECT],
        super::books::read,
    )
}

/// When the newest digest of a job was refused, unless it was sent by hand later.
pub fn refused_at(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Option<Timestamp>> {
    let newest = tx.find(
        sql!(
            "SELECT CASE WHEN delivery_id IS NULL THEN refused_at END FROM book_digests WHERE job_name = ?1
             ORDER BY id DESC LIMIT 1"
        ),
        params![job],
        |row| row.get(0),
    )?;
    Ok(newest.flatten())
}

/// Records that every message of a digest failed, and pauses its books: longer each time, so that one that makes every
/// mail be refused does not block the others.
pub fn mark_refused(tx: &mut Tx<'_>, digest: &QueuedDigest, now: Timestamp) -> db::Result<()> {
    tx.execute(sql!("UPDATE book_digests SET refused_at = ?2 WHERE id = ?1"), params![digest.id, now])?;
    for isbn13 in &digest.isbns {
        let refusals = tx.count(
            sql!(
                "UPDATE job_books SET refusals = refusals + 1 WHERE job_name = ?1 AND isbn13 = ?2
                 RETURNING refusals"
            ),
            params![digest.job_name, isbn13],
        )?;
        tx.execute(
            sql!("UPDATE job_books SET rests_until = ?3 WHERE job_name = ?1 AND isbn13 = ?2"),
            params![digest.job_name, isbn13, now.plus(pause_after(refusals))],
        )?;
    }
    Ok(())
}

/// The pause of a book after that many refusals: a day, doubled each time.
fn pause_after(refusals: i64) -> Duration {
    let doublings = u32::try_from(refusals.saturating_sub(1)).unwrap_or(0).min(10);
    (DAY * 2_u32.pow(doublings)).min(MAX_PAUSE)
}

/// How many books a job has not delivered, including queued ones.
pub fn count_undelivered(tx: &mut Tx<'_>, job: &JobName) -> db::Result<i64> {
    tx.count(
        sql!(
            "SELECT COUNT(*) FROM job_books j WHERE j.job_name = ?1 AND j.is_waiting = 1
               AND NOT EXISTS (SELECT 1 FROM delivery_items d WHERE d.job_name = j.job_name AND d.isbn13 = j.isbn13)"
        ),
        params![job],
    )
}

/// How many digests of a job are queued.
pub fn count_waiting(tx: &mut Tx<'_>, job: &JobName) -> db::Result<i64> {
    tx.count(
        sql!(
            "SELECT COUNT(DISTINCT subject) FROM outbox WHERE job_name = ?1 AND topic = ?2
               AND state IN ('ready', 'sending', 'unknown', 'held')"
        ),
        params![job, TOPIC],
    )
}

/// Whether the newest digest of a job is still to be sent to the first of its readers, on one of the channels that the job
/// delivers to now. One that a person has to decide about does not count: that may take for ever.
pub fn has_unsent_digest(tx: &mut Tx<'_>, job: &JobName, deliver: &[String]) -> db::Result<bool> {
    let unsent_on: Vec<String> = tx.list(
        sql!(
            "SELECT DISTINCT channel FROM outbox WHERE topic = ?2 AND state IN ('ready', 'sending', 'unknown')
               AND subject = (SELECT CASE WHEN delivery_id IS NULL THEN ?3 || CAST(id AS TEXT) END
                              FROM book_digests WHERE job_name = ?1 ORDER BY id DESC LIMIT 1)"
        ),
        params![job, TOPIC, SUBJECT],
        |row| row.get(0),
    )?;
    Ok(unsent_on.iter().any(|channel| deliver.contains(channel)))
}

/// How many undelivered books of a job are in a queued digest.
pub fn count_on_their_way(tx: &mut Tx<'_>, job: &JobName) -> db::Result<i64> {
    let subjects: Vec<String> = tx.list(
        sql!(
            "SELECT DISTINCT subject FROM outbox WHERE job_name = ?1 AND topic = 'books.digest'
               AND state IN ('ready', 'sending', 'unknown', 'held')"
        ),
        params![job],
        |row| row.get(0),
    )?;
    let mut books = 0;
    for id in subjects.iter().filter_map(|subject| subject.strip_prefix("digest:")?.parse::<i64>().ok()) {
        books += tx.count(
            sql!(
                "SELECT COUNT(*) FROM book_digests g JOIN book_digest_items i ON i.digest_id = g.id
                 WHERE g.id = ?1 AND g.is_repeat = 0 AND g.delivery_id IS NULL"
            ),
            params![id],
        )?;
    }
    Ok(books)
}

/// How many undelivered books of a job are paused, because digests with them were refused.
pub fn count_paused(tx: &mut Tx<'_>, job: &JobName, now: Timestamp) -> db::Result<i64> {
    tx.count(
        sql!(
            "SELECT COUNT(*) FROM job_books j WHERE j.job_name = ?1 AND j.is_waiting = 1
               AND j.rests_until > ?2 AND j.rests_until <= ?3
               AND NOT EXISTS (SELECT 1 FROM delivery_items d WHERE d.job_name = j.job_name AND d.isbn13 = j.isbn13)"
        ),
        params![job, now, now.plus(MAX_PAUSE)],
    )
}

/// The pause of a book in a job.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, FromRow)]
pub struct BookPause {
    pub job_name: JobName,
    /// How many digests with the book were refused.
    pub refusals: i64,
    pub paused_until: Timestamp,
}

/// The jobs in which a book is paused now.
pub fn list_pauses(tx: &mut Tx<'_>, isbn13: &Isbn13, now: Timestamp) -> db::Result<Vec<BookPause>> {
    tx.list(
        sql!(
            "SELECT job_name, refusals, rests_until AS paused_until FROM job_books
             WHERE isbn13 = ?1 AND is_waiting = 1 AND rests_until > ?2 AND rests_until <= ?3 ORDER BY job_name"
        ),
        params![isbn13, now, now.plus(MAX_PAUSE)],
        FromRow::from_row,
    )
}

/// The books that a job sent longest ago, but not after `latest`.
pub fn list_repeatable(
    tx: &mut Tx<'_>,
    job: &JobName,
    latest: Timestamp,
    limit: u32,
    now: Timestamp,
) -> db::Result<Vec<Book>> {
    tx.list(
        sql!(concat!(
            select_books!(),
            " FROM job_books j JOIN books b ON b.isbn13 = j.isbn13
             WHERE j.job_name = ?1 AND j.last_sent_at IS NOT NULL
               AND (j.last_sent_at <= ?3 OR j.last_sent_at > ?4)
             ORDER BY j.last_sent_at, j.isbn13 LIMIT ?2"
        )),
        // A time in the future was written by a wrong clock.
        params![job, limit, latest, now.plus(DAY)],
        super::books::read,
    )
}

/// When a job last made a digest, of new books or repeats.
pub fn last_digest_at(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Option<Timestamp>> {
    tx.find(
        sql!("SELECT created_at FROM book_digests WHERE job_name = ?1 ORDER BY id DESC LIMIT 1"),
        params![job],
        |row| row.get(0),
    )
}

/// Adds a digest of these books; returns its number.
pub fn add_digest<'a>(
    tx: &mut Tx<'_>,
    job: &JobName,
    isbns: impl IntoIterator<Item = &'a Isbn13>,
    is_repeat: bool,
    now: Timestamp,
) -> db::Result<i64> {
    let id = tx.count(
        sql!("INSERT INTO book_digests (job_name, is_repeat, created_at) VALUES (?1, ?2, ?3) RETURNING id"),
        params![job, is_repeat, now],
    )?;
    for (position, isbn13) in isbns.into_iter().enumerate() {
        tx.execute(
            sql!("INSERT INTO book_digest_items (digest_id, position, isbn13) VALUES (?1, ?2, ?3)"),
            params![id, position, isbn13],
        )?;
    }
    Ok(id)
}

/// A digest by its number.
pub fn find_digest(tx: &mut Tx<'_>, id: i64) -> db::Result<Option<QueuedDigest>> {
    let found = tx.find(
        sql!("SELECT id, job_name, is_repeat, delivery_id FROM book_digests WHERE id = ?1"),
        params![id],
        |row| {
            Ok(QueuedDigest {
                id: row.get(0)?,
                job_name: row.get(1)?,
                is_repeat: row.get(2)?,
                delivery_id: row.get(3)?,
                isbns: Vec::new(),
            })
        },
    )?;
    let Some(mut digest) = found else { return Ok(None) };
    digest.isbns = tx.list(
        sql!("SELECT isbn13 FROM book_digest_items WHERE digest_id = ?1 ORDER BY position"),
        params![id],
        |row| row.get(0),
    )?;
    Ok(Some(digest))
}

/// Records the delivery of a digest, once; `None`, without a write, if it was recorded before.
///
/// A repeat does not change `delivery_items`: the job has already delivered the book.
pub fn mark_delivered(tx: &mut Tx<'_>, digest: &QueuedDigest, now: Timestamp) -> db::Result<Option<i64>> {
    // The condition makes the second of two recipients lose.
    let taken = tx.execute(
        sql!("UPDATE book_digests SET delivery_id = delivery_id WHERE id = ?1 AND delivery_id IS NULL"),
        params![digest.id],
    )?;
    if taken == 0 {
        return Ok(None);
    }
    let list = serde_json::json!(digest.isbns).to_string();
    let delivery_id = tx.count(
        sql!("INSERT INTO deliveries (job_name, delivered_at, isbn13_list_json) VALUES (?1, ?2, ?3) RETURNING id"),
        params![digest.job_name, now, list],
    )?;
    for isbn13 in &digest.isbns {
        if !digest.is_repeat {
            tx.execute(
                sql!(
                    "INSERT INTO delivery_items (delivery_id, job_name, isbn13, delivered_at)
                     VALUES (?1, ?2, ?3, ?4) ON CONFLICT (job_name, isbn13) DO NOTHING"
                ),
                params![delivery_id, digest.job_name, isbn13, now],
            )?;
        }
        tx.execute(sql!("UPDATE books SET last_delivered_at = ?2 WHERE isbn13 = ?1"), params![isbn13, now])?;
        tx.execute(
            sql!(
                "UPDATE job_books SET is_waiting = 0, last_sent_at = ?3 WHERE job_name = ?1 AND isbn13 = ?2"
            ),
            params![digest.job_name, isbn13, now],
        )?;
    }
    tx.execute(
        sql!("UPDATE book_digests SET delivery_id = ?2 WHERE id = ?1"),
        params![digest.id, delivery_id],
    )?;
    Ok(Some(delivery_id))
}

/// Resets deliveries of books, of one job or of all, since a moment or all; returns the pairs of job and book.
///
/// `deliveries` is the audit log and stays.
pub fn reset_deliveries(
    tx: &mut Tx<'_>,
    job: Option<&JobName>,
    since: Option<Timestamp>,
) -> db::Result<Vec<(JobName, Isbn13)>> {
    let forgotten: Vec<(JobName, Isbn13)> = tx.list(
        sql!(
            "DELETE FROM delivery_items
             WHERE job_name = COALESCE(?1, job_name) AND delivered_at >= COALESCE(?2, delivered_at)
             RETURNING job_name, isbn13"
        ),
        params![job, since],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (job, isbn13) in &forgotten {
        tx.execute(
            sql!(
                "UPDATE job_books SET is_waiting = 1, last_sent_at = NULL WHERE job_name = ?1 AND isbn13 = ?2"
            ),
            params![job, isbn13],
        )?;
        tx.execute(
            sql!(
                "UPDATE books SET last_delivered_at =
                   (SELECT MAX(d.delivered_at) FROM delivery_items d WHERE d.isbn13 = books.isbn13)
                 WHERE isbn13 = ?1"
            ),
            params![isbn13],
        )?;
    }
    Ok(forgotten)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_book_rests_longer_each_time_but_not_for_ever() {
        let days = [1, 2, 3, 4, 5, 6, 7, 90].map(|refusals| pause_after(refusals).as_secs() / DAY.as_secs());
        assert_eq!(days, [1, 2, 4, 8, 16, 32, 32, 32]);
    }
}
