//! Listings of books, digests and tokens.

use super::books::select_books;
use crate::books::model::{Book, Isbn13};
use crate::db::{self, FromRow, Tx};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

/// Which books to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookQuery<'a> {
    /// Only those that this job found.
    pub job: Option<&'a JobName>,
    /// Only those that some job has found and not delivered.
    pub undelivered: bool,
    pub limit: usize,
}

/// A book in a listing.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BookRow {
    #[serde(flatten)]
    pub book: Book,
    /// When any job first found it.
    pub first_seen_at: Timestamp,
    /// When any job last found it.
    pub last_seen_at: Timestamp,
    /// When any job last delivered it.
    pub last_delivered_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, FromRow)]
pub struct JobMail {
    pub job_name: JobName,
    pub first_seen_at: Timestamp,
    pub delivered_at: Option<Timestamp>,
    /// When it last sent it, also as a repeat.
    pub last_sent_at: Option<Timestamp>,
}

/// A digest that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SentDigest {
    /// The number of its delivery.
    pub id: i64,
    pub job_name: JobName,
    pub delivered_at: Timestamp,
    /// How many books it had.
    pub books: usize,
}

/// The columns of every listing of books.
macro_rules! select_book_rows {
    () => {
        concat!(select_books!(), ", b.first_seen_at, b.last_seen_at, b.last_delivered_at")
    };
}
pub(super) use select_book_rows;

/// The newest books first: by the time at which the given job, or any job, found them.
///
/// One statement for each filter, so that each uses its own index.
pub fn list_books(tx: &mut Tx<'_>, filter: BookQuery<'_>) -> db::Result<Vec<BookRow>> {
    let BookQuery { job, undelivered, limit } = filter;
    match (job, undelivered) {
        (None, false) => tx.list(
            sql!(concat!(
                select_book_rows!(),
                " FROM books b
                 ORDER BY b.first_seen_at DESC, COALESCE(b.published_date, '') DESC, b.isbn13 LIMIT ?1"
            )),
            params![limit],
            read,
        ),
        (Some(job), false) => tx.list(
            sql!(concat!(
                select_book_rows!(),
                " FROM job_books j JOIN books b ON b.isbn13 = j.isbn13 WHERE j.job_name = ?1
                 ORDER BY j.first_seen_at DESC, COALESCE(b.published_date, '') DESC, j.isbn13 LIMIT ?2"
            )),
            params![job, limit],
            read,
        ),
        (Some(job), true) => tx.list(
            sql!(concat!(
                select_book_rows!(),
                " FROM job_books j JOIN books b ON b.isbn13 = j.isbn13
                 WHERE j.job_name = ?1 AND j.is_waiting = 1 AND NOT EXISTS
                   (SELECT 1 FROM delivery_items d WHERE d.job_name = j.job_name AND d.isbn13 = j.isbn13)
                 ORDER BY j.first_seen_at DESC, COALESCE(b.published_date, '') DESC, j.isbn13 LIMIT ?2"
            )),
            params![job, limit],
            read,
        ),
        // A book that is undelivered in several jobs is listed once, at the place of the first.
        (None, true) => tx.list(
            sql!(concat!(
                select_book_rows!(),
                " FROM job_books j JOIN books b ON b.isbn13 = j.isbn13
                 WHERE j.is_waiting = 1 AND NOT EXISTS
                   (SELECT 1 FROM delivery_items d WHERE d.job_name = j.job_name AND d.isbn13 = j.isbn13)
                   AND NOT EXISTS (SELECT 1 FROM job_books o
                     WHERE o.isbn13 = j.isbn13 AND o.job_name < j.job_name AND o.is_waiting = 1 AND NOT EXISTS
                       (SELECT 1 FROM delivery_items d WHERE d.job_name = o.job_name AND d.isbn13 = o.isbn13))
                 ORDER BY j.first_seen_at DESC, COALESCE(b.published_date, '') DESC, j.isbn13 LIMIT ?1"
            )),
            params![limit],
            read,
        ),
    }
}

pub(super) fn read(row: &db::Row<'_>) -> db::Result<BookRow> {
    Ok(BookRow {
        book: super::books::read(row)?,
        first_seen_at: row.get("first_seen_at")?,
        last_seen_at: row.get("last_seen_at")?,
        last_delivered_at: row.get("last_delivered_at")?,
    })
}

/// How many books a job has found.
pub fn count_books(tx: &mut Tx<'_>, job: &JobName) -> db::Result<i64> {
    tx.count(sql!("SELECT COUNT(*) FROM job_books WHERE job_name = ?1"), params![job])
}

/// How many books a job has delivered.
pub fn count_delivered(tx: &mut Tx<'_>, job: &JobName) -> db::Result<i64> {
    tx.count(sql!("SELECT COUNT(*) FROM delivery_items WHERE job_name = ?1"), params![job])
}

/// The jobs that found a book, and whether they delivered it.
pub fn list_jobs_of_book(tx: &mut Tx<'_>, isbn13: &Isbn13) -> db::Result<Vec<JobMail>> {
    tx.list(
        sql!(
            "SELECT j.job_name, j.first_seen_at, d.delivered_at, j.last_sent_at
             FROM job_books j LEFT JOIN delivery_items d ON d.job_name = j.job_name AND d.isbn13 = j.isbn13
             WHERE j.isbn13 = ?1 ORDER BY j.job_name"
        ),
        params![isbn13],
        FromRow::from_row,
    )
}

/// The deliveries that a book was part of, also as a repeat, newest first.
pub fn list_deliveries_of_book(tx: &mut Tx<'_>, isbn13: &Isbn13) -> db::Result<Vec<(JobName, Timestamp)>> {
    tx.list(
        sql!(
            "SELECT v.job_name, v.delivered_at FROM book_digest_items i
               JOIN book_digests g ON g.id = i.digest_id JOIN deliveries v ON v.id = g.delivery_id
             WHERE i.isbn13 = ?1 ORDER BY v.id DESC LIMIT 50"
        ),
        params![isbn13],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// The digests with a book that no reader has accepted yet.
pub fn list_unsent_digests_of_book(tx: &mut Tx<'_>, isbn13: &Isbn13) -> db::Result<Vec<i64>> {
    tx.list(
        sql!(
            "SELECT g.id FROM book_digest_items i JOIN book_digests g ON g.id = i.digest_id
             WHERE i.isbn13 = ?1 AND g.delivery_id IS NULL"
        ),
        params![isbn13],
        |row| row.get(0),
    )
}

/// The newest accepted digests, of one job or of all.
pub fn list_sent_digests(
    tx: &mut Tx<'_>,
    job: Option<&JobName>,
    limit: usize,
) -> db::Result<Vec<SentDigest>> {
    tx.list(
        sql!(
            "SELECT id, job_name, delivered_at, isbn13_list_json FROM deliveries
             WHERE job_name = COALESCE(?1, job_name) ORDER BY id DESC LIMIT ?2"
        ),
        params![job, limit],
        |row| {
            let list: String = row.get(3)?;
            let books = serde_json::from_str::<Vec<serde_json::Value>>(&list).map_or(0, |list| list.len());
            Ok(SentDigest { id: row.get(0)?, job_name: row.get(1)?, delivered_at: row.get(2)?, books })
        },
    )
}
