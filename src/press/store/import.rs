//! Items of another program: added unchanged.

use super::super::collect::url_key;
use super::super::model::{Reason, Status};
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

/// An item of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedItem {
    /// Its address, normalised by [`super::super::item_url`].
    pub url: String,
    pub title: String,
    pub published_at: Timestamp,
    pub status: Status,
    pub reason: Option<Reason>,
    /// How many attempts failed.
    pub retry_count: i64,
    pub created_at: Timestamp,
    pub last_checked_at: Timestamp,
}

/// Adds an item unless its address is known; `true` if it was new.
pub fn add_imported(tx: &mut Tx<'_>, job: &JobName, item: &ImportedItem) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at,
               job_name, url_key)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (job_name, url) DO NOTHING"
        ),
        params![
            item.url,
            item.title,
            item.published_at,
            item.status.code(),
            item.reason.map(Reason::code),
            item.retry_count,
            item.created_at,
            item.last_checked_at,
            job,
            url_key(&item.url)
        ],
    )
}

/// Records that another program has read the feed since `first`, so that our first fetch does not count as the first.
///
/// `false` when we have read it ourselves.
pub fn add_feed(tx: &mut Tx<'_>, job: &JobName, feed_url: &str, first: Timestamp) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO press_feeds (job_name, feed_url, first_success_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (job_name, feed_url) DO NOTHING"
        ),
        params![job, feed_url, first],
    )
}

/// When the first item of a job was found.
pub fn find_first_created(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Option<Timestamp>> {
    Ok(tx
        .find(sql!("SELECT MIN(created_at) FROM items WHERE job_name = ?1"), params![job], |row| row.get(0))?
        .flatten())
}
