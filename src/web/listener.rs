//! A listener with limits: the number of connections, and the lifetime of each.
//!
//! A client that opens many connections and sends little is disconnected before it affects others, and before the
//! process runs out of file descriptors.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

use super::live::MAX_LISTENERS;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The most concurrent connections.
    pub(super) at_once: usize,
    pub(super) life: Life,
}

/// The lifetime of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Life {
    /// In total.
    Total(Duration),
    /// Between responses: within this time a request must arrive, be answered and the response be received.
    Answered(Duration),
}

impl Limits {
    /// Prompt pages are small and need no long connections.
    pub(super) const PROMPTS: Self = Self { at_once: 256, life: Life::Total(Duration::from_secs(30)) };
    /// The dashboard may be kept open; a stream has to send something every few seconds. In addition to the clients of
    /// `/live`, there is room for ordinary requests.
    pub(super) const DASHBOARD: Self =
        Self { at_once: MAX_LISTENERS + 128, life: Life::Answered(Duration::from_secs(10)) };
}

/// Connections beyond the limit that are served for one request, so that health checks get an answer under any load.
const BRIEF: Limits = Limits { at_once: 16, life: Life::Total(Duration::from_secs(2)) };

/// Accepts connections that are closed in time.
pub(super) struct Limited {
    listener: TcpListener,
    slots: Arc<Semaphore>,
    brief_slots: Arc<Semaphore>,
    life: Life,
}

impl Limited {
    /// Wraps a listener.
    pub(super) fn new(listener: TcpListener, limits: Limits) -> Self {
        Self {
            listener,
            slots: Arc::new(Semaphore::new(limits.at_once)),
            brief_slots: Arc::new(Semaphore::new(BRIEF.at_once)),
            life: limits.life,
        }
    }
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // The semaphores are never closed; if they were, the connection would be served without a slot.
        let (slot, life) = tokio::select! {
            biased;
            slot = Arc::clone(&self.slots).acquire_owned() => (slot.ok(), self.life),
            slot = Arc::clone(&self.brief_slots).acquire_owned() => (slot.ok(), BRIEF.life),
        };
        let (Life::Total(within) | Life::Answered(within)) = life;
        let end = Box::pin(tokio::time::sleep(within));
        (Connection { stream, end, life, _slot: slot }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends in time and then releases its slot.
pub(super) struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    life: Life,
    _slot: Option<OwnedSemaphorePermit>,
}

impl Connection {
    fn check_end(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_end(context)?;
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_end(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, from);
        if let (Life::Answered(within), Poll::Ready(Ok(1..))) = (self.life, &written) {
            self.end.as_mut().reset(Instant::now() + within);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const SOON: Duration = Duration::from_millis(20);

    async fn accept_one(life: Life) -> (Limited, TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut listener = Limited::new(listener, Limits { at_once: 2, life });
        let reader = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await;
        (listener, reader, accepted)
    }

    #[tokio::test]
    async fn a_silent_connection_is_over_in_time_and_its_slot_is_free_again() {
        for life in [Life::Total(SOON), Life::Answered(SOON)] {
            let (listener, _silent, mut accepted) = accept_one(life).await;
            assert_eq!(listener.slots.available_permits(), 1);
            let error = accepted.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            drop(accepted);
            assert_eq!(listener.slots.available_permits(), 2);
        }
    }

    #[tokio::test]
    async fn what_a_reader_says_drop_by_drop_buys_no_time_and_what_it_is_sent_does() {
        let (_listener, mut reader, mut accepted) = accept_one(Life::Answered(Duration::from_secs(60))).await;
        let end = accepted.end.deadline();
        reader.write_all(b"G").await.unwrap();
        accepted.read_u8().await.unwrap();
        assert_eq!(accepted.end.deadline(), end);
        accepted.write_all(b"H").await.unwrap();
        assert!(accepted.end.deadline() > end);
        let (_listener, _reader, mut short) = accept_one(Life::Total(Duration::from_secs(60))).await;
        let end = short.end.deadline();
        short.write_all(b"H").await.unwrap();
        assert_eq!(short.end.deadline(), end);
    }

    #[tokio::test]
    async fn beyond_the_limit_there_is_room_for_short_questions() {
        let (mut listener, _first, _accepted) = accept_one(Life::Answered(Duration::from_secs(60))).await;
        let mut kept = Vec::new();
        for _ in 0..2 {
            let reader = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            kept.push((reader, listener.accept().await.0));
        }
        let is_brief = kept.iter().map(|(_, accepted)| matches!(accepted.life, Life::Total(_)));
        assert_eq!(is_brief.collect::<Vec<_>>(), [false, true], "the limit is two");
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_cut_off() {
        let (_listener, _reader, mut accepted) = accept_one(Life::Answered(SOON)).await;
        let error = accepted.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
