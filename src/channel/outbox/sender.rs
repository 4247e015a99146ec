//! The sender: claims due messages, sends them, records the outcome. Any number of senders may run.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::claim::{self, Due};
use super::decide::{self, Admission, WaitReason};
use super::events::ChannelCode;
use super::lease::Lease;
use super::listing;
use super::memory;
use super::model::{Row, State};
use super::report::SendReport;
use super::topics::Topics;
use crate::channel::error::{Accepted, SendError};
use crate::channel::progress::SendBudget;
use crate::channel::{Channel, ChannelEnv, ChannelSet, Progress, Settings};
use crate::db::{self, Db, Tx};
use crate::fail;
use crate::fetch::Clients;
use crate::id::Owner;
use crate::ledger::{Subject, event, pause};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::{Clock, Timestamp};

/// A shorter pace is waited for within a pass; with a longer one, the rest is left to the next pass.
const MAX_PACE_WAIT: Duration = Duration::from_secs(20);
/// How long a send may continue after a stop was requested.
const GRACE: Duration = Duration::from_secs(5);
/// How often the loop polls if nothing wakes it.
const POLL_EVERY: Duration = Duration::from_secs(5);

/// Sends due messages; cheap to clone.
#[derive(Clone)]
pub struct Sender {
    pub(super) db: Db,
    pub(super) channels: Arc<ChannelSet>,
    pub(super) channel_env: ChannelEnv,
    pub(super) topics: Topics,
    pub(super) owner: Owner,
}

/// When a sender stops.
#[derive(Clone, Copy)]
struct Until<'a> {
    /// Once cancelled, no further message is claimed.
    turn: &'a CancellationToken,
    /// Once cancelled, the present message is aborted, too, after a short grace.
    stop: &'a CancellationToken,
}

/// The result of a claim.
pub(super) enum Taken {
    Send(Row, SendBudget),
    Resolve(Row),
    Wait { until: Option<Timestamp>, is_pace: bool, is_locked: bool },
    Nothing,
}

/// The result for one message.
pub(super) enum Ended {
    Step(State),
    /// It was too late to begin, or another sender has it, which will resolve it.
    Lost,
}

impl Sender {
    /// A sender for `channels`, which notifies the owners in `topics`.
    pub fn new(db: Db, channels: Arc<ChannelSet>, clients: Clients, clock: Clock, topics: Topics) -> Self {
        Self {
            db,
            channels,
            channel_env: ChannelEnv { clients, clock },
            topics,
            owner: Owner::this_process(),
        }
    }

    /// Sends due messages once; stops early when `stop` is cancelled.
    pub async fn send_due(&self, stop: &CancellationToken) -> db::Result<SendReport> {
        let mut report = SendReport::default();
        self.notify_owners().await?;
        let until = Until { turn: stop, stop };
        let passes = self.channels.iter().map(|channel| self.pass(channel, until));
        let mut failure = None;
        for passed in join_all(passes).await {
            match passed {
                Ok(part) => report.add(part),
                Err(error) => failure = Some(error),
            }
        }
        let names = self.channels.names();
        let orphans = self.db.read(move |tx| listing::list_orphans(tx, &names)).await?;
        report.orphans.extend(orphans.into_iter().map(|(channel, _)| channel));
        // The work of the other channels is recorded; return the error nevertheless.
        failure.map_or(Ok(report), Err)
    }

    /// Sends due messages until `turn`, a child of `stop`, is cancelled. Messages being sent then are completed; only
    /// `stop` aborts them. A slow channel delays no other.
    pub async fn run(&self, turn: &CancellationToken, stop: &CancellationToken) {
        let until = Until { turn, stop };
        let sending = join_all(self.channels.iter().map(|channel| self.keep_sending(channel, until)));
        tokio::join!(sending, self.keep_notifying(turn));
    }

    async fn keep_sending(&self, channel: &Channel, until: Until<'_>) {
        while !until.turn.is_cancelled() {
            let passed = self.pass(channel, until).await;
            wait_after(passed.map(drop), until.turn).await;
        }
    }

    async fn keep_notifying(&self, turn: &CancellationToken) {
        while !turn.is_cancelled() {
            let notified = self.notify_owners().await;
            wait_after(notified, turn).await;
        }
    }

    /// Sends the messages of one channel one by one, so that pace and order hold.
    async fn pass(&self, channel: &Channel, Until { turn, stop }: Until<'_>) -> db::Result<SendReport> {
        let mut report = SendReport::default();
        let mut has_waited = false;
        // Waits are written with the database's clock; ours may differ from it by years.
        let began = self.db.read(|tx| Ok(tx.now())).await?;
        while !turn.is_cancelled() {
            let ended = match self.claim(channel, began).await? {
                Taken::Nothing => break,
                Taken::Wait { until: Some(until), is_pace: true, .. } if !has_waited => {
                    let wait = until.since(self.channel_env.clock.now());
                    if wait > MAX_PACE_WAIT {
                        report.next_at = Some(until);
                        break;
                    }
                    has_waited = true;
                    tokio::select! {
                        () = turn.cancelled() => break,
                        () = tokio::time::sleep(wait) => continue,
                    }
                }
                Taken::Wait { until, is_locked, .. } => {
                    report.next_at = until;
                    if is_locked {
                        report.locked.push(channel.name.clone());
                    }
                    break;
                }
                Taken::Send(row, budget) => self.send(channel, row, &budget, stop).await?,
                Taken::Resolve(row) => self.resolve_unknown(channel, row, stop).await?,
            };
            has_waited = false;
            match ended {
                Ended::Step(state) => report.count(state),
                Ended::Lost => report.lost += 1,
            }
        }
        channel.close().await;
        if report.next_at.is_none() && report.locked.is_empty() {
            let name = channel.name.clone();
            report.next_at = self.db.read(move |tx| claim::find_next_due(tx, &name)).await?;
        }
        Ok(report)
    }

    /// Claims the next message of a channel, if its limits allow one.
    ///
    /// The commit of this transaction proves that an outcome can be recorded: on a full disk it fails, and nothing is
    /// sent.
    pub(super) async fn claim(&self, channel: &Channel, began: Timestamp) -> db::Result<Taken> {
        let (name, settings, owner) = (channel.name.clone(), channel.settings.clone(), self.owner.clone());
        let due = {
            let (name, settings, clock) = (name.clone(), settings.clone(), self.channel_env.clock.clone());
            let is_due = move |tx: &mut Tx<'_>| {
                claim::is_due(tx, &name, &Due::new(began, &settings, tx.now(), clock.uptime()))
            };
            self.db.read(is_due).await?
        };
        if !due {
            return Ok(Taken::Nothing);
        }
        let (print, clock) = (channel.credentials_fingerprint(), self.channel_env.clock.clone());
        self.db
            .claim(move |tx| {
                let now = tx.now();
                let due = Due::new(began, &settings, now, clock.uptime());
                let memory = memory::lock_channel(tx, &name)?;
                claim::mark_mistimed(tx, &name, &due)?;
                claim::mark_abandoned(tx, &name, &settings, &due)?;
                if let Some(pause) = find_pause(tx, &name, &memory, &print, &settings)? {
                    return Ok(pause);
                }
                let activity = memory::activity(tx, &name, &memory, &settings)?;
                if let Admission::NotBefore(until, why) = decide::admit(&settings, activity, now) {
                    return Ok(Taken::Wait {
                        until: Some(until),
                        is_pace: why == WaitReason::Pace,
                        is_locked: false,
                    });
                }
                let lease = Lease::new(now, clock.uptime().as_ref(), settings.lease());
                let budget = SendBudget::new(&clock, tx.began().into(), settings.lease());
                if let Some(row) = claim::claim_unknown(tx, &name, &owner, &due, &lease)? {
                    return Ok(Taken::Resolve(row));
                }
                let ready = claim::claim_ready(tx, &name, &owner, &due, &lease)?;
                #[cfg(feature = "broken-send-then-mark")]
                if let Some(row) = &ready {
                    claim::put_state(tx, row, State::Ready)?;
                }
                fail::point("outbox.claiming");
                Ok(ready.map_or(Taken::Nothing, |row| Taken::Send(row, budget.clone())))
            })
            .await
            .or_else(|error| match error {
                // The waiting messages are sent by the new database.
                db::Error::MovedAway { .. } => Ok(Taken::Nothing),
                error => Err(error),
            })
    }

    /// Sends a message that we have claimed, and records the outcome.
    pub(super) async fn send(
        &self,
        channel: &Channel,
        row: Row,
        budget: &SendBudget,
        stop: &CancellationToken,
    ) -> db::Result<Ended> {
        fail::point("outbox.claimed");
        let result = self.send_in_time(channel, &row, budget, stop).await;
        let Some(result) = result else {
            tracing::warn!(delivery = row.id, "Not sent: the lease was over before it could begin");
            return Ok(Ended::Lost);
        };
        fail::point("outbox.sent");
        #[cfg(feature = "broken-send-then-mark")]
        {
            let row = row.clone();
            self.db.write(move |tx| claim::put_state(tx, &row, State::Sending)).await?;
        }
        let step = decide::after_attempt(&row, &result, &channel.settings, self.channel_env.clock.now());
        self.record(channel, row, step).await
    }

    /// `None` if so much time has passed since the claim that another sender may have the message now.
    async fn send_in_time(
        &self,
        channel: &Channel,
        row: &Row,
        budget: &SendBudget,
        stop: &CancellationToken,
    ) -> Option<Result<Accepted, SendError>> {
        let progress = Progress::new(budget.clone());
        if !progress.may_go_on() {
            return None;
        }
        let sending = channel.send(&self.channel_env, row, &progress);
        let cut = |why: Phrase| {
            if progress.is_handed_over() {
                SendError::unknown(phrase!(
                    "{why}: it may have been sent",
                    "{why}。送信済みの可能性があります"
                ))
            } else {
                SendError::later(phrase!(
                    "{why}, before the message was handed over",
                    "{why}。メッセージはまだ渡していません"
                ))
            }
        };
        let stopped = async {
            stop.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        Some(tokio::select! {
            result = sending => result,
            limit = out_of_time(channel, &progress) => {
                Err(cut(phrase!("no answer within {limit}", "{limit}以内に応答がありません")))
            }
            () = stopped => Err(cut(phrase!("interrupted", "中断されました"))),
            never = self.keep_lease(channel, row, budget, &progress) => match never {},
        })
    }

    /// Renews the lease of a message that was handed over, for as long as the answer may take.
    async fn keep_lease(
        &self,
        channel: &Channel,
        row: &Row,
        budget: &SendBudget,
        progress: &Progress,
    ) -> Infallible {
        let length = channel.settings.lease();
        loop {
            tokio::time::sleep(length / 3).await;
            if channel.answers_within().is_none() || !progress.is_handed_over() {
                continue;
            }
            let moment = budget.moment();
            let (held, owner, clock) = (row.clone(), self.owner.clone(), self.channel_env.clock.clone());
            let renew = move |tx: &mut Tx<'_>| {
                let lease = Lease::new(tx.now(), clock.uptime().as_ref(), length);
                claim::renew(tx, &held, &owner, &lease)
            };
            match self.db.write(renew).await {
                Ok(true) => budget.renew(moment),
                Ok(false) => {
                    tracing::warn!(delivery = row.id, "Another sender has marked it as abandoned");
                }
                Err(error) => tracing::warn!(delivery = row.id, "Its lease cannot be renewed yet: {error}"),
            }
        }
    }
}

/// Returns once a send has taken too long, and how long that was.
async fn out_of_time(channel: &Channel, progress: &Progress) -> Duration {
    let timeout = channel.settings.timeout;
    tokio::time::sleep(timeout).await;
    match (channel.answers_within(), progress.handed_over_at()) {
        (Some(limit), Some(since)) => {
            tokio::time::sleep_until(since + limit).await;
            limit
        }
        _ => timeout,
    }
}

/// Waits for the next round of a loop, longer after an error, at most until `turn` is cancelled.
async fn wait_after(done: db::Result<()>, turn: &CancellationToken) {
    let pause = match done {
        Ok(()) => POLL_EVERY,
        Err(error) => {
            tracing::error!("The outbox cannot be processed: {error}");
            POLL_EVERY * 6
        }
    };
    tokio::select! {
        () = turn.cancelled() => {}
        () = tokio::time::sleep(pause) => {}
    }
}

/// The pause of the channel, unless its credentials have changed since it was locked, or the pause ends implausibly
/// late because the clock was ahead.
fn find_pause(
    tx: &mut Tx<'_>,
    channel: &str,
    memory: &memory::Memory,
    print: &str,
    settings: &Settings,
) -> db::Result<Option<Taken>> {
    let now = tx.now();
    let name = Subject::channel(channel);
    let Some(pause) = pause::find(tx, &name, now)? else { return Ok(None) };
    match &memory.locked_with {
        Some(locked_with) if locked_with != print => {
            pause::reset(tx, &name)?;
            memory::put_locked_with(tx, channel, None)?;
            event::add(tx, None, &name, ChannelCode::CredentialsChanged, &json!({}), now)?;
            Ok(None)
        }
        _ if memory::is_mistimed(&pause, settings, now) => {
            pause::reset(tx, &name)?;
            Ok(None)
        }
        locked => {
            Ok(Some(Taken::Wait { until: pause.paused_until, is_pace: false, is_locked: locked.is_some() }))
        }
    }
}
