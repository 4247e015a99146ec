//! Takes what is due, each under its lease, and writes down how it ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::alert;
use super::events::RunEvent;
use super::store::{self, RunOutcome};
use super::{DeliveryMode, Failure, Job, Progress, Report, RunContext};
use crate::db::{self, Db};
use crate::fail;
use crate::id::{JobName, Owner};
use crate::ledger::lease::{self, Claim, Holder, KeptLease, Lease};
use crate::ledger::{Subject, event, pause, presence};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::{Clock, Timestamp};

/// The target of log lines that say how a job ended, for those who tell it themselves.
pub const ENDED: &str = "tsuzuki::ended";
/// The target of log lines that a document prescribes: a log for people has their text and nothing else.
pub const VERBATIM: &str = "tsuzuki::verbatim";
/// How long a job's lease lasts between renewals.
const LEASE: Duration = Duration::from_secs(60);
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

/// Which jobs to run, and whether their schedule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// What is due, enabled and not paused.
    Due,
    /// Everything that was named, whatever its schedule says.
    Forced,
}

/// Why a job was not run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// It is disabled in the config.
    Disabled,
    /// It is not due before this moment.
    NotDue(Option<Timestamp>),
    /// It was paused, for this reason.
    Paused(Phrase),
    /// Another process is at it.
    Held(Holder),
    /// Everything was moved to another database, which runs it now.
    Moved(String),
}

impl Skipped {
    /// Why, for people.
    pub fn phrase(&self) -> Phrase {
        match self {
            Skipped::Disabled => phrase!("it is disabled", "無効になっています"),
            Skipped::NotDue(Some(next)) => {
                phrase!("it is not due before {next}", "次回は {next} です", next = *next)
            }
            Skipped::NotDue(None) => phrase!("its schedule has no further date", "今後の予定がありません"),
            Skipped::Paused(why) => phrase!("it is paused ({why})", "一時停止中です（{why}）", why),
            Skipped::Held(holder) => phrase!(
                "already running ({who}, since {since})",
                "すでに実行中です（{who}、{since} から）",
                who = presence::shown_owner(&holder.owner),
                since = holder.taken_at
            ),
            Skipped::Moved(to) => phrase!("everything was moved to {to}", "すべて {to} に移行済みです", to),
        }
    }
}

/// What became of a job that was due or named.
#[derive(Debug)]
pub enum Finished {
    /// It was not run.
    Skipped(Skipped),
    /// It ran; some parts may have failed.
    Ran(Report),
    /// It ended early or badly.
    Failed(Failure),
}

/// A job, and whether it would run now.
#[derive(Debug, Clone)]
pub struct Picked {
    pub job: JobName,
    /// `None` when it would run.
    pub skipped: Option<Skipped>,
}

impl Runner {
    /// A runner that stands for this process.
    pub fn new(db: Db, progress: Progress) -> Self {
        let clock = db.clock().clone();
        Self { db, clock, owner: Owner::this_process(), progress, delivery: DeliveryMode::Queue }
    }

    /// The same runner, whose runs tell what they find or withhold it.
    pub fn delivering(self, delivery: DeliveryMode) -> Self {
        Self { delivery, ..self }
    }

    /// The time.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Which of `jobs` would run now; changes nothing.
    pub async fn pick(&self, jobs: &[Job], selection: Selection) -> db::Result<Vec<Picked>> {
        let mut picked = Vec::with_capacity(jobs.len());
        for job in jobs {
            let skipped = self.find_obstacle(job, selection).await?;
            picked.push(Picked { job: job.name.clone(), skipped });
        }
        Ok(picked)
    }

    async fn find_obstacle(&self, job: &Job, selection: Selection) -> db::Result<Option<Skipped>> {
        let (job, me, now) = (job.clone(), self.owner.clone(), self.clock.now());
        self.db.read(move |tx| find_obstacle(tx, &job, &me, selection, now)).await
    }

    /// Who is at a job at this moment, this process included.
    pub async fn find_holder(&self, job: &Job) -> db::Result<Option<Holder>> {
        let name = lease_name(&job.name);
        self.db.read(move |tx| lease::find_holder(tx, &name)).await
    }

    /// Runs those of `jobs` that `selection` asks for, several at once, until they are done or `stop` is cancelled.
    ///
    /// The answers come in the order of `jobs`.
    pub async fn run(
        &self,
        jobs: Vec<Job>,
        selection: Selection,
        stop: &CancellationToken,
    ) -> Vec<(JobName, Finished)> {
        self.run_reporting(jobs, selection, stop, |_, _| {}).await
    }

    /// The same; `report` hears of each job when it ends.
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
            Ok(Begun::Not(skipped)) => Finished::Skipped(skipped),
            Err(db::Error::MovedAway { to, .. }) => Finished::Skipped(Skipped::Moved(to)),
            Err(error) => Finished::Failed(error.into()),
        }
    }

    /// Takes the lease if the job is still due: another process may have run it a moment ago.
    async fn begin(&self, job: &Job, selection: Selection) -> db::Result<Begun> {
        let (job, owner, now) = (job.clone(), self.owner.clone(), self.clock.now());
        self.db
            .write(move |tx| {
                if let Some(skipped) = obstacle(tx, &job, selection, now)? {
                    return Ok(Begun::Not(skipped));
                }
                match lease::claim(tx, &lease_name(&job.name), &owner, LEASE)? {
                    Claim::Held(holder) => Ok(Begun::Not(Skipped::Held(holder))),
                    Claim::Taken(lease) => {
                        store::mark_begun(tx, job.name.as_str(), now)?;
                        fail::point("runner.begun");
                        Ok(Begun::Mine(lease, now))
                    }
                }
            })
            .await
    }

    async fn run_leased(
        &self,
        job: &Job,
        lease: Lease,
        began_at: Timestamp,
        stop: &CancellationToken,
    ) -> Finished {
        let kept = KeptLease::keep(self.db.clone(), lease, LEASE, stop);
        let ctx = RunContext {
            job: job.name.clone(),
            db: self.db.clone(),
            clock: self.clock.clone(),
            lease: kept.lease().clone(),
            stop: kept.stop().clone(),
            progress: self.progress.clone(),
            delivery: self.delivery,
        };
        // A task of its own: a panic in one job must not take the others down.
        let work = Arc::clone(&job.collector);
        let outcome = tokio::spawn(async move { work.run(&ctx).await }).await;
        let outcome = outcome.unwrap_or_else(|crash| {
            let why = crash.to_string();
            Err(Failure::Failed(phrase!("the job crashed: {why}", "ジョブが異常終了しました：{why}", why)))
        });
        let ended = self.end(job, kept.lease(), began_at, &outcome).await;
        if let Err(error) = kept.release().await {
            warn!(job = %job.name, "Could not give the lease back, it will expire: {error}");
        }
        if let (Some(ping), Some(outcome)) = (&job.ping, outcome_of(&outcome)) {
            ping.send(&job.name, outcome).await;
        }
        match (outcome, ended) {
            (Ok(report), Ok(())) => Finished::Ran(report),
            (Ok(_), Err(failure)) | (Err(failure), _) => Finished::Failed(failure),
        }
    }

    /// Writes down how a run ended, and its line in the story of the job, in one transaction.
    async fn end(
        &self,
        job: &Job,
        lease: &Lease,
        began_at: Timestamp,
        outcome: &Result<Report, Failure>,
    ) -> Result<(), Failure> {
        // A credential or a config that is refused stays refused until somebody acts.
        let may_pass = match outcome {
            Ok(report) => report.outcome() == RunOutcome::Failed && !report.needs_config,
            Err(Failure::Failed(_) | Failure::Db(_)) => true,
            Err(_) => false,
        };
        let new_count = outcome.as_ref().map_or(0, |report| report.new_count);
        // Whoever took over writes down how it ends.
        let Some(ended_as) = outcome_of(outcome) else { return Ok(()) };
        let message = match outcome {
            Ok(report) if !report.problems.is_empty() => Phrase::list(report.problems.clone()),
            Ok(report) => report.summary.clone(),
            Err(failure) => failure.phrase(),
        };
        let outcome = ended_as;
        match outcome {
            RunOutcome::Success | RunOutcome::Waiting => {
                info!(target: ENDED, job = %job.name, "{}: {message}", job.name);
            }
            _ => warn!(target: ENDED, job = %job.name, "{}: {outcome}: {message}", job.name),
        }
        let (name, schedule, now) = (job.name.clone(), job.schedule.clone(), self.clock.now());
        let written = lease.write(&self.db, move |tx| {
            let failures = store::find_state(tx, name.as_str())?.map_or(0, |state| state.failures_in_a_row);
            let retry_at = may_pass.then(|| schedule.retry_at(failures + 1, now)).flatten();
            store::mark_ended(tx, name.as_str(), outcome, &message, retry_at, now)?;
            alert::note_run(tx, &name, (outcome, &message), failures + 1, may_pass, now)?;
            let ended = RunEvent::new(outcome, message.clone(), began_at, new_count);
            event::record(tx, Some(&name), &Subject::job(&name), &ended, now)
        });
        Ok(written.await?)
    }
}

/// How a run ended; `None` when another process took it over.
fn outcome_of(ended: &Result<Report, Failure>) -> Option<RunOutcome> {
    match ended {
        Ok(report) => Some(report.outcome()),
        Err(Failure::Overtaken) => None,
        Err(Failure::Interrupted) => Some(RunOutcome::Interrupted),
        Err(_) => Some(RunOutcome::Failed),
    }
}

enum Begun {
    Mine(Lease, Timestamp),
    Not(Skipped),
}

/// What stands against `me` running `job` at this moment.
pub fn find_obstacle(
    tx: &mut db::Tx<'_>,
    job: &Job,
    me: &Owner,
    selection: Selection,
    now: Timestamp,
) -> db::Result<Option<Skipped>> {
    if let Some(skipped) = obstacle(tx, job, selection, now)? {
        return Ok(Some(skipped));
    }
    let holder = lease::find_holder(tx, &lease_name(&job.name))?;
    Ok(holder.filter(|holder| holder.owner != me.as_str()).map(Skipped::Held))
}

/// What stands against running `job`, other than another process.
fn obstacle(
    tx: &mut db::Tx<'_>,
    job: &Job,
    selection: Selection,
    now: Timestamp,
) -> db::Result<Option<Skipped>> {
    // A process that had this database open when it was moved away must not go on beside the new one.
    if let Some(left) = db::find_moved_away(tx)? {
        return Ok(Some(Skipped::Moved(left.to)));
    }
    if selection == Selection::Forced {
        return Ok(None);
    }
    if !job.enabled {
        return Ok(Some(Skipped::Disabled));
    }
    if let Some(pause) = pause::find(tx, &Subject::job(&job.name), now)? {
        return Ok(Some(Skipped::Paused(pause.reason)));
    }
    let state = store::find_state(tx, job.name.as_str())?;
    if state.as_ref().is_some_and(store::JobState::is_unfinished) {
        return Ok(None);
    }
    match due_at(job, state.as_ref(), now) {
        Some(at) if at <= now => Ok(None),
        later => Ok(Some(Skipped::NotDue(later))),
    }
}

/// When `job` is due: `now` if it is, else the next point of its schedule, or earlier if its last run failed.
fn due_at(job: &Job, state: Option<&store::JobState>, now: Timestamp) -> Option<Timestamp> {
    let retry_at = state.and_then(|state| state.retry_at);
    if job.schedule.is_due(state.and_then(|state| state.last_run_at), now) {
        return Some(now);
    }
    [retry_at, job.schedule.next_after(now)].into_iter().flatten().min().map(|at| at.max(now))
}

/// When `job` starts by itself, as far as its `state`, `holder` and `pause` tell; `None` when it does not.
///
/// What was cut off is due at once, whatever the schedule says (ADR 0007).
pub fn next_run_at(
    job: &Job,
    state: Option<&store::JobState>,
    holder: Option<&Holder>,
    pause: Option<&pause::Pause>,
    now: Timestamp,
) -> Option<Timestamp> {
    if !job.enabled || pause.is_some() {
        return None;
    }
    match state {
        Some(state) if holder.is_none() && state.is_unfinished() => Some(now),
        state => due_at(job, state, now),
    }
}

/// The name of a job's lease.
pub fn lease_name(job: &JobName) -> String {
    format!("job:{job}")
}
