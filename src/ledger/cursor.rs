//! Positions of searches: the seed's `collect_cursor`.

use crate::db::{self, FromRow, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// The position of one query set of one job.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, FromRow)]
pub struct Cursor {
    pub job_name: String,
    /// SHA-256 of the query set, 64 characters.
    pub query_set_hash: String,
    /// Where the next page begins.
    pub start_index: i64,
    /// There is nothing more to collect.
    pub is_exhausted: bool,
    pub last_updated_at: Timestamp,
}

/// The cursor of a query set, or `None` if it was never read.
pub fn find(tx: &mut Tx<'_>, job_name: &str, query_set_hash: &str) -> db::Result<Option<Cursor>> {
    tx.find(
        sql!(
            "SELECT job_name, query_set_hash, start_index, is_exhausted, last_updated_at
             FROM collect_cursor WHERE job_name = ?1 AND query_set_hash = ?2"
        ),
        params![job_name, query_set_hash],
        FromRow::from_row,
    )
}

/// Saves a cursor and sets `last_updated_at`.
pub fn put(
    tx: &mut Tx<'_>,
    job_name: &str,
    query_set_hash: &str,
    start_index: i64,
    is_exhausted: bool,
    now: Timestamp,
) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO collect_cursor (job_name, query_set_hash, start_index, is_exhausted, last_updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (job_name, query_set_hash) DO UPDATE SET start_index = excluded.start_index,
               is_exhausted = excluded.is_exhausted, last_updated_at = excluded.last_updated_at"
        ),
        params![job_name, query_set_hash, start_index, is_exhausted, now],
    )
}

/// Adds a cursor of another program unless the query set has one; `true` if it was new.
pub fn add(tx: &mut Tx<'_>, cursor: &Cursor) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO collect_cursor (job_name, query_set_hash, start_index, is_exhausted, last_updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (job_name, query_set_hash) DO NOTHING"
        ),
        params![
            cursor.job_name,
            cursor.query_set_hash,
            cursor.start_index,
            cursor.is_exhausted,
            cursor.last_updated_at
        ],
    )
}

/// Deletes every cursor of a job; returns how many there were.
pub fn reset_by_job(tx: &mut Tx<'_>, job_name: &str) -> db::Result<u64> {
    tx.execute(sql!("DELETE FROM collect_cursor WHERE job_name = ?1"), params![job_name])
}

/// The cursors of one job, or of all.
pub fn list(tx: &mut Tx<'_>, job_name: Option<&str>) -> db::Result<Vec<Cursor>> {
    tx.list(
        sql!(
            "SELECT job_name, query_set_hash, start_index, is_exhausted, last_updated_at
             FROM collect_cursor WHERE job_name = COALESCE(?1, job_name) ORDER BY job_name, query_set_hash"
        ),
        params![job_name],
        FromRow::from_row,
    )
}
