//! What the servers of the loopback world do alike: each has an address, and serves until it is dropped.

use axum::Router;
use axum::serve::Listener;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

/// A server at work; dropping it ends it.
pub(super) type Serving = AbortOnDropHandle<()>;

/// Starts serving in the background.
pub(super) fn start<L>(listener: L, router: Router) -> Serving
where
    L: Listener,
    L::Addr: std::fmt::Debug,
{
    AbortOnDropHandle::new(tokio::spawn(async move {
        let _ = axum::serve(listener, router).await;
    }))
}

/// The address of `path` at `listener`.
pub(super) fn url(listener: &TcpListener, path: &str) -> std::io::Result<Url> {
    Url::parse(&format!("http://{}{path}", listener.local_addr()?)).map_err(std::io::Error::other)
}
