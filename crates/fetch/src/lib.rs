//! HTTP access to the web: one `Fetcher` for all requests to addresses from the config or from content.
//!
//! ```text
//! Request ─▶ guard ─▶ gate ─▶ client ─▶ headers ─▶ redirect? ─▶ unchanged? ─▶ body ─▶ Response
//!   ▲      (address) (turn)  (names)  (size, time)     │                    (decoded, counted, timed)
//!   └──────────────────────────────────────────────────┘ every hop from the start
//! ```
//!
//! Private addresses are rejected, whatever name resolves to them, unless the caller allows them:
//!
//! ```
//! use tsuzuki_fetch::{AllowPrivate, guard};
//!
//! let verdict = guard::opinion("http://169.254.169.254/", &Default::default(), &AllowPrivate::default());
//! assert_eq!(verdict.verdict, guard::Ruling::Deny);
//! ```

mod allow;
mod body;
mod call;
mod cause;
pub mod client;
mod coding;
pub mod error;
mod gate;
pub mod guard;
pub mod header;
mod hop;
pub mod limits;
mod moved;
pub mod polite;
mod ranges;
mod reach;
mod redirect;
pub mod request;
mod response;
mod tls;
pub mod validators;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stdx::phrase;

use bytes::{Bytes, BytesMut};
use reqwest::Method;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use call::{ApiReply, NoAnswer, call, quote};
pub use cause::in_words;
pub use client::{ClientConfig, Clients, Names};
pub use error::Error;
pub use guard::AllowPrivate;
pub use limits::Limits;
pub use moved::{Moved, SURE_AFTER};
pub use polite::Manners;
pub use reach::{Check, SecretHint, Wanted};
pub use request::{Credential, Request};
pub use response::{ApiAnswer, Head, Response, Saved};
pub use validators::Validators;

use body::Body;
use error::Why;
use gate::{Gate, Pass};
use polite::HostAnswer;
use redirect::Trail;
use stdx::time::Clock;

/// Bodies above [`LARGE`] that are read into memory at the same time.
const LARGE_AT_ONCE: usize = 4;
/// The size from which on a body counts as large.
const LARGE: usize = 1024 * 1024;
/// How much to read of the page of an error status.
const ERROR_PAGE: usize = 64 * 1024;
/// The delay after a failure if the server does not say.
const USUAL_WAIT: Duration = Duration::from_secs(60);

/// The settings of a [`Fetcher`].
#[derive(Debug, Clone)]
pub struct FetchConfig {
    pub client: ClientConfig,
    /// The default limits of a response.
    pub limits: Limits,
    /// The default limits of requests to a host.
    pub manners: Manners,
    /// Requests at the same time, over all hosts, including those that hang.
    pub at_once: usize,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            client: ClientConfig::default(),
            limits: Limits::default(),
            manners: Manners::default(),
            at_once: 1024,
        }
    }
}

/// Fetches addresses; cheap to clone, one per process.
#[derive(Debug, Clone)]
pub struct Fetcher(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clients: Clients,
    gate: Arc<Gate>,
    clock: Clock,
    limits: Limits,
    manners: Manners,
    large: Semaphore,
}

/// A response whose headers have arrived.
struct Arrived {
    response: reqwest::Response,
    head: Head,
    pass: Pass,
    limits: Limits,
    spent: Duration,
    /// Whether the request was conditional.
    asked: bool,
    /// How long its host is paused now.
    pause: Option<Duration>,
    /// Whether the host asked for that delay.
    is_asked: bool,
}

impl Fetcher {
    /// Creates clients and limits.
    pub fn new(config: FetchConfig, clock: Clock) -> Result<Self, Error> {
        Ok(Self(Arc::new(Inner {
            clients: Clients::new(config.client)?,
            gate: Arc::new(Gate::new(clock.clone(), config.at_once.min(affordable()))),
            clock,
            limits: config.limits,
            manners: config.manners,
            large: Semaphore::new(LARGE_AT_ONCE),
        })))
    }

    /// The default limits of a response.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Creates clients, for APIs with their own protocol.
    pub fn clients(&self) -> &Clients {
        &self.0.clients
    }

    /// Fetches a page or a feed; any status but success and "not modified" is an error.
    pub async fn fetch(&self, request: &Request) -> Result<Response, Error> {
        let mut arrived = Box::pin(self.arrive(request)).await?;
        if is_unchanged(&mut arrived, request)? {
            return Ok(Response::Unchanged(arrived.head));
        }
        let (head, body) = self.collect(arrived, request).await?;
        Ok(Response::Fetched(head, body))
    }

    /// Fetches into a file, which appears at `path` only when it is complete.
    pub async fn fetch_to_file(&self, request: &Request, path: &Path) -> Result<Response<Saved>, Error> {
        let mut arrived = Box::pin(self.arrive(request)).await?;
        if is_unchanged(&mut arrived, request)? {
            return Ok(Response::Unchanged(arrived.head));
        }
        let Arrived { response, head, pass: _pass, limits, spent, .. } = arrived;
        let mut body = Body::open(response, &head, &limits, spent).await?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (file, unfinished) = tempfile::NamedTempFile::new_in(folder).map_err(Error::Disk)?.into_parts();
        let mut file = tokio::fs::File::from_std(file);
        let mut bytes = 0;
        while let Some(piece) = body.next().await? {
            file.write_all(&piece).await.map_err(Error::Disk)?;
            bytes += piece.len() as u64;
        }
        file.flush().await.map_err(Error::Disk)?;
        unfinished.persist(path).map_err(|error| Error::Disk(error.error))?;
        Ok(Response::Fetched(head, Saved { bytes }))
    }

    /// Calls an API: every status is an answer, only transport failures are errors.
    pub async fn fetch_api(&self, request: &Request) -> Result<ApiAnswer, Error> {
        let arrived = Box::pin(self.arrive(request)).await?;
        let (head, body) = self.collect(arrived, request).await?;
        Ok(ApiAnswer { head, body })
    }

    /// Follows redirects until an answer arrives, without reading its body.
    async fn arrive(&self, request: &Request) -> Result<Arrived, Error> {
        request.check()?;
        let inner = &*self.0;
        let limits = request.limits.as_ref().unwrap_or(&inner.limits);
        let manners = request.manners.as_ref().unwrap_or(&inner.manners);
        let mut trail = Trail::new(request.url_with_secrets(), limits.redirects);
        let mut spent = Duration::ZERO;
        loop {
            guard::check_url(&trail.url, &request.allow_private)?;
            let pass = inner.gate.enter(&trail.url, manners).await?;
            let asked = request.validators.hold_for(&request.without_secrets(&trail.url));
            let started = Instant::now();
            let keep = pass.keep_connection && !request.once;
            let mut response = self.send(request, &trail, asked, limits, spent, keep).await;
            if keep && hop::is_broken(&response) {
                // The server may have closed the kept connection in the meantime; try again with a new one.
                let spent = spent + started.elapsed();
                response = self.send(request, &trail, asked, limits, spent, false).await;
            }
            spent += started.elapsed();
            let mut response = match response {
                Ok(response) => response,
                Err(error) => {
                    let pause = hop::failure(&error).and_then(|outcome| pass.record(outcome));
                    tracing::debug!(host = trail.url.host_str(), ?pause, "No answer: {error}");
                    return Err(error);
                }
            };
            let status = response.status();
            let headers = std::mem::take(response.headers_mut());
            if hop::header_bytes(&headers) > limits.header_bytes {
                pass.record(HostAnswer::Fine);
                return Err(Error::TooBig { limit: limits::Size::Headers(limits.header_bytes) });
            }
            if trail.follow(status, &headers)? {
                pass.record(HostAnswer::Fine);
                continue;
            }
            let final_url = request.without_secrets(&trail.url);
            let head = Head {
                status: status.as_u16(),
                validators: Validators::read(status, &headers, &final_url),
                permanent_url: trail.permanent_url.as_ref().map(|url| request.without_secrets(url)),
                headers,
                final_url,
            };
            let retry_after = header::retry_after(&head.headers, inner.clock.now());
            let outcome = HostAnswer::of_status(head.status, retry_after);
            let is_asked =
                matches!(outcome, HostAnswer::Busy { retry_after: Some(wait), .. } if !wait.is_zero());
            let is_own = request.has_own_errors && matches!(outcome, HostAnswer::Failing { .. });
            let pause = if is_own { None } else { pass.record(outcome) };
            tracing::debug!(host = head.final_url.host_str(), status = head.status, ?spent, "Answered");
            if head.status == 206 {
                // We never request a range: a partial document would make the rest look removed.
                let host = head.final_url.host_str().unwrap_or_default().to_owned();
                return Err(Error::Broken {
                    host,
                    why: phrase!(
                        "it sent a part of the document that was not requested (206)",
                        "要求していない部分的な応答です（206）"
                    ),
                });
            }
            return Ok(Arrived {
                response,
                head,
                pass,
                limits: limits.clone(),
                spent,
                asked,
                pause,
                is_asked,
            });
        }
    }

    /// Sends the request of one hop and waits for the headers of its answer.
    async fn send(
        &self,
        request: &Request,
        trail: &Trail,
        asked: bool,
        limits: &Limits,
        spent: Duration,
        keep: bool,
    ) -> Result<reqwest::Response, Error> {
        let client = self.0.clients.pick(&trail.url, &request.allow_private, keep)?;
        hop::in_time(client.execute(hop::outgoing(request, trail, asked)), limits, spent, &trail.url).await
    }

    /// Reads the body into memory; that of an error status only up to [`ERROR_PAGE`].
    async fn collect(&self, arrived: Arrived, request: &Request) -> Result<(Head, Bytes), Error> {
        let Arrived { response, head, pass: _pass, limits, spent, .. } = arrived;
        if request.method == Method::HEAD || matches!(head.status, 204 | 304) {
            return Ok((head, Bytes::new()));
        }
        let opened = Body::open(response, &head, &limits, spent).await;
        if head.is_success() {
            let bytes = self.read_all(opened?).await?;
            return Ok((head, bytes));
        }
        let mut page = BytesMut::new();
        if let Ok(mut body) = opened {
            while let Ok(Some(piece)) = body.next().await
                && page.len() < ERROR_PAGE
            {
                page.extend_from_slice(&piece[..piece.len().min(ERROR_PAGE - page.len())]);
            }
        }
        Ok((head, page.freeze()))
    }

    async fn read_all(&self, mut body: Body) -> Result<Bytes, Error> {
        let Some(first) = body.next().await? else { return Ok(Bytes::new()) };
        let Some(second) = body.next().await? else { return Ok(first) };
        let mut all = BytesMut::with_capacity(first.len() + second.len());
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        let mut large = None;
        while let Some(piece) = body.next().await? {
            all.extend_from_slice(&piece);
            if all.len() > LARGE && large.is_none() {
                let waiting = Instant::now();
                large = self.0.large.acquire().await.ok();
                body.excuse(waiting.elapsed());
            }
        }
        Ok(all.freeze())
    }
}

/// Decides by status and validators: unchanged, a body to read, or an error.
fn is_unchanged(arrived: &mut Arrived, request: &Request) -> Result<bool, Error> {
    let Arrived { head, asked, pause, is_asked, .. } = arrived;
    let host = || head.final_url.host_str().unwrap_or_default().to_owned();
    let known = &request.validators;
    match head.status {
        304 if *asked => {
            head.validators = known.renewed(&head.headers, &head.final_url);
            Ok(true)
        }
        304 => Err(Error::Broken {
            host: host(),
            why: phrase!(
                "it says \"not modified\" to an unconditional request",
                "要求していない「変更なし」の応答です（304）"
            ),
        }),
        200 => Ok(*asked && known.prove_unchanged(&head.headers)),
        201..=299 => Ok(false),
        404 => Err(Error::NotFound),
        410 => Err(Error::Gone),
        status @ (408 | 425 | 429 | 500..=599) => Err(Error::Later {
            host: host(),
            after: pause.unwrap_or(USUAL_WAIT),
            why: if *is_asked { Why::Asked(status) } else { Why::Status(status) },
            is_sent: true,
        }),
        status => Err(Error::Refused { status }),
    }
}

/// How many requests the limit of open files allows, leaving some for everything else.
fn affordable() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
    let files = soft.and_then(|soft| soft.parse().ok()).unwrap_or(256_usize);
    (files / 4 * 3).saturating_sub(64).max(16)
}
