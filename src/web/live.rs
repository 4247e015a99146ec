//! `/live`: what changes, as it changes (server-sent events).
//!
//! One hub looks into the database once a second for everybody, and only while somebody listens; how far the runs of
//! this process are, it hears from them directly. Listeners share the text of every message.
//!
//! | event | data |
//! |---|---|
//! | `event` | `{"id", "at", "job", "about", "code"}`: a row of the story; `about` is `WORD:NAME` |
//! | `job` | `{"job", "last_run_at", "last_outcome"}`: a run began (`last_outcome` is null) or ended |
//! | `progress` | `{"job", "done", "total", "now"}`: how far a run of this process is |
//! | `outbox` | `[{"job_name", "channel", "state", "count"}]`: all messages that are not over, and those that failed |
//! | `reset` | `{}`: more happened than can be told; look again |
//!
//! Every message has an `id`. A listener that comes back with `Last-Event-ID` is told what it has missed, or `reset`.
//! `beat` is sent every five seconds, without an `id`: who hears nothing for longer is no longer connected.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use super::Pages;
use super::route::{Access, Route};
use crate::channel::outbox::{self, DeliveryCount};
use crate::db::{self, Db, Tx};
use crate::engine::{JobState, Progress, Update, store};
use crate::id::JobName;
use crate::ledger::event::{self, Numbered};

/// How often the database is looked at.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// How often a listener hears something, if only that it is still connected.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Listeners at once.
pub(super) const MAX_LISTENERS: usize = 512;
/// Messages that are kept for those who come back.
const KEPT: usize = 256;
/// Events that are told of one look at the database; more are told by `reset`.
const MAX_EVENTS: usize = 100;

/// The way to listen.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/live", Access::Read, listen)]
}

/// Tells every listener what changes.
pub(super) struct Hub {
    sender: broadcast::Sender<Message>,
    kept: Mutex<Kept>,
    progress: Mutex<BTreeMap<JobName, Run>>,
    slots: Arc<Semaphore>,
    /// Told when the first listener comes.
    wanted: Notify,
    closed: CancellationToken,
    /// How often the database was looked at.
    polls: AtomicU64,
}

/// A message, as it is sent.
#[derive(Clone)]
struct Message {
    number: u64,
    text: Bytes,
}

/// What is kept for those who come back.
struct Kept {
    /// Changes when something was not told: ids from before mean nothing then.
    epoch: u64,
    next: u64,
    messages: VecDeque<Message>,
}

/// How far a run is.
#[derive(Clone, Debug, Default, serde::Serialize)]
struct Run {
    done: u64,
    total: Option<u64>,
    now: Option<String>,
    #[serde(skip)]
    is_published: bool,
}

/// What the database said when it was last looked at.
struct Seen {
    event: i64,
    states: Vec<JobState>,
    tallies: Vec<DeliveryCount>,
}

impl Hub {
    /// A hub; `epoch` tells it from the one of another process.
    pub(super) fn new(epoch: u64) -> Self {
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

    /// What tells the hub how far runs are.
    pub(super) fn progress(self: &Arc<Self>) -> Progress {
        let hub = Arc::clone(self);
        Progress::new(move |job, update| {
            let mut progress = hub.progress.lock();
            let run = progress.entry(job.clone()).or_default();
            run.is_published = false;
            match update {
                Update::Total(total) => run.total = Some(total),
                Update::Done(more) => run.done += more,
                Update::Now(what) => run.now = Some(what),
            }
        })
    }

    /// Looks and tells until `stop` is cancelled; sleeps while nobody listens.
    pub(super) async fn run(&self, db: &Db, stop: &CancellationToken) {
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
                    tracing::warn!("Nothing can be told to pages now: {error}");
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
        if let Some(seen) = seen {
            if events.len() > MAX_EVENTS {
                self.publish("reset", &json!({}));
            } else {
                events.iter().for_each(|event| self.publish("event", &event_data(event)));
            }
            for state in now.states.iter().filter(|state| !seen.states.contains(state)) {
                if state.last_outcome.is_some() {
                    self.progress.lock().retain(|job, _| job.as_str() != state.job_name);
                }
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

    /// How far runs are that has not been published.
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
        // Nobody may be listening any more.
        let _ = self.sender.send(message);
    }

    /// Forgets what was told: something was not.
    fn begin_anew(&self) {
        let mut kept = self.kept.lock();
        kept.epoch += 1;
        kept.messages.clear();
    }

    /// What a listener is told first: what it has missed, or that it has to look again.
    fn catch_up(&self, last: Option<&str>) -> (Bytes, broadcast::Receiver<Message>) {
        let kept = self.kept.lock();
        let receiver = self.sender.subscribe();
        let here = kept.next;
        // The id is where the listener stands, so that it is told what follows even if it hears nothing before.
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

/// What happened after `after`, and where everything stands. More events than can be published are passed over.
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

struct Listener {
    first: Option<Bytes>,
    receiver: broadcast::Receiver<Message>,
    closed: CancellationToken,
    _slot: OwnedSemaphorePermit,
}

async fn listen(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    let hub = &pages.hub;
    let Ok(slot) = Arc::clone(&hub.slots).try_acquire_owned() else {
        let said = "too many are listening; a reload shows what is new\n";
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "30")], said).into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let (first, receiver) = hub.catch_up(last);
    hub.wanted.notify_one();
    let listener = Listener { first: Some(first), receiver, closed: hub.closed.clone(), _slot: slot };
    let messages = stream::unfold(listener, |mut listener| async move {
        let text = listener.next().await?;
        Some((Ok::<_, Infallible>(text), listener))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // A proxy that collects before it passes on would hold back what is new.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(messages)).into_response()
}

impl Listener {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Some(first);
        }
        tokio::select! {
            () = self.closed.cancelled() => None,
            () = tokio::time::sleep(HEARTBEAT) => Some(Bytes::from_static(b"event: beat\ndata:\n\n")),
            message = self.receiver.recv() => match message {
                Ok(message) => Some(message.text),
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    Some(Bytes::from_static(b"event: reset\ndata: {}\n\n"))
                }
                Err(broadcast::error::RecvError::Closed) => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Site;
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

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
            "something was not told"
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

    async fn connect(site: &Site) -> TcpStream {
        let mut stream = TcpStream::connect(site.address).await.unwrap();
        stream.write_all(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        stream
    }

    async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
        let (mut heard, mut buffer) = (String::new(), [0; 4096]);
        while !heard.contains(wanted) {
            let count = tokio::time::timeout(Duration::from_secs(30), stream.read(&mut buffer)).await;
            let count = count.unwrap_or_else(|_| panic!("no {wanted} in {heard}")).unwrap();
            assert!(count > 0, "the stream ended: {heard}");
            heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        heard
    }

    #[tokio::test]
    async fn many_listeners_hear_what_happens_and_the_database_is_asked_once_for_all() {
        let site = Site::serve("").await;
        let mut first = connect(&site).await;
        let hello = read_until(&mut first, "event: hello").await;
        assert!(hello.contains("content-type: text/event-stream"), "{hello}");
        let resident = resident_kb();
        let mut others = Vec::new();
        for _ in 0..499 {
            let mut other = connect(&site).await;
            read_until(&mut other, "event: hello").await;
            others.push(other);
        }
        let grown = resident_kb().saturating_sub(resident);
        assert!(grown < 50_000, "499 listeners cost {grown} kB");
        read_until(&mut first, "event: beat\ndata:\n\n").await;
        let now = site.clock.now();
        let before = site.pages.hub.polls.load(Ordering::Relaxed);
        let marked = site.pages.db.write(move |tx| store::mark_begun(tx, "feeds", now)).await;
        marked.unwrap();
        for stream in std::iter::once(&mut first).chain(&mut others) {
            read_until(stream, "\"job\":\"feeds\"").await;
        }
        let polls = site.pages.hub.polls.load(Ordering::Relaxed) - before;
        assert!(polls < 60, "{polls} looks for 500 listeners");
        drop((first, others));
    }

    /// The memory of this process and of both ends of its connections.
    fn resident_kb() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}
