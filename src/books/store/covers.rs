//! Books for the page, by the time at which they were found.

use super::books::select_books;
use super::view::{self, BookRow, select_book_rows};
use crate::books::model::Isbn13;
use crate::db::{self, Row, Tx};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

/// The end of a page of books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// When the last book was found.
    pub first_seen_at: Timestamp,
    /// The last book.
    pub isbn13: Isbn13,
}

/// A book, and when it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenBook {
    pub row: BookRow,
    /// When the job of the listing, or any job, found it.
    pub seen_at: Timestamp,
}

/// The next books after a place, newest first; of one job or all; only undelivered ones or all.
///
/// One statement for each filter, so that each uses its own index.
pub fn list_books_behind(
    tx: &mut Tx<'_>,
    place: Option<&Place>,
    job: Option<&JobName>,
    waiting_only: bool,
    limit: usize,
) -> db::Result<Vec<SeenBook>> {
    let seen_at = place.map_or(Timestamp::MAX, |place| place.first_seen_at);
    let isbn13 = place.map_or("~", |place| place.isbn13.as_str());
    match (job, waiting_only) {
        (None, false) => tx.list(
            sql!(concat!(
                select_book_rows!(),
                ", b.first_seen_at AS seen_at FROM books b
                 WHERE b.first_seen_at <= ?1 AND (b.first_seen_at, b.isbn13) < (?1, ?2)
                 ORDER BY b.first_seen_at DESC, b.isbn13 DESC LIMIT ?3"
            )),
            params![seen_at, isbn13, limit],
            read,
        ),
        (Some(job), false) => tx.list(
            sql!(concat!(
                select_book_rows!(),
                ", j.first_seen_at AS seen_at FROM job_books j JOIN books b ON b.isbn13 = j.isbn13
                 WHERE j.job_name = ?4 AND j.first_seen_at <= ?1 AND (j.first_seen_at, j.isbn13) < (?1, ?2)
                 ORDER BY j.first_seen_at DESC, j.isbn13 DESC LIMIT ?3"
            )),
            params![seen_at, isbn13, limit, job],
            read,
        ),
        (Some(job), true) => tx.list(
            sql!(concat!(
                select_book_rows!(),
                ", j.first_seen_at AS seen_at FROM job_books j JOIN books b ON b.isbn13 = j.isbn13
                 WHERE j.job_name = ?4 AND j.is_waiting = 1 AND j.first_seen_at <= ?1
                   AND (j.first_seen_at, j.isbn13) < (?1, ?2) AND NOT EXISTS
                   (SELECT 1 FROM delivery_items d WHERE d.job_name = j.job_name AND d.isbn13 = j.isbn13)
                 ORDER BY j.first_seen_at DESC, j.isbn13 DESC LIMIT ?3"
            )),
            params![seen_at, isbn13, limit, job],
            read,
        ),
        // A book that is undelivered in several jobs is listed once, at the place of the first.
        (None, true) => tx.list(
            sql!(concat!(
                select_book_rows!(),
                ", j.first_seen_at AS seen_at FROM job_books j JOIN books b ON b.isbn13 = j.isbn13
                 WHERE j.is_waiting = 1 AND j.first_seen_at <= ?1
                   AND (j.first_seen_at, j.isbn13) < (?1, ?2) AND NOT EXISTS
                   (SELECT 1 FROM delivery_items d WHERE d.job_name = j.job_name AND d.isbn13 = j.isbn13)
                   AND NOT EXISTS (SELECT 1 FROM job_books o
                     WHERE o.isbn13 = j.isbn13 AND o.job_name < j.job_name AND o.is_waiting = 1 AND NOT EXISTS
                       (SELECT 1 FROM delivery_items d WHERE d.job_name = o.job_name AND d.isbn13 = o.isbn13))
                 ORDER BY j.first_seen_at DESC, j.isbn13 DESC LIMIT ?3"
            )),
            params![seen_at, isbn13, limit],
            read,
        ),
    }
}

fn read(row: &Row<'_>) -> db::Result<SeenBook> {
    Ok(SeenBook { row: view::read(row)?, seen_at: row.get("seen_at")? })
}
