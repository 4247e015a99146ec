//! Bulk runs: many targets registered at once, shared by any number of workers, continued by the next process after an
//! interruption.
//!
//! ```text
//!            register (one transaction)                    whoever ends the last target
//!  nothing ────────────────────────────▶ running ─────────────────────────────────────────▶ completed
//!                                         │   ▲
//!   target: pending ──claim──▶ leased ────┤   │ a crash or Ctrl-C: leases end, the run stays
//!              ▲                 │        │   │
//!              └── lease over ───┘        └── cancel ──▶ cancelled (terminal)
//!           leased ──complete──▶ success | failed
//!           pending ──give up──▶ failed (nobody can take it, and it is in the way of others)
//! ```
//!
//! Every write for a target carries the fence of its lease, so a worker that stalled, was overtaken or belongs to a
//! cancelled run can no longer change anything.

mod again;
mod assign;
pub mod decide;
mod model;
mod note;
pub mod store;
pub mod targets;
mod worker;

use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub(super) use self::again::{find_running_worked, open};
use self::decide::{Begin, Sharing};
pub use self::model::{ListedRun, RunRow, RunState, RunStatus, Summary, Target, TargetRow, TargetStatus};
pub use self::note::note_manual_run;
pub(super) use self::note::summarise;
pub use self::store::*;
use self::worker::{Findings, Worker};
use super::collect::BranchProgress;
use super::host::Host;
use super::{GitSource, lines, list_host_jobs, message};
use crate::db;
use crate::engine::{DeliveryMode, Failure, JobEnv, Progress, Update};
use crate::id::{JobName, Owner, RunId};
use crate::ledger::lease::{self, Claim, Holder, KeptLease};
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// The name of the lease by which the first process of a run shows that it is alive.
fn lease_name(run_id: &RunId) -> String {
    format!("bulk:{run_id}")
}

/// A worker process of bulk runs, with the jobs it collects for.
#[derive(Clone)]
pub struct Bulk {
    pub(super) env: JobEnv,
    sources: Vec<Arc<GitSource>>,
    pub(super) owner: Owner,
    pub(super) progress: Progress,
    pub(super) stop: CancellationToken,
    pub(super) watch: Option<Watch>,
    delivery: DeliveryMode,
    only: Only,
    stays: bool,
}

/// The restriction of a new run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// The branches of this project, by path or number.
    pub project: Option<String>,
    /// Branches of this name.
    pub branch: Option<String>,
}

/// The callback for every step of a run.
pub type Watch = Arc<dyn Fn(&RunProgress) + Send + Sync>;

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RunProgress {
    /// Targets that have ended.
    pub done: i64,
    /// Targets in all.
    pub total: i64,
    /// Targets that failed.
    pub failed: i64,
    /// Commits stored by the targets that this process has completed.
    pub new_commits: i64,
    /// The target that was claimed, read or completed last.
    pub target: String,
    /// The progress of that target, while it is being read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<BranchProgress>,
}

/// The result of starting to collect.
#[derive(Debug)]
pub enum Ended {
    /// The targets that we could collect have ended.
    Worked(WorkedRun),
    /// Another process works on the run.
    Busy(RunRow, Holder),
    /// There is nothing to collect, for these reasons.
    Nothing(Vec<Phrase>),
}

/// The result of our part of a run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct WorkedRun {
    /// The current state of the run.
    #[serde(flatten)]
    pub run: Summary,
    pub problems: Vec<Phrase>,
    /// Set when the host asked for a longer wait; the run continues then.
    pub waiting_until: Option<Timestamp>,
}

impl Bulk {
    /// A worker that begins runs for `sources`; when it continues a run, it works for every job of the config.
    pub fn new(
        env: JobEnv,
        sources: Vec<Arc<GitSource>>,
        progress: Progress,
        stop: CancellationToken,
    ) -> Self {
        let (owner, delivery) = (Owner::this_process(), DeliveryMode::Queue);
        let only = Only::default();
        Self { env, sources, owner, progress, stop, watch: None, delivery, only, stays: false }
    }

    /// Sets whether the worker sends messages about ended runs.
    pub fn delivering(self, delivery: DeliveryMode) -> Self {
        Self { delivery, ..self }
    }

    /// Restricts new runs to some targets.
    pub fn only(self, only: Only) -> Self {
        Self { only, ..self }
    }

    /// Makes the worker stay until others have ended their targets, too, and take over lost ones.
    pub fn staying(self) -> Self {
        Self { stays: true, ..self }
    }

    /// Reports every step to `watch`.
    pub fn watched(self, watch: Watch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// Continues the running run, or registers a new one, and works on it.
    ///
    /// A running run without pending targets of ours only blocks us: when it has ended, our own run follows.
    pub async fn start(&self, job: Option<&JobName>, sharing: Sharing) -> Result<Ended, Failure> {
        let mut findings = Findings::default();
        loop {
            match decide::begin(self.free_running().await?, sharing) {
                Begin::Busy(run, holder) => return Ok(Ended::Busy(run, holder)),
                Begin::Continue(run) => {
                    let is_ours = self.has_pending(&run.run_id).await?;
                    let claim = self.claim(&run.run_id).await?;
                    let outcome = self.work(run, claim, findings).await?;
                    if (is_ours && self.only == Only::default())
                        || outcome.run.run.status == RunStatus::Running
                    {
                        return Ok(Ended::Worked(outcome));
                    }
                    findings = Findings::of(outcome.problems);
                    continue;
                }
                _ => {}
            }
            // A process that died right after the last target has not announced the end.
            let unannounced = self.notify_ended().await?;
            findings.problems.extend(unannounced.iter().cloned());
            let targets = self.find_targets(&mut findings).await?;
            if targets.is_empty() {
                return Ok(Ended::Nothing(findings.problems));
            }
            if let Some((run, claim)) = self.register(job, targets).await? {
                return self.work(run, claim, findings).await.map(Ended::Worked);
            }
            // Another process was faster: check again which run is running.
            findings = Findings::of(unannounced);
        }
    }

    /// When the last of our hosts may be asked again, if every one of them wants to be left alone.
    pub async fn find_pause(&self) -> db::Result<Option<Timestamp>> {
        let mut until = None;
        for source in &self.sources {
            match source.find_pause(&self.env.db, self.env.clock.now()).await? {
                Some(end) => until = until.max(Some(end)),
                None => return Ok(None),
            }
        }
        Ok(until)
    }

    /// Whether something of our own jobs is pending in a run.
    async fn has_pending(&self, run_id: &RunId) -> Result<bool, Failure> {
        let (run_id, jobs_on_host) = (*run_id, list_host_jobs(&self.env.jobs));
        let pending = self.env.db.read(move |tx| store::list_pending_jobs(tx, &run_id)).await?;
        Ok(pending.iter().any(|(host, job)| {
            let fallback_job = decide::find_fallback_job(&jobs_on_host, host, job.as_deref());
            fallback_job.is_some_and(|fallback_job| self.is_ours(&fallback_job.job))
        }))
    }

    fn is_ours(&self, job: &JobName) -> bool {
        self.sources.iter().any(|source| source.job == *job)
    }

    /// Registers a run with all its targets and ourselves as its worker in one transaction, so that it is never seen
    /// without a worker. `None` when another run was faster.
    async fn register(
        &self,
        job: Option<&JobName>,
        targets: Vec<Target>,
    ) -> Result<Option<(RunRow, Claim)>, Failure> {
        let (run_id, job, owner) = (RunId::random(), job.cloned(), self.owner.clone());
        let registered = self.env.db.write(move |tx| {
            let Some(run) = open(tx, run_id, job.as_ref(), &targets)? else { return Ok(None) };
            let claim = lease::claim(tx, &lease_name(&run_id), &owner, lease::LENGTH)?;
            Ok(Some((run, claim)))
        });
        Ok(registered.await?)
    }

    /// Works on a run until no target is left that we can collect.
    ///
    /// `claim` shows other processes that it is being worked on, unless one of them shows it already.
    async fn work(&self, run: RunRow, claim: Claim, findings: Findings) -> Result<WorkedRun, Failure> {
        let present = match claim {
            Claim::Taken(lease) => {
                Some(KeptLease::keep(self.env.db.clone(), lease, lease::LENGTH, &self.stop))
            }
            Claim::Held(_) => None,
        };
        let run_id = run.run_id;
        let completion = run.completed_count + run.failed_count;
        let findings = Arc::new(Mutex::new(findings.at(&run)));
        let label = self.label(&run);
        self.progress.report(&label, Update::Total(u64::try_from(run.total_targets).unwrap_or(0)));
        self.progress.report(&label, Update::Done(u64::try_from(completion).unwrap_or(0)));

        // SHAs are spread over the indexes of several projects at once.
        self.env.db.write(db::keep_more_pages).await?;
        let (jobs, given_up) = self.assign(run_id, present.is_some()).await?;
        worker::lock(&findings).problems.extend(given_up);
        let mut clients = Vec::new();
        for source in GitSource::list(&self.env.jobs).into_iter().filter(|source| jobs.contains(&source.job))
        {
            if let Some(until) = source.find_pause(&self.env.db, self.env.clock.now()).await? {
                let mut findings = worker::lock(&findings);
                findings.waiting_until = findings.waiting_until.max(Some(until));
                continue;
            }
            match source.client(&self.env) {
                Ok(client) => clients.push((source, client)),
                Err(failure) => worker::lock(&findings).refuse(&source.job, &failure.phrase()),
            }
        }
        loop {
            self.share(run_id, &label, &clients, &findings).await;
            if !(self.stays && self.wait_for_others(run_id, &clients, &findings).await?) {
                break;
            }
        }
        for (source, client) in &clients {
            source.keep_pause(&self.env.db, &**client).await?;
        }
        let mut findings = std::mem::take(&mut *worker::lock(&findings));
        if present.is_some() {
            self.step_over_refused(run_id, &mut findings).await?;
        }
        if let Some(present) = present
            && let Err(error) = present.release().await
        {
            warn!("Could not release the lease of the run; it will expire: {error}");
        }
        findings.problems.extend(self.notify_ended().await?);
        for (source, client) in &clients {
            let is_well = !findings.refused.contains_key(&source.job) && findings.waiting_until.is_none();
            if is_well && !self.stop.is_cancelled() {
                lines::fetch_missing(&self.env, source, &**client, &self.stop).await?;
            }
        }
        let summary = self.env.db.read(move |tx| store::find_summary(tx, &run_id)).await?;
        let summary = summary.ok_or_else(|| Failure::Failed(format!("run {run_id} has vanished").into()))?;
        let refused = findings.refused.iter().find(|(job, _)| self.is_ours(job)).map(|(_, why)| why.clone());
        let problems = findings.list_problems(&run_id);
        match (findings.broken, refused) {
            (Some(error), _) => Err(error.into()),
            (None, Some(why)) => Err(Failure::Credentials(why)),
            _ if findings.stopped && summary.run.status == RunStatus::Running => Err(Failure::Interrupted),
            _ => Ok(WorkedRun { run: summary, problems, waiting_until: findings.waiting_until }),
        }
    }

    /// Claims targets, several at a time for each client, until none is free.
    async fn share(
        &self,
        run_id: RunId,
        label: &JobName,
        clients: &[(Arc<GitSource>, Arc<dyn Host>)],
        findings: &Arc<Mutex<Findings>>,
    ) {
        let mut workers = JoinSet::new();
        for (source, client) in clients {
            let stop = self.stop.child_token();
            for _ in 0..source.keys.concurrency {
                let worker = Worker {
                    bulk: self.clone(),
                    run_id,
                    label: label.clone(),
                    source: Arc::clone(source),
                    client: Arc::clone(client),
                    stop: stop.clone(),
                    findings: Arc::clone(findings),
                };
                workers.spawn(async move { worker.work().await });
            }
        }
        while let Some(ended) = workers.join_next().await {
            if let Err(crash) = ended {
                let crash = db::Error::Statement(format!("a worker crashed: {crash}"));
                worker::lock(findings).broken = Some(crash);
            }
        }
    }

    async fn notify_ended(&self) -> db::Result<Vec<Phrase>> {
        match self.delivery {
            DeliveryMode::Queue => message::notify_ended(&self.env).await,
            DeliveryMode::NoDeliver => Ok(Vec::new()),
        }
    }

    /// Takes the lease that shows which process works on a run.
    async fn claim(&self, run_id: &RunId) -> Result<Claim, Failure> {
        let (name, owner) = (lease_name(run_id), self.owner.clone());
        Ok(self.env.db.claim(move |tx| lease::claim(tx, &name, &owner, lease::LENGTH)).await?)
    }

    /// The job for progress reports: the one that registered the run, or the first of ours.
    fn label(&self, run: &RunRow) -> JobName {
        let by_run = run.job_name.as_ref().and_then(|name| name.parse().ok());
        let own = || self.sources.first().map(|source| source.job.clone());
        by_run.or_else(own).unwrap_or_else(|| "bulk".parse().expect("`bulk` is a name"))
    }
}
