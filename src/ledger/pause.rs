//! Pauses: a job, a channel or a provider that is not used until a moment, or until a person resumes it.

use std::time::Duration;

use super::Subject;
use crate::db::{self, FromRow, Tx};
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql};

crate::migration!(11, "pause since", "../../migrations/0011_pause_since.sql");

/// A new pause within this time continues the last one, unless something has worked in between: a day, with a margin
/// for things used once a day.
pub const SERIES: Duration = Duration::from_secs(25 * 3600);

/// A pause of one subject.
#[derive(Clone, Debug, PartialEq, serde::Serialize, FromRow)]
pub struct Pause {
    /// A job, a channel, a provider or a blog.
    pub name: Subject,
    pub paused_at: Timestamp,
    /// When the series of pauses began.
    pub since: Timestamp,
    /// `None`: until a person resumes it.
    pub paused_until: Option<Timestamp>,
    pub reason: Phrase,
}

/// Pauses `name`; `true` if it was not paused before, so that an alert is raised once.
pub fn put(
    tx: &mut Tx<'_>,
    name: &Subject,
    paused_until: Option<Timestamp>,
    reason: &Phrase,
    now: Timestamp,
) -> db::Result<bool> {
    let was_paused = find(tx, name, now)?.is_some();
    tx.execute(
        sql!(
            "INSERT INTO pauses (name, paused_at, since, paused_until, reason) VALUES (?1, ?2, ?2, ?3, ?4)
             ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at,
               since = CASE WHEN pauses.paused_until IS NULL OR pauses.paused_until > ?5
                            THEN COALESCE(pauses.since, pauses.paused_at) ELSE excluded.since END,
               paused_until = excluded.paused_until, reason = excluded.reason"
        ),
        params![name, now, paused_until, reason, now.minus(SERIES)],
    )?;
    Ok(!was_paused)
}

/// The present pause of `name`, if any.
pub fn find(tx: &mut Tx<'_>, name: &Subject, now: Timestamp) -> db::Result<Option<Pause>> {
    tx.find(
        sql!(
            "SELECT name, paused_at, COALESCE(since, paused_at) AS since, paused_until, reason FROM pauses
             WHERE name = ?1 AND (paused_until IS NULL OR paused_until > ?2)"
        ),
        params![name, now],
        FromRow::from_row,
    )
}

/// Everything that is paused at `now`.
pub fn list(tx: &mut Tx<'_>, now: Timestamp) -> db::Result<Vec<Pause>> {
    tx.list(
        sql!(
            "SELECT name, paused_at, COALESCE(since, paused_at) AS since, paused_until, reason FROM pauses
             WHERE paused_until IS NULL OR paused_until > ?1 ORDER BY name"
        ),
        params![now],
        FromRow::from_row,
    )
}

/// Deletes a pause that has ended: `name` works again, so that the next pause begins a new series.
pub fn forget_ended(tx: &mut Tx<'_>, name: &Subject, now: Timestamp) -> db::Result<()> {
    tx.run(sql!("DELETE FROM pauses WHERE name = ?1 AND paused_until <= ?2"), params![name, now])
}

/// Resumes `name`; `false` if it was not paused.
pub fn reset(tx: &mut Tx<'_>, name: &Subject) -> db::Result<bool> {
    Ok(tx.execute(sql!("DELETE FROM pauses WHERE name = ?1"), params![name])? == 1)
}
