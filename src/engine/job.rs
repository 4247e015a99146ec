//! What the engine knows about a pipeline: something that runs under a lease and can plan a run.

use async_trait::async_trait;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::ping::Ping;
use super::preview::Asking;
use super::view::{Fact, View};
use super::{Block, Preview, RunOutcome, Schedule, ShareContext, SharedRun, Standing};
use crate::config::Problem;
use crate::db::{self, Db, Tx};
use crate::fetch::Check;
use crate::id::JobName;
use crate::ledger::Subject;
use crate::ledger::lease::{Lease, LeasedError};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::{Clock, Timestamp};

/// A future that can be returned from a trait object.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A job of the config file, ready to run.
#[derive(Clone)]
pub struct Job {
    pub name: JobName,
    /// `press`, `books`, `blogs` or `commits`.
    pub kind: &'static str,
    pub enabled: bool,
    pub schedule: Schedule,
    pub collector: Arc<dyn Collector>,
    /// Where its runs are reported.
    pub ping: Option<Ping>,
}

/// What a job does. Implemented once per pipeline.
#[async_trait]
pub trait Collector: Send + Sync {
    /// Performs one run. It checks `ctx.stop` between steps and writes through `ctx`.
    async fn run(&self, ctx: &RunContext) -> Result<Report, Failure>;

    /// How several processes share a run; `None` if a run belongs to one process.
    fn shared(&self) -> Option<&dyn SharedRun> {
        None
    }

    /// The same job limited to one step of a run; `None` if it has no such step.
    fn only(&self, _step: &str) -> Option<Arc<dyn Collector>> {
        None
    }

    /// Fetches once and shows what a run would find. Writes nothing but quota reservations.
    async fn test(&self, db: &Db) -> Result<Preview, Failure>;

    /// Shows what a run would do with the item at an address; `None` if the job has no such items.
    async fn test_item(&self, _db: &Db, _url: &str, _asking: Asking) -> Result<Option<View>, Failure> {
        Ok(None)
    }

    /// Checks whether its sources can be reached with the present settings, at no cost and without changing anything.
    async fn check(&self) -> Vec<Check> {
        Vec::new()
    }

    /// What it needs and what may be paused: a provider, a source.
    fn relies_on(&self) -> Vec<Subject> {
        Vec::new()
    }

    /// Facts about the job of that name, beyond those that every job has.
    fn list_facts(&self, _tx: &mut Tx<'_>, _name: &JobName, _now: Timestamp) -> db::Result<Vec<Fact>> {
        Ok(Vec::new())
    }

    /// Blocks for the page of the job of that name, beyond those that every job has.
    fn list_blocks(&self, _tx: &mut Tx<'_>, _name: &JobName, _now: Timestamp) -> db::Result<Vec<Block>> {
        Ok(Vec::new())
    }

    /// The state of the job of that name when its pipeline decides it: all is collected, a quota is used up.
    fn find_standing(
        &self,
        _tx: &mut Tx<'_>,
        _name: &JobName,
        _now: Timestamp,
    ) -> db::Result<Option<Standing>> {
        Ok(None)
    }

    /// Plans a run, without changing anything or making calls that cost.
    async fn plan(&self, db: &Db, now: Timestamp) -> db::Result<Plan>;
}

/// What a run would do.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Plan {
    pub steps: Vec<Phrase>,
}

/// Whether a run sends messages about what it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryMode {
    /// It queues messages in the outbox.
    #[default]
    Queue,
    /// It collects and saves. Messages are left to the next run with [`DeliveryMode::Queue`].
    NoDeliver,
}

/// What a run is given.
pub struct RunContext {
    pub job: JobName,
    /// The database; writes that decide something go through [`RunContext::write`].
    pub db: Db,
    pub clock: Clock,
    /// The lease that this run holds.
    pub lease: Lease,
    /// Cancelled when the run should stop: Ctrl-C, shutdown, or a lost lease.
    pub stop: CancellationToken,
    /// Where to report progress.
    pub progress: Progress,
    pub delivery: DeliveryMode,
}

impl RunContext {
    /// Writes only while this run still holds its lease.
    pub async fn write<T, F>(&self, work: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Fn(&mut db::Tx<'_>) -> db::Result<T> + Send + 'static,
    {
        Ok(self.lease.write(&self.db, work).await?)
    }

    /// The context of a part of this run.
    pub fn share(&self) -> ShareContext {
        ShareContext {
            job: self.job.clone(),
            db: self.db.clone(),
            clock: self.clock.clone(),
            owner: self.lease.owner().clone(),
            stop: self.stop.clone(),
            progress: self.progress.clone(),
        }
    }

    /// The present time of the run's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Fails once the run should stop; called between steps.
    pub fn check_stop(&self) -> Result<(), Failure> {
        if self.stop.is_cancelled() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Report {
    /// One line for people: what was found, decided and queued.
    pub summary: Phrase,
    /// How many new things were found.
    pub new_count: u64,
    /// Partial failures, one line each; everything else is saved.
    pub problems: Vec<Phrase>,
    /// Set if the run ended early because a quota is used up or a provider is paused: not a failure, but not complete.
    pub waiting_until: Option<Timestamp>,
    /// Everything failed, and only a changed config helps: do not retry before the next scheduled run.
    pub needs_config: bool,
    /// Whether something could not be read yet, such as a source whose server asked us to wait.
    pub is_incomplete: bool,
    /// Whether every part failed, so that the run has failed as a whole.
    pub all_failed: bool,
    /// Whether another process is doing the work already.
    pub is_held: bool,
}

impl Report {
    /// The report of a run without new things or problems.
    pub fn new(summary: Phrase) -> Self {
        Self {
            summary,
            new_count: 0,
            problems: Vec::new(),
            waiting_until: None,
            needs_config: false,
            is_incomplete: false,
            all_failed: false,
            is_held: false,
        }
    }

    /// How the run ended.
    pub fn outcome(&self) -> RunOutcome {
        match (self.problems.is_empty(), self.all_failed) {
            (false, true) => RunOutcome::Failed,
            (false, false) => RunOutcome::Partly,
            (true, _) if self.is_incomplete => RunOutcome::Partly,
            (true, _) if self.waiting_until.is_some() => RunOutcome::Waiting,
            (true, _) => RunOutcome::Success,
        }
    }
}

/// Why a run failed or stopped; what was saved stays saved.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It was asked to stop. Nothing is lost, the next run continues.
    #[error("stopped; the next run continues")]
    Interrupted,
    /// Another process has taken over the lease; this one wrote nothing more.
    #[error("another process has taken over this job")]
    Overtaken,
    /// A credential was refused.
    #[error("{0}")]
    Credentials(Phrase),
    /// The config cannot be used for this job, e.g. a secret is missing.
    #[error("{0}")]
    Config(Phrase),
    /// Anything else.
    #[error("{0}")]
    Failed(Phrase),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] db::Error),
}

impl Failure {
    /// In words.
    pub fn phrase(&self) -> Phrase {
        match self {
            Failure::Interrupted => {
                phrase!("stopped; the next run continues", "停止しました。次回の実行で続きから再開します")
            }
            Failure::Overtaken => {
                phrase!("another process has taken over this job", "別のプロセスがこのジョブを引き継ぎました")
            }
            Failure::Credentials(why) | Failure::Config(why) | Failure::Failed(why) => why.clone(),
            Failure::Db(error) => error.phrase(),
        }
    }
}

impl From<LeasedError> for Failure {
    fn from(error: LeasedError) -> Self {
        match error {
            LeasedError::Lost(_) => Failure::Overtaken,
            LeasedError::Db(error) => Failure::Db(error),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Config(problem.to_string().into())
    }
}

/// Reports the progress of runs; the command line draws it.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Draw>>);

type Draw = dyn Fn(&JobName, Update) + Send + Sync;

/// A step of progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// A run begins, with so many things to do.
    Total(u64),
    /// So many more are done.
    Done(u64),
    /// What is being worked on now.
    Now(String),
}

impl Progress {
    /// Calls `draw` on every update.
    pub fn new(draw: impl Fn(&JobName, Update) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(draw)))
    }

    /// Reports one step of `job`.
    pub fn report(&self, job: &JobName, update: Update) {
        if let Some(draw) = &self.0 {
            draw(job, update);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Progress" } else { "Progress (silent)" })
    }
}
