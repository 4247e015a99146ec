//! The hub: polls the database once a second for all clients, and sends them the changes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::sync::{Notify, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use super::MAX_LISTENERS;
use crate::channel::outbox::{self, DeliveryCount};
use crate::db::{self, Db, Tx};
use crate::engine::{JobState, Progress, Update, store};
use crate::id::JobName;
use crate::ledger::event::{self, Numbered};

/// How often the database is polled.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Messages that are kept for clients that reconnect.
const KEPT: usize = 256;
/// The most events that are sent after one poll; more cause a `reset`.
const MAX_EVENTS: usize = 100;

pub(in crate::web) struct Hub {
    sender: broadcast::Sender<Message>,
    kept: Mutex<Kept>,
    progress: Mutex<BTreeMap<JobName, Run>>,
    pub(super) slots: Arc<Semaphore>,
    /// Notified when the first client connects.
    pub(super) wanted: Notify,
    pub(super) closed: CancellationToken,
    /// How often the database was polled.
    pub(super) polls: AtomicU64,
}

/// An encoded message.
#[derive(Clone)]
pub(super) struct Message {
    number: u64,
    pub(super) text: Bytes,
}

/// What is kept for clients that reconnect.
struct Kept {
    /// Changes when a message was lost: older ids are invalid then.
    epoch: u64,
    next: u64,
    messages: VecDeque<Message>,
}

/// The progress of a run.
#[derive(Clone, Debug, Default, serde::Serialize)]
struct Run {
    done: u64,
    total: Option<u64>,
    now: Option<String>,
    #[serde(skip)]
    is_published: bool,
}

/// The result of the last poll.
struct Seen {
    event: i64,
    states: Vec<JobState>,
    tallies: Vec<DeliveryCount>,
}

impl Hub {
    /// A hub; `epoch` distinguishes it from that of another process.
    pub(in crate::web) fn new(epoch: u64) -> Self {
        Self {
            sender: broadcast::Sender::new(KEPT),
            kept: Mutex::new(Kept { epoch, next: 0, messages: VecDeque::new() }),
            progress: Mutex::default(),
            slots: Arc::new(Semaphore::new(MAX_LISTENERS)),
            wanted: Notify::new(),
            closed: CancellationToken::new(),
            polls: AtomicU64::new(0),
        }
    }

    /// Receives the progress of runs.
    pub(in crate::web) fn progress(self: &Arc<Self>) -> Progress {
        let hub = Arc::clone(self);
        Progress::new(move |job, update| {
            let mut progress = hub.progress.lock();
            let run = progress.entry(job.clone()).or_default();
            run.is_published = false;
            match update {
                // There may have been no client when the previous run ended.
                Update::Total(total) => *run = Run { total: Some(total), ..Run::default() },
                Update::Done(more) => run.done += more,
                Update::Now(what) => run.now = Some(what),
            }
        })
    }

    /// Polls and sends until `stop` is cancelled; sleeps without clients.
    pub(in crate::web) async fn run(&self, db: &Db, stop: &CancellationToken) {
        let mut seen = None;
        while !stop.is_cancelled() {
            if self.sender.receiver_count() == 0 {
                seen = None;
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = self.wanted.notified() => self.begin_anew(),
                }
            }
            match self.poll(db, seen.take()).await {
                Ok(now) => seen = Some(now),
                Err(error) => {
                    tracing::warn!("Could not poll the database for live updates: {error}");
                    self.begin_anew();
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(POLL_EVERY) => {}
            }
        }
        self.closed.cancel();
    }

    async fn poll(&self, db: &Db, seen: Option<Seen>) -> db::Result<Seen> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        let after = seen.as_ref().map(|seen| seen.event);
        let (events, now) = db.read(move |tx| list_since(tx, after)).await?;
        let is_known = |state: &&JobState| seen.as_ref().is_some_and(|seen| seen.states.contains(state));
        for ended in now.states.iter().filter(|state| !is_known(state) && state.last_outcome.is_some()) {
            self.progress.lock().retain(|job, _| job.as_str() != ended.job_name);
        }
        if let Some(seen) = seen {
            if events.len() > MAX_EVENTS {
                self.publish("reset", &json!({}));
            } else {
                events.iter().for_each(|event| self.publish("event", &event_data(event)));
            }
            for state in now.states.iter().filter(|state| !seen.states.contains(state)) {
                let JobState { job_name, last_run_at, last_outcome, .. } = state;
                self.publish(
                    "job",
                    &json!({ "job": job_name, "last_run_at": last_run_at, "last_outcome": last_outcome }),
                );
            }
            if now.tallies != seen.tallies {
                self.publish("outbox", &json!(now.tallies));
            }
        }
        for (job, run) in self.take_progress() {
            let mut data = json!(run);
            data["job"] = json!(job);
            self.publish("progress", &data);
        }
        Ok(now)
    }

    /// The progress that has not been sent yet.
    fn take_progress(&self) -> Vec<(JobName, Run)> {
        let mut progress = self.progress.lock();
        let new = progress.iter_mut().filter(|(_, run)| !run.is_published);
        new.map(|(job, run)| {
            run.is_published = true;
            (job.clone(), run.clone())
        })
        .collect()
    }

    fn publish(&self, kind: &str, data: &Json) {
        let mut kept = self.kept.lock();
        let (epoch, number) = (kept.epoch, kept.next);
        kept.next += 1;
        let text = Bytes::from(format!("id: {epoch}-{number}\nevent: {kind}\ndata: {data}\n\n"));
        let message = Message { number, text };
        if kept.messages.len() == KEPT {
            kept.messages.pop_front();
        }
        kept.messages.push_back(message.clone());
        // There may be no client any more.
        let _ = self.sender.send(message);
    }

    /// Discards the kept messages, because one was lost.
    fn begin_anew(&self) {
        let mut kept = self.kept.lock();
        kept.epoch += 1;
        kept.messages.clear();
    }

    /// The first messages of a client: those that it has missed, or a `reset`.
    pub(super) fn catch_up(&self, last: Option<&str>) -> (Bytes, broadcast::Receiver<Message>) {
        let kept = self.kept.lock();
        let receiver = self.sender.subscribe();
        let here = kept.next;
        // The id is the position of the client, so that it gets the following messages even if it receives none before.
        let hello = |kind: &str| {
            format!("id: {}-{}\nevent: {kind}\ndata: {{}}\n\n", kept.epoch, here.saturating_sub(1))
        };
        let number = last.and_then(|last| {
            let (epoch, number) = last.split_once('-')?;
            (epoch.parse() == Ok(kept.epoch)).then(|| number.parse::<u64>().ok())?
        });
        let oldest = kept.messages.front().map_or(here, |message| message.number);
        let text = match (last, number) {
            (None, _) => hello("hello"),
            (_, Some(number)) if number.saturating_add(1) >= oldest && number < here.max(1) => {
                let missed = kept.messages.iter().filter(|message| message.number > number);
                missed.map(|message| String::from_utf8_lossy(&message.text)).collect()
            }
            _ => hello("reset"),
        };
        (text.into(), receiver)
    }
}

/// The events after `after`, and the current state. Skips events beyond the limit.
fn list_since(tx: &mut Tx<'_>, after: Option<i64>) -> db::Result<(Vec<Numbered>, Seen)> {
    let newest = event::find_newest(tx)?;
    let from = after.unwrap_or_else(|| newest.saturating_sub(i64::try_from(MAX_EVENTS).unwrap_or(0)).max(0));
    let events =
        if from < newest { event::list_settled_after(tx, from, MAX_EVENTS + 1)? } else { Vec::new() };
    let event = match events.last() {
        Some(_) if events.len() > MAX_EVENTS => newest,
        Some(last) => last.id,
        None => from,
    };
    Ok((events, Seen { event, states: store::list_states(tx)?, tallies: outbox::tally(tx)? }))
}

fn event_data(Numbered { id, event }: &Numbered) -> Json {
    json!({ "id": id, "at": event.at, "job": event.job_name, "about": event.subject, "code": event.code })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{DbUrl, Open};
    use crate::engine::RunOutcome;
    use crate::time::Clock;

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn who_comes_back_is_told_what_was_missed_or_to_look_again() {
        let hub = Hub::new(7);
        hub.publish("job", &json!({ "job": "a" }));
        hub.publish("job", &json!({ "job": "b" }));
        assert_eq!(text(&hub.catch_up(None).0), "id: 7-1\nevent: hello\ndata: {}\n\n");
        assert_eq!(text(&hub.catch_up(Some("7-0")).0), "id: 7-1\nevent: job\ndata: {\"job\":\"b\"}\n\n");
        assert_eq!(text(&hub.catch_up(Some("7-1")).0), "");
        for unknown in ["6-1", "7-2", "7", "x", "7-x", ""] {
            assert!(text(&hub.catch_up(Some(unknown)).0).contains("event: reset"), "{unknown}");
        }
        for _ in 0..KEPT {
            hub.publish("job", &json!({}));
        }
        assert!(text(&hub.catch_up(Some("7-0")).0).contains("event: reset"), "too long ago");
        hub.begin_anew();
        assert!(
            text(&hub.catch_up(Some("7-257")).0).contains("id: 8-257\nevent: reset"),
            "an event was not sent"
        );
    }

    #[test]
    fn progress_is_told_once_however_often_it_is_reported() {
        let hub = Arc::new(Hub::new(0));
        let progress = hub.progress();
        let job: JobName = "a".parse().unwrap();
        progress.report(&job, Update::Total(10));
        progress.report(&job, Update::Done(1));
        progress.report(&job, Update::Done(2));
        let progress = hub.take_progress();
        assert_eq!(json!(progress[0].1), json!({ "done": 3, "total": 10, "now": null }));
        assert!(hub.take_progress().is_empty());
    }

    #[test]
    fn a_run_begins_at_nothing_though_nobody_listened_to_the_one_before() {
        let hub = Arc::new(Hub::new(0));
        let progress = hub.progress();
        let job: JobName = "a".parse().unwrap();
        for _ in 0..3 {
            progress.report(&job, Update::Total(10));
            progress.report(&job, Update::Done(10));
        }
        assert_eq!(json!(hub.take_progress()[0].1), json!({ "done": 10, "total": 10, "now": null }));
    }

    #[tokio::test]
    async fn a_run_that_ended_while_nobody_listened_is_told_to_nobody() {
        let (hub, job): (_, JobName) = (Arc::new(Hub::new(0)), "a".parse().unwrap());
        let db = Db::open(DbUrl::Memory, Open::Create, Clock::system()).await.unwrap();
        let now = db.clock().now();
        for is_over in [true, false] {
            let written = db.write(move |tx| {
                store::mark_begun(tx, "a", now)?;
                if is_over {
                    store::mark_ended(tx, "a", RunOutcome::Success, &"x".into(), None, now)?;
                }
                Ok(())
            });
            written.await.unwrap();
            hub.progress().report(&job, Update::Total(10));
            hub.poll(&db, None).await.unwrap();
            assert_eq!(hub.kept.lock().messages.is_empty(), is_over);
        }
    }
}
