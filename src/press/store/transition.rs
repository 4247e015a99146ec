//! Writes decided transitions of items and the values that belong to them.

use serde_json::Value as Json;

use super::super::decide::Transition;
use super::super::events::{self, ItemCode};
use super::super::model::{Item, Reason};
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::ledger::event;
use crate::time::Timestamp;
use crate::{params, sql};

/// Writes a decided transition and its event; `false` if the item was changed meanwhile.
pub fn apply(
    tx: &mut Tx<'_>,
    item: &Item,
    to: &Transition,
    code: ItemCode,
    detail: &Json,
) -> db::Result<bool> {
    if !put(tx, item, to)? {
        return Ok(false);
    }
    note(tx, item, code, detail, to.last_checked_at)?;
    if to.reason == Some(Reason::RetryLimitExceeded) && code != ItemCode::WaitOver {
        let last = serde_json::json!({ "retry_count": to.retry_count, "last": code.word() });
        note(tx, item, ItemCode::RetryLimitExceeded, &last, to.last_checked_at)?;
    }
    Ok(true)
}

/// Writes a decided transition; `false` if the item was changed meanwhile.
pub fn put(tx: &mut Tx<'_>, item: &Item, to: &Transition) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "UPDATE items SET status = ?1, reason = ?2, retry_count = ?3, last_checked_at = ?4, not_before = ?5,
               deferred_since = ?6
             WHERE id = ?7 AND status = ?8 AND retry_count = ?9"
        ),
        params![
            to.status.code(),
            to.reason.map(Reason::code),
            to.retry_count,
            to.last_checked_at,
            to.not_before,
            to.deferred_since,
            item.id,
            item.status.code(),
            item.retry_count
        ],
    )
}

/// Adds an event about an item.
pub fn note(tx: &mut Tx<'_>, item: &Item, code: ItemCode, detail: &Json, now: Timestamp) -> db::Result<()> {
    let job: Option<JobName> = item.job_name.parse().ok();
    event::add(tx, job.as_ref(), &events::item(&item.url), code, detail, now)
}

/// Stores the hash of the page and the verdict.
pub fn put_verdict(tx: &mut Tx<'_>, id: i64, page_hash: &str, verdict: Option<&str>) -> db::Result<()> {
    tx.run(
        sql!("UPDATE items SET page_hash = ?2, verdict = COALESCE(?3, verdict) WHERE id = ?1"),
        params![id, page_hash, verdict],
    )
}

/// Makes the next call of the model for an item bypass the cache.
pub fn mark_bypass_cache(tx: &mut Tx<'_>, id: i64) -> db::Result<()> {
    tx.run(sql!("UPDATE items SET bypass_cache = 1, is_short = 0 WHERE id = ?1"), params![id])
}

/// Records that the model has answered past the cache, which happens once.
pub fn mark_answered(tx: &mut Tx<'_>, id: i64) -> db::Result<()> {
    tx.run(sql!("UPDATE items SET bypass_cache = 0 WHERE id = ?1 AND bypass_cache = 1"), params![id])
}

/// Marks an item to be posted without a summary.
pub fn mark_short(tx: &mut Tx<'_>, id: i64) -> db::Result<()> {
    tx.run(sql!("UPDATE items SET is_short = 1 WHERE id = ?1"), params![id])
}

/// Stores the summary that is being posted; `false` if the item is no longer pending.
pub fn put_summary(tx: &mut Tx<'_>, item: &Item, summary: Option<&str>, now: Timestamp) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "UPDATE items SET summary = ?1, last_checked_at = ?2, bypass_cache = 0
             WHERE id = ?3 AND status = 2 AND retry_count = ?4"
        ),
        params![summary, now, item.id, item.retry_count],
    )
}
