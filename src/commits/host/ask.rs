//! Requests to a Git host: waiting, retrying and giving up.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::Error;
use crate::fetch::{ApiAnswer, Fetcher, Request, header};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::{Clock, Timestamp};

/// A longer wait is left to the next run.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// How often a request is tried that failed without a `Retry-After`.
const ATTEMPTS: u32 = 5;
/// The same after a server error: a restarting server responds after a minute or two.
const SERVER_ERROR_ATTEMPTS: u32 = 8;
/// The same for a request that may only be too costly.
const FEW_ATTEMPTS: u32 = 3;
/// How long a host that cannot be reached is tried.
const UNREACHED_PATIENCE: Duration = Duration::from_secs(30);
/// How often a request is tried that the host asked to retry later.
const POSTPONED_ATTEMPTS: u32 = 60;
/// The assumed window of a rate limit if the host does not say when it ends.
const RATE_WINDOW: Duration = Duration::from_secs(60);
/// Longer waits are logged at `info`.
const LONG_WAIT: Duration = Duration::from_secs(5);

/// The requests of one job to one host, with the state of the host.
pub(super) struct Requester {
    host: &'static str,
    fetcher: Fetcher,
    clock: Clock,
    limit: RateLimit,
    /// The host reported that no request is left until then.
    pause_until: Mutex<Option<Timestamp>>,
    /// The longest wait that was left to the next run, with the reason.
    left: Mutex<Option<(Timestamp, Phrase)>>,
    /// Why the last request without an answer, or with server errors only, was given up; `None` as soon as there is an
    /// answer.
    silence: Mutex<Option<Phrase>>,
}

/// How long to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    Usual,
    /// Shorter, because there is a cheaper request. A request without an answer is not retried at all.
    Little,
}

/// An answer, and how long the host took for it, without waits before it.
pub(super) struct TimedAnswer {
    pub(super) answer: ApiAnswer,
    pub(super) took: Duration,
}

/// The headers with the number of remaining requests, and the moment (seconds since 1970) at which it is reset.
pub(super) struct RateLimit {
    pub(super) remaining: HeaderName,
    pub(super) reset: HeaderName,
}

impl Requester {
    /// `host` is the name of the host in messages.
    pub(super) fn new(host: &'static str, fetcher: Fetcher, clock: Clock, limit: RateLimit) -> Self {
        let (pause_until, left, silence) = (Mutex::new(None), Mutex::new(None), Mutex::new(None));
        Self { host, fetcher, clock, limit, pause_until, left, silence }
    }

    /// Until when the host asked us to wait, if that is too long for this run, with the reason.
    pub(super) fn find_pause(&self) -> Option<(Timestamp, Phrase)> {
        lock(&self.left).clone()
    }

    /// Why the host does not respond, if it has not answered the last request that was given up, nor any since.
    pub(super) fn find_silence(&self) -> Option<Error> {
        lock(&self.silence).clone().map(Error::Failed)
    }

    /// Sends a request until there is a final answer, or too many failures; `refusal` interprets answers that are
    /// neither successful nor temporary.
    ///
    /// While the host does not respond, every request has one try: the next ones would otherwise wait as long as the
    /// first.
    pub(super) async fn get(
        &self,
        patience: Patience,
        request: &Request,
        refusal: impl Fn(&ApiAnswer) -> Error,
        stop: &CancellationToken,
    ) -> Result<TimedAnswer, Error> {
        let host = self.host;
        let attempts = if patience == Patience::Usual { ATTEMPTS } else { FEW_ATTEMPTS };
        let mut failures = 0;
        let mut postponed = 0;
        let began = self.clock.now();
        let silence = lock(&self.silence).clone();
        let mut last = None;
        loop {
            let pause = *lock(&self.pause_until);
            if let Some(until) = pause {
                let why = phrase!("the rate limit is used up", "回数制限に達しました");
                self.wait_until(until, &why, stop).await?;
            }
            let asked_at = self.clock.now();
            let outcome = tokio::select! {
                () = stop.cancelled() => return Err(Error::Stopped),
                outcome = self.fetcher.fetch_api(request) => outcome,
            };
            let now = self.clock.now();
            if outcome.as_ref().is_ok_and(|answer| answer.head.status < 500) {
                *lock(&self.silence) = None;
            }
            // Wait for as long as the host asks, but do not retry an address that does not respond for ever.
            let (retry_at, why, is_server_error) = match outcome {
                Ok(answer) if answer.head.is_success() => {
                    self.note_pause(&answer.head.headers, now);
                    return Ok(TimedAnswer { answer, took: now.since(asked_at) });
                }
                Ok(answer) => match answer.head.status {
                    status @ (408 | 425 | 429 | 500..=599) => {
                        let retry_at = header::retry_after(&answer.head.headers, now)
                            .filter(|wait| !wait.is_zero())
                            .map(|wait| now.plus(wait))
                            .or_else(|| (status == 429).then(|| self.renewed_at(&answer.head.headers, now)));
                        (
                            retry_at,
                            phrase!(
                                "HTTP {status} from {host}",
                                "{host} の応答は HTTP {status}",
                                status = i64::from(status)
                            ),
                            status >= 500 && retry_at.is_none(),
                        )
                    }
                    _ => return Err(refusal(&answer)),
                },
                Err(error) if error.is_retryable() && error.status().is_none() => {
                    let pause = error.retry_after();
                    // The HTTP client's own pause of this host was not an attempt.
                    if pause.is_none() {
                        failures += 1;
                        last = Some(error.phrase());
                    }
                    let why = last.clone().unwrap_or_else(|| error.phrase());
                    let wait = pause.unwrap_or_else(|| pause_after(failures));
                    let is_over = if error.may_have_been_received() {
                        pause.is_none() && patience == Patience::Little
                    } else {
                        now.plus(wait).since(began) > UNREACHED_PATIENCE
                    };
                    if let Some(silence) = silence {
                        return Err(Error::Failed(silence));
                    }
                    if is_over || failures >= attempts {
                        let why = match failures {
                            0 => why,
                            tries => after_tries(&why, tries),
                        };
                        // A page with line counts may only be too costly.
                        if patience == Patience::Usual {
                            *lock(&self.silence) = Some(why.clone());
                        }
                        return Err(Error::Failed(why));
                    }
                    debug!(?wait, "Waiting for {host}: {why}");
                    self.wait_until(now.plus(wait), &why, stop).await?;
                    continue;
                }
                Err(error) if error.is_retryable() => {
                    let retry_at = error.retry_after().map(|wait| now.plus(wait));
                    (retry_at, error.phrase(), false)
                }
                Err(error) => {
                    let hint = error.hint().map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
                    let why = Phrase::verbatim(format!("{error}{hint}"));
                    return Err(if error.needs_config() { Error::Config(why) } else { Error::Failed(why) });
                }
            };
            if retry_at.is_some() {
                postponed += 1;
            } else {
                failures += 1;
            }
            let until = match retry_at {
                Some(until) => until.min(now.plus(header::LONGEST_WAIT)),
                None => now.plus(pause_after(failures)),
            };
            let is_over = match patience {
                _ if is_server_error && silence.is_some() => true,
                Patience::Usual if is_server_error => failures >= SERVER_ERROR_ATTEMPTS,
                _ => failures >= attempts,
            };
            if is_over || postponed >= POSTPONED_ATTEMPTS {
                // The same text every time: a repeated failure is reported once.
                let why = if is_server_error { why } else { after_tries(&why, failures + postponed) };
                if is_server_error && patience == Patience::Usual {
                    *lock(&self.silence) = Some(why.clone());
                }
                return Err(Error::Failed(why));
            }
            if until.since(now) > LONG_WAIT {
                info!(%until, "Waiting for {host}: {why}");
            } else {
                debug!(%until, "Waiting for {host}: {why}");
            }
            self.wait_until(until, &why, stop).await?;
        }
    }

    /// Records that no request is left, so that we wait before we are refused.
    fn note_pause(&self, headers: &HeaderMap, now: Timestamp) {
        let spent = number(headers, &self.limit.remaining) == Some(0);
        let until = self.reset_at(headers).filter(|until| spent && *until > now);
        *lock(&self.pause_until) = until;
    }

    /// When a rate-limited host accepts requests again. GitLab's limits of single endpoints come without a moment, or
    /// with that of another limit.
    fn renewed_at(&self, headers: &HeaderMap, now: Timestamp) -> Timestamp {
        self.reset_at(headers).filter(|until| *until > now).unwrap_or_else(|| now.plus(RATE_WINDOW))
    }

    fn reset_at(&self, headers: &HeaderMap) -> Option<Timestamp> {
        Some(Timestamp::from_millis(number(headers, &self.limit.reset)?.checked_mul(1000)?))
    }

    async fn wait_until(
        &self,
        until: Timestamp,
        why: &Phrase,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        if until.since(self.clock.now()) > PATIENCE {
            let mut left = lock(&self.left);
            if left.as_ref().is_none_or(|(known, _)| *known < until) {
                *left = Some((until, why.clone()));
            }
            return Err(Error::Later { host: self.host, until, why: why.clone() });
        }
        tokio::select! {
            () = stop.cancelled() => Err(Error::Stopped),
            () = self.clock.wait_until(until) => Ok(()),
        }
    }
}

fn after_tries(why: &Phrase, tries: u32) -> Phrase {
    phrase!("{why}, after {tries try}", "{why}（{tries} 回試行）", tries = i64::from(tries))
}

/// How long to wait after so many failures in a row.
fn pause_after(failures: u32) -> Duration {
    Duration::from_millis(500) * 2_u32.pow(failures)
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Option<i64> {
    header::text(headers, name)?.parse().ok()
}
