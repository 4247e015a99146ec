//! Records the outcome of a message, and notifies its owner in the same transaction.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::decide::{ChannelPause, Transition};
use super::events::{ChannelCode, DeliveryCode};
use super::model::{DeliveryOutcome, Row, State};
use super::sender::{Ended, Sender};
use super::{claim, memory, store, topics};
use crate::channel::Channel;
use crate::config::redact;
use crate::db::{self, Tx};
use crate::fail;
use crate::ledger::{Subject, event, pause};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// How long to retry recording an outcome, however long the lease: if it is lost, the message may be sent twice.
const WRITE_FOR: Duration = Duration::from_secs(300);

impl Sender {
    /// Records a step, retrying for some minutes: a sent message must not be forgotten.
    pub(super) async fn record(&self, channel: &Channel, row: Row, step: Transition) -> db::Result<Ended> {
        let deadline = Instant::now() + WRITE_FOR;
        let mut wait = Duration::from_millis(50);
        // Error messages from outside may repeat our secrets; all of them pass through here.
        let error = step.error.map(|why| Phrase::from_stored(&redact(&why.to_stored())));
        let step = Transition { error, ..step };
        let print = channel.credentials_fingerprint();
        loop {
            let written = self.write(&row, &step, &print, Owners::Notify).await;
            let error = match written {
                Ok(true) => break,
                Ok(false) => {
                    tracing::warn!(
                        delivery = row.id,
                        "Another sender has claimed it, so the outcome is not recorded"
                    );
                    return Ok(Ended::Lost);
                }
                Err(error) => error,
            };
            // An owner that fails must not cause a second send: record the outcome, notify the owner later.
            if matches!(
                error,
                db::Error::Constraint(_) | db::Error::Statement(_) | db::Error::Unexpected { .. }
            ) && matches!(self.write(&row, &step, &print, Owners::Later).await, Ok(true))
            {
                tracing::error!(delivery = row.id, topic = row.topic, "Cannot notify the owner yet: {error}");
                break;
            }
            if matches!(error, db::Error::MovedAway { .. } | db::Error::Replaced(_) | db::Error::Closed)
                || Instant::now() + wait > deadline
            {
                return Err(error);
            }
            tracing::warn!(delivery = row.id, "Cannot record the outcome yet: {error}");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(2));
        }
        fail::point("outbox.recorded");
        log_outcome(&row, &step);
        Ok(Ended::Step(step.state))
    }

    async fn write(&self, row: &Row, step: &Transition, print: &str, owners: Owners) -> db::Result<bool> {
        let (row, step, owner, topics) = (row.clone(), step.clone(), self.owner.clone(), self.topics.clone());
        let print = print.to_owned();
        self.db
            .write(move |tx| {
                let now = tx.now();
                let is_late = |tx: &mut Tx<'_>| match step.state {
                    State::Sent => claim::apply_late(tx, &row, &step),
                    _ => Ok(false),
                };
                if !claim::apply(tx, &row, &owner, &step)? && !is_late(tx)? {
                    return Ok(false);
                }
                let after = Row {
                    state: step.state,
                    attempts: step.attempts,
                    remote_id: step.remote_id.clone().or_else(|| row.remote_id.clone()),
                    last_error: step.error.clone(),
                    ..row.clone()
                };
                let code = DeliveryCode::after_attempt(step.state);
                topics::note(tx, &after, code, step.error.as_ref(), now)?;
                if step.state == State::Sent {
                    pause::forget_ended(tx, &Subject::channel(&row.channel), now)?;
                }
                if let Some(pause) = &step.pause {
                    put_pause(tx, &after, pause, &print, now)?;
                }
                if let (Some(outcome), Owners::Notify) = (DeliveryOutcome::of(step.state), owners) {
                    topics.notify_owner(tx, &after, outcome, now)?;
                }
                fail::point("outbox.recording");
                Ok(true)
            })
            .await
    }

    /// Notifies owners for which that failed before.
    pub(super) async fn notify_owners(&self) -> db::Result<()> {
        let unannounced = self.db.read(|tx| store::list_unannounced(tx, 100)).await?;
        for row in unannounced {
            let (id, topic) = (row.id, row.topic.clone());
            let topics = self.topics.clone();
            let notified = self
                .db
                .write(move |tx| match DeliveryOutcome::of(row.state) {
                    Some(outcome) => topics.notify_owner(tx, &row, outcome, tx.now()),
                    None => Ok(()),
                })
                .await;
            if let Err(error) = notified {
                tracing::error!(delivery = id, topic, "Still cannot notify the owner: {error}");
            }
        }
        Ok(())
    }
}

/// Whether to notify owners now or in a later pass.
#[derive(Clone, Copy)]
enum Owners {
    Notify,
    Later,
}

/// Pauses the channel and raises the alert, unless it is paused already.
fn put_pause(
    tx: &mut Tx<'_>,
    row: &Row,
    pause: &ChannelPause,
    print: &str,
    now: Timestamp,
) -> db::Result<()> {
    let name = Subject::channel(&row.channel);
    let asked = || phrase!("it asked us to wait", "待つよう求められました");
    let why = row.last_error.clone().unwrap_or_else(asked);
    let (until, code) = match pause {
        ChannelPause::Until(until) => (Some(*until), ChannelCode::AskedToWait),
        ChannelPause::Unsafe(until) => (Some(*until), ChannelCode::NoEncryption),
        ChannelPause::Locked => (None, ChannelCode::CredentialsRejected),
    };
    if *pause == ChannelPause::Locked {
        memory::put_locked_with(tx, &row.channel, Some(print))?;
    }
    if pause::put(tx, &name, until, &why, now)? {
        event::add(tx, None, &name, code, &json!({ "why": why.to_stored(), "until": until }), now)?;
    }
    Ok(())
}

/// Logs the outcome of a message once, without its recipient.
fn log_outcome(row: &Row, step: &Transition) {
    let why = step.error.as_ref().map(ToString::to_string).unwrap_or_default();
    let (id, channel) = (row.id, row.channel.as_str());
    match (step.state, &step.pause) {
        (_, Some(ChannelPause::Locked)) => {
            tracing::error!(delivery = id, channel, "channel {channel} is paused: {why}");
        }
        (_, Some(ChannelPause::Unsafe(until))) => {
            tracing::error!(delivery = id, channel, "channel {channel} is paused until {until}: {why}");
        }
        (State::Sent, _) => tracing::info!(delivery = id, channel, "Sent delivery {id} to {channel}"),
        (State::Failed, _) => tracing::error!(
            delivery = id,
            channel,
            "delivery {id} to {channel} failed: {why} (`tsuzuki delivery retry {id}` tries again)"
        ),
        (State::Held, _) => tracing::warn!(
            delivery = id,
            channel,
            "delivery {id} to {channel} needs approval: {why} (`tsuzuki delivery approve {id}` or `skip {id}`)"
        ),
        (State::Unknown, _) => tracing::warn!(
            delivery = id,
            channel,
            "delivery {id} to {channel} may or may not have been sent; checked at {}: {why}",
            step.not_before
        ),
        _ => {
            tracing::warn!(
                delivery = id,
                channel,
                "delivery {id} to {channel} failed: {why}; next attempt {}",
                step.not_before
            );
        }
    }
}
