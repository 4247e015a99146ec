//! The SQL of claiming messages: one sender at a time per channel, one fence per claim.

use std::time::Duration;

use serde_json::json;

use super::decide::{self, Transition};
use super::events::DeliveryCode;
use super::lease::{Lease, Moment};
use super::model::Row;
use super::store::{columns, messages, read, read_lease};
use crate::channel::settings::Settings;
use crate::db::{self, Tx};
use crate::id::Owner;
use crate::ledger::{Subject, event};
use crate::time::{Timestamp, Uptime};
use crate::{params, phrase, sql};

/// The messages a pass may claim: those due when it began. Later ones are left to the next pass, so that every pass
/// ends.
pub(super) struct Due {
    pub(super) by: Timestamp,
    pub(super) latest_wait: Timestamp,
    /// The moment at which leases are judged.
    pub(super) moment: Moment,
}

impl Due {
    /// For a pass that began at `began`; `now` and `uptime` are those of this machine.
    pub(super) fn new(began: Timestamp, settings: &Settings, now: Timestamp, uptime: Option<Uptime>) -> Self {
        Self {
            by: began.min(now),
            latest_wait: decide::latest_wait(settings, now),
            moment: Moment { now, uptime, latest: decide::latest_lease(settings, now) },
        }
    }
}

/// Whether a channel has anything to send: a cheap check, as it usually has not.
pub(super) fn is_due(tx: &mut Tx<'_>, channel: &str, due: &Due) -> db::Result<bool> {
    let now = tx.now();
    let leases = tx.list(
        sql!("SELECT lease_until, lease_uptime FROM outbox WHERE channel = ?1 AND state = 'sending'"),
        params![channel],
        read_lease,
    )?;
    if leases.iter().flatten().any(|lease| lease.ended_at(&due.moment).is_some()) {
        return Ok(true);
    }
    let is_due = tx.count(
        sql!(
            "SELECT CAST(EXISTS (SELECT 1 FROM outbox WHERE channel = ?1 AND state = 'ready' AND not_before <= ?2)
                OR EXISTS (SELECT 1 FROM outbox WHERE channel = ?1 AND state = 'unknown' AND not_before <= ?2)
                OR EXISTS (SELECT 1 FROM outbox WHERE channel = ?1 AND state = 'unknown' AND not_before > ?4)
                OR EXISTS (SELECT 1 FROM outbox WHERE channel = ?1 AND state = 'ready' AND not_before > ?4
                             AND (last_attempt_at IS NOT NULL OR COALESCE(readied_at, created_at) > ?3))
              AS INTEGER)"
        ),
        params![channel, due.by, now, due.latest_wait],
    )?;
    Ok(is_due != 0)
}

/// When the next message of a channel is due; `None` if there is none.
pub(super) fn find_next_due(tx: &mut Tx<'_>, channel: &str) -> db::Result<Option<Timestamp>> {
    tx.find(
        sql!(
            "SELECT MIN(due) FROM (
               SELECT MIN(not_before) AS due FROM outbox WHERE channel = ?1 AND state = 'ready'
               UNION ALL SELECT MIN(not_before) FROM outbox WHERE channel = ?1 AND state = 'unknown'
               UNION ALL SELECT MIN(lease_until) FROM outbox WHERE channel = ?1 AND state = 'sending') AS times"
        ),
        params![channel],
        |row| row.get::<Option<Timestamp>>(0),
    )
    .map(Option::flatten)
}

/// Makes messages due that wait implausibly long because a clock was wrong; returns how many.
///
/// Only its owner can defer a message for longer than that, so one that was never tried keeps its time.
pub(super) fn mark_mistimed(tx: &mut Tx<'_>, channel: &str, due: &Due) -> db::Result<u64> {
    let now = tx.now();
    tx.execute(
        sql!(
            "UPDATE outbox SET not_before = ?2
             WHERE channel = ?1 AND state IN ('ready', 'unknown') AND not_before > ?3
               AND (state = 'unknown' OR last_attempt_at IS NOT NULL OR COALESCE(readied_at, created_at) > ?4)"
        ),
        params![channel, due.by, due.latest_wait, now],
    )
}

/// Marks messages of dead senders as `unknown`.
pub(super) fn mark_abandoned(
    tx: &mut Tx<'_>,
    channel: &str,
    settings: &Settings,
    due: &Due,
) -> db::Result<Vec<i64>> {
    let now = tx.now();
    let in_hand = tx.list(
        sql!(concat!(
            messages!(),
            "WHERE channel = ?1 AND state = 'sending' ORDER BY not_before, id LIMIT 500"
        )),
        params![channel],
        read,
    )?;
    let why = phrase!("the sender did not come back", "送信プロセスが戻りませんでした");
    let mut marked = Vec::new();
    for row in in_hand {
        let ended_at = row.lease().and_then(|lease| lease.ended_at(&due.moment));
        let Some(ended_at) = ended_at else { continue };
        let not_before = decide::resolve_after(ended_at, row.attempts, &row.channel, settings);
        let changed = tx.execute(
            sql!(
                "UPDATE outbox SET state = 'unknown', not_before = ?3,
                   lease_owner = NULL, lease_until = NULL, lease_uptime = NULL, lease_fence = lease_fence + 1, last_error = ?4
                 WHERE id = ?1 AND state = 'sending' AND lease_fence = ?2"
            ),
            params![row.id, row.lease_fence, not_before, why],
        )?;
        if changed == 1 {
            let detail = json!({ "why": why.to_stored(), "not_before": not_before });
            event::add(
                tx,
                Some(&row.job_name),
                &Subject::delivery(row.id),
                DeliveryCode::Unknown,
                &detail,
                now,
            )?;
            marked.push(row.id);
        }
    }
    Ok(marked)
}

/// Claims the first due message and marks it `sending`; `None` if there is none.
///
/// Retries come before messages that were added later. The inner `LIMIT` bounds the sort.
///
/// The outer `WHERE` repeats the inner one on purpose: on PostgreSQL two senders can pick the same row in the subquery,
/// and only the repeated test stops the second.
pub(super) fn claim_ready(
    tx: &mut Tx<'_>,
    channel: &str,
    owner: &Owner,
    due: &Due,
    lease: &Lease,
) -> db::Result<Option<Row>> {
    let now = tx.now();
    let taken = tx.find(
        sql!(concat!(
            "UPDATE outbox SET state = 'sending', attempts = attempts + 1,
               first_attempt_at = COALESCE(first_attempt_at, ?2), last_attempt_at = ?2,
               lease_owner = ?3, lease_fence = lease_fence + 1, lease_until = ?4, lease_uptime = ?6
             WHERE id = (SELECT MIN(id) FROM (SELECT id FROM outbox WHERE channel = ?1 AND state = 'ready'
                         AND not_before <= ?5 ORDER BY not_before, id LIMIT 200) AS due)
               AND state = 'ready' AND not_before <= ?5
             RETURNING ",
            columns!()
        )),
        params![channel, now, owner, lease.until, due.by, uptime_text(lease)],
        read,
    )?;
    if taken.is_some() {
        mark_left(tx, channel, now)?;
    }
    Ok(taken)
}

/// Breaks the order of mark and send, so that `scripts/torture` can prove that it would notice.
#[cfg(feature = "broken-send-then-mark")]
pub(super) fn put_state(tx: &mut Tx<'_>, row: &Row, state: super::model::State) -> db::Result<()> {
    tx.run(sql!("UPDATE outbox SET state = ?2 WHERE id = ?1"), params![row.id, state.word()])
}

fn uptime_text(lease: &Lease) -> Option<String> {
    lease.uptime.as_ref().map(ToString::to_string)
}

/// Claims a message whose outcome is unknown, in order to resolve it; its state does not change.
///
/// Other senders may hold some of the oldest, one each, so this tries several until it finds a free one.
pub(super) fn claim_unknown(
    tx: &mut Tx<'_>,
    channel: &str,
    owner: &Owner,
    due: &Due,
    lease: &Lease,
) -> db::Result<Option<Row>> {
    let mut waiting = tx.list(
        sql!(
            "SELECT lease_until, lease_uptime, id, lease_fence FROM outbox
             WHERE channel = ?1 AND state = 'unknown' AND not_before <= ?2 ORDER BY not_before, id LIMIT 20"
        ),
        params![channel, due.by],
        |row| Ok((read_lease(row)?, row.get::<i64>(2)?, row.get::<i64>(3)?)),
    )?;
    waiting.sort_by_key(|(_, id, _)| *id);
    for (held, id, fence) in waiting {
        if held.is_some_and(|held| held.ended_at(&due.moment).is_none()) {
            continue;
        }
        let taken = tx.find(
            sql!(concat!(
                "UPDATE outbox SET lease_owner = ?3, lease_fence = lease_fence + 1, lease_until = ?4, lease_uptime = ?5
                 WHERE id = ?1 AND state = 'unknown' AND lease_fence = ?2 RETURNING ",
                columns!()
            )),
            params![id, fence, owner, lease.until, uptime_text(lease)],
            read,
        )?;
        if taken.is_some() {
            return Ok(taken);
        }
    }
    Ok(None)
}

/// Marks an `unknown` message as `sending` to send it again; `None` if another sender has claimed it, or if our lease
/// has expired.
pub(super) fn mark_sending_again(
    tx: &mut Tx<'_>,
    row: &Row,
    owner: &Owner,
    uptime: Option<&Uptime>,
    length: Duration,
    is_blind: bool,
) -> db::Result<Option<Row>> {
    let now = tx.now();
    let moment = Moment { now, uptime: uptime.cloned(), latest: Timestamp::MAX };
    if row.lease().is_none_or(|held| held.ended_at(&moment).is_some()) {
        return Ok(None);
    }
    let lease = Lease::new(now, uptime, length);
    let resent_at = if is_blind { Some(now) } else { row.resent_at };
    let taken = tx.find(
        sql!(concat!(
            "UPDATE outbox SET state = 'sending', attempts = attempts + 1, suspicion = NULL, suspect_since = NULL,
               first_attempt_at = COALESCE(first_attempt_at, ?4), last_attempt_at = ?4, lease_until = ?5,
               lease_uptime = ?7, resent_at = ?6, resolve_attempts = 0
             WHERE id = ?1 AND state = 'unknown' AND lease_owner = ?2 AND lease_fence = ?3
             RETURNING ",
            columns!()
        )),
        params![row.id, owner, row.lease_fence, now, lease.until, resent_at, uptime_text(&lease)],
        read,
    )?;
    if taken.is_some() {
        mark_left(tx, &row.channel, now)?;
    }
    Ok(taken)
}

/// Extends the lease of a message that is being sent; `false` if another sender has claimed it.
///
/// As in [`apply`], an expired lease is still ours as long as nobody has raised the fence. Otherwise a clock that is
/// set ahead would make us lose a message that is already being sent.
pub(super) fn renew(tx: &mut Tx<'_>, row: &Row, owner: &Owner, lease: &Lease) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "UPDATE outbox SET lease_until = ?4, lease_uptime = ?5
             WHERE id = ?1 AND state = 'sending' AND lease_owner = ?2 AND lease_fence = ?3"
        ),
        params![row.id, owner, row.lease_fence, lease.until, uptime_text(lease)],
    )
}

fn mark_left(tx: &mut Tx<'_>, channel: &str, now: Timestamp) -> db::Result<()> {
    tx.run(sql!("UPDATE outbox_channels SET last_attempt_at = ?2 WHERE channel = ?1"), params![channel, now])
}

/// Writes a decided step of a message that `owner` holds; `false` if another sender has claimed it.
///
/// Claiming a message raises its fence. So as long as owner and fence are ours, nobody else has touched it even if the
/// lease has expired, and its outcome must not be lost to a clock or a lock.
pub(super) fn apply(tx: &mut Tx<'_>, row: &Row, owner: &Owner, step: &Transition) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "UPDATE outbox SET state = ?4, not_before = ?5, attempts = ?6, remote_id = COALESCE(?7, remote_id),
               last_error = ?8, lease_owner = NULL, lease_until = NULL, lease_uptime = NULL, settled_at = NULL,
               suspicion = CASE WHEN ?4 IN ('ready', 'held') THEN NULL ELSE suspicion END,
               suspect_since = CASE WHEN ?4 IN ('ready', 'held') THEN NULL ELSE suspect_since END, resolve_attempts = ?9
             WHERE id = ?1 AND lease_owner = ?2 AND lease_fence = ?3 AND state IN ('sending', 'unknown')"
        ),
        params![
            row.id,
            owner,
            row.lease_fence,
            step.state.word(),
            step.not_before,
            step.attempts,
            step.remote_id.as_deref(),
            step.error.as_ref(),
            step.resolve_attempts,
        ],
    )
}

/// Records that a message was accepted although it was marked as abandoned; `false` if it was claimed since.
///
/// It was marked abandoned once and nobody holds it: our knowledge of the outcome is better than anybody else's.
pub(super) fn apply_late(tx: &mut Tx<'_>, row: &Row, step: &Transition) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "UPDATE outbox SET state = 'sent', not_before = ?3, remote_id = COALESCE(?4, remote_id),
               last_error = NULL, settled_at = NULL, resolve_attempts = 0
             WHERE id = ?1 AND state = 'unknown' AND lease_owner IS NULL AND lease_fence = ?2"
        ),
        params![row.id, row.lease_fence.saturating_add(1), step.not_before, step.remote_id.as_deref()],
    )
}
