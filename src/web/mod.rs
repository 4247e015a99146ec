//! Pages over HTTP: everything is declared as a `Route` with its access.
//!
//! ```text
//! listen         ──▶ same origin? ──▶ guard ──▶ everything  (this machine only, unless somebody has to log in)
//! prompt_listen  ──▶ /p/{token} and nothing else            (may be public)
//! ```

mod act;
mod api;
mod assets;
mod badge;
mod chart;
mod client;
mod feeds;
mod guard;
mod headers;
mod health;
mod hosts;
mod language;
mod listener;
mod live;
mod login;
mod metrics;
mod misses;
mod pages;
pub mod password;
mod problem;
mod prompt;
mod route;
mod small;
pub mod store;
pub mod token;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::extract::connect_info::Connected;
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::serve::IncomingStream;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::csrf::CsrfLayer;
use tracing::{error, info, warn};

use crate::config::{Env, MissingSecret, Web};
use crate::db::Db;
use crate::engine::daemon::{self, StartRequests, Starter};
use crate::engine::page::ExtraPage;
use crate::engine::{Finder, Progress};
use crate::phrase;
use crate::phrase::Phrase;
use crate::text::Language;
use crate::time::Clock;
use guard::Guard;
use listener::{Limited, Limits};
use live::Hub;
use metrics::Metrics;
use misses::Misses;
use route::{AccessTable, Route};

/// How long open requests may continue after a stop.
const GRACE: Duration = Duration::from_secs(5);
/// The longest body of a request in bytes: forms and small documents.
const MAX_BODY: usize = 256 * 1024;

/// The shared state of all pages.
#[derive(Clone)]
pub struct Pages {
    db: Db,
    clock: Clock,
    language: Language,
    misses: Arc<Misses>,
    finders: Option<watch::Receiver<Arc<Finder>>>,
    hub: Arc<Hub>,
    metrics: Arc<Metrics>,
    starter: Starter,
    requests: Arc<Mutex<Option<StartRequests>>>,
    extra: Option<ExtraPage>,
    env: Env,
}

impl Pages {
    /// Pages that read `db`, in the language of `[app]`.
    pub fn new(db: Db, language: Language) -> Self {
        let clock = db.clock().clone();
        let hub = Arc::new(Hub::new(clock.now().as_millis().unsigned_abs()));
        let (starter, requests) = daemon::starter();
        Self {
            db,
            clock,
            language,
            misses: Arc::default(),
            finders: None,
            hub,
            metrics: Arc::default(),
            starter,
            requests: Arc::new(Mutex::new(Some(requests))),
            extra: None,
            env: Env::of([]),
        }
    }

    /// Adds the dashboard, with the newest of `finders`.
    pub fn with_dashboard(self, finders: watch::Receiver<Arc<Finder>>) -> Self {
        Self { finders: Some(finders), ..self }
    }

    /// Sets the environment for the secrets of the config.
    pub fn with_env(self, env: Env) -> Self {
        Self { env, ..self }
    }

    /// The current finder of things.
    fn finder(&self) -> Option<Finder> {
        let finder = Finder::clone(&self.finders.as_ref()?.borrow());
        Some(Finder { now: self.clock.now(), ..finder })
    }

    /// Adds a page of this process.
    pub fn with_page(self, page: ExtraPage) -> Self {
        Self { extra: Some(page), ..self }
    }
}

/// Why pages cannot be served.
#[derive(Debug)]
pub enum Error {
    /// The dashboard would be open to everybody.
    Open(SocketAddr),
    /// The password cannot be had.
    Secret(MissingSecret),
    /// The hash of the password cannot be used.
    Password(password::BadHash),
    /// The address cannot be bound.
    Listen {
        /// The address.
        address: SocketAddr,
        why: io::Error,
    },
}

impl Error {
    pub fn phrase(&self) -> Phrase {
        let password =
            |why: Phrase| phrase!("the password of [web.auth]: {why}", "[web.auth] のパスワード：{why}");
        match self {
            Error::Open(address) => phrase!(
                "`listen = \"{address}\"` in [web] is reachable from other machines without a login",
                "[web] の `listen = \"{address}\"` はほかのマシンから届きますが、ログインが不要になっています",
                address = address.to_string()
            ),
            Error::Secret(missing) => password(missing.phrase()),
            Error::Password(bad) => password(bad.phrase()),
            Error::Listen { address, why } => phrase!(
                "cannot listen on {address}: {why}",
                "{address} で待ち受けできません：{why}",
                address = address.to_string(),
                why = why.to_string()
            ),
        }
    }

    pub fn hint(&self) -> Phrase {
        match self {
            Error::Open(_) => phrase!(
                "set `user` and `password` in [web.auth], let a proxy log people in with `sso_header`, listen on 127.0.0.1, or open only the prompt pages with `prompt_listen`",
                "[web.auth] に `user` と `password` を設定するか、`sso_header` でプロキシにログインを任せるか、127.0.0.1 で待ち受けるか、`prompt_listen` でプロンプトのページだけを公開してください"
            ),
            Error::Secret(_) => phrase!(
                "set the variable or file that [web.auth] names",
                "[web.auth] が指定する環境変数またはファイルを用意してください"
            ),
            Error::Password(_) => {
                phrase!(
                    "`tsuzuki config hash-password` makes one",
                    "`tsuzuki config hash-password` で作れます"
                )
            }
            Error::Listen { .. } => phrase!(
                "another program may be using the address; choose another in [web]",
                "別のプログラムが使っているかもしれません。[web] で別のアドレスを指定してください"
            ),
        }
    }
}

crate::error_in_english!(Error);

impl From<MissingSecret> for Error {
    fn from(missing: MissingSecret) -> Self {
        Error::Secret(missing)
    }
}

impl From<password::BadHash> for Error {
    fn from(bad: password::BadHash) -> Self {
        Error::Password(bad)
    }
}

/// Every route of the dashboard.
fn routes() -> Vec<Route> {
    let rooms = [
        prompt::routes(),
        health::routes(),
        login::routes(),
        api::routes(),
        live::routes(),
        metrics::routes(),
        badge::routes(),
        feeds::routes(),
        assets::routes(),
        pages::routes(),
    ];
    rooms.into_iter().flatten().collect()
}

/// Only the prompt pages; may be public.
fn prompt_router(web: &Web, pages: &Pages) -> Router {
    let proxies = web.trusted_proxies.as_slice().into();
    let router = route::build(prompt::routes()).fallback(not_found).with_state(pages.clone());
    protect(router.layer(middleware::from_fn_with_state(proxies, guard::identify)))
}

/// Everything, behind the guard.
fn router(web: &Web, pages: &Pages) -> Result<Router, Error> {
    let routes = routes();
    let guard = Arc::new(Guard::new(web, AccessTable::new(&routes), pages.db.clone())?);
    let router = route::build(routes).fallback(not_found).with_state(pages.clone());
    let same_origin = CsrfLayer::new().with_rejection_response(|_| {
        (StatusCode::FORBIDDEN, "this request comes from another site\n").into_response()
    });
    Ok(protect(
        router
            .layer(middleware::from_fn_with_state(guard, guard::check))
            .layer(same_origin)
            .layer(middleware::from_fn(problem::shape))
            .layer(middleware::from_fn_with_state(pages.clone(), metrics::measure)),
    ))
}

/// The layers of every page: limits, headers, compression, and errors without internals.
fn protect(router: Router) -> Router {
    router
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(CompressionLayer::new())
        .layer(CatchPanicLayer::custom(|_| {
            error!("A page panicked");
            (StatusCode::INTERNAL_SERVER_ERROR, "something broke; the log says more\n").into_response()
        }))
        .layer(middleware::from_fn(headers::protect))
}

async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "not found\n").into_response()
}

/// Bound but not yet serving, so that a busy port is reported at once.
pub struct Bound {
    pages: Pages,
    dashboard: (TcpListener, Router),
    prompts: Option<(TcpListener, Router)>,
}

/// Refuses to expose the dashboard to other machines without a login.
pub fn refuse_open(web: &Web) -> Result<(), Error> {
    let is_open = web.auth.is_none() && web.sso_header.is_none();
    if is_open && !web.listen.ip().to_canonical().is_loopback() {
        Err(Error::Open(web.listen))
    } else {
        Ok(())
    }
}

/// Binds the addresses of `[web]`, if that is safe.
pub async fn bind(web: &Web, pages: &Pages) -> Result<Bound, Error> {
    refuse_open(web)?;
    let router = router(web, pages)?;
    let dashboard = (listen(web.listen).await?, router);
    let prompts = match web.prompt_listen {
        Some(address) => Some((listen(address).await?, prompt_router(web, pages))),
        None => None,
    };
    Ok(Bound { pages: pages.clone(), dashboard, prompts })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|why| Error::Listen { address, why })
}

impl Bound {
    /// The progress of runs of this process, for the pages.
    pub fn progress(&self) -> Progress {
        self.pages.hub.progress()
    }

    /// The start requests for the daemon; can be taken once.
    pub fn take_requests(&self) -> Option<StartRequests> {
        self.pages.requests.lock().take()
    }

    /// The bound addresses, the dashboard first; useful when the port was 0.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let all = [Some(&self.dashboard), self.prompts.as_ref()];
        all.into_iter().flatten().filter_map(|(listener, _)| listener.local_addr().ok()).collect()
    }

    /// Serves until `stop` is cancelled; open requests get a few seconds to end.
    pub async fn serve(self, stop: &CancellationToken) {
        if let [dashboard, prompts @ ..] = self.addresses().as_slice() {
            info!("Dashboard at http://{dashboard}/");
            prompts.iter().for_each(|address| info!("Prompt pages at http://{address}/p/…"));
        }
        let (listener, router) = self.dashboard;
        let dashboard = serve_router(Limited::new(listener, Limits::DASHBOARD), router, stop);
        let prompts = async {
            if let Some((listener, router)) = self.prompts {
                serve_router(Limited::new(listener, Limits::PROMPTS), router, stop).await;
            }
        };
        tokio::join!(dashboard, prompts, self.pages.hub.run(&self.pages.db, stop));
    }
}

async fn serve_router(listener: Limited, router: Router, stop: &CancellationToken) {
    let service = router.into_make_service_with_connect_info::<RemoteAddress>();
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

/// The address of the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteAddress(SocketAddr);

impl Connected<IncomingStream<'_, Limited>> for RemoteAddress {
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
mod tests;
