//! Lists messages for people: the newest, those of a job or a channel, and counts by state.

use super::model::{Row, State};
use super::store::{columns, messages, moving_states, open_states, read};
use super::waiting::ChannelRetry;
use crate::db::{self, FromRow, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// Messages of a channel that were tried and are counted, at most.
const MAX_TRIED: usize = 1_000;

/// Which messages to list; `None` matches all.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    pub state: Option<State>,
    pub job: Option<String>,
    pub channel: Option<String>,
    /// Only those older than the one with this number.
    pub before: Option<i64>,
}

/// Newest first.
pub fn list(tx: &mut Tx<'_>, filter: &DeliveryFilter, limit: usize) -> db::Result<Vec<Row>> {
    // SQLite uses no index for a condition that may be absent. Nearly all messages are `sent`, so other states are
    // found by their index, and the newest sent ones are near the end. PostgreSQL treats an absent condition as true.
    let text = match (filter.state, &filter.job) {
        (Some(state), _) if state != State::Sent => sql!(concat!(
            messages!(),
            "WHERE state = ?1 AND (CAST(?2 AS TEXT) IS NULL OR job_name = ?2)
              AND (CAST(?3 AS TEXT) IS NULL OR channel = ?3) AND id < ?5 ORDER BY id DESC LIMIT ?4"
        )),
        (_, Some(_)) => sql!(concat!(
            messages!(),
            "WHERE job_name = ?2 AND (CAST(?1 AS TEXT) IS NULL OR state = ?1)
              AND (CAST(?3 AS TEXT) IS NULL OR channel = ?3) AND id < ?5 ORDER BY id DESC LIMIT ?4"
        )),
        _ => sql!(concat!(
            messages!(),
            "WHERE (CAST(?1 AS TEXT) IS NULL OR state = ?1) AND (CAST(?2 AS TEXT) IS NULL OR job_name = ?2)
              AND (CAST(?3 AS TEXT) IS NULL OR channel = ?3) AND id < ?5 ORDER BY id DESC LIMIT ?4"
        )),
    };
    let before = filter.before.unwrap_or(i64::MAX);
    let (job, channel) = (filter.job.as_deref(), filter.channel.as_deref());
    tx.list(text, params![filter.state.map(State::word), job, channel, limit, before], read)
}

/// The next messages after the number `after`, of one job or of all, added from `since` on and before `until`.
pub fn list_after(
    tx: &mut Tx<'_>,
    after: i64,
    job: Option<&str>,
    (since, until): (Timestamp, Timestamp),
    limit: usize,
) -> db::Result<Vec<Row>> {
    tx.list(
        sql!(concat!(
            messages!(),
            "WHERE id > ?1 AND (CAST(?2 AS TEXT) IS NULL OR job_name = ?2)
              AND created_at >= ?3 AND created_at < ?4 ORDER BY id LIMIT ?5"
        )),
        params![after, job, since, until, limit],
        read,
    )
}

/// The number of messages of a job on a channel in one state.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, FromRow)]
pub struct DeliveryCount {
    pub job_name: String,
    pub channel: String,
    pub state: State,
    pub count: i64,
}

/// Counts all messages that are not final, and those that failed.
pub fn tally(tx: &mut Tx<'_>) -> db::Result<Vec<DeliveryCount>> {
    tx.list(
        sql!(concat!(
            "SELECT job_name, channel, state, CAST(COUNT(*) AS BIGINT) AS count FROM outbox
             WHERE state IN (",
            open_states!(),
            ", 'failed') GROUP BY job_name, channel, state ORDER BY job_name, channel, state"
        )),
        params![],
        FromRow::from_row,
    )
}

/// What a channel has tried to send and tries again.
pub(super) fn find_retry(tx: &mut Tx<'_>, channel: &str) -> db::Result<Option<ChannelRetry>> {
    let mut tried = tx.list(
        sql!(
            "SELECT not_before, attempts, last_error FROM outbox
             WHERE channel = ?1 AND state = 'ready' AND attempts > 0 AND last_error IS NOT NULL
             ORDER BY not_before, id LIMIT ?2"
        ),
        params![channel, MAX_TRIED],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let messages = i64::try_from(tried.len()).unwrap_or(i64::MAX);
    Ok(tried.drain(..).next().map(|(next_at, attempts, why)| ChannelRetry {
        channel: channel.to_owned(),
        messages,
        attempts,
        next_at,
        why,
    }))
}

/// When a channel last sent a message that arrived.
pub(super) fn find_last_sent(tx: &mut Tx<'_>, channel: &str) -> db::Result<Option<Timestamp>> {
    tx.find(
        sql!(
            "SELECT last_attempt_at FROM outbox WHERE channel = ?1 AND state = 'sent' AND last_attempt_at IS NOT NULL
             ORDER BY last_attempt_at DESC LIMIT 1"
        ),
        params![channel],
        |row| row.get(0),
    )
}

/// Channels that messages wait for but that are not configured, with the number of messages.
pub fn list_orphans(tx: &mut Tx<'_>, configured: &[String]) -> db::Result<Vec<(String, i64)>> {
    let mut waiting = tx.list(
        sql!(concat!(
            "SELECT channel, CAST(COUNT(*) AS BIGINT) FROM outbox WHERE state IN (",
            moving_states!(),
            ") GROUP BY channel ORDER BY channel"
        )),
        params![],
        |row| Ok((row.get::<String>(0)?, row.get::<i64>(1)?)),
    )?;
    waiting.retain(|(channel, _)| !configured.contains(channel));
    Ok(waiting)
}
