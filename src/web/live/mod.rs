//! `/live`: changes as server-sent events.
//!
//! One hub polls the database once a second for all clients, and only while there are clients; it gets the progress of
//! runs of this process directly. Clients share the text of every message.
//!
//! | event | data |
//! |---|---|
//! | `event` | `{"id", "at", "job", "about", "code"}`: a row of the story; `about` is `WORD:NAME` |
//! | `job` | `{"job", "last_run_at", "last_outcome"}`: a run began (`last_outcome` is null) or ended |
//! | `progress` | `{"job", "done", "total", "now"}`: how far a run of this process is |
//! | `outbox` | `[{"job_name", "channel", "state", "count"}]`: all messages that are not over, and those that failed |
//! | `reset` | `{}`: more happened than can be told; look again |
//!
//! Every message has an `id`. A client that reconnects with `Last-Event-ID` gets the missed messages, or `reset`.
//! `beat` is sent every five seconds, without an `id`: a client that receives nothing for longer has lost its
//! connection. A stream ends after five minutes and the client has to authenticate again, so that logging out or
//! revoking a token ends it.

mod hub;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(super) use self::hub::Hub;
use self::hub::Message;
use super::Pages;
use super::route::{Access, Route};

/// How often a client gets a message, if only a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a stream lasts before its client has to reconnect.
const LIFE: Duration = Duration::from_secs(300);
/// The most concurrent clients.
pub(super) const MAX_LISTENERS: usize = 512;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/live", Access::Read, listen)]
}

struct Listener {
    first: Option<Bytes>,
    until: Instant,
    receiver: broadcast::Receiver<Message>,
    closed: CancellationToken,
    _slot: OwnedSemaphorePermit,
}

async fn listen(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    let hub = &pages.hub;
    let Ok(slot) = Arc::clone(&hub.slots).try_acquire_owned() else {
        let text = "too many live connections; reload to see changes\n";
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "30")], text).into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let (first, receiver) = hub.catch_up(last);
    hub.wanted.notify_one();
    let (until, closed) = (Instant::now() + LIFE, hub.closed.clone());
    let listener = Listener { first: Some(first), until, receiver, closed, _slot: slot };
    let messages = stream::unfold(listener, |mut listener| async move {
        let text = listener.next().await?;
        Some((Ok::<_, Infallible>(text), listener))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // A proxy that buffers would delay messages.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(messages)).into_response()
}

impl Listener {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Some(first);
        }
        if Instant::now() >= self.until {
            return None;
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
    use std::sync::atomic::Ordering;

    use super::super::tests::Site;
    use super::*;
    use crate::engine::store;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

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

    #[tokio::test]
    async fn a_stream_that_has_lived_long_ends_so_that_its_listener_is_asked_again_who_it_is() {
        let site = Site::serve("").await;
        let now = Instant::now();
        for (until, goes_on) in [(now, false), (now + LIFE, true)] {
            let (first, receiver) = site.pages.hub.catch_up(None);
            let slot = Arc::clone(&site.pages.hub.slots).try_acquire_owned().unwrap();
            let closed = CancellationToken::new();
            let mut listener = Listener { first: Some(first), until, receiver, closed, _slot: slot };
            assert!(listener.next().await.is_some(), "what it missed comes first");
            assert_eq!(listener.next().await.is_some(), goes_on);
        }
    }

    /// The memory of this process, with both ends of its connections.
    fn resident_kb() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}
