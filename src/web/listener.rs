//! A listener for strangers: so many connections at once, each for so long and no longer.
//!
//! Prompt pages are small and need no lasting connections, so somebody who opens many and says little is cut off
//! before others notice.

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
use tokio::time::Sleep;

/// Connections at the same time.
const AT_ONCE: usize = 256;
/// How long a connection lives.
const LIFE: Duration = Duration::from_secs(30);

/// Accepts connections that end by themselves.
pub(super) struct ShortLived {
    listener: TcpListener,
    slots: Arc<Semaphore>,
    life: Duration,
}

impl ShortLived {
    /// The same address, for strangers.
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, slots: Arc::new(Semaphore::new(AT_ONCE)), life: LIFE }
    }
}

impl Listener for ShortLived {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // The semaphore is never closed; without a slot the connection is served all the same.
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Connection { stream, end: Box::pin(tokio::time::sleep(self.life)), _slot: slot }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends in time and then gives its slot back.
pub(super) struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
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
        Pin::new(&mut self.stream).poll_write(context, from)
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
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn a_silent_connection_is_over_in_time_and_its_slot_is_free_again() {
        let mut listener = ShortLived::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        listener.life = Duration::from_millis(20);
        let address = listener.local_addr().unwrap();
        let _silent = TcpStream::connect(address).await.unwrap();
        let (mut accepted, _) = listener.accept().await;
        assert_eq!(listener.slots.available_permits(), AT_ONCE - 1);
        let error = accepted.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(accepted);
        assert_eq!(listener.slots.available_permits(), AT_ONCE);
    }
}
