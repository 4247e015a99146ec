//! The SQL of `press_feeds`: what is remembered about a feed.

use crate::db::{self, Tx};
use crate::fetch::Validators;
use crate::id::JobName;
use crate::press::gone::Gone;
use crate::time::Timestamp;
use crate::{params, sql};

/// What is remembered about a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedState {
    /// What the server said about the version that we read.
    pub validators: Validators,
    /// When we first read it.
    pub first_success_at: Option<Timestamp>,
    /// When its body was last read whole.
    pub last_read_at: Option<Timestamp>,
    /// From when on it is read whole again.
    pub read_again_at: Option<Timestamp>,
    /// How many entries it had when its body was last read whole.
    pub entry_count: Option<u32>,
    /// Until when the server asked us to leave it alone; cleared by the next success.
    pub not_before: Option<Timestamp>,
    /// When it was last read, or had not changed; written as now.
    pub last_success_at: Option<Timestamp>,
}

/// What is remembered about a feed; nothing, if we have never read it.
pub fn find_feed(tx: &mut Tx<'_>, job: &JobName, feed_url: &str) -> db::Result<FeedState> {
    let found = tx.find(
        sql!(
            "SELECT etag, last_modified, validated_url, first_success_at, last_read_at, read_again_at,
               entry_count, last_success_at, not_before
             FROM press_feeds WHERE job_name = ?1 AND feed_url = ?2"
        ),
        params![job, feed_url],
        |row| {
            let url: Option<String> = row.get("validated_url")?;
            Ok(FeedState {
                validators: Validators {
                    etag: row.get("etag")?,
                    last_modified: row.get("last_modified")?,
                    url: url.and_then(|url| url.parse().ok()),
                },
                first_success_at: row.get("first_success_at")?,
                last_read_at: row.get("last_read_at")?,
                read_again_at: row.get("read_again_at")?,
                entry_count: row.get("entry_count")?,
                last_success_at: row.get("last_success_at")?,
                not_before: row.get("not_before")?,
            })
        },
    )?;
    Ok(found.unwrap_or_default())
}

/// When a feed was last read, or had not changed.
pub fn find_last_success(tx: &mut Tx<'_>, job: &JobName, feed_url: &str) -> db::Result<Option<Timestamp>> {
    let last = tx.find(
        sql!("SELECT last_success_at FROM press_feeds WHERE job_name = ?1 AND feed_url = ?2"),
        params![job, feed_url],
        |row| row.get(0),
    )?;
    Ok(last.flatten())
}

/// Remembers a feed that was read, or that has not changed.
pub fn put_feed(
    tx: &mut Tx<'_>,
    job: &JobName,
    feed_url: &str,
    state: &FeedState,
    now: Timestamp,
) -> db::Result<()> {
    let url = state.validators.url.as_ref().map(ToString::to_string);
    tx.execute(
        sql!(
            "INSERT INTO press_feeds (job_name, feed_url, etag, last_modified, validated_url, first_success_at,
               last_success_at, last_read_at, read_again_at, entry_count)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (job_name, feed_url) DO UPDATE SET etag = excluded.etag,
               last_modified = excluded.last_modified, validated_url = excluded.validated_url,
               first_success_at = COALESCE(press_feeds.first_success_at, excluded.first_success_at),
               last_success_at = excluded.last_success_at, last_read_at = excluded.last_read_at,
               read_again_at = excluded.read_again_at, entry_count = excluded.entry_count, gone_at = NULL, gone_told_at = NULL,
               not_before = NULL"
        ),
        params![
            job,
            feed_url,
            state.validators.etag,
            state.validators.last_modified,
            url,
            state.first_success_at,
            now,
            state.last_read_at,
            state.read_again_at,
            state.entry_count
        ],
    )?;
    Ok(())
}

/// Remembers until when the server of a feed wants to be left alone.
pub fn put_not_before(tx: &mut Tx<'_>, job: &JobName, feed_url: &str, until: Timestamp) -> db::Result<()> {
    tx.execute(
        sql!(
            "INSERT INTO press_feeds (job_name, feed_url, not_before) VALUES (?1, ?2, ?3)
             ON CONFLICT (job_name, feed_url) DO UPDATE SET not_before = excluded.not_before"
        ),
        params![job, feed_url, until],
    )?;
    Ok(())
}

/// Whether a feed is gone for good, as far as we know.
pub fn find_gone(tx: &mut Tx<'_>, job: &JobName, feed_url: &str) -> db::Result<Option<Gone>> {
    tx.find(
        sql!(
            "SELECT gone_at, gone_told_at FROM press_feeds
             WHERE job_name = ?1 AND feed_url = ?2 AND gone_at IS NOT NULL"
        ),
        params![job, feed_url],
        |row| Ok(Gone { gone_at: row.get(0)?, is_announced: row.get::<Option<Timestamp>>(1)?.is_some() }),
    )
}

/// Remembers that a feed is gone for good; nobody was told yet.
pub fn mark_gone(tx: &mut Tx<'_>, job: &JobName, feed_url: &str, now: Timestamp) -> db::Result<()> {
    tx.execute(
        sql!(
            "INSERT INTO press_feeds (job_name, feed_url, gone_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (job_name, feed_url) DO UPDATE SET gone_at = excluded.gone_at, gone_told_at = NULL"
        ),
        params![job, feed_url, now],
    )?;
    Ok(())
}

/// Notes that the end of a feed is told; `false` when somebody else was first.
pub fn mark_gone_announced(
    tx: &mut Tx<'_>,
    job: &JobName,
    feed_url: &str,
    gone_at: Timestamp,
    now: Timestamp,
) -> db::Result<bool> {
    let marked = tx.execute(
        sql!(
            "UPDATE press_feeds SET gone_told_at = ?4
             WHERE job_name = ?1 AND feed_url = ?2 AND gone_at = ?3 AND gone_told_at IS NULL"
        ),
        params![job, feed_url, gone_at, now],
    )?;
    Ok(marked == 1)
}

/// Forgets that feeds of a job are gone; answers how many were.
pub fn reset_gone(tx: &mut Tx<'_>, job: &JobName) -> db::Result<u64> {
    tx.execute(
        sql!(
            "UPDATE press_feeds SET gone_at = NULL, gone_told_at = NULL
             WHERE job_name = ?1 AND gone_at IS NOT NULL"
        ),
        params![job],
    )
}
