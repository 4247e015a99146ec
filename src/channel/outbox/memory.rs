//! The SQL of a channel's sender state: when it was last used, and which credentials were rejected.

use super::decide::{self, Activity};
use super::restored;
use crate::channel::settings::Settings;
use crate::db::{self, Tx};
use crate::ledger::pause::Pause;
use crate::time::Timestamp;
use crate::{params, sql};

/// The sender state of a channel.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) last_attempt_at: Option<Timestamp>,
    pub(super) locked_with: Option<String>,
}

/// Locks the channel until COMMIT, so that pace and daily limit hold for all senders together.
pub(super) fn lock_channel(tx: &mut Tx<'_>, channel: &str) -> db::Result<Memory> {
    let now = tx.now();
    restored::notice_restore(tx, now)?;
    tx.execute(
        sql!("INSERT INTO outbox_channels (channel) VALUES (?1) ON CONFLICT (channel) DO NOTHING"),
        params![channel],
    )?;
    let memory = tx.find(
        sql!("SELECT last_attempt_at, locked_with FROM outbox_channels WHERE channel = ?1 {for_update}"),
        params![channel],
        read_memory,
    )?;
    Ok(memory.unwrap_or_default())
}

/// The same without a lock.
pub(super) fn find_memory(tx: &mut Tx<'_>, channel: &str) -> db::Result<Memory> {
    let memory = tx.find(
        sql!("SELECT last_attempt_at, locked_with FROM outbox_channels WHERE channel = ?1"),
        params![channel],
        read_memory,
    )?;
    Ok(memory.unwrap_or_default())
}

fn read_memory(row: &db::Row<'_>) -> db::Result<Memory> {
    Ok(Memory { last_attempt_at: row.get(0)?, locked_with: row.get(1)? })
}

/// Whether a pause ends implausibly late because the clock was ahead: waiting for it could take years.
pub(super) fn is_mistimed(pause: &Pause, settings: &Settings, now: Timestamp) -> bool {
    pause.paused_until.is_some_and(|until| until > decide::latest_wait(settings, now))
}

pub(super) fn put_locked_with(tx: &mut Tx<'_>, channel: &str, print: Option<&str>) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO outbox_channels (channel, locked_with) VALUES (?1, ?2)
             ON CONFLICT (channel) DO UPDATE SET locked_with = excluded.locked_with"
        ),
        params![channel, print],
    )
}

/// The activity that counts for the channel's limits.
pub(super) fn activity(
    tx: &mut Tx<'_>,
    channel: &str,
    memory: &Memory,
    settings: &Settings,
) -> db::Result<Activity> {
    let today = match settings.max_per_day {
        None => 0,
        Some(_) => tx.count(
            sql!(
                "SELECT CAST(COUNT(*) AS BIGINT) FROM outbox WHERE channel = ?1 AND last_attempt_at >= ?2
                 AND last_attempt_at < ?3 AND state IN ('sending', 'sent', 'unknown')"
            ),
            params![
                channel,
                decide::day_start(&settings.zone, tx.now()),
                decide::next_day(&settings.zone, tx.now())
            ],
        )?,
    };
    Ok(Activity { last_attempt_at: memory.last_attempt_at, today: u32::try_from(today).unwrap_or(u32::MAX) })
}
