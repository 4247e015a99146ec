//! GitLab's REST API, with its manners: what to wait for, what to give up, and what to tell the user to do.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};
use url::Url;

use super::model::{Page, RemoteProject};
use super::wire::{self, Emails};
use crate::fetch::{AllowPrivate, Answer, Fetcher, Limits, Manners, Request, header};
use crate::text::counted;
use crate::time::{Clock, Timestamp};

/// Commits, projects and branches a page; GitLab allows no more.
const PER_PAGE: &str = "100";
/// A wait that is longer is left to the next run.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// How often a request is repeated that failed without saying when to come back.
const ATTEMPTS: u32 = 5;
/// How often a page with line counts is repeated before it is asked for without them.
const ATTEMPTS_WITH_STATS: u32 = 3;
/// How long a GitLab that cannot be reached is tried.
const UNREACHED_PATIENCE: Duration = Duration::from_secs(30);
/// How often a request is repeated that was told to come back.
const ASKED_ATTEMPTS: u32 = 60;
/// Waiting longer than this is told.
const LONG_WAIT: Duration = Duration::from_secs(5);
/// How often the clock is looked at during a wait, so that a stop or a step of the clock ends it.
const SLICE: Duration = Duration::from_millis(100);
/// Pages of one listing; more is a server that goes in circles.
const MOST_PAGES: u32 = 1_000_000;

/// One GitLab, as one job may use it.
pub struct Client {
    fetcher: Fetcher,
    clock: Clock,
    base: Url,
    token: Option<SecretString>,
    allow_private: AllowPrivate,
    manners: Manners,
    emails: Emails,
    /// GitLab said that nothing is left until then.
    rest_until: Mutex<Option<Timestamp>>,
    /// Why the last request that got no answer at all was given up; `None` as soon as something answers.
    silence: Mutex<Option<String>>,
}

/// Why GitLab did not give what was asked for; each variant is what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The token is wrong, expired or too weak: nothing more can be had with it.
    #[error("{0}")]
    Credentials(String),
    /// This one thing is not for us.
    #[error("GitLab refuses access: {0}")]
    Forbidden(String),
    /// It is not there.
    #[error("GitLab answers 404: {0}")]
    Missing(String),
    /// The request itself is refused.
    #[error("GitLab refuses the request (status {status}): {why}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What GitLab says.
        why: String,
    },
    /// Come back then; nothing is wrong.
    #[error("GitLab asks to wait until {until}: {why}")]
    Later {
        /// When.
        until: Timestamp,
        /// What it said.
        why: String,
    },
    /// It keeps failing.
    #[error("{0}")]
    Failed(String),
    /// We were told to stop.
    #[error("stopped")]
    Stopped,
}

/// What a [`Client`] is made of.
pub struct Access {
    /// The address of GitLab.
    pub base: Url,
    /// The token.
    pub token: Option<SecretString>,
    /// Private addresses that may be reached.
    pub allow_private: AllowPrivate,
    /// Requests at the same time.
    pub at_once: usize,
    /// How addresses of authors are stored.
    pub emails: Emails,
}

impl Client {
    /// A client for one GitLab.
    pub fn new(fetcher: Fetcher, clock: Clock, access: Access) -> Self {
        Self {
            fetcher,
            clock,
            base: access.base,
            token: access.token,
            allow_private: access.allow_private,
            manners: Manners { at_once: access.at_once, spacing: Duration::ZERO },
            emails: access.emails,
            rest_until: Mutex::new(None),
            silence: Mutex::new(None),
        }
    }

    /// Why there is no answer, if GitLab has given none to the last request that was given up, nor to any since.
    pub fn find_silence(&self) -> Option<Error> {
        lock(&self.silence).clone().map(Error::Failed)
    }

    /// The project of that path or number.
    pub async fn fetch_project(&self, name: &str, stop: &CancellationToken) -> Result<RemoteProject, Error> {
        let answer = self.get(&["projects", name], &[], stop).await?;
        wire::read_project(&answer.body).map_err(Error::Failed)
    }

    /// Every project of a group and its subgroups.
    pub async fn fetch_group(
        &self,
        group: &str,
        stop: &CancellationToken,
    ) -> Result<Vec<RemoteProject>, Error> {
        let query = [("include_subgroups", "true"), ("order_by", "id"), ("sort", "asc")];
        self.get_all(&["groups", group, "projects"], &query, wire::read_projects, stop).await
    }

    /// The names of all branches of a project.
    pub async fn fetch_branches(
        &self,
        remote_id: i64,
        stop: &CancellationToken,
    ) -> Result<Vec<String>, Error> {
        let path = ["projects", &remote_id.to_string(), "repository", "branches"];
        self.get_all(&path, &[], wire::read_branches, stop).await
    }

    /// The commit that a branch points to.
    pub async fn fetch_head(
        &self,
        remote_id: i64,
        branch: &str,
        stop: &CancellationToken,
    ) -> Result<String, Error> {
        let path = ["projects", &remote_id.to_string(), "repository", "branches", branch];
        let answer = self.get(&path, &[], stop).await?;
        wire::read_head(&answer.body).map_err(Error::Failed)
    }

    /// A page of the commits that `revision` lists: a SHA, or a range of two.
    ///
    /// Counting lines is the costly part for GitLab. If it keeps failing at that, the page is asked for without,
    /// and its commits are stored as lacking their lines.
    pub async fn fetch_commits(
        &self,
        remote_id: i64,
        revision: &str,
        page: u32,
        stop: &CancellationToken,
    ) -> Result<Page, Error> {
        let number = page.to_string();
        let remote_id = remote_id.to_string();
        let path = ["projects", remote_id.as_str(), "repository", "commits"];
        let query =
            [("ref_name", revision), ("per_page", PER_PAGE), ("page", &number), ("with_stats", "true")];
        let answer = match self.get_within(ATTEMPTS_WITH_STATS, &path, &query, stop).await {
            Err(Error::Failed(why)) => {
                debug!("Asking for page {page} without line counts: {why}");
                self.get(&path, &query[..3], stop).await?
            }
            other => other?,
        };
        let commits = wire::read_commits(&answer.body, self.emails).map_err(Error::Failed)?;
        Ok(Page { commits, next: next_page(&answer, page)? })
    }

    async fn get_all<T>(
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

    async fn get(
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
    async fn get_within(
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
        loop {
            let left = until.since(self.clock.now());
            if left.is_zero() {
                return Ok(());
            }
            tokio::select! {
                () = stop.cancelled() => return Err(Error::Stopped),
                () = tokio::time::sleep(left.min(SLICE)) => {}
            }
        }
    }
}

/// How long to wait after so many failures in a row.
fn pause_after(failures: u32) -> Duration {
    Duration::from_millis(500) * 2_u32.pow(failures)
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next page, by `x-next-page` or by `Link`; never by counting what came.
///
/// Only the number is taken: the address of the next request is ours, wherever a link may lead.
fn next_page(answer: &Answer, page: u32) -> Result<Option<u32>, Error> {
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
