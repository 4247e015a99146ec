//! Items for export, in pages by their numbers.

use super::super::model::Item;
use crate::db::{self, FromRow, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// The next items after the number `after`, published in `since..until`.
pub fn list_after(
    tx: &mut Tx<'_>,
    after: i64,
    job: Option<&str>,
    (since, until): (Timestamp, Timestamp),
    limit: usize,
) -> db::Result<Vec<Item>> {
    tx.list(
        sql!(concat!(
            items!(),
            "WHERE id > ?1 AND (CAST(?2 AS TEXT) IS NULL OR job_name = ?2)
              AND published_at >= ?3 AND published_at < ?4 ORDER BY id LIMIT ?5"
        )),
        params![after, job, since, until, limit],
        FromRow::from_row,
    )
}
