//! Adds the unknown entries of a feed.

use super::super::model::{NewItem, Reason, Status};
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

/// Adds an item unless its address is known; `true` if it was new.
///
/// A recorded item is processed at once (3/0); all others start unprocessed (0) without tries.
pub fn add(
    tx: &mut Tx<'_>,
    job: &JobName,
    item: &NewItem,
    is_held: bool,
    found_since: Option<Timestamp>,
    now: Timestamp,
) -> db::Result<bool> {
    let (status, reason) = match item.recorded {
        Some(_) => (Status::Processed, Some(Reason::None.code())),
        None => (Status::Unprocessed, None),
    };
    tx.execute_one(
        sql!(
            "INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at,
               job_name, not_before, entry_key, is_held, found_since, url_key, excerpt)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT (job_name, url) DO NOTHING"
        ),
        params![
            item.url,
            item.title,
            item.published_at,
            status.code(),
            reason,
            now,
            job,
            item.not_before,
            item.entry_key,
            is_held,
            found_since,
            item.url_key,
            item.excerpt
        ],
    )
}

/// When the feed was last read before the item was found in it, if known.
pub fn find_found_since(tx: &mut Tx<'_>, id: i64) -> db::Result<Option<Timestamp>> {
    let found =
        tx.find(sql!("SELECT found_since FROM items WHERE id = ?1"), params![id], |row| row.get(0))?;
    Ok(found.flatten())
}

/// Whether the job knows an entry: by its address, else by its id in the feed, else by its comparison key.
pub fn is_known(tx: &mut Tx<'_>, job: &JobName, item: &NewItem) -> db::Result<bool> {
    if tx.count(sql!("SELECT 1 FROM items WHERE job_name = ?1 AND url = ?2"), params![job, item.url])? == 1 {
        return Ok(true);
    }
    if item.has_id
        && tx.count(
            sql!("SELECT 1 FROM items WHERE job_name = ?1 AND entry_key = ?2 LIMIT 1"),
            params![job, item.entry_key],
        )? == 1
    {
        return Ok(true);
    }
    let Some(url_key) = &item.url_key else { return Ok(false) };
    let found = tx.count(
        sql!("SELECT 1 FROM items WHERE job_name = ?1 AND url_key = ?2 LIMIT 1"),
        params![job, url_key],
    )?;
    Ok(found == 1)
}

/// Whether the job knows an item with that title and date, at any address.
pub fn is_announced(tx: &mut Tx<'_>, job: &JobName, item: &NewItem) -> db::Result<bool> {
    // Lists all states, so that the index by state and date is used.
    let found = tx.count(
        sql!(
            "SELECT 1 FROM items
             WHERE job_name = ?1 AND status IN (0, 1, 2, 3) AND published_at = ?2 AND title = ?3 LIMIT 1"
        ),
        params![job, item.published_at, item.title],
    )?;
    Ok(found == 1)
}
