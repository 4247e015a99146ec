//! The SQL of items and feeds.

mod feed;
mod import;
mod messages;
mod new;
mod transition;

pub use export::list_after;
pub use feed::{
    FeedState, find_feed, is_gone, list_cut, list_silent, mark_gone, put_feed, put_not_before, reset_adopted,
    reset_gone,
};
pub use import::{ImportedItem, add_feed, add_imported, find_first_created};
pub use listing::{ItemFilter, Standing, count_newest, list};
pub use messages::{ItemDelivery, Messages, find_messages, list_deliveries};
pub use new::{add, find_found_since, is_announced, is_known};
pub use transition::{
    apply, mark_answered, mark_bypass_cache, mark_short, note, put, put_summary, put_verdict,
};

use super::TOPIC;
use super::decide::LONGEST_WAIT;
use super::model::{Item, Status};
use crate::db::{self, FromRow, Tx};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

crate::migration!(1, "press", "../../../migrations/0001_press.sql");

macro_rules! items {
    () => {
        "SELECT id, job_name, url, title, published_at, status, reason, retry_count, created_at, last_checked_at,
           not_before, page_hash, is_held, summary, verdict, bypass_cache, deferred_since, excerpt, is_short
         FROM items "
    };
}

// After the macro that they use.
mod export;
mod listing;

/// The condition that no message about the item is queued or being sent; `items` is the outer table.
macro_rules! not_spoken_for {
    () => {
        "NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.topic = ?2 AND outbox.subject = items.url
           AND outbox.job_name = items.job_name AND outbox.state IN ('ready', 'sending', 'unknown', 'held'))"
    };
}

/// The item to summarise next: the pending one that was published first, is not deferred and has no message queued or
/// being sent.
pub fn find_pending(tx: &mut Tx<'_>, job: &JobName, now: Timestamp) -> db::Result<Option<Item>> {
    tx.find(
        sql!(concat!(
            items!(),
            "WHERE job_name = ?1 AND status = 2
               AND (not_before IS NULL OR not_before <= ?3 OR not_before > ?4) AND ",
            not_spoken_for!(),
            " ORDER BY published_at, id LIMIT 1"
        )),
        params![job, TOPIC, now, now.plus(LONGEST_WAIT)],
        FromRow::from_row,
    )
}

/// The items that are ready to be posted: pending, not held, and without a message queued or being sent.
pub fn list_ready(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Vec<Item>> {
    tx.list(
        sql!(concat!(
            items!(),
            "WHERE job_name = ?1 AND status = 2 AND is_held = 0 AND ",
            not_spoken_for!(),
            " ORDER BY published_at, id"
        )),
        params![job, TOPIC],
        FromRow::from_row,
    )
}

/// Holds the post of a pending item for approval; `false` if it is no longer pending or was held before.
pub fn mark_held(tx: &mut Tx<'_>, id: i64) -> db::Result<bool> {
    tx.execute_one(
        sql!("UPDATE items SET is_held = 1 WHERE id = ?1 AND status = 2 AND is_held = 0"),
        params![id],
    )
}

/// The item to screen next: the unprocessed or deferred one with the oldest check.
///
/// Items found together have the same check time; then the one published first comes first, so that posts are sent in
/// the order of publication. Two picks, each by its own index, and the older of the two: one query over both states
/// would sort them all. An entry of the future may wait for years. A deferred item may not: ignore an implausibly late
/// `not_before`, which a wrong clock wrote.
pub fn find_to_screen(tx: &mut Tx<'_>, job: &JobName, now: Timestamp) -> db::Result<Option<Item>> {
    let mut found: Vec<Item> = Vec::new();
    for (status, latest) in
        [(Status::Unprocessed, Timestamp::MAX), (Status::Deferred, now.plus(LONGEST_WAIT))]
    {
        found.extend(tx.find(
            sql!(concat!(
                items!(),
                "WHERE job_name = ?1 AND status = ?2
                  AND (not_before IS NULL OR not_before <= ?3 OR not_before > ?4)
                  ORDER BY last_checked_at, published_at, id LIMIT 1"
            )),
            params![job, status.code(), now, latest],
            FromRow::from_row,
        )?);
    }
    Ok(found.into_iter().min_by_key(|item| (item.last_checked_at, item.published_at, item.id)))
}

/// The item of a job with that address.
pub fn find_by_url(tx: &mut Tx<'_>, job: &str, url: &str) -> db::Result<Option<Item>> {
    tx.find(sql!(concat!(items!(), "WHERE job_name = ?1 AND url = ?2")), params![job, url], FromRow::from_row)
}

/// The item with that number.
pub fn find(tx: &mut Tx<'_>, id: i64) -> db::Result<Option<Item>> {
    tx.find(sql!(concat!(items!(), "WHERE id = ?1")), params![id], FromRow::from_row)
}

/// The items with that address, of every job.
pub fn list_by_url(tx: &mut Tx<'_>, url: &str) -> db::Result<Vec<Item>> {
    tx.list(sql!(concat!(items!(), "WHERE url = ?1 ORDER BY job_name")), params![url], FromRow::from_row)
}

pub fn count(tx: &mut Tx<'_>, job: &JobName, status: Status) -> db::Result<i64> {
    tx.count(
        sql!("SELECT CAST(COUNT(*) AS BIGINT) FROM items WHERE job_name = ?1 AND status = ?2"),
        params![job, status.code()],
    )
}
