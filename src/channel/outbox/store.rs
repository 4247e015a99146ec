//! The outbox's SQL: adding, finding and changing messages.

use serde_json::json;

use super::events::DeliveryCode;
use super::lease::{Lease, Moment};
use super::model::{Added, NewMessage, Row, State, Suspicion, key};
use super::restored;
use crate::db::{self, Tx};
use crate::ledger::{Subject, event};
use crate::phrase::Phrase;
use crate::time::{Timestamp, Uptime};
use crate::{params, phrase, sql};

crate::migration!(6, "outbox", "../../../migrations/0006_outbox.sql");

macro_rules! columns {
    () => {
        "id, key, job_name, channel, recipient, topic, subject, generation, payload, state, created_at, not_before,
         attempts, first_attempt_at, last_attempt_at, settled_at, lease_fence, lease_until, suspicion, remote_id, last_error,
         resent_at, resolve_attempts, lease_uptime, suspect_since"
    };
}

/// Selects rows of the outbox, as [`read`] expects them.
macro_rules! messages {
    () => {
        concat!("SELECT ", columns!(), " FROM outbox ")
    };
}

/// The states that are not final, see [`State::is_open`].
macro_rules! open_states {
    () => {
        "'ready', 'sending', 'unknown', 'held'"
    };
}

/// Those of them that senders work on; held messages wait for a person.
macro_rules! moving_states {
    () => {
        "'ready', 'sending', 'unknown'"
    };
}
pub(super) use {columns, messages, moving_states, open_states};

pub(super) fn read(row: &db::Row<'_>) -> db::Result<Row> {
    Ok(Row {
        id: row.get("id")?,
        key: row.get("key")?,
        job_name: row.get("job_name")?,
        channel: row.get("channel")?,
        recipient: row.get("recipient")?,
        topic: row.get("topic")?,
        subject: row.get("subject")?,
        generation: row.get("generation")?,
        payload: row.get("payload")?,
        state: row.get("state")?,
        created_at: row.get("created_at")?,
        not_before: row.get("not_before")?,
        attempts: row.get("attempts")?,
        first_attempt_at: row.get("first_attempt_at")?,
        last_attempt_at: row.get("last_attempt_at")?,
        settled_at: row.get("settled_at")?,
        lease_fence: row.get("lease_fence")?,
        lease_until: row.get("lease_until")?,
        suspicion: row.get("suspicion")?,
        remote_id: row.get("remote_id")?,
        last_error: row.get("last_error")?,
        resent_at: row.get("resent_at")?,
        resolve_attempts: row.get("resolve_attempts")?,
        lease_uptime: read_uptime(row.get("lease_uptime")?),
        suspect_since: row.get("suspect_since")?,
    })
}

/// The end of a lease by a boot clock; one that cannot be parsed is treated as that of another kernel.
fn read_uptime(text: Option<String>) -> Option<Uptime> {
    text.and_then(|text| text.parse().ok())
}

/// Reads `lease_until, lease_uptime`, the first two columns.
pub(super) fn read_lease(row: &db::Row<'_>) -> db::Result<Option<Lease>> {
    let (until, uptime) = (row.get::<Option<Timestamp>>(0)?, read_uptime(row.get(1)?));
    Ok(until.map(|until| Lease { until, uptime }))
}

/// How many messages are being sent now; `uptime` is that of this machine.
pub fn count_in_hand(tx: &mut Tx<'_>, uptime: Option<Uptime>) -> db::Result<i64> {
    let moment = Moment { now: tx.now(), uptime, latest: Timestamp::MAX };
    let leases = tx.list(
        sql!(
            "SELECT lease_until, lease_uptime FROM outbox
             WHERE state IN ('sending', 'unknown') AND lease_owner IS NOT NULL"
        ),
        params![],
        read_lease,
    )?;
    let lasting = leases.iter().flatten().filter(|lease| lease.ended_at(&moment).is_none()).count();
    Ok(i64::try_from(lasting).unwrap_or(i64::MAX))
}

/// Adds a message, unless it is known.
///
/// A failed message was certainly not sent, so adding it again makes it ready again, with the new text.
pub fn add(tx: &mut Tx<'_>, message: &NewMessage<'_>, now: Timestamp) -> db::Result<Added> {
    let key = message.key();
    let suspect_since = restored::find_suspicion(tx, message.found, now)?;
    let suspicion = suspect_since.map(|_| Suspicion::Retold);
    let state = match (message.hold, suspicion) {
        (true, _) => State::Held,
        (false, Some(_)) => State::Unknown,
        (false, None) => State::Ready,
    };
    let not_before = message.not_before.unwrap_or(now).max(now);
    let too_many = || {
        phrase!("more new things at once than `hold_above` allows", "一度の新着が `hold_above` を超えました")
    };
    let why: Vec<Phrase> =
        message.hold.then(too_many).into_iter().chain(suspicion.map(Suspicion::phrase)).collect();
    let why = (!why.is_empty()).then(|| Phrase::list(why));
    let new = tx.find(
        sql!(
            "INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, generation, payload, state,
               created_at, not_before, last_error, suspicion, suspect_since)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
             ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, topic = excluded.topic,
               state = excluded.state, readied_at = excluded.created_at, not_before = excluded.not_before, attempts = 0, resolve_attempts = 0, resent_at = NULL, settled_at = NULL,
               last_error = excluded.last_error, suspicion = excluded.suspicion, suspect_since = excluded.suspect_since
             WHERE outbox.state = 'failed' AND outbox.settled_at IS NOT NULL
             RETURNING id"
        ),
        params![
            key,
            message.job,
            message.channel,
            message.recipient,
            message.topic,
            message.subject,
            message.generation,
            message.payload,
            state.word(),
            now,
            not_before,
            why,
            suspicion.map(Suspicion::word),
            suspect_since,
        ],
        |row| row.get::<i64>(0),
    )?;
    let Some(id) = new else {
        let known = tx.count(sql!("SELECT id FROM outbox WHERE key = ?1"), params![key])?;
        return Ok(Added::Known(known));
    };
    let mut detail =
        json!({ "channel": message.channel, "topic": message.topic, "subject": message.subject });
    if let (Some(suspicion), Some(since)) = (suspicion, suspect_since) {
        detail["why"] = suspicion.phrase().to_stored().into();
        detail["since"] = since.to_string().into();
    }
    event::add(tx, Some(message.job), &Subject::delivery(id), DeliveryCode::when_added(state), &detail, now)?;
    Ok(Added::Added(id))
}

/// The message with that number.
pub fn find(tx: &mut Tx<'_>, id: i64) -> db::Result<Option<Row>> {
    tx.find(sql!(concat!(messages!(), "WHERE id = ?1")), params![id], read)
}

/// The oldest message about `subject` that is not final yet, if any.
pub fn find_open(tx: &mut Tx<'_>, topic: &str, subject: &str) -> db::Result<Option<Row>> {
    tx.find(
        sql!(concat!(
            messages!(),
            "WHERE topic = ?1 AND subject = ?2 AND state IN (",
            open_states!(),
            ") ORDER BY id LIMIT 1"
        )),
        params![topic, subject],
        read,
    )
}

/// Marks every waiting message as suspect: call it on a database that was restored or reopened, before anything runs.
///
/// A message that waits in the old state may have been sent since. Returns how many there are. A held one may have been
/// approved and sent, too: it stays held, and is resolved when it is approved.
pub fn suspect(tx: &mut Tx<'_>, suspicion: Suspicion, now: Timestamp) -> db::Result<u64> {
    tx.execute(
        sql!("UPDATE outbox SET suspicion = ?1 WHERE state = 'held' AND suspicion IS NULL"),
        params![suspicion.word()],
    )?;
    tx.execute(
        sql!(concat!(
            "UPDATE outbox SET state = 'unknown', suspicion = ?2, not_before = ?1,
               lease_owner = NULL, lease_until = NULL, lease_uptime = NULL, lease_fence = lease_fence + 1,
               last_error = ?3
             WHERE state IN (",
            moving_states!(),
            ")"
        )),
        params![now, suspicion.word(), suspicion.phrase()],
    )
}

/// Moves a message from one state to another for a person; `false` if it is in another state by now.
pub(super) fn apply_by_hand(
    tx: &mut Tx<'_>,
    row: &Row,
    state: State,
    error: Option<&Phrase>,
    now: Timestamp,
) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "UPDATE outbox SET state = ?4, readied_at = ?5, not_before = ?5,
               attempts = CASE WHEN ?4 = 'sent' THEN attempts ELSE 0 END, resolve_attempts = 0, resent_at = NULL, settled_at = NULL, last_error = ?6,
               suspicion = CASE WHEN ?4 = 'unknown' THEN suspicion END,
               suspect_since = CASE WHEN ?4 = 'unknown' THEN suspect_since END, lease_fence = lease_fence + 1, lease_owner = NULL, lease_until = NULL, lease_uptime = NULL
             WHERE id = ?1 AND state = ?2 AND lease_fence = ?3"
        ),
        params![row.id, row.state.word(), row.lease_fence, state.word(), now, error],
    )
}

/// Adds the next generation of a sent message; returns its number, or `None` if there is one already.
pub(super) fn add_repeat(tx: &mut Tx<'_>, row: &Row, now: Timestamp) -> db::Result<Option<i64>> {
    let generation = row.generation.saturating_add(1);
    let key = key(row.job_name.as_str(), &row.channel, &row.recipient, &row.subject, generation);
    tx.find(
        sql!(
            "INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, generation, payload, state,
               created_at, not_before)
             SELECT ?2, job_name, channel, recipient, topic, subject, ?3, payload, 'ready', ?4, ?4
             FROM outbox WHERE id = ?1
             ON CONFLICT (key) DO NOTHING RETURNING id"
        ),
        params![row.id, key, generation, now],
        |row| row.get(0),
    )
}

/// Makes the waiting messages of a channel due now; returns how many.
pub(super) fn put_due(tx: &mut Tx<'_>, channel: &str, now: Timestamp) -> db::Result<u64> {
    tx.execute(
        sql!("UPDATE outbox SET not_before = ?2 WHERE channel = ?1 AND state = 'ready' AND not_before > ?2"),
        params![channel, now],
    )
}

/// Held messages of a job, oldest first.
pub(super) fn list_held(tx: &mut Tx<'_>, job: &str) -> db::Result<Vec<Row>> {
    tx.list(
        // SQLite uses the index of open messages only if the condition names the same states.
        sql!(concat!(
            messages!(),
            "WHERE job_name = ?1 AND state = 'held' AND state IN (",
            open_states!(),
            ") ORDER BY id"
        )),
        params![job],
        read,
    )
}

/// Records that the owner was notified of the final state.
pub(super) fn mark_owner_notified(tx: &mut Tx<'_>, id: i64, now: Timestamp) -> db::Result<()> {
    tx.run(sql!("UPDATE outbox SET settled_at = ?2 WHERE id = ?1"), params![id, now])
}

/// Messages in a final state whose owner could not be notified.
pub(super) fn list_unannounced(tx: &mut Tx<'_>, limit: usize) -> db::Result<Vec<Row>> {
    tx.list(
        sql!(concat!(
            messages!(),
            "WHERE settled_at IS NULL AND state IN ('sent', 'failed', 'skipped') ORDER BY id LIMIT ?1"
        )),
        params![limit],
        read,
    )
}

/// Whether another message of the channel has this id on the server.
pub(super) fn is_taken(tx: &mut Tx<'_>, channel: &str, remote_id: &str, id: i64) -> db::Result<bool> {
    let others = tx.count(
        sql!(
            "SELECT CAST(COUNT(*) AS BIGINT) FROM outbox WHERE channel = ?1 AND remote_id = ?2 AND id <> ?3"
        ),
        params![channel, remote_id, id],
    )?;
    Ok(others > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_states_in_sql_are_those_of_the_code() {
        let list = |states: &mut dyn Iterator<Item = State>| {
            let words: Vec<String> = states.map(|state| format!("'{}'", state.word())).collect();
            words.join(", ")
        };
        let open = || State::ALL.iter().copied().filter(|state| state.is_open());
        assert_eq!(list(&mut open()), open_states!());
        assert_eq!(list(&mut open().filter(|state| *state != State::Held)), moving_states!());
    }
}
