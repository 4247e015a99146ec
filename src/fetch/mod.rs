//! Reaching the open web: one `Fetcher` for every request that follows configuration or content.
//!
//! ```text
//! Request ─▶ guard ─▶ gate ─▶ client ─▶ headers ─▶ redirect? ─▶ unchanged? ─▶ body ─▶ Response
//!   ▲      (address) (turn)  (names)  (size, time)     │                    (decoded, counted, timed)
//!   └──────────────────────────────────────────────────┘ every hop from the start
//! ```

mod body;
mod cause;
pub mod client;
mod coding;
pub mod error;
mod gate;
pub mod guard;
pub mod header;
pub mod limits;
pub mod polite;
mod ranges;
mod redirect;
pub mod request;
mod tls;
pub mod validators;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Method;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::Url;

pub use client::{ClientConfig, Clients, Names};
pub use error::Error;
pub use guard::AllowPrivate;
pub use limits::Limits;
pub use polite::Manners;
pub use request::{Credential, Request};
pub use validators::Validators;

use crate::time::Clock;
use body::Body;
use error::Why;
use gate::{Gate, Pass};
use polite::Outcome;
use redirect::Trail;

/// Bodies above [`LARGE`] that are collected in memory at the same time.
const LARGE_AT_ONCE: usize = 4;
/// From this size on a body needs one of those places.
const LARGE: usize = 1024 * 1024;
/// What is read of the page that comes with an error status.
const ERROR_PAGE: usize = 64 * 1024;
/// When to try again after a failure that says nothing about it.
const USUAL_WAIT: Duration = Duration::from_secs(60);

/// How a [`Fetcher`] behaves.
#[derive(Debug, Clone)]
pub struct FetchConfig {
    /// How its clients are made.
    pub client: ClientConfig,
    /// What a response may cost, unless the request says otherwise.
    pub limits: Limits,
    /// How hosts are treated, unless the request says otherwise.
    pub manners: Manners,
    /// Requests under way at the same time, over all hosts; hanging ones count, so be generous.
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

/// Fetches; cheap to clone, one per process.
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

/// What a fetch brought.
#[derive(Debug, Clone)]
pub enum Response<B = Bytes> {
    /// The version that the validators describe is still the current one; no body was read.
    Unchanged(Head),
    /// A body came.
    Fetched(Head, B),
}

/// What is known about a response besides its body.
#[derive(Debug, Clone)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    /// Where the answer came from, after redirects.
    pub final_url: Url,
    /// Where permanent redirects alone lead, if there were any: the address to adopt in time.
    pub permanent_url: Option<Url>,
    /// All response headers.
    pub headers: HeaderMap,
    /// What to send with the next request; empty unless the answer was 200 or 304.
    pub validators: Validators,
}

/// Any answer of an API, good or bad.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status, headers and address.
    pub head: Head,
    /// The body; of an error page only the first 64 KiB.
    pub body: Bytes,
}

/// A body that was written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// How long it is.
    pub bytes: u64,
}

impl Head {
    /// The `Content-Type` header.
    pub fn content_type(&self) -> Option<&str> {
        header::text(&self.headers, &CONTENT_TYPE)
    }

    /// Whether the status is one of success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl<B> Response<B> {
    /// What is known besides the body.
    pub fn head(&self) -> &Head {
        match self {
            Response::Unchanged(head) | Response::Fetched(head, _) => head,
        }
    }
}

/// A response whose headers have arrived.
struct Arrived {
    response: reqwest::Response,
    head: Head,
    pass: Pass,
    limits: Limits,
    spent: Duration,
    /// Whether it answers a question about our validators.
    asked: bool,
    /// How long its host is now left alone.
    pause: Option<Duration>,
}

impl Fetcher {
    /// Prepares clients and limits; reads the machine's certificates.
    pub fn new(config: FetchConfig, clock: Clock) -> Result<Self, Error> {
        Ok(Self(Arc::new(Inner {
            clients: Clients::new(config.client)?,
            gate: Arc::new(Gate::new(clock.clone(), config.at_once)),
            clock,
            limits: config.limits,
            manners: config.manners,
            large: Semaphore::new(LARGE_AT_ONCE),
        })))
    }

    /// The factory of clients, for those who speak to an API in their own way.
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
        let host = head.final_url.host_str().unwrap_or_default().to_owned();
        let mut body = Body::open(response, &limits, limits.in_all.saturating_sub(spent), &host).await?;
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

    /// Speaks to an API: every status is an answer, errors are only those of the way there.
    pub async fn fetch_api(&self, request: &Request) -> Result<Answer, Error> {
        let arrived = Box::pin(self.arrive(request)).await?;
        let (head, body) = self.collect(arrived, request).await?;
        Ok(Answer { head, body })
    }

    /// Follows redirects until an answer arrives; its body is still to come.
    async fn arrive(&self, request: &Request) -> Result<Arrived, Error> {
        request.check()?;
        let inner = &*self.0;
        let limits = request.limits.as_ref().unwrap_or(&inner.limits);
        let manners = request.manners.as_ref().unwrap_or(&inner.manners);
        let mut trail = Trail::new(request.method.clone(), request.url_with_secrets(), limits.redirects);
        let mut spent = Duration::ZERO;
        loop {
            guard::check_url(&trail.url, &request.allow_private)?;
            let pass = inner.gate.enter(&trail.url, manners).await?;
            let asked = request.validators.hold_for(&request.without_secrets(&trail.url));
            let outgoing = outgoing(request, &trail, asked);
            let client = inner.clients.pick(&trail.url, &request.allow_private, pass.keep_connection)?;
            let started = Instant::now();
            let response = in_time(client.execute(outgoing), limits, spent, &trail.url).await;
            spent += started.elapsed();
            let response = match response {
                Ok(response) => response,
                Err(error) => {
                    let pause = failure(&error).and_then(|outcome| pass.settle(outcome));
                    tracing::debug!(host = trail.url.host_str(), ?pause, "No answer: {error}");
                    return Err(error);
                }
            };
            let status = response.status();
            let headers = response.headers();
            if header_bytes(headers) > limits.header_bytes {
                pass.settle(Outcome::Fine);
                return Err(Error::TooBig { limit: limits::Size::Headers(limits.header_bytes) });
            }
            if trail.follow(status, headers)? {
                pass.settle(Outcome::Fine);
                continue;
            }
            let final_url = request.without_secrets(&trail.url);
            let head = Head {
                status: status.as_u16(),
                validators: Validators::read(status, headers, &final_url),
                permanent_url: trail.permanent_url.as_ref().map(|url| request.without_secrets(url)),
                headers: headers.clone(),
                final_url,
            };
            let retry_after = header::retry_after(&head.headers, inner.clock.now());
            let pause = pass.settle(Outcome::of_status(head.status, retry_after));
            return Ok(Arrived { response, head, pass, limits: limits.clone(), spent, asked, pause });
        }
    }

    /// Reads the body into memory.
    async fn collect(&self, arrived: Arrived, request: &Request) -> Result<(Head, Bytes), Error> {
        let Arrived { response, head, pass: _pass, limits, spent, .. } = arrived;
        if request.method == Method::HEAD || matches!(head.status, 204 | 304) {
            return Ok((head, Bytes::new()));
        }
        let host = head.final_url.host_str().unwrap_or_default();
        let mut body = Body::open(response, &limits, limits.in_all.saturating_sub(spent), host).await?;
        let Some(first) = body.next().await? else { return Ok((head, Bytes::new())) };
        let Some(second) = body.next().await? else { return Ok((head, first)) };
        let mut all = BytesMut::with_capacity(first.len() + second.len());
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        let mut large = None;
        while let Some(piece) = body.next().await? {
            all.extend_from_slice(&piece);
            if all.len() > ERROR_PAGE && !head.is_success() {
                all.truncate(ERROR_PAGE);
                break;
            }
            if all.len() > LARGE && large.is_none() {
                let waiting = Instant::now();
                large = self.0.large.acquire().await.ok();
                body.excuse(waiting.elapsed());
            }
        }
        Ok((head, all.freeze()))
    }
}

/// Decides by status and validators: unchanged, or a body worth reading, or an error.
fn is_unchanged(arrived: &mut Arrived, request: &Request) -> Result<bool, Error> {
    let Arrived { head, asked, pause, .. } = arrived;
    let host = || head.final_url.host_str().unwrap_or_default().to_owned();
    let known = &request.validators;
    match head.status {
        304 if *asked => {
            head.validators = known.renewed(&head.headers, &head.final_url);
            Ok(true)
        }
        304 => Err(Error::Broken {
            host: host(),
            why: "it says \"not modified\" without being asked".to_owned(),
        }),
        200 => Ok(*asked && known.prove_unchanged(&head.headers)),
        201..=299 => Ok(false),
        404 => Err(Error::NotFound),
        410 => Err(Error::Gone),
        status @ (408 | 425 | 429 | 500..=599) => {
            Err(Error::Later { host: host(), after: pause.unwrap_or(USUAL_WAIT), why: Why::Status(status) })
        }
        status => Err(Error::Refused { status }),
    }
}

/// The request of one hop: secrets only at home, conditions only where they belong.
fn outgoing(request: &Request, trail: &Trail, conditional: bool) -> reqwest::Request {
    let mut outgoing = reqwest::Request::new(trail.method.clone(), trail.url.clone());
    let headers = outgoing.headers_mut();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(coding::ACCEPTED));
    headers.extend(request.headers.clone());
    if !trail.left_origin {
        headers.extend(request.secret_headers.clone());
    }
    if conditional {
        request.validators.write_to(headers);
    }
    if trail.method == Method::POST {
        *outgoing.body_mut() = request.body.clone().map(Into::into);
    } else {
        outgoing.headers_mut().remove(CONTENT_TYPE);
    }
    outgoing
}

/// Waits for response headers within the limits.
async fn in_time(
    sending: impl Future<Output = reqwest::Result<reqwest::Response>>,
    limits: &Limits,
    spent: Duration,
    url: &Url,
) -> Result<reqwest::Response, Error> {
    let left = limits.in_all.saturating_sub(spent);
    match tokio::time::timeout(limits.to_headers.min(left), sending).await {
        Ok(answered) => {
            answered.map_err(|error| cause::from_client(&error, url.host_str().unwrap_or_default()))
        }
        Err(_) if left < limits.to_headers => {
            Err(Error::TooSlow { limit: limits::Pace::InAll(limits.in_all) })
        }
        Err(_) => Err(Error::TooSlow { limit: limits::Pace::Headers(limits.to_headers) }),
    }
}

/// What a failure before the headers says about the host's health.
fn failure(error: &Error) -> Option<Outcome> {
    match error {
        Error::Connect { .. } | Error::Dns { .. } | Error::BadTls { .. } => Some(Outcome::Unreachable),
        Error::TooSlow { .. } | Error::Broken { .. } => Some(Outcome::Silent),
        _ => None,
    }
}

/// The size of `headers` as HTTP/1.1 writes them.
fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}
