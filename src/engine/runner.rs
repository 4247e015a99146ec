//! Runs due jobs, each under its lease, and records how they ended.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::events::RunEvent;
use super::obstacle::{find_obstacle, obstacle};
use super::store::{self, RunOutcome};
use super::{
    DeliveryMode, Failure, Job, Progress, Report, RunContext, RunStart, Schedule, ShareContext, SharedRun,
    Skipped, alert,
};
use crate::db::{self, Db};
use crate::fail;
use crate::id::{JobName, Owner};
use crate::ledger::lease::{self, Claim, Holder, KeptLease, Lease};
use crate::ledger::{Subject, event, presence};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::{Clock, Timestamp};

/// Log target of the line about the end of a job, for commands that report it themselves.
pub const ENDED: &str = "tsuzuki::ended";
/// Log target of lines whose text a specification prescribes: a log for people shows that text only.
pub const VERBATIM: &str = "tsuzuki::verbatim";
/// Problems of a run that are saved one by one; if there are more, only their number and the first.
const MAX_PROBLEMS: usize = 3;
/// Jobs that run at the same time in one process.
const AT_ONCE: usize = 4;

/// Runs jobs. Cheap to clone.
#[derive(Clone)]
pub struct Runner {
    db: Db,
    clock: Clock,
    owner: Owner,
    progress: Progress,
    delivery: DeliveryMode,
}

/// Which jobs to run, and whether to respect their schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// What is due, enabled and not paused.
    Due,
    /// All given jobs, whatever their schedule says.
    Forced,
}

/// The result for one of the given jobs.
#[derive(Debug)]
pub enum Finished {
    Skipped(Skipped),
    /// It ran; some parts may have failed.
    Ran(Report),
    /// It was interrupted or failed.
    Failed(Failure),
}

impl Runner {
    /// A runner for this process.
    pub fn new(db: Db, progress: Progress) -> Self {
        let clock = db.clock().clone();
        Self { db, clock, owner: Owner::this_process(), progress, delivery: DeliveryMode::Queue }
    }

    /// The same runner in another delivery mode.
    pub fn delivering(self, delivery: DeliveryMode) -> Self {
        Self { delivery, ..self }
    }

    /// The clock that schedules are compared with.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Why each of `jobs` would not run now, in the same order; `None` for one that would. Changes nothing.
    pub async fn list_skipped(&self, jobs: &[Job], selection: Selection) -> db::Result<Vec<Option<Skipped>>> {
        let mut skipped = Vec::with_capacity(jobs.len());
        for job in jobs {
            skipped.push(self.find_obstacle(job, selection).await?);
        }
        Ok(skipped)
    }

    async fn find_obstacle(&self, job: &Job, selection: Selection) -> db::Result<Option<Skipped>> {
        let (job, me, now) = (job.clone(), self.owner.clone(), self.clock.now());
        self.db
            .read(move |tx| {
                let skipped = find_obstacle(tx, &job, &me, selection, now)?;
                let has_part = match (&skipped, find_shared(&job, selection)) {
                    (Some(Skipped::Held(_)), Some(shared)) => shared.has_free_parts(tx, &job.name)?,
                    _ => false,
                };
                Ok(skipped.filter(|_| !has_part))
            })
            .await
    }

    /// The process that is running a job now, which may be this one.
    pub async fn find_holder(&self, job: &Job) -> db::Result<Option<Holder>> {
        let name = lease_name(&job.name);
        self.db.read(move |tx| lease::find_holder(tx, &name)).await
    }

    /// Runs the selected ones of `jobs`, several at once, until they are done or `stop` is cancelled.
    ///
    /// The results are in the order of `jobs`.
    pub async fn run(
        &self,
        jobs: Vec<Job>,
        selection: Selection,
        stop: &CancellationToken,
    ) -> Vec<(JobName, Finished)> {
        self.run_reporting(jobs, selection, stop, |_, _| {}).await
    }

    /// The same, calling `report` when a job ends.
    pub async fn run_reporting(
        &self,
        jobs: Vec<Job>,
        selection: Selection,
        stop: &CancellationToken,
        mut report: impl FnMut(&JobName, &Finished),
    ) -> Vec<(JobName, Finished)> {
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        let mut running = JoinSet::new();
        for (number, job) in jobs.into_iter().enumerate() {
            let (runner, slots, stop) = (self.clone(), Arc::clone(&slots), stop.clone());
            running.spawn(async move {
                let _slot = slots.acquire_owned().await;
                let finished = if stop.is_cancelled() {
                    Finished::Failed(Failure::Interrupted)
                } else {
                    runner.run_one(&job, selection, &stop).await
                };
                (number, job.name, finished)
            });
        }
        let mut finished = Vec::new();
        while let Some(ended) = running.join_next().await {
            let ended = ended.unwrap_or_else(|crash| std::panic::resume_unwind(crash.into_panic()));
            report(&ended.1, &ended.2);
            finished.push(ended);
        }
        finished.sort_by_key(|(number, ..)| *number);
        finished.into_iter().map(|(_, name, finished)| (name, finished)).collect()
    }

    async fn run_one(&self, job: &Job, selection: Selection, stop: &CancellationToken) -> Finished {
        match self.begin(job, selection).await {
            Ok(Begun::Mine(lease, began_at)) => self.run_leased(job, lease, began_at, stop).await,
            Ok(Begun::Not(Skipped::Held(holder))) if find_shared(job, selection).is_some() => {
                self.join(job, holder, stop).await
            }
            Ok(Begun::Not(skipped)) => Finished::Skipped(skipped),
            Err(db::Error::MovedAway { to, .. }) => Finished::Skipped(Skipped::Moved(to)),
            Err(error) => Finished::Failed(error.into()),
        }
    }

    /// Takes the lease if the job is still due: another process may have run it in the meantime.
    async fn begin(&self, job: &Job, selection: Selection) -> db::Result<Begun> {
        let (job, owner, now) = (job.clone(), self.owner.clone(), self.clock.now());
        self.db
            .write(move |tx| {
                if let Some(skipped) = obstacle(tx, &job, selection, now)? {
                    return Ok(Begun::Not(skipped));
                }
                match lease::claim(tx, &lease_name(&job.name), &owner, lease::LENGTH)? {
                    Claim::Held(holder) => Ok(Begun::Not(Skipped::Held(holder))),
                    Claim::Taken(lease) => {
                        if let Some(shared) = job.collector.shared() {
                            let start = find_start(tx, &job, now)?;
                            shared.open(tx, &job.name, lease.fence(), start)?;
                        }
                        store::mark_begun(tx, job.name.as_str(), now)?;
                        fail::point("runner.begun");
                        Ok(Begun::Mine(lease, now))
                    }
                }
            })
            .await
    }

    /// Takes part in a run that another process began. That process records its end.
    async fn join(&self, job: &Job, holder: Holder, stop: &CancellationToken) -> Finished {
        let ctx = ShareContext {
            job: job.name.clone(),
            db: self.db.clone(),
            clock: self.clock.clone(),
            owner: self.owner.clone(),
            stop: stop.clone(),
            progress: self.progress.clone(),
        };
        let collector = Arc::clone(&job.collector);
        let joined = spawn_run(async move {
            match collector.shared() {
                Some(shared) => shared.join(&ctx).await,
                None => Ok(None),
            }
        });
        match joined.await {
            Ok(None) => Finished::Skipped(Skipped::Held(holder)),
            Ok(Some(summary)) => {
                let who = presence::shown_owner(&holder.owner);
                let helped = phrase!("helped {who}: {summary}", "{who} の実行に参加：{summary}");
                info!(target: ENDED, job = %job.name, "{}: {helped}", job.name);
                Finished::Ran(Report::new(helped))
            }
            Err(failure) => Finished::Failed(failure),
        }
    }

    async fn run_leased(
        &self,
        job: &Job,
        lease: Lease,
        began_at: Timestamp,
        stop: &CancellationToken,
    ) -> Finished {
        let kept = KeptLease::keep(self.db.clone(), lease, lease::LENGTH, stop);
        let ctx = RunContext {
            job: job.name.clone(),
            db: self.db.clone(),
            clock: self.clock.clone(),
            lease: kept.lease().clone(),
            stop: kept.stop().clone(),
            progress: self.progress.clone(),
            delivery: self.delivery,
        };
        let work = Arc::clone(&job.collector);
        let outcome = spawn_run(async move { work.run(&ctx).await }).await;
        let ended = self.end(job, kept.lease(), began_at, &outcome).await;
        if let Err(error) = kept.release().await {
            warn!(job = %job.name, "Could not give the lease back, it will expire: {error}");
        }
        if let (Some(ping), Some(outcome)) = (&job.ping, outcome_of(outcome.as_ref())) {
            ping.send(&job.name, outcome).await;
        }
        match (outcome, ended) {
            (Ok(report), Ok(())) => Finished::Ran(report),
            (Ok(_), Err(failure)) | (Err(failure), _) => Finished::Failed(failure),
        }
    }

    /// Writes down how a run ended, in one transaction.
    async fn end(
        &self,
        job: &Job,
        lease: &Lease,
        began_at: Timestamp,
        outcome: &Result<Report, Failure>,
    ) -> Result<(), Failure> {
        // Whoever took over writes down how it ends.
        let Some(ended) = EndedRun::of(outcome.as_ref(), began_at) else { return Ok(()) };
        let (outcome, message) = (ended.outcome, &ended.message);
        match outcome {
            RunOutcome::Success | RunOutcome::Waiting => {
                info!(target: ENDED, job = %job.name, "{}: {message}", job.name);
            }
            _ => warn!(target: ENDED, job = %job.name, "{}: {outcome}: {message}", job.name),
        }
        let (name, schedule, now) = (job.name.clone(), job.schedule.clone(), self.clock.now());
        Ok(lease.write(&self.db, move |tx| ended.note(tx, &name, &schedule, now)).await?)
    }
}

/// How a run of a job ended, for `status` and `why`.
pub struct EndedRun {
    outcome: RunOutcome,
    message: Phrase,
    may_pass: bool,
    began_at: Timestamp,
    new_count: u64,
}

impl EndedRun {
    /// `None` when another process took the run over.
    pub fn of(ended: Result<&Report, &Failure>, began_at: Timestamp) -> Option<Self> {
        let outcome = outcome_of(ended)?;
        // A credential or a config that is refused stays refused until somebody acts.
        let may_pass = match ended {
            Ok(report) => outcome == RunOutcome::Failed && !report.needs_config,
            Err(Failure::Failed(_) | Failure::Db(_)) => true,
            Err(_) => false,
        };
        let new_count = ended.map_or(0, |report| report.new_count);
        let message = match ended {
            Ok(Report { summary, problems, .. }) if problems.len() > MAX_PROBLEMS => {
                phrase!("{summary}; first: {first}", "{summary}。最初の問題：{first}", first = &problems[0])
            }
            Ok(report) if !report.problems.is_empty() => Phrase::list(report.problems.clone()),
            Ok(report) => report.summary.clone(),
            Err(failure) => failure.phrase(),
        };
        Some(Self { outcome, message, may_pass, began_at, new_count })
    }

    /// Writes it down for the job of that name, with its line in the story of the job.
    pub fn note(
        &self,
        tx: &mut db::Tx<'_>,
        name: &JobName,
        schedule: &Schedule,
        now: Timestamp,
    ) -> db::Result<()> {
        let failures = store::find_state(tx, name.as_str())?.map_or(0, |state| state.failures_in_a_row);
        let retry_at = self.may_pass.then(|| schedule.retry_at(failures + 1, now)).flatten();
        store::mark_ended(tx, name.as_str(), self.outcome, &self.message, retry_at, now)?;
        alert::note_run(tx, name, (self.outcome, &self.message), failures + 1, self.may_pass, now)?;
        let ended = RunEvent::new(self.outcome, self.message.clone(), self.began_at, self.new_count);
        event::record(tx, Some(name), &Subject::job(name), &ended, now)
    }

    /// The same for a run that somebody made by hand, without the lease of the job.
    pub fn note_manual_run(
        &self,
        tx: &mut db::Tx<'_>,
        name: &JobName,
        schedule: &Schedule,
        now: Timestamp,
    ) -> db::Result<()> {
        store::mark_begun(tx, name.as_str(), self.began_at)?;
        self.note(tx, name, schedule, now)
    }
}

/// Runs `work` as a task of its own: a panic in one job must not take the others down.
async fn spawn_run<T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    tokio::spawn(work).await.unwrap_or_else(|crash| {
        let why = crash.to_string();
        Err(Failure::Failed(phrase!("the job crashed: {why}", "ジョブが異常終了しました：{why}")))
    })
}

/// How a run ended; `None` when another process took it over.
fn outcome_of(ended: Result<&Report, &Failure>) -> Option<RunOutcome> {
    match ended {
        Ok(report) => Some(report.outcome()),
        Err(Failure::Overtaken) => None,
        Err(Failure::Interrupted) => Some(RunOutcome::Interrupted),
        Err(_) => Some(RunOutcome::Failed),
    }
}

/// How processes share a run of `job`. A forced run is never shared.
fn find_shared(job: &Job, selection: Selection) -> Option<&dyn SharedRun> {
    (selection == Selection::Due).then(|| job.collector.shared()).flatten()
}

/// Whether a run continues the last one.
fn find_start(tx: &mut db::Tx<'_>, job: &Job, now: Timestamp) -> db::Result<RunStart> {
    let state = store::find_state(tx, job.name.as_str())?;
    let is_cut_off =
        |state: &store::JobState| state.is_unfinished() && !job.schedule.is_due(state.last_run_at, now);
    Ok(if state.as_ref().is_some_and(is_cut_off) { RunStart::Resumed } else { RunStart::Fresh })
}

enum Begun {
    Mine(Lease, Timestamp),
    Not(Skipped),
}

/// The name of a job's lease.
pub fn lease_name(job: &JobName) -> String {
    format!("job:{job}")
}
