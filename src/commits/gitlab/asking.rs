//! Asking GitLab, with manners: what to wait for, what to give up, and what to tell the user to do.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::super::wire;
use super::{Client, Error, PER_PAGE};
use crate::fetch::{Answer, Limits, Request, header};
use crate::text::counted;
use crate::time::Timestamp;

/// A wait that is longer is left to the next run.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// How often a request is repeated that failed without saying when to come back.
const ATTEMPTS: u32 = 5;
/// How long a GitLab that cannot be reached is tried.
const UNREACHED_PATIENCE: Duration = Duration::from_secs(30);
/// How often a request is repeated that was told to come back.
const ASKED_ATTEMPTS: u32 = 60;
/// Waiting longer than this is told.
const LONG_WAIT: Duration = Duration::from_secs(5);
/// Pages of one listing; more is a server that goes in circles.
const MOST_PAGES: u32 = 1_000_000;

impl Client {
    pub(super) async fn get_all<T>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        read: fn(&[u8]) -> Result<Vec<T>, String>,
        stop: &CancellationToken,
    ) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        let mut page = 1;
        loop {
            let number = page.to_string();
            let mut query = query.to_vec();
            query.extend([("per_page", PER_PAGE), ("page", &number)]);
            let answer = self.get(path, &query, stop).await?;
            all.extend(read(&answer.body).map_err(Error::Failed)?);
            match next_page(&answer, page)? {
                Some(next) => page = next,
                None => return Ok(all),
            }
        }
    }

    pub(super) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        stop: &CancellationToken,
    ) -> Result<Answer, Error> {
        self.get_within(ATTEMPTS, path, query, stop).await
    }

    /// Asks until there is an answer that settles the matter, or `attempts` failures.
    ///
    /// While GitLab is silent every request has one try: what waits in line would otherwise wait as long as the first.
    pub(super) async fn get_within(
        &self,
        attempts: u32,
        path: &[&str],
        query: &[(&str, &str)],
        stop: &CancellationToken,
    ) -> Result<Answer, Error> {
        let request = self.request(path, query);
        let mut failures = 0;
        let mut asked = 0;
        let began = self.clock.now();
        let silence = lock(&self.silence).clone();
        let mut last = None;
        loop {
            let rest = *lock(&self.rest_until);
            if let Some(until) = rest {
                self.wait_until(until, "the rate limit is used up", stop).await?;
            }
            let outcome = tokio::select! {
                () = stop.cancelled() => return Err(Error::Stopped),
                outcome = self.fetcher.fetch_api(&request) => outcome,
            };
            let now = self.clock.now();
            if outcome.is_ok() {
                *lock(&self.silence) = None;
            }
            // What GitLab asks for is granted patiently; an address that does not answer is not asked for ever.
            let (told, why) = match outcome {
                Ok(answer) if answer.head.is_success() => {
                    self.note_rest(&answer.head.headers, now);
                    return Ok(answer);
                }
                Ok(answer) => match answer.head.status {
                    status @ (408 | 425 | 429 | 500..=599) => {
                        let told = header::retry_after(&answer.head.headers, now)
                            .filter(|wait| !wait.is_zero())
                            .map(|wait| now.plus(wait))
                            .or_else(|| reset_at(&answer.head.headers).filter(|_| status == 429));
                        (told, format!("GitLab answers with status {status}"))
                    }
                    status => return Err(self.refusal(status, &answer.body)),
                },
                Err(error) if error.is_retryable() && error.status().is_none() => {
                    let rest = error.retry_after();
                    // The fetcher's own rest from this host was no try.
                    if rest.is_none() {
                        failures += 1;
                        last = Some(error.to_string());
                    }
                    let why = last.clone().unwrap_or_else(|| error.to_string());
                    let wait = rest.unwrap_or_else(|| pause_after(failures));
                    let is_over =
                        !error.may_have_been_received() && now.plus(wait).since(began) > UNREACHED_PATIENCE;
                    if let Some(silence) = silence {
                        return Err(Error::Failed(silence));
                    }
                    if is_over || failures >= attempts {
                        let why = match failures {
                            0 => why,
                            tries => format!("{why}, after {}", counted(tries, "try")),
                        };
                        // A page with line counts may only be too much to ask for.
                        if attempts == ATTEMPTS {
                            *lock(&self.silence) = Some(why.clone());
                        }
                        return Err(Error::Failed(why));
                    }
                    debug!(?wait, "Waiting for GitLab: {why}");
                    self.wait_until(now.plus(wait), &why, stop).await?;
                    continue;
                }
                Err(error) if error.is_retryable() => {
                    let told = error.retry_after().map(|wait| now.plus(wait));
                    (told, error.to_string())
                }
                Err(error) => {
                    let hint = error.hint().map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
                    return Err(Error::Failed(format!("{error}{hint}")));
                }
            };
            match told.is_some() {
                true => asked += 1,
                false => failures += 1,
            }
            let until = match told {
                Some(until) => until.min(now.plus(header::LONGEST_WAIT)),
                None => now.plus(pause_after(failures)),
            };
            if failures >= attempts || asked >= ASKED_ATTEMPTS {
                return Err(Error::Failed(format!("{why}, after {}", counted(failures + asked, "try"))));
            }
            match until.since(now) > LONG_WAIT {
                true => info!(%until, "Waiting for GitLab: {why}"),
                false => debug!(%until, "Waiting for GitLab: {why}"),
            }
            self.wait_until(until, &why, stop).await?;
        }
    }

    fn request(&self, path: &[&str], query: &[(&str, &str)]) -> Request {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v4"]).extend(path);
        }
        url.set_query(None);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let limits = Limits {
            to_headers: Duration::from_secs(60),
            in_all: Duration::from_secs(120),
            ..Limits::default()
        };
        let request = Request::get(url)
            .accept("application/json")
            .allow_private(&self.allow_private)
            .manners(self.manners)
            .limits(limits);
        match &self.token {
            Some(token) => request.secret_header(HeaderName::from_static("private-token"), token),
            None => request,
        }
    }

    fn refusal(&self, status: u16, body: &[u8]) -> Error {
        let why = wire::read_message(body).unwrap_or_else(|| "no reason given".to_owned());
        let host = self.base.host_str().unwrap_or_default();
        match status {
            401 if self.token.is_none() => Error::Credentials(format!(
                "{host} wants a token: set `token` of the job to an access token with the scope read_api"
            )),
            401 => Error::Credentials(format!(
                "{host} rejects the token ({why}): it is wrong, expired or revoked; make a new one with the scope read_api"
            )),
            403 if why.contains("insufficient_scope") || why.contains("higher privileges") => {
                Error::Credentials(format!(
                    "the token for {host} may not read this ({why}): make one with the scope read_api"
                ))
            }
            403 => Error::Forbidden(why),
            404 | 410 => Error::Missing(why),
            status => Error::Refused { status, why },
        }
    }

    /// Remembers that GitLab has nothing left for us, so that we are not refused first.
    fn note_rest(&self, headers: &HeaderMap, now: Timestamp) {
        let spent = number(headers, "ratelimit-remaining") == Some(0);
        let until = reset_at(headers).filter(|until| spent && *until > now);
        *lock(&self.rest_until) = until;
    }

    async fn wait_until(&self, until: Timestamp, why: &str, stop: &CancellationToken) -> Result<(), Error> {
        if until.since(self.clock.now()) > PATIENCE {
            return Err(Error::Later { until, why: why.to_owned() });
        }
        tokio::select! {
            () = stop.cancelled() => Err(Error::Stopped),
            () = self.clock.wait_until(until) => Ok(()),
        }
    }
}

/// How long to wait after so many failures in a row.
fn pause_after(failures: u32) -> Duration {
    Duration::from_millis(500) * 2_u32.pow(failures)
}

pub(super) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next page, by `x-next-page` or by `Link`; never by counting what came.
///
/// Only the number is taken: the address of the next request is ours, wherever a link may lead.
pub(super) fn next_page(answer: &Answer, page: u32) -> Result<Option<u32>, Error> {
    let next =
        match answer.head.headers.get("x-next-page").map(|value| value.to_str().unwrap_or_default().trim()) {
            Some("") => return Ok(None),
            Some(number) => Some(number.to_owned()),
            None => header::link(&answer.head.headers, &answer.head.final_url, "next").and_then(|url| {
                url.query_pairs().find(|(name, _)| name == "page").map(|(_, value)| value.into_owned())
            }),
        };
    match next.map(|next| next.parse::<u32>()) {
        None => Ok(None),
        Some(Ok(next)) if next > page && next < MOST_PAGES => Ok(Some(next)),
        Some(_) => Err(Error::Failed(format!("GitLab names no sensible page after page {page}"))),
    }
}

/// When the rate limit starts anew, as `RateLimit-Reset` says in seconds since 1970.
fn reset_at(headers: &HeaderMap) -> Option<Timestamp> {
    let secs = number(headers, "ratelimit-reset")?;
    Some(Timestamp::from_millis(secs.checked_mul(1000)?))
}

fn number(headers: &HeaderMap, name: &'static str) -> Option<i64> {
    header::text(headers, &HeaderName::from_static(name))?.parse().ok()
}
