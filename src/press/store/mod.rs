//! The SQL of items and feeds.

mod feed;
mod import;

use serde_json::Value as Json;

pub use export::list_after;
pub use feed::{
    FeedState, find_feed, find_gone, find_last_success, mark_gone, mark_gone_announced, put_feed,
    put_not_before, reset_gone,
};
pub use import::{ImportedItem, add_feed, add_imported, find_first_created};

use super::TOPIC;
use super::decide::{LONGEST_WAIT, Transition};
use super::events::{self, ItemCode};
use super::model::{Item, NewItem, Reason, Status};
use crate::db::{self, Row, Tx};
use crate::id::JobName;
use crate::ledger::event;
use crate::ledger::event::EventCode as _;
use crate::time::Timestamp;
use crate::{params, sql};

crate::migration!(1, "press", "../../../migrations/0001_press.sql");

macro_rules! columns {
    () => {
        "id, job_name, url, title, published_at, status, reason, retry_count, created_at, last_checked_at, not_before,
         page_hash, is_held, summary, verdict, bypass_cache, deferred_since"
    };
}

// After the macro that it uses.
mod export;

/// That no message about the item is under way; `items` is the outer table.
macro_rules! not_spoken_for {
    () => {
        "NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.topic = ?2 AND outbox.subject = items.url
           AND outbox.job_name = items.job_name AND outbox.state IN ('ready', 'sending', 'unknown', 'held'))"
    };
}

fn read(row: &Row<'_>) -> db::Result<Item> {
    Ok(Item {
        id: row.get("id")?,
        job_name: row.get("job_name")?,
        url: row.get("url")?,
        title: row.get("title")?,
        published_at: row.get("published_at")?,
        status: row.get("status")?,
        reason: row.get("reason")?,
        retry_count: row.get("retry_count")?,
        created_at: row.get("created_at")?,
        last_checked_at: row.get("last_checked_at")?,
        not_before: row.get("not_before")?,
        page_hash: row.get("page_hash")?,
        is_held: row.get("is_held")?,
        summary: row.get("summary")?,
        verdict: row.get("verdict")?,
        bypass_cache: row.get("bypass_cache")?,
        deferred_since: row.get("deferred_since")?,
    })
}

/// Adds an item unless its address is known; `true` if it was new.
///
/// What is only recorded is over at once (3/0); all others start unprocessed (0) with no tries.
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
    let added = tx.execute(
        sql!(
            "INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at,
               job_name, not_before, entry_key, is_held, found_since, url_key)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (job_name, url) DO NOTHING"
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
            item.url_key
        ],
    )?;
    Ok(added == 1)
}

/// When the feed had last been read before the item was found in it, as far as that is known.
pub fn find_found_since(tx: &mut Tx<'_>, id: i64) -> db::Result<Option<Timestamp>> {
    let found =
        tx.find(sql!("SELECT found_since FROM items WHERE id = ?1"), params![id], |row| row.get(0))?;
    Ok(found.flatten())
}

/// Whether the job knows an entry: by its address, else by the id that the feed gives it, else by its address for
/// comparisons.
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

/// Whether the job knows an item of that title and date, at whatever address.
pub fn is_announced(tx: &mut Tx<'_>, job: &JobName, item: &NewItem) -> db::Result<bool> {
    // All states there are, so that the index by state and date serves.
    let found = tx.count(
        sql!(
            "SELECT 1 FROM items
             WHERE job_name = ?1 AND status IN (0, 1, 2, 3) AND published_at = ?2 AND title = ?3 LIMIT 1"
        ),
        params![job, item.published_at, item.title],
    )?;
    Ok(found == 1)
}

/// The item to summarise next: the pending one that was published first and has no message under way.
pub fn find_pending(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Option<Item>> {
    tx.find(
        sql!(concat!(
            "SELECT ",
            columns!(),
            " FROM items WHERE job_name = ?1 AND status = 2 AND ",
            not_spoken_for!(),
            " ORDER BY published_at, id LIMIT 1"
        )),
        params![job, TOPIC],
        read,
    )
}

/// The items that would be posted by and by: pending, not held, and with no message under way.
pub fn list_ready(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Vec<Item>> {
    tx.list(
        sql!(concat!(
            "SELECT ",
            columns!(),
            " FROM items WHERE job_name = ?1 AND status = 2 AND is_held = 0 AND ",
            not_spoken_for!(),
            " ORDER BY published_at, id"
        )),
        params![job, TOPIC],
        read,
    )
}

/// Has the post of a pending item wait for a person; `false` if it is pending no longer, or was held before.
pub fn mark_held(tx: &mut Tx<'_>, id: i64) -> db::Result<bool> {
    let held = tx.execute(
        sql!("UPDATE items SET is_held = 1 WHERE id = ?1 AND status = 2 AND is_held = 0"),
        params![id],
    )?;
    Ok(held == 1)
}

/// The item to screen next: of those nobody has looked at and those that were put off, the one looked at longest ago.
///
/// What was found at once was looked at at once: then what was published first goes first, so that posts leave in the order
/// of publication. Two picks, each along its own index, and the older of the two: one query over both states would sort them all. An
/// entry of the future may wait for years; what was put off may not, unless a clock wrote its end which was ahead.
pub fn find_to_screen(tx: &mut Tx<'_>, job: &JobName, now: Timestamp) -> db::Result<Option<Item>> {
    let mut found = Vec::new();
    for (status, latest) in
        [(Status::Unprocessed, Timestamp::MAX), (Status::Deferred, now.plus(LONGEST_WAIT))]
    {
        found.extend(tx.find(
            sql!(concat!(
                "SELECT ",
                columns!(),
                " FROM items WHERE job_name = ?1 AND status = ?2
                  AND (not_before IS NULL OR not_before <= ?3 OR not_before > ?4)
                  ORDER BY last_checked_at, published_at, id LIMIT 1"
            )),
            params![job, status.code(), now, latest],
            read,
        )?);
    }
    Ok(found.into_iter().min_by_key(|item| (item.last_checked_at, item.published_at, item.id)))
}

/// The item of a job with that address.
pub fn find_by_url(tx: &mut Tx<'_>, job: &str, url: &str) -> db::Result<Option<Item>> {
    tx.find(
        sql!(concat!("SELECT ", columns!(), " FROM items WHERE job_name = ?1 AND url = ?2")),
        params![job, url],
        read,
    )
}

/// The item with that number.
pub fn find(tx: &mut Tx<'_>, id: i64) -> db::Result<Option<Item>> {
    tx.find(sql!(concat!("SELECT ", columns!(), " FROM items WHERE id = ?1")), params![id], read)
}

/// The items with that address, of every job.
pub fn list_by_url(tx: &mut Tx<'_>, url: &str) -> db::Result<Vec<Item>> {
    tx.list(
        sql!(concat!("SELECT ", columns!(), " FROM items WHERE url = ?1 ORDER BY job_name")),
        params![url],
        read,
    )
}

/// Which items to list; what is not given does not matter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those of this job.
    pub job: Option<String>,
    /// Only those in this status.
    pub status: Option<Status>,
    /// Only those with this reason.
    pub reason: Option<Reason>,
}

/// The newest items first; those of one status by when they were last checked.
///
/// One statement for each way to ask, so that each walks along an index of its own.
pub fn list(tx: &mut Tx<'_>, filter: &Filter, limit: usize) -> db::Result<Vec<Item>> {
    let reason = filter.reason.map_or(-1, Reason::code);
    match (filter.job.as_deref(), filter.status.map(Status::code)) {
        (None, None) => tx.list(
            sql!(concat!(
                "SELECT ",
                columns!(),
                " FROM items WHERE (?1 = -1 OR reason = ?1) ORDER BY id DESC LIMIT ?2"
            )),
            params![reason, limit],
            read,
        ),
        (Some(job), None) => tx.list(
            sql!(concat!(
                "SELECT ",
                columns!(),
                " FROM items WHERE job_name = ?3 AND (?1 = -1 OR reason = ?1) ORDER BY id DESC LIMIT ?2"
            )),
            params![reason, limit, job],
            read,
        ),
        (None, Some(status)) => tx.list(
            sql!(concat!(
                "SELECT ",
                columns!(),
                " FROM items WHERE status = ?3 AND (?1 = -1 OR reason = ?1)
                  ORDER BY last_checked_at DESC, id DESC LIMIT ?2"
            )),
            params![reason, limit, status],
            read,
        ),
        (Some(job), Some(status)) => tx.list(
            sql!(concat!(
                "SELECT ",
                columns!(),
                " FROM items WHERE job_name = ?4 AND status = ?3 AND (?1 = -1 OR reason = ?1)
                  ORDER BY last_checked_at DESC, id DESC LIMIT ?2"
            )),
            params![reason, limit, status, job],
            read,
        ),
    }
}

/// How many items of a job stand in a status.
pub fn count(tx: &mut Tx<'_>, job: &JobName, status: Status) -> db::Result<i64> {
    tx.count(
        sql!("SELECT CAST(COUNT(*) AS BIGINT) FROM items WHERE job_name = ?1 AND status = ?2"),
        params![job, status.code()],
    )
}

/// Writes a decided transition and its event; `false` if somebody else has changed the item meanwhile.
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

/// Writes a decided transition; `false` if somebody else has changed the item meanwhile.
pub fn put(tx: &mut Tx<'_>, item: &Item, to: &Transition) -> db::Result<bool> {
    let changed = tx.execute(
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
    )?;
    Ok(changed == 1)
}

/// Adds an event about an item.
pub fn note(tx: &mut Tx<'_>, item: &Item, code: ItemCode, detail: &Json, now: Timestamp) -> db::Result<()> {
    let job: Option<JobName> = item.job_name.parse().ok();
    event::add(tx, job.as_ref(), &events::item(&item.url), code, detail, now)
}

/// Remembers what the page was and what the model said about it.
pub fn put_verdict(tx: &mut Tx<'_>, id: i64, page_hash: &str, verdict: Option<&str>) -> db::Result<()> {
    tx.execute(
        sql!("UPDATE items SET page_hash = ?2, verdict = COALESCE(?3, verdict) WHERE id = ?1"),
        params![id, page_hash, verdict],
    )?;
    Ok(())
}

/// Has the model asked about an item although its answer may be known, until it has answered.
pub fn mark_ask_anew(tx: &mut Tx<'_>, id: i64) -> db::Result<()> {
    tx.execute(sql!("UPDATE items SET bypass_cache = 1 WHERE id = ?1"), params![id])?;
    Ok(())
}

/// Notes that the model has answered anew, and that this was all it was to be asked.
pub fn mark_answered(tx: &mut Tx<'_>, id: i64) -> db::Result<()> {
    tx.execute(sql!("UPDATE items SET bypass_cache = 0 WHERE id = ?1 AND bypass_cache = 1"), params![id])?;
    Ok(())
}

/// Keeps the summary that is being posted; `false` if the item is no longer pending.
pub fn put_summary(tx: &mut Tx<'_>, item: &Item, summary: Option<&str>, now: Timestamp) -> db::Result<bool> {
    let changed = tx.execute(
        sql!(
            "UPDATE items SET summary = ?1, last_checked_at = ?2, bypass_cache = 0
             WHERE id = ?3 AND status = 2 AND retry_count = ?4"
        ),
        params![summary, now, item.id, item.retry_count],
    )?;
    Ok(changed == 1)
}

/// How the other messages about an item stand: whether one is under way, and whether one was sent.
pub fn find_messages(tx: &mut Tx<'_>, job: &str, url: &str, except: i64) -> db::Result<Messages> {
    let states = tx.list(
        sql!("SELECT state FROM outbox WHERE topic = ?1 AND subject = ?2 AND job_name = ?3 AND id <> ?4"),
        params![TOPIC, url, job, except],
        |row| row.get::<String>(0),
    )?;
    Ok(Messages {
        any_open: states
            .iter()
            .any(|state| matches!(state.as_str(), "ready" | "sending" | "unknown" | "held")),
        any_sent: states.iter().any(|state| state == "sent"),
    })
}

/// A message about an item, as people are told.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Delivery {
    /// Its number.
    pub id: i64,
    /// The channel it goes through.
    pub channel: String,
    /// Where it stands.
    pub state: String,
    /// What went wrong last, or why it waits.
    pub last_error: Option<String>,
}

/// The messages about an item, oldest first.
pub fn list_deliveries(tx: &mut Tx<'_>, job: &str, url: &str) -> db::Result<Vec<Delivery>> {
    tx.list(
        sql!(
            "SELECT id, channel, state, last_error FROM outbox
             WHERE topic = ?1 AND subject = ?2 AND job_name = ?3"
        ),
        params![TOPIC, url, job],
        |row| {
            Ok(Delivery {
                id: row.get(0)?,
                channel: row.get(1)?,
                state: row.get(2)?,
                last_error: row.get(3)?,
            })
        },
    )
}

/// How the messages about an item stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// One is under way.
    pub any_open: bool,
    /// One was sent.
    pub any_sent: bool,
}
