//! Counts open connections, so that a test can wait until a server has processed everything from a dead client.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// The number of open connections.
#[derive(Clone, Debug, Default)]
pub struct OpenCount(Arc<AtomicUsize>);

/// One open connection; counted until dropped.
#[derive(Debug)]
pub struct Counted(Arc<AtomicUsize>);

impl OpenCount {
    /// Counts a connection until the result is dropped.
    pub fn enter(&self) -> Counted {
        self.0.fetch_add(1, Ordering::SeqCst);
        Counted(Arc::clone(&self.0))
    }

    /// The present number.
    pub fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until the server at `address` has nothing left to process for clients that are gone.
    ///
    /// Connections are accepted in order: once one that sends `hello` is answered, all earlier ones are counted.
    pub async fn drain(&self, address: SocketAddr, hello: &[u8]) -> std::io::Result<()> {
        let mut probe = TcpStream::connect(address).await?;
        probe.write_all(hello).await?;
        probe.read_exact(&mut [0]).await?;
        drop(probe);
        while self.now() > 0 {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A listener for HTTP servers whose connections are counted.
#[derive(Debug)]
pub(super) struct CountingListener {
    pub(super) inner: TcpListener,
    pub(super) open: OpenCount,
}

#[derive(Debug)]
pub(super) struct CountedStream {
    inner: TcpStream,
    _open: Counted,
}

impl axum::serve::Listener for CountingListener {
    type Io = CountedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (inner, address) = axum::serve::Listener::accept(&mut self.inner).await;
        (CountedStream { inner, _open: self.open.enter() }, address)
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.inner.local_addr()
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
