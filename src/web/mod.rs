//! Pages over HTTP: prompt pages and the health check, on a router that the dashboard joins.
//!
//! ```text
//! listen         ──▶ auth ──▶ everything          (this machine only, unless `[web.auth]` is set)
//! prompt_listen  ──▶ /p/{token} and nothing else  (may be public)
//! ```

mod auth;
mod headers;
mod health;
mod listener;
mod misses;
mod prompt;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::IncomingStream;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{MissingSecret, Web};
use crate::db::Db;
use crate::text::Language;
use crate::time::Clock;
use auth::Guard;
use listener::{Limited, Limits};
use misses::Misses;

/// How long open requests may go on after we were asked to stop.
const GRACE: Duration = Duration::from_secs(5);

/// What every page is made from.
#[derive(Clone)]
pub struct Pages {
    db: Db,
    clock: Clock,
    language: Language,
    misses: Arc<Misses>,
    more: Router,
}

impl Pages {
    /// Pages that read `db`, in the language of `[app]`.
    pub fn new(db: Db, language: Language) -> Self {
        let clock = db.clock().clone();
        Self { db, clock, language, misses: Arc::default(), more: Router::new() }
    }

    /// The same and pages that this room does not know, behind the same password and headers.
    pub fn join(self, more: Router) -> Self {
        Self { more, ..self }
    }
}

/// Why pages cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The dashboard would be open to everybody.
    #[error("`listen = \"{0}\"` in [web] is reachable from other machines, but nobody would have to log in")]
    Open(SocketAddr),
    /// The password cannot be had.
    #[error("the password of [web.auth]: {0}")]
    Secret(#[from] MissingSecret),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {why}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        why: io::Error,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Open(_) => {
                "set `user` and `password` in [web.auth], listen on 127.0.0.1, or open only the prompt pages with `prompt_listen`"
            }
            Error::Secret(_) => "set the variable or file that [web.auth] names",
            Error::Listen { .. } => "another program may be using the address; choose another in [web]",
        }
    }
}

/// The prompt pages alone; safe to open to the world.
pub fn prompt_router(pages: &Pages) -> Router {
    Router::new()
        .route("/p/{token}", get(prompt::show))
        .fallback(not_found)
        .layer(middleware::from_fn(headers::protect))
        .with_state(pages.clone())
}

/// Everything: prompt pages and health are public, whatever joins later is behind `guard`.
fn router(pages: &Pages, guard: Option<Guard>) -> Router {
    let router = Router::new()
        .route("/p/{token}", get(prompt::show))
        .route("/healthz", get(health::show))
        .fallback(not_found)
        .with_state(pages.clone())
        .merge(pages.more.clone());
    let router = match guard {
        Some(guard) => router.layer(middleware::from_fn_with_state(Arc::new(guard), auth::check)),
        None => router,
    };
    router.layer(middleware::from_fn(headers::protect))
}

async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "not found\n").into_response()
}

/// Pages that listen but are not served yet; so that a busy port is told at once.
pub struct Bound {
    dashboard: (TcpListener, Router),
    prompts: Option<(TcpListener, Router)>,
}

/// Refuses to open the dashboard to other machines without a password.
pub fn refuse_open(web: &Web) -> Result<(), Error> {
    match web.auth.is_none() && !web.listen.ip().to_canonical().is_loopback() {
        true => Err(Error::Open(web.listen)),
        false => Ok(()),
    }
}

/// Listens where `[web]` says, if that is safe.
pub async fn bind(web: &Web, pages: &Pages) -> Result<Bound, Error> {
    refuse_open(web)?;
    let guard = web.auth.as_ref().map(|auth| Guard::new(auth, pages.clock.clone())).transpose()?;
    let dashboard = (listen(web.listen).await?, router(pages, guard));
    let prompts = match web.prompt_listen {
        Some(address) => Some((listen(address).await?, prompt_router(pages))),
        None => None,
    };
    Ok(Bound { dashboard, prompts })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|why| Error::Listen { address, why })
}

impl Bound {
    /// Where it listens, the dashboard first; useful when the port was 0.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let all = [Some(&self.dashboard), self.prompts.as_ref()];
        all.into_iter().flatten().filter_map(|(listener, _)| listener.local_addr().ok()).collect()
    }

    /// Serves until `stop` is cancelled; requests under way get a few seconds to end.
    pub async fn serve(self, stop: &CancellationToken) {
        for address in self.addresses() {
            info!("Prompt pages at http://{address}/p/…");
        }
        let (listener, router) = self.dashboard;
        let dashboard = serve_router(Limited::new(listener, Limits::DASHBOARD), router, stop);
        let prompts = async {
            if let Some((listener, router)) = self.prompts {
                serve_router(Limited::new(listener, Limits::PROMPTS), router, stop).await;
            }
        };
        tokio::join!(dashboard, prompts);
    }
}

async fn serve_router(listener: Limited, router: Router, stop: &CancellationToken) {
    let service = router.into_make_service_with_connect_info::<Reader>();
    let serving = axum::serve(listener, service).with_graceful_shutdown(stop.clone().cancelled_owned());
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        result = serving => {
            if let Err(error) = result {
                warn!("A listener ended: {error}");
            }
        }
        () = overdue => {}
    }
}

/// The address of whoever asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader(SocketAddr);

impl Connected<IncomingStream<'_, Limited>> for Reader {
    fn connect_info(stream: IncomingStream<'_, Limited>) -> Self {
        Self(*stream.remote_addr())
    }
}

/// Listens and serves until `stop` is cancelled.
pub async fn serve(web: &Web, pages: &Pages, stop: &CancellationToken) -> Result<(), Error> {
    bind(web, pages).await?.serve(stop).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::listener::Life;
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn readers_that_never_finish_their_question_keep_nobody_out_for_long() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits { at_once: 2, life: Life::Answered(Duration::from_millis(50)) };
        let router = Router::new().route("/healthz", get(|| async { "ok\n" }));
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        let serving = tokio::spawn(async move {
            serve_router(Limited::new(listener, limits), router, &stopping).await;
        });
        let mut silent = Vec::new();
        for _ in 0..6 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            silent.push(stream);
        }
        let mut reader = TcpStream::connect(address).await.unwrap();
        reader.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        let read = reader.read_to_string(&mut answer);
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("the others are cut off").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
        stop.cancel();
        serving.await.unwrap();
    }
}
