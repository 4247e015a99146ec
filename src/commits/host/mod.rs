//! Git hosts, independent of their API. Another host is a file or folder here and a line in `hosts!`.

mod ask;
pub(super) mod gitlab;

use async_trait::async_trait;
use std::sync::Arc;

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::author::Emails;
use super::model::{CommitPage, RemoteProject};
use crate::config::Flag;
use crate::fetch::{AllowPrivate, Fetcher, SecretHint};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::{Clock, Timestamp};

/// The hosts: the key of a job that holds the address, which is also the name of the folder.
macro_rules! hosts {
    ($keys:ident) => {
        $keys! {
            /// The address of GitLab, e.g. `https://gitlab.com`.
            gitlab,
        }
    };
}
#[cfg(fuzzing)]
pub use gitlab::fuzz_answers;
pub(super) use hosts;

/// A Git host, as used by one job.
#[async_trait]
pub trait Host: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// The hint for a repository that may not be read.
    fn access_hint(&self) -> Phrase;

    /// Why it does not respond, if it has not answered the last request that was given up, nor any since.
    fn find_silence(&self) -> Option<Error>;

    async fn fetch_project(&self, name: &str, stop: &CancellationToken) -> Result<RemoteProject, Error>;

    /// Every project of a group and its subgroups, or of everything that the token's user is a member of.
    async fn fetch_listed(
        &self,
        listing: Listing<'_>,
        stop: &CancellationToken,
    ) -> Result<Vec<RemoteProject>, Error>;

    /// The names of all branches of a project.
    async fn fetch_branches(&self, remote_id: i64, stop: &CancellationToken) -> Result<Vec<String>, Error>;

    /// Until when the host asked us to wait, if that is longer than a run waits, with the reason.
    fn find_pause(&self) -> Option<(Timestamp, Phrase)>;

    /// The commit that a branch points to.
    async fn fetch_head(
        &self,
        remote_id: i64,
        branch: &str,
        stop: &CancellationToken,
    ) -> Result<String, Error>;

    /// The line counts of one commit, if the host has them; for pages without line counts.
    async fn fetch_lines(
        &self,
        remote_id: i64,
        sha: &str,
        stop: &CancellationToken,
    ) -> Result<Option<(i64, i64)>, Error>;

    /// A page of a range of commits; the first is 1.
    async fn fetch_commits(
        &self,
        remote_id: i64,
        range: Range<'_>,
        page: u32,
        stop: &CancellationToken,
    ) -> Result<CommitPage, Error>;
}

/// Which projects to list.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    /// Those of this group; `None` for those that the token's user is a member of.
    pub group: Option<&'a str>,
    pub archived: bool,
    /// Also those of others that are shared with the group.
    pub shared: bool,
}

/// How a token is sent to a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// An access token of a person, group or project.
    #[default]
    Private,
    /// An OAuth 2.0 token, or any other that goes into `Authorization: Bearer`.
    Bearer,
    /// The token of a CI job.
    Job,
    /// A deploy token.
    Deploy,
}

/// The commits reachable from `head` and not from `base`.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// `None` for the whole history.
    pub base: Option<&'a str>,
    pub head: &'a str,
}

/// A kind of host.
pub struct HostKind {
    /// Its name.
    pub name: &'static str,
    /// The prefix of its API's paths; its own address must not end with it.
    pub api: &'static str,
    /// The option of `job add` that names its address.
    pub address: Flag,
    /// The variable that usually holds its token.
    pub token_variable: &'static str,
    /// Where its token comes from.
    pub token: SecretHint,
    /// Makes a client, without a request.
    pub connect: fn(HostAccess) -> Arc<dyn Host>,
}

/// The settings of a client.
pub struct HostAccess {
    pub fetcher: Fetcher,
    pub clock: Clock,
    /// The address of the host.
    pub base: Url,
    pub token: Option<SecretString>,
    pub token_kind: TokenKind,
    /// Private addresses that may be reached.
    pub allow_private: AllowPrivate,
    /// Concurrent requests.
    pub at_once: usize,
    /// How addresses of authors are stored.
    pub emails: Emails,
}

/// Why a request failed; each variant is what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The token is wrong, expired or too weak: no other request can succeed with it.
    Credentials(Phrase),
    /// Access to this one resource is denied.
    Forbidden { host: &'static str, why: String },
    /// It does not exist.
    Missing { host: &'static str, why: String },
    /// The request itself is refused.
    Refused {
        host: &'static str,
        /// The HTTP status.
        status: u16,
        why: String,
    },
    /// The host asked us to wait.
    Later { host: &'static str, until: Timestamp, why: Phrase },
    /// It fails until the config changes.
    Config(Phrase),
    /// All retries failed.
    Failed(Phrase),
    /// The process was asked to stop.
    Stopped,
}

impl Error {
    pub fn phrase(&self) -> Phrase {
        match self {
            Error::Credentials(why) | Error::Config(why) | Error::Failed(why) => why.clone(),
            Error::Forbidden { host, why } => {
                phrase!("{host} refuses access: {why}", "{host} にアクセスを拒否されました：{why}")
            }
            Error::Missing { host, why } => {
                phrase!("HTTP 404 from {host}: {why}", "{host} の応答は HTTP 404 です：{why}")
            }
            Error::Refused { host, status, why } => phrase!(
                "{host} refuses the request (HTTP {status}): {why}",
                "{host} に要求を拒否されました（HTTP {status}）：{why}",
                status = i64::from(*status)
            ),
            Error::Later { host, until, why } => phrase!(
                "{host} asks to wait until {until}: {why}",
                "{host} から {until} まで待つよう指示がありました：{why}"
            ),
            Error::Stopped => phrase!("stopped", "停止しました"),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.phrase().fmt(f)
    }
}

impl std::error::Error for Error {}
