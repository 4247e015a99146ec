//! Collects one branch, from its head back to known commits, page by page, each stored with its position.

mod left_out;
mod missing;
mod reading;
mod sweep;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::info;

pub use reading::BranchProgress;

use super::history::{self, BranchStep, FirstPage};
use super::host::{self, Host, Range};
use super::model::{BranchState, Commit, CommitPage, Project, Walk};
use super::run::{self, Claimed};
use super::store::branches;
use super::store::pages::{self, BranchRef};
use super::store::unreachable;
use crate::commits::events;
use crate::db::{self, Db, Tx};
use crate::id::JobName;
use crate::ledger::Subject;
use crate::phrase;
use crate::phrase::Phrase;
use crate::text::counted;
use crate::time::{Clock, Timestamp};

/// The most walks for one target in one run: an unfinished one, the new range, the whole history, and some reserve.
const MOST_WALKS: usize = 5;

/// A target under a lease, with everything needed to collect it.
pub struct TargetCollector {
    pub client: Arc<dyn Host>,
    pub db: Db,
    pub clock: Clock,
    pub claimed: Claimed,
    pub project: Project,
    /// Older commits are not stored.
    pub since: Option<Timestamp>,
    pub job: JobName,
    /// Cancelled when the process stops or the lease is lost.
    pub stop: CancellationToken,
    /// Called for every page.
    pub on_page: Box<dyn Fn(BranchProgress) + Send + Sync>,
}

/// Why a target did not succeed; all but the first release it unchanged.
#[derive(Debug)]
pub enum Halt {
    /// The target itself failed.
    Failed(Phrase),
    /// The process was asked to stop.
    Stopped,
    /// The lease is lost to another worker, or the run was cancelled.
    Lost,
    /// The token is refused: nothing else can be collected either.
    Credentials(Phrase),
    /// The host asks for a longer wait.
    Later(Timestamp, Phrase),
    Db(db::Error),
}

impl From<db::Error> for Halt {
    fn from(error: db::Error) -> Self {
        Halt::Db(error)
    }
}

/// How a walk ended.
enum Walked {
    /// Everything up to its head is stored.
    Complete,
    /// The list is unavailable or has gaps; the whole history is needed.
    NeedsWhole(Phrase),
}

/// The result of storing a page.
enum StoredPage {
    Page,
    /// Every page is stored; unreachable commits have to be found and marked.
    Pages,
    Complete,
    Holes(i64),
}

impl TargetCollector {
    /// Collects the branch up to its head.
    pub async fn collect(&self) -> Result<(), Halt> {
        let branch = &self.claimed.branch_name;
        let head = match self.client.fetch_head(self.project.remote_id, branch, &self.stop).await {
            Ok(head) => head,
            Err(host::Error::Missing { .. }) => return self.without_branch().await,
            Err(error) => return Err(self.halt(error)),
        };
        let mut whole = None;
        for _ in 0..MOST_WALKS {
            let state = self.find_state().await?;
            if state.deleted_at.is_some() {
                self.write(|tx, place| branches::reset_deleted(tx, place.project_id, place.branch_name))
                    .await?;
            }
            let (walk, fresh) = match (whole.take(), history::next_step(&state, &head, self.since)) {
                (Some(walk), _) | (None, BranchStep::Begin(walk)) => (walk, true),
                (None, BranchStep::Continue(walk)) => (walk, false),
                (None, BranchStep::Nothing) => return self.check_left_out().await,
            };
            let walk = if fresh { self.begin(walk).await? } else { walk };
            let was_whole = walk.base.is_none() && fresh;
            match self.walk(walk.clone(), &state).await? {
                Walked::Complete => {}
                Walked::NeedsWhole(why) if !was_whole => {
                    info!("{} {branch}: reading the whole history, because {why}", self.project.path);
                    let pinned = if fresh { walk } else { Walk::between(None, &head, self.since) };
                    whole = Some(pinned.whole());
                }
                Walked::NeedsWhole(why) => return Err(Halt::Failed(why)),
            }
        }
        Err(Halt::Failed(phrase!(
            "`{branch}` changes faster than it can be read; run again",
            "`{branch}` の更新が速く、読み切れません。もう一度実行してください"
        )))
    }

    async fn find_state(&self) -> Result<BranchState, Halt> {
        let (project_id, branch) = (self.claimed.project_id, self.claimed.branch_name.clone());
        Ok(self.db.read(move |tx| branches::find_state(tx, project_id, &branch)).await?)
    }

    /// Stores a new walk before its first page is requested.
    async fn begin(&self, walk: Walk) -> Result<Walk, Halt> {
        self.write(move |tx, place| {
            let mut walk = walk.clone();
            if walk.base.is_none() {
                // Without stored commits, none can have become unreachable.
                walk.met_base = !pages::has_commits(tx, place)?;
            }
            pages::put_walk(tx, place, &walk)?;
            Ok(walk)
        })
        .await
    }

    async fn walk(&self, mut walk: Walk, state: &BranchState) -> Result<Walked, Halt> {
        if walk.page == 0 {
            return self.after_pages(&walk, state).await;
        }
        if walk.page == 1 && walk.base.is_none() {
            self.reset_left_out().await?;
        }
        let mut page = match self.fetch(&walk, walk.page).await {
            Ok(page) => page,
            Err(error) => return self.after_page_error(&walk, error),
        };
        if walk.page == 1 {
            match history::check_first_page(&walk, &page.commits) {
                FirstPage::Sound => {}
                FirstPage::Empty if walk.base.is_some() => return self.after_empty_range(&walk, state).await,
                _ if walk.base.is_some() => {
                    return Ok(self.without_range());
                }
                _ => {
                    return Err(Halt::Failed(phrase!(
                        "{host} names {head} as the head of the branch but does not list it; run again",
                        "{host} の一覧にブランチの先頭 {head} がありません。もう一度実行してください",
                        host = self.client.name(),
                        head = &walk.head
                    )));
                }
            }
        }
        let (began, mut pages, mut commits) = (self.clock.now(), 0, 0);
        loop {
            let after = walk.after(&page.commits, page.next.unwrap_or(walk.page));
            (pages, commits) = (pages + 1, commits + page.commits.len() as u64);
            let total = page.total;
            let storing = self.store(page.commits, &after, page.next.is_none(), state);
            let (stored, fetched) = match page.next {
                // Fetch the next page while this one is stored.
                Some(next) => {
                    let (stored, fetched) = tokio::join!(storing, self.fetch(&walk, next));
                    (stored?, Some(fetched))
                }
                None => (storing.await?, None),
            };
            (self.on_page)(BranchProgress::at(pages, commits, total, self.clock.now().since(began)));
            match stored {
                StoredPage::Complete => return Ok(Walked::Complete),
                StoredPage::Pages => return self.after_pages(&after, state).await,
                StoredPage::Holes(missing) => {
                    return Ok(Walked::NeedsWhole(phrase!(
                        "the list of {host} lacks {missing parent commit}",
                        "{host} の一覧に親コミットが {missing} 件足りません",
                        host = self.client.name()
                    )));
                }
                StoredPage::Page => {}
            }
            walk = after;
            page = match fetched {
                Some(Ok(page)) => page,
                Some(Err(error)) => return self.after_page_error(&walk, error),
                None => return Err(Halt::Failed("the list ended without an end".into())),
            };
        }
    }

    async fn fetch(&self, walk: &Walk, page: u32) -> Result<CommitPage, host::Error> {
        let range = Range { base: walk.base.as_deref(), head: &walk.head };
        self.client.fetch_commits(self.project.remote_id, range, page, &self.stop).await
    }

    /// Stores a page and its position; with the last page, marks the branch as complete.
    ///
    /// READ COMMITTED is enough: the first statement locks the target's row until COMMIT, and no process writes this
    /// branch without it.
    async fn store(
        &self,
        commits: Vec<Commit>,
        after: &Walk,
        is_last: bool,
        state: &BranchState,
    ) -> Result<StoredPage, Halt> {
        let (claimed, after, state) = (self.claimed.clone(), after.clone(), state.clone());
        let (subject, now) = (self.subject(), self.clock.now());
        let stored = self.write(move |tx, place| {
            let new = pages::add_commits(tx, place, &commits, after.since, &claimed.run_id)?;
            if new > 0 {
                run::renew(tx, &claimed, new)?;
            }
            if state.has_unreachable {
                unreachable::reset(tx, place, &commits)?;
            }
            left_out::note(tx, &subject, &claimed.run_id, &commits, now)?;
            crate::fail::point("commits.page");
            if !is_last {
                pages::put_walk(tx, place, &after)?;
                return Ok(StoredPage::Page);
            }
            let missing = pages::count_missing(tx, place, &after.open)?;
            if missing > 0 {
                pages::reset_walk(tx, place)?;
                pages::mark_open(tx, place, missing, now)?;
                return Ok(StoredPage::Holes(missing));
            }
            if !after.met_base {
                pages::put_walk(tx, place, &Walk { page: 0, ..after.clone() })?;
                return Ok(StoredPage::Pages);
            }
            sweep::finish(tx, place, &after, &state, &subject, now)?;
            Ok(StoredPage::Complete)
        });
        let stored = stored.await?;
        crate::fail::point("commits.stored");
        Ok(stored)
    }

    /// No commits between the old head and the new one: either the branch was rewound to a stored commit, or the host
    /// no longer knows the old head.
    async fn after_empty_range(&self, walk: &Walk, state: &BranchState) -> Result<Walked, Halt> {
        let after = Walk { page: 0, ..walk.clone() };
        let is_known = self
            .write(move |tx, place| {
                let is_known = pages::is_known(tx, place, &after.head)?;
                if is_known {
                    pages::put_walk(tx, place, &after)?;
                }
                Ok(is_known)
            })
            .await?;
        if is_known {
            self.after_pages(walk, state).await
        } else {
            Ok(Walked::NeedsWhole(phrase!(
                "{host} no longer knows the commit that was read last",
                "{host} に前回読んだコミットがありません",
                host = self.client.name()
            )))
        }
    }

    /// Every page is stored, but the branch was not simply advanced.
    async fn after_pages(&self, walk: &Walk, state: &BranchState) -> Result<Walked, Halt> {
        let lost = self.sweep(walk, state).await?;
        if lost > 0 {
            info!(
                "{} {}: {} no longer reachable",
                self.project.path,
                self.claimed.branch_name,
                counted(lost, "commit")
            );
        }
        Ok(Walked::Complete)
    }

    fn without_range(&self) -> Walked {
        let host = self.client.name();
        Walked::NeedsWhole(phrase!("{host} does not list the range", "{host} は範囲を一覧できません"))
    }

    fn after_page_error(&self, walk: &Walk, error: host::Error) -> Result<Walked, Halt> {
        match error {
            host::Error::Missing { .. } | host::Error::Refused { .. }
                if walk.base.is_some() || walk.page > 1 =>
            {
                Ok(self.without_range())
            }
            error => Err(self.halt(error)),
        }
    }

    fn halt(&self, error: host::Error) -> Halt {
        match error {
            host::Error::Stopped => Halt::Stopped,
            host::Error::Credentials(why) => Halt::Credentials(why),
            host::Error::Later { until, why, .. } => Halt::Later(until, why),
            host::Error::Forbidden { host, why } => Halt::Failed(phrase!(
                "{host} refuses access to the repository of `{path}` ({why}): {hint}",
                "{host} に `{path}` のリポジトリへのアクセスを拒否されました（{why}）。{hint}",
                path = &self.project.path,
                hint = self.client.access_hint()
            )),
            other => Halt::Failed(other.phrase()),
        }
    }

    fn subject(&self) -> Subject {
        events::branch(&self.project.path, &self.claimed.branch_name)
    }

    /// Writes only if the target is still ours.
    async fn write<T, F>(&self, work: F) -> Result<T, Halt>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>, BranchRef<'_>) -> db::Result<T> + Send + 'static,
    {
        let claimed = self.claimed.clone();
        let written = self.db.claim(move |tx| {
            if !run::renew(tx, &claimed, 0)? {
                return Ok(None);
            }
            let place = BranchRef { project_id: claimed.project_id, branch_name: &claimed.branch_name };
            work(tx, place).map(Some)
        });
        written.await?.ok_or(Halt::Lost)
    }
}
