//! One pass: runs jobs, sends their messages in parallel, announces alerts and prunes history.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::App;
use crate::channel::outbox::{ChannelWait, SendReport, Sender, WaitCause, list_waits};
use crate::db;
use crate::engine::{DeliveryMode, Finished, Job, Progress, Runner, Selection, store};
use crate::id::JobName;
use crate::time::Timestamp;

/// The result of a pass.
pub struct PassReport {
    /// How each job ended, in the given order.
    pub finished: Vec<(JobName, Finished)>,
    pub sent: Sent,
    /// The jobs that ran for the first time.
    pub first_runs: Vec<JobName>,
}

/// The total of several rounds over the outbox.
#[derive(Debug, Default)]
pub struct Sent {
    pub sent: u64,
    pub unknown: u64,
    pub failed: u64,
    /// Messages that now need a person.
    pub held: u64,
    /// Channels that cannot send although messages wait for them.
    pub waits: Vec<ChannelWait>,
    /// When the pass began: waits that began since are reported.
    pub began_at: Option<Timestamp>,
    /// Channels that messages wait for but that are not configured.
    pub orphans: BTreeSet<String>,
    /// When the next waiting message may be sent.
    pub next_at: Option<Timestamp>,
}

impl Sent {
    fn add(&mut self, round: SendReport) {
        self.sent += round.sent;
        self.unknown += round.unknown;
        self.failed += round.failed;
        self.held += round.held;
        self.orphans.extend(round.orphans);
        self.next_at = round.next_at;
    }

    /// Whether messages wait for a channel that rejects our credentials.
    pub fn is_locked(&self) -> bool {
        self.waits.iter().any(|wait| wait.cause == WaitCause::Locked)
    }
}

/// Signals from the running jobs of a pass.
#[derive(Default)]
struct JobsUnderWay {
    /// Notified whenever one ends.
    ended: Notify,
    /// Cancelled when all have ended.
    done: CancellationToken,
}

impl App {
    /// Runs `jobs` and sends messages in parallel; calls `on_end` when a job ends.
    ///
    /// With [`DeliveryMode::NoDeliver`] nothing is sent, not even older messages in the outbox.
    pub async fn run_pass(
        &self,
        jobs: Vec<Job>,
        selection: Selection,
        delivery: DeliveryMode,
        progress: Progress,
        stop: &CancellationToken,
        mut on_end: impl FnMut(&JobName, &Finished),
    ) -> db::Result<PassReport> {
        let db = &self.env.db;
        let known = db.read(store::list_states).await?;
        let runner = Runner::new(db.clone(), progress).delivering(delivery);
        let under_way = JobsUnderWay::default();
        let running = async {
            let report = |job: &JobName, finished: &Finished| {
                on_end(job, finished);
                under_way.ended.notify_one();
            };
            let finished = runner.run_reporting(jobs, selection, stop, report).await;
            under_way.done.cancel();
            finished
        };
        let sending = async {
            match delivery {
                DeliveryMode::Queue => self.send_until_done(&under_way, stop).await,
                DeliveryMode::NoDeliver => Ok(Sent::default()),
            }
        };
        let (finished, sent) = tokio::join!(running, sending);
        let sent = sent?;
        self.prune().await?;
        let is_first = |(name, finished): &&(JobName, Finished)| {
            matches!(finished, Finished::Ran(_)) && !known.iter().any(|state| state.job_name == name.as_str())
        };
        let first_runs = finished.iter().filter(is_first).map(|(name, _)| name.clone()).collect();
        Ok(PassReport { finished, sent, first_runs })
    }

    /// Sends due messages once.
    pub async fn send_now(&self, stop: &CancellationToken) -> db::Result<Sent> {
        let under_way = JobsUnderWay::default();
        under_way.done.cancel();
        self.send_until_done(&under_way, stop).await
    }

    /// Sends due messages: at once, whenever a job ends, and when all have ended.
    async fn send_until_done(&self, jobs: &JobsUnderWay, stop: &CancellationToken) -> db::Result<Sent> {
        let (sender, began_at) = (self.sender(), self.env.clock.now());
        let mut sent = Sent { began_at: Some(began_at), ..Sent::default() };
        while !stop.is_cancelled() {
            let is_last = jobs.done.is_cancelled();
            match sender.send_due(stop).await {
                Ok(round) => sent.add(round),
                Err(error) if is_last => return Err(error),
                Err(error) => warn!("The outbox cannot be processed now: {error}"),
            }
            if is_last {
                break;
            }
            tokio::select! {
                () = jobs.ended.notified() => {}
                () = jobs.done.cancelled() => {}
            }
        }
        self.announce(&sender, &mut sent, stop).await?;
        let (now, channels) = (self.env.clock.now(), Arc::clone(&self.env.channels));
        sent.waits = self.env.db.read(move |tx| list_waits(tx, &channels, now)).await?;
        // The sender has named those.
        sent.waits.retain(|wait| wait.cause != WaitCause::Missing);
        Ok(sent)
    }

    /// Announces alerts; the send before may have just revealed a problem with a channel.
    async fn announce(&self, sender: &Sender, sent: &mut Sent, stop: &CancellationToken) -> db::Result<()> {
        if self.announcer().update_if_possible().await > 0 {
            sent.add(sender.send_due(stop).await?);
        }
        Ok(())
    }
}
