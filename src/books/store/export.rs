//! Books and deliveries for export, in pages by their keys.

use super::books::select_books;
use super::view::{BookRow, select_book_rows};
use crate::db::{self, Row, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// A delivery as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DeliveryRow {
    pub id: i64,
    pub job_name: String,
    pub delivered_at: Timestamp,
    pub isbn13_list: Vec<String>,
}

/// The next books after `after`, found in `since..until`; of one job or all.
///
/// With `NOT`, SQLite continues from `after` by the index instead of sorting all books of that time for every page.
pub fn list_books_after(
    tx: &mut Tx<'_>,
    after: &str,
    job: Option<&str>,
    (since, until): (Timestamp, Timestamp),
    limit: usize,
) -> db::Result<Vec<BookRow>> {
    tx.list(
        sql!(concat!(
            select_book_rows!(),
            " FROM books b
             WHERE b.isbn13 > ?1 AND NOT b.first_seen_at < ?3 AND NOT b.first_seen_at >= ?4
               AND (CAST(?2 AS TEXT) IS NULL OR EXISTS
                 (SELECT 1 FROM job_books j WHERE j.isbn13 = b.isbn13 AND j.job_name = ?2))
             ORDER BY b.isbn13 LIMIT ?5"
        )),
        params![after, job, since, until, limit],
        super::view::read,
    )
}

/// The next deliveries after the number `after`, of one job or of all, from `since` on and before `until`.
pub fn list_deliveries_after(
    tx: &mut Tx<'_>,
    after: i64,
    job: Option<&str>,
    (since, until): (Timestamp, Timestamp),
    limit: usize,
) -> db::Result<Vec<DeliveryRow>> {
    tx.list(
        sql!(
            "SELECT id, job_name, delivered_at, isbn13_list_json FROM deliveries
             WHERE id > ?1 AND (CAST(?2 AS TEXT) IS NULL OR job_name = ?2)
               AND delivered_at >= ?3 AND delivered_at < ?4
             ORDER BY id LIMIT ?5"
        ),
        params![after, job, since, until, limit],
        read_delivery,
    )
}

fn read_delivery(row: &Row<'_>) -> db::Result<DeliveryRow> {
    let list: String = row.get(3)?;
    Ok(DeliveryRow {
        id: row.get(0)?,
        job_name: row.get(1)?,
        delivered_at: row.get(2)?,
        isbn13_list: serde_json::from_str(&list).unwrap_or_default(),
    })
}
