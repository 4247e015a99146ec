//! Shared by the servers of the loopback world: each has an address, and serves until it is dropped.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Response};
use axum::serve::Listener;
use serde_json::Value as Json;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

/// A running server; stops when dropped.
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

/// An answer with these headers.
pub(super) fn answer(
    status: u16,
    headers: &[(&'static str, String)],
    body: impl Into<Body>,
) -> Response<Body> {
    let answer = headers
        .iter()
        .fold(Response::builder().status(status), |answer, (name, value)| answer.header(*name, value));
    answer.body(body.into()).unwrap_or_default()
}

/// An answer in JSON.
pub(super) fn answer_json(status: u16, body: &Json) -> Response<Body> {
    answer(status, &[("content-type", "application/json".to_owned())], body.to_string())
}

/// The text of a header.
pub(super) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// The address of `path` at `listener`.
pub(super) fn url(listener: &TcpListener, path: &str) -> std::io::Result<Url> {
    Url::parse(&format!("http://{}{path}", listener.local_addr()?)).map_err(std::io::Error::other)
}
