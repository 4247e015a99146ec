//! GitLab's REST API: what can be asked for, and what the answers come to.

mod asking;

use std::sync::Mutex;
use std::time::Duration;

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use url::Url;

use self::asking::{lock, next_page};
use super::model::{Page, RemoteProject};
use super::wire::{self, Emails};
use crate::fetch::{AllowPrivate, Fetcher, Manners};
use crate::time::{Clock, Timestamp};

/// Commits, projects and branches a page; GitLab allows no more.
const PER_PAGE: &str = "100";
/// How often a page with line counts is repeated before it is asked for without them.
const ATTEMPTS_WITH_STATS: u32 = 3;

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
}
