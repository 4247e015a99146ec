//! Changes for export, in pages by their numbers, and discovered feeds.

use std::collections::HashMap;

use super::changes::{ChangeRow, change_rows, read};
use crate::db::{self, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// The next changes after the number `after`, of one job or of all, found in `since..until`.
pub fn list_changes_after(
    tx: &mut Tx<'_>,
    after: i64,
    job: Option<&str>,
    (since, until): (Timestamp, Timestamp),
    limit: usize,
) -> db::Result<Vec<ChangeRow>> {
    tx.list(
        sql!(concat!(change_rows!(), "WHERE id > ?1 AND (CAST(?2 AS TEXT) IS NULL OR job_name = ?2) AND found_at >= ?3 AND found_at < ?4
             ORDER BY id LIMIT ?5")),
        params![after, job, since, until, limit],
        read,
    )
}

/// The discovered feeds, by blog.
pub fn list_feeds(tx: &mut Tx<'_>) -> db::Result<HashMap<String, String>> {
    let feeds = tx.list(
        sql!("SELECT blog_id, feed_url FROM blog_state WHERE feed_url IS NOT NULL"),
        params![],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(feeds.into_iter().collect())
}
