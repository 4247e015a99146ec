//! GitLab's REST API: requests and answers.

mod refusal;
mod wire;

#[cfg(fuzzing)]
pub use wire::fuzz_answers;

use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::HeaderName;
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;
use tracing::info;
use url::Url;

use super::ask::{Patience, RateLimit, Requester, TimedAnswer};
use super::{Error, Host, HostAccess, HostKind, Listing, Range, TokenKind};
use crate::commits::author::Emails;
use crate::commits::model::{CommitPage, RemoteProject};
use crate::config::Flag;
use crate::fetch::{AllowPrivate, ApiAnswer, Limits, Manners, Request, SecretHint, header};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

const NAME: &str = "GitLab";
pub(in crate::commits) const KIND: HostKind = HostKind {
    name: NAME,
    api: "api/v4",
    address: Flag::new("gitlab", "URL", || phrase!("the address of GitLab", "GitLab の URL")).required(),
    token_variable: "GITLAB_TOKEN",
    token: SecretHint {
        key: "token",
        check: "",
        en: "in GitLab under Edit profile, Access tokens: scope `read_api`; a group or project token will do",
        ja: "GitLab の「プロフィールの編集」→「アクセストークン」で、スコープ `read_api` を付けて作ります。\
             グループやプロジェクトのトークンでもかまいません",
    },
    connect: |access| Arc::new(GitLab::new(access)),
};
/// Commits, projects and branches a page: GitLab's maximum.
const PER_PAGE: &str = "100";
/// After a page with line counts that takes longer, further pages are requested without them.
const SLOW_PAGE: Duration = Duration::from_secs(20);
/// The most pages of one listing; a server that returns more is in a loop.
const MOST_PAGES: u32 = 1_000_000;

struct GitLab {
    requester: Requester,
    base: Url,
    token: Option<(HeaderName, SecretString)>,
    allow_private: AllowPrivate,
    manners: Manners,
    emails: Emails,
    /// Line counts were too costly: further pages are requested without them.
    is_slow_at_lines: AtomicBool,
}

impl GitLab {
    fn new(access: HostAccess) -> Self {
        let limit = RateLimit {
            remaining: HeaderName::from_static("ratelimit-remaining"),
            reset: HeaderName::from_static("ratelimit-reset"),
        };
        Self {
            requester: Requester::new(NAME, access.fetcher, access.clock, limit),
            base: access.base,
            is_slow_at_lines: AtomicBool::new(false),
            token: access.token.map(|token| shown_token(token, access.token_kind)),
            allow_private: access.allow_private,
            manners: Manners { at_once: access.at_once, spacing: Duration::ZERO },
            emails: access.emails,
        }
    }

    async fn get(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        stop: &CancellationToken,
    ) -> Result<ApiAnswer, Error> {
        Ok(self.get_with(Patience::Usual, path, query, stop).await?.answer)
    }

    async fn get_with(
        &self,
        patience: Patience,
        path: &[&str],
        query: &[(&str, &str)],
        stop: &CancellationToken,
    ) -> Result<TimedAnswer, Error> {
        let refusal = |answer: &ApiAnswer| self.refusal(answer);
        let answered = self.requester.get(patience, &self.request(path, query), refusal, stop).await?;
        if wire::is_page(&answered.answer.body) {
            return Err(self.no_answer_of_gitlab(&answered.answer));
        }
        Ok(answered)
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
            all.extend(read(&answer.body).map_err(|why| Error::Failed(why.into()))?);
            match next_page(&answer, page)? {
                Some(next) => page = next,
                None => return Ok(all),
            }
        }
    }

    fn request(&self, path: &[&str], query: &[(&str, &str)]) -> Request {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(KIND.api.split('/')).extend(path);
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
            .limits(limits)
            .own_errors();
        match &self.token {
            Some((name, token)) => request.secret_header(name.clone(), token),
            None => request,
        }
    }
}

#[async_trait]
impl Host for GitLab {
    fn name(&self) -> &'static str {
        NAME
    }

    fn access_hint(&self) -> Phrase {
        phrase!("the token's user needs the role Reporter", "トークンの利用者に Reporter ロールが必要です")
    }

    fn find_silence(&self) -> Option<Error> {
        self.requester.find_silence()
    }

    async fn fetch_project(&self, name: &str, stop: &CancellationToken) -> Result<RemoteProject, Error> {
        let answer = self.get(&["projects", name], &[], stop).await?;
        wire::read_project(&answer.body).map_err(|why| Error::Failed(why.into()))
    }

    async fn fetch_listed(
        &self,
        listing: Listing<'_>,
        stop: &CancellationToken,
    ) -> Result<Vec<RemoteProject>, Error> {
        let mut query = vec![("order_by", "id"), ("sort", "asc")];
        if !listing.archived {
            query.push(("archived", "false"));
        }
        let Some(group) = listing.group else {
            query.push(("membership", "true"));
            return self.get_all(&["projects"], &query, wire::read_projects, stop).await;
        };
        query.push(("include_subgroups", "true"));
        if !listing.shared {
            query.push(("with_shared", "false"));
        }
        self.get_all(&["groups", group, "projects"], &query, wire::read_projects, stop).await
    }

    async fn fetch_branches(&self, remote_id: i64, stop: &CancellationToken) -> Result<Vec<String>, Error> {
        let path = ["projects", &remote_id.to_string(), "repository", "branches"];
        self.get_all(&path, &[], wire::read_branches, stop).await
    }

    fn find_pause(&self) -> Option<(Timestamp, Phrase)> {
        self.requester.find_pause()
    }

    async fn fetch_head(
        &self,
        remote_id: i64,
        branch: &str,
        stop: &CancellationToken,
    ) -> Result<String, Error> {
        let path = ["projects", &remote_id.to_string(), "repository", "branches", branch];
        let answer = self.get(&path, &[], stop).await?;
        wire::read_head(&answer.body).map_err(|why| Error::Failed(why.into()))
    }

    async fn fetch_lines(
        &self,
        remote_id: i64,
        sha: &str,
        stop: &CancellationToken,
    ) -> Result<Option<(i64, i64)>, Error> {
        let path = ["projects", &remote_id.to_string(), "repository", "commits", sha];
        let TimedAnswer { answer, .. } = self.get_with(Patience::Little, &path, &[], stop).await?;
        wire::read_lines(&answer.body).map_err(|why| Error::Failed(why.into()))
    }

    /// Line counts are the costly part for GitLab. If they fail or take long, this page or the following ones are
    /// requested without them, and their commits are stored as lacking line counts.
    async fn fetch_commits(
        &self,
        remote_id: i64,
        range: Range<'_>,
        page: u32,
        stop: &CancellationToken,
    ) -> Result<CommitPage, Error> {
        let number = page.to_string();
        let remote_id = remote_id.to_string();
        let revision = match range.base {
            Some(base) => format!("{base}..{}", range.head),
            None => range.head.to_owned(),
        };
        let path = ["projects", remote_id.as_str(), "repository", "commits"];
        let query = [
            ("ref_name", revision.as_str()),
            ("per_page", PER_PAGE),
            ("page", &number),
            ("with_stats", "true"),
        ];
        let with_lines = if self.is_slow_at_lines.load(Ordering::Relaxed) {
            None
        } else {
            Some(self.get_with(Patience::Little, &path, &query, stop).await)
        };
        let answer = match with_lines {
            None => self.get(&path, &query[..3], stop).await?,
            Some(Err(Error::Failed(why))) => {
                // If it fails without them, too, they were not the cause.
                let answer = self.get(&path, &query[..3], stop).await?;
                self.is_slow_at_lines.store(true, Ordering::Relaxed);
                info!("{NAME} is slow at counting lines; the counts are fetched after the commits: {why}");
                answer
            }
            Some(other) => {
                let TimedAnswer { answer, took } = other?;
                if took > SLOW_PAGE {
                    self.is_slow_at_lines.store(true, Ordering::Relaxed);
                    info!(
                        "{NAME} is slow at counting lines; the counts are fetched after the commits: {} s",
                        took.as_secs()
                    );
                }
                answer
            }
        };
        let commits =
            wire::read_commits(&answer.body, self.emails).map_err(|why| Error::Failed(why.into()))?;
        let total = header::text(&answer.head.headers, &HeaderName::from_static("x-total"));
        let total = total.and_then(|total| total.parse().ok());
        Ok(CommitPage { commits, next: next_page(&answer, page)?, total })
    }
}

/// The name and value of the header for a token of that kind.
fn shown_token(token: SecretString, kind: TokenKind) -> (HeaderName, SecretString) {
    match kind {
        TokenKind::Private => (HeaderName::from_static("private-token"), token),
        TokenKind::Job => (HeaderName::from_static("job-token"), token),
        TokenKind::Deploy => (HeaderName::from_static("deploy-token"), token),
        TokenKind::Bearer => {
            (reqwest::header::AUTHORIZATION, format!("Bearer {}", token.expose_secret()).into())
        }
    }
}

/// The next page, by `x-next-page` or by `Link`; never by counting results.
///
/// Only the number is used: we build the address of the next request ourselves, wherever a link may lead.
fn next_page(answer: &ApiAnswer, page: u32) -> Result<Option<u32>, Error> {
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
        Some(_) => Err(Error::Failed(phrase!(
            "GitLab names no sensible page after page {page}",
            "GitLab が {page} ページの次に示したページ番号が不正です",
            page = i64::from(page)
        ))),
    }
}
