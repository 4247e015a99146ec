//! The SQL of `press_feeds`, the state of a feed.

use url::Url;

use crate::db::{self, Row, Tx};
use crate::engine::silence::Silence;
use crate::fetch::{Moved, Validators};
use crate::id::JobName;
use crate::parse::Cut;
use crate::time::Timestamp;
use crate::{params, sql};

/// The stored state of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedState {
    /// The validators of the version that was read.
    pub validators: Validators,
    pub first_success_at: Option<Timestamp>,
    /// When its body was last read in full.
    pub last_read_at: Option<Timestamp>,
    /// When the next full fetch is due.
    pub read_again_at: Option<Timestamp>,
    /// How many entries it had at the last full fetch.
    pub entry_count: Option<u32>,
    /// The end of the wait that the server asked for; cleared by the next success.
    pub not_before: Option<Timestamp>,
    /// When it was last read or unchanged; always written as now.
    pub last_success_at: Option<Timestamp>,
    /// Where permanent redirects lead.
    pub moved: Moved,
    /// The address that it has moved to for good.
    pub adopted_url: Option<Url>,
    /// How often it has new entries, and whether it is silent.
    pub silence: Silence,
    /// The part that exceeded a limit at the last full fetch.
    pub cut: Option<Cut>,
}

fn read_url(row: &Row<'_>, column: &str) -> db::Result<Option<Url>> {
    Ok(row.get::<Option<String>>(column)?.and_then(|url| url.parse().ok()))
}

/// Ignores an unreadable value, which is only shown.
fn read_cut(row: &Row<'_>, column: &str) -> db::Result<Option<Cut>> {
    Ok(row.get::<Option<String>>(column)?.and_then(|text| serde_json::from_str(&text).ok()))
}

macro_rules! feeds {
    () => {
        "SELECT etag, last_modified, validated_url, first_success_at, last_read_at, read_again_at, entry_count,
         last_success_at, not_before, moved_to, moved_count, adopted_url, news_days, silent_at, cut
         FROM press_feeds "
    };
}

/// The stored state of a feed; empty if it was never read. A feed is also found under the address that it had moved
/// from.
pub fn find_feed(tx: &mut Tx<'_>, job: &JobName, feed_url: &str) -> db::Result<FeedState> {
    let known = tx.find(
        sql!(concat!(feeds!(), "WHERE job_name = ?1 AND feed_url = ?2")),
        params![job, feed_url],
        read_feed,
    )?;
    if let Some(known) = known {
        return Ok(known);
    }
    let moved = tx.find(
        sql!(concat!(feeds!(), "WHERE job_name = ?1 AND adopted_url = ?2 ORDER BY feed_url LIMIT 1")),
        params![job, feed_url],
        read_feed,
    )?;
    Ok(moved.map(|state| FeedState { adopted_url: None, ..state }).unwrap_or_default())
}

fn read_feed(row: &Row<'_>) -> db::Result<FeedState> {
    let days: Option<String> = row.get("news_days")?;
    Ok(FeedState {
        validators: Validators {
            etag: row.get("etag")?,
            last_modified: row.get("last_modified")?,
            url: read_url(row, "validated_url")?,
        },
        first_success_at: row.get("first_success_at")?,
        last_read_at: row.get("last_read_at")?,
        read_again_at: row.get("read_again_at")?,
        entry_count: row.get("entry_count")?,
        last_success_at: row.get("last_success_at")?,
        not_before: row.get("not_before")?,
        moved: Moved { to: read_url(row, "moved_to")?, count: row.get("moved_count")? },
        adopted_url: read_url(row, "adopted_url")?,
        silence: Silence::from_stored(days.as_deref(), row.get("silent_at")?),
        cut: read_cut(row, "cut")?,
    })
}

/// Stores the state of a feed that was read or is unchanged.
pub fn put_feed(
    tx: &mut Tx<'_>,
    job: &JobName,
    feed_url: &str,
    state: &FeedState,
    now: Timestamp,
) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO press_feeds (job_name, feed_url, etag, last_modified, validated_url, first_success_at,
               last_success_at, last_read_at, read_again_at, entry_count, moved_to, moved_count, adopted_url, news_days,
               silent_at, cut)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
             ON CONFLICT (job_name, feed_url) DO UPDATE SET etag = excluded.etag,
               last_modified = excluded.last_modified, validated_url = excluded.validated_url,
               first_success_at = COALESCE(press_feeds.first_success_at, excluded.first_success_at),
               last_success_at = excluded.last_success_at, last_read_at = excluded.last_read_at,
               read_again_at = excluded.read_again_at, entry_count = excluded.entry_count, gone_at = NULL,
               not_before = NULL, moved_to = excluded.moved_to, moved_count = excluded.moved_count,
               adopted_url = excluded.adopted_url, news_days = excluded.news_days, silent_at = excluded.silent_at,
               cut = excluded.cut"
        ),
        params![
            job,
            feed_url,
            state.validators.etag,
            state.validators.last_modified,
            state.validators.url.as_ref().map(Url::as_str),
            state.first_success_at,
            now,
            state.last_read_at,
            state.read_again_at,
            state.entry_count,
            state.moved.to.as_ref().map(Url::as_str),
            state.moved.count,
            state.adopted_url.as_ref().map(Url::as_str),
            state.silence.stored(),
            state.silence.noted_at,
            state.cut.and_then(|cut| serde_json::to_string(&cut).ok())
        ],
    )
}

/// Forgets the address that a feed had moved to.
pub fn reset_adopted(tx: &mut Tx<'_>, job: &JobName, feed_url: &str) -> db::Result<()> {
    tx.run(
        sql!(
            "UPDATE press_feeds SET adopted_url = NULL, moved_to = NULL, moved_count = 0
             WHERE job_name = ?1 AND feed_url = ?2"
        ),
        params![job, feed_url],
    )
}

/// The silent feeds of a job.
pub fn list_silent(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Vec<(String, Silence)>> {
    tx.list(
        sql!(
            "SELECT feed_url, news_days, silent_at FROM press_feeds
             WHERE job_name = ?1 AND silent_at IS NOT NULL ORDER BY feed_url"
        ),
        params![job],
        |row| {
            let days: Option<String> = row.get(1)?;
            Ok((row.get(0)?, Silence::from_stored(days.as_deref(), row.get(2)?)))
        },
    )
}

/// The feeds of a job that exceed a limit.
pub fn list_cut(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Vec<(String, Option<Cut>)>> {
    tx.list(
        sql!(
            "SELECT feed_url, cut FROM press_feeds WHERE job_name = ?1 AND cut IS NOT NULL ORDER BY feed_url"
        ),
        params![job],
        |row| Ok((row.get(0)?, read_cut(row, "cut")?)),
    )
}

/// Stores the end of the wait that the server of a feed asked for.
pub fn put_not_before(tx: &mut Tx<'_>, job: &JobName, feed_url: &str, until: Timestamp) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO press_feeds (job_name, feed_url, not_before) VALUES (?1, ?2, ?3)
             ON CONFLICT (job_name, feed_url) DO UPDATE SET not_before = excluded.not_before"
        ),
        params![job, feed_url, until],
    )
}

/// Whether a feed is marked as gone.
pub fn is_gone(tx: &mut Tx<'_>, job: &JobName, feed_url: &str) -> db::Result<bool> {
    tx.exists(
        sql!("SELECT gone_at FROM press_feeds WHERE job_name = ?1 AND feed_url = ?2 AND gone_at IS NOT NULL"),
        params![job, feed_url],
    )
}

/// Marks a feed as gone.
pub fn mark_gone(tx: &mut Tx<'_>, job: &JobName, feed_url: &str, now: Timestamp) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO press_feeds (job_name, feed_url, gone_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (job_name, feed_url) DO UPDATE SET gone_at = excluded.gone_at"
        ),
        params![job, feed_url, now],
    )
}

/// Clears the marks of gone feeds of a job; returns how many there were.
pub fn reset_gone(tx: &mut Tx<'_>, job: &JobName) -> db::Result<u64> {
    tx.execute(
        sql!("UPDATE press_feeds SET gone_at = NULL WHERE job_name = ?1 AND gone_at IS NOT NULL"),
        params![job],
    )
}
