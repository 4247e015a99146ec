//! Bulk runs of commits: begun, shared, continued, cancelled and taken up again, over any number of hosts.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::collect::{Collector, Halt, LEASE};
use super::gitlab::Client;
use super::store::{branches, projects};
use super::{Source, message, targets};
use crate::db;
use crate::engine::run::decide::{self, Again, Begin, Reopen, Running, Sharing};
use crate::engine::run::{self, Claimed, RunRow, RunStatus, Settled, Summary, Target, Verdict};
use crate::engine::{Failure, Parts, Progress, Update};
use crate::id::{JobName, Owner, RunId};
use crate::ledger::lease::{self, Claim, Holder, KeptLease};
use crate::ledger::{event, presence};
use crate::time::Timestamp;

/// Failures that are listed one by one at the end of a run.
const LISTED: usize = 20;

/// Whoever works on bulk runs: one process, with the sources it can reach.
#[derive(Clone)]
pub struct Bulk {
    parts: Parts,
    sources: Vec<Arc<Source>>,
    owner: Owner,
    progress: Progress,
    stop: CancellationToken,
    watch: Option<Watch>,
}

/// Who is told of every step of a run.
pub type Watch = Arc<dyn Fn(&Step) + Send + Sync>;

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Step {
    /// Targets settled.
    pub done: i64,
    /// Targets in all.
    pub total: i64,
    /// Targets that failed.
    pub failed: i64,
    /// Commits stored by the targets that this process has settled.
    pub new_commits: i64,
    /// The target that was taken or settled last.
    pub target: String,
}

/// What came of wanting to collect.
#[derive(Debug)]
pub enum Ended {
    /// The targets we could get at are settled.
    Worked(Outcome),
    /// Another process works on the run.
    Busy(RunRow, Holder),
    /// There is nothing to collect; the lines say what could not be found.
    Nothing(Vec<String>),
}

/// What our part in a run came to.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Outcome {
    /// The run as it stands now.
    #[serde(flatten)]
    pub run: Summary,
    /// What went wrong, one line each.
    pub problems: Vec<String>,
    /// Set when GitLab asked for a longer wait; the run goes on then.
    pub waiting_until: Option<Timestamp>,
}

/// What workers find out for all of them.
#[derive(Default)]
struct Findings {
    step: Step,
    problems: Vec<String>,
    failed: usize,
    credentials: Option<String>,
    waiting_until: Option<Timestamp>,
    stopped: bool,
    overtaken: bool,
    broken: Option<db::Error>,
}

impl Bulk {
    /// A worker with the given sources; several jobs of one host share the first one's token.
    pub fn new(parts: Parts, sources: Vec<Arc<Source>>, progress: Progress, stop: CancellationToken) -> Self {
        Self { parts, sources, owner: Owner::this_process(), progress, stop, watch: None }
    }

    /// The same worker, whose steps are told to `watch`.
    pub fn watched(self, watch: Watch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// Goes on with the run that is running, or registers a new one and works on it.
    pub async fn start(&self, job: Option<&JobName>, sharing: Sharing) -> Result<Ended, Failure> {
        loop {
            match decide::begin(self.find_running().await?, sharing) {
                Begin::Busy(run, holder) => return Ok(Ended::Busy(run, holder)),
                Begin::Continue(run) => {
                    let claim = self.claim(&run.run_id).await?;
                    return self.work(run, claim, Vec::new()).await.map(Ended::Worked);
                }
                Begin::New => {}
            }
            // A process that died right after the last target left its end untold.
            if let Some(latest) = self.parts.db.read(run::find_latest).await? {
                message::tell(&self.parts, &self.sources, latest.run_id).await?;
            }
            let (targets, problems) = self.find_targets().await?;
            if targets.is_empty() {
                return Ok(Ended::Nothing(problems));
            }
            if let Some((run, claim)) = self.register(job, targets).await? {
                return self.work(run, claim, problems).await.map(Ended::Worked);
            }
            // Somebody was faster: look again at what is running.
        }
    }

    /// Takes up an earlier run: goes on with it, or opens a new one for its pending or failed targets.
    ///
    /// `None` in the answer: there is no such run, or nothing left to do in it.
    pub async fn again(
        &self,
        run_id: Option<RunId>,
        again: Again,
        sharing: Sharing,
    ) -> Result<Option<Ended>, Failure> {
        let running = self.find_running().await?;
        let wanted = match (run_id, &running) {
            (Some(run_id), _) => self.parts.db.read(move |tx| run::find_run(tx, &run_id)).await?,
            (None, Some(running)) if again == Again::Pending => Some(running.run.clone()),
            (None, _) => self.parts.db.read(run::find_latest).await?,
        };
        let Some(wanted) = wanted else { return Ok(None) };
        match decide::reopen(&wanted, again) {
            Reopen::Nothing => Ok(None),
            Reopen::StillRunning => Err(Failure::Failed(format!(
                "run {} is still running, so its failures cannot be retried yet; `tsuzuki bulk resume` ends it",
                wanted.run_id
            ))),
            Reopen::Continue => self.start(None, sharing).await.map(Some),
            Reopen::NewRun => {
                if let Some(Running { run, worker }) = running {
                    return match worker {
                        Some(holder) => Ok(Some(Ended::Busy(run, holder))),
                        None => Err(Failure::Failed(format!(
                            "run {} is running; `tsuzuki bulk resume` ends it first",
                            run.run_id
                        ))),
                    };
                }
                let run_id = wanted.run_id;
                let targets = self
                    .parts
                    .db
                    .read(move |tx| match again {
                        Again::Pending => run::list_pending(tx, &run_id),
                        Again::Failed => run::list_failed(tx, &run_id),
                    })
                    .await?;
                match self.register(None, targets).await? {
                    Some((run, claim)) => {
                        self.work(run, claim, Vec::new()).await.map(|outcome| Some(Ended::Worked(outcome)))
                    }
                    None => self.start(None, sharing).await.map(Some),
                }
            }
        }
    }

    /// The running run and its live worker of another process; leases of processes that are gone are given back.
    async fn find_running(&self) -> db::Result<Option<Running>> {
        let me = self.owner.clone();
        self.parts
            .db
            .write(move |tx| {
                let Some(run) = run::find_running(tx)? else { return Ok(None) };
                let name = run::lease_name(&run.run_id);
                let mut worker = lease::find_holder(tx, &name)?;
                if worker.as_ref().is_some_and(|holder| presence::is_gone(&holder.owner, &me)) {
                    worker = None;
                }
                let mut gone = BTreeSet::new();
                for target in run::list_leased(tx, &run.run_id)? {
                    let (Some(owner), Some(until)) = (target.lease_owner, target.lease_until) else {
                        continue;
                    };
                    if presence::is_gone(&owner, &me) {
                        gone.insert(owner);
                    } else if worker.is_none() && owner != me.as_str() {
                        worker = Some(Holder { owner, taken_at: until.minus(LEASE), expires_at: until });
                    }
                }
                for owner in gone {
                    run::release_owner(tx, &run.run_id, &owner)?;
                }
                Ok(Some(Running { run, worker }))
            })
            .await
    }

    async fn find_targets(&self) -> Result<(Vec<Target>, Vec<String>), Failure> {
        let mut wanted = BTreeSet::new();
        let mut problems = Vec::new();
        for source in &self.sources {
            let client = source.client(&self.parts)?;
            let now = self.parts.clock.now();
            let found = targets::find_targets(source, &client, &self.parts.db, now, &self.stop).await?;
            wanted.extend(found.targets);
            problems.extend(found.problems);
        }
        Ok((wanted.into_iter().collect(), problems))
    }

    /// Registers a run with all its targets and ourselves as its worker in one transaction: nobody sees it without
    /// one. `None` when another run was faster.
    async fn register(
        &self,
        job: Option<&JobName>,
        targets: Vec<Target>,
    ) -> Result<Option<(RunRow, Claim)>, Failure> {
        let (run_id, job, owner) = (RunId::random(), job.cloned(), self.owner.clone());
        let registered = self.parts.db.write(move |tx| {
            let now = tx.now();
            let registered = run::register(tx, run_id, job.as_ref().map(JobName::as_str), &targets)?;
            let Ok(run) = registered else { return Ok(None) };
            for target in &targets {
                branches::add(tx, target.project_id, &target.branch_name)?;
            }
            let detail = json!({ "targets": targets.len() });
            event::add(tx, job.as_ref(), &format!("run:{run_id}"), "run_started", &detail, now)?;
            let claim = lease::claim(tx, &run::lease_name(&run_id), &owner, LEASE)?;
            Ok(Some((run, claim)))
        });
        Ok(registered.await?)
    }

    /// Works on a run until nothing is left that we can get at.
    ///
    /// Other processes see by `claim` that it is being worked on, unless one of them shows it already.
    async fn work(&self, run: RunRow, claim: Claim, problems: Vec<String>) -> Result<Outcome, Failure> {
        let present = match claim {
            Claim::Taken(lease) => Some(KeptLease::keep(self.parts.db.clone(), lease, LEASE, &self.stop)),
            Claim::Held(_) => None,
        };
        let step = Step {
            done: run.completed_count + run.failed_count,
            total: run.total_targets,
            failed: run.failed_count,
            ..Step::default()
        };
        let findings = Arc::new(Mutex::new(Findings { step, problems, ..Findings::default() }));
        let label = self.label(&run);
        self.progress.tell(&label, Update::Total(u64::try_from(run.total_targets).unwrap_or(0)));
        let settled = run.completed_count + run.failed_count;
        self.progress.tell(&label, Update::Done(u64::try_from(settled).unwrap_or(0)));

        // SHAs are strewn all over the indexes of several projects at once.
        self.parts.db.write(db::keep_more_pages).await?;
        let mut workers = JoinSet::new();
        let mut hosts = BTreeSet::new();
        for source in &self.sources {
            if !hosts.insert(source.host.clone()) {
                continue;
            }
            let client = Arc::new(source.client(&self.parts)?);
            let stop = self.stop.child_token();
            for _ in 0..source.keys.concurrency {
                let worker = Worker {
                    bulk: self.clone(),
                    run_id: run.run_id,
                    label: label.clone(),
                    source: Arc::clone(source),
                    client: Arc::clone(&client),
                    stop: stop.clone(),
                    findings: Arc::clone(&findings),
                };
                workers.spawn(async move { worker.work().await });
            }
        }
        while let Some(ended) = workers.join_next().await {
            if let Err(crash) = ended {
                lock(&findings).broken = Some(db::Error::Statement(format!("a worker crashed: {crash}")));
            }
        }
        if let Some(present) = present
            && let Err(error) = present.release().await
        {
            warn!("Could not give the lease of the run back, it will expire: {error}");
        }
        let run_id = run.run_id;
        message::tell(&self.parts, &self.sources, run_id).await?;
        let summary = self.parts.db.read(move |tx| run::find_summary(tx, &run_id)).await?;
        let summary = summary.ok_or_else(|| Failure::Failed(format!("run {run_id} has vanished")))?;
        let mut findings = std::mem::take(&mut *lock(&findings));
        if findings.failed > LISTED {
            findings
                .problems
                .push(format!("… and {} more; see `tsuzuki bulk show {run_id}`", findings.failed - LISTED));
        }
        match findings {
            Findings { broken: Some(error), .. } => Err(error.into()),
            Findings { credentials: Some(why), .. } => Err(Failure::Credentials(why)),
            Findings { stopped: true, .. } if summary.run.status == RunStatus::Running => {
                Err(Failure::Interrupted)
            }
            Findings { problems, waiting_until, .. } => Ok(Outcome { run: summary, problems, waiting_until }),
        }
    }

    /// Takes the lease that shows who works on a run.
    async fn claim(&self, run_id: &RunId) -> Result<Claim, Failure> {
        let (name, owner) = (run::lease_name(run_id), self.owner.clone());
        Ok(self.parts.db.claim(move |tx| lease::claim(tx, &name, &owner, LEASE)).await?)
    }

    /// Whose progress is told: the job that registered the run, or the first of ours.
    fn label(&self, run: &RunRow) -> JobName {
        let by_run = run.job_name.as_ref().and_then(|name| name.parse().ok());
        let own = || self.sources.first().map(|source| source.job.clone());
        by_run.or_else(own).unwrap_or_else(|| "bulk".parse().expect("`bulk` is a name"))
    }
}

fn lock(findings: &Mutex<Findings>) -> std::sync::MutexGuard<'_, Findings> {
    findings.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of the tasks that share the targets of a host.
struct Worker {
    bulk: Bulk,
    run_id: RunId,
    label: JobName,
    source: Arc<Source>,
    client: Arc<Client>,
    stop: CancellationToken,
    findings: Arc<Mutex<Findings>>,
}

impl Worker {
    async fn work(&self) {
        loop {
            if self.stop.is_cancelled() {
                lock(&self.findings).stopped |= self.bulk.stop.is_cancelled();
                return;
            }
            match self.one().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    lock(&self.findings).broken = Some(error);
                    self.stop.cancel();
                    return;
                }
            }
        }
    }

    /// Takes one target and settles it or gives it back; `false` when none is left.
    async fn one(&self) -> db::Result<bool> {
        let (run_id, host, owner) = (self.run_id, self.source.host.clone(), self.bulk.owner.clone());
        let db = &self.bulk.parts.db;
        let claimed = db.claim(move |tx| run::claim(tx, &run_id, &host, &owner, LEASE)).await?;
        let Some(claimed) = claimed else { return Ok(false) };
        let project_id = claimed.project_id;
        let Some(project) = db.read(move |tx| projects::find(tx, project_id)).await? else {
            let gone = Verdict::Failed(format!("project {project_id} is not in the database"));
            return self.settle(&claimed, gone, "").await;
        };
        let path = project.path.clone();
        self.tell_step(|step| step.target = format!("{path} {}", claimed.branch_name));
        let kept = Kept::keep(self, claimed.clone());
        let collector = Collector {
            client: Arc::clone(&self.client),
            db: db.clone(),
            clock: self.bulk.parts.clock.clone(),
            claimed: claimed.clone(),
            project,
            since: self.source.since(),
            stop: kept.stop.clone(),
        };
        let ended = collector.collect().await;
        let lost = kept.stop.is_cancelled() && !self.stop.is_cancelled();
        drop(kept);
        match ended {
            Ok(verdict) => {
                crate::fail::point("commits.collected");
                self.settle(&claimed, verdict, &path).await
            }
            Err(Halt::Lost) => self.after_loss().await,
            Err(Halt::Stopped) if lost => self.after_loss().await,
            Err(halt) => {
                self.note(halt)?;
                db.write(move |tx| run::release(tx, &claimed)).await?;
                Ok(true)
            }
        }
    }

    async fn settle(&self, claimed: &Claimed, verdict: Verdict, path: &str) -> db::Result<bool> {
        let (claimed, wanted) = (claimed.clone(), verdict.clone());
        let subject = format!("branch:{path}/{}", claimed.branch_name);
        let (branch, job) = (claimed.branch_name.clone(), self.source.job.clone());
        let settled = self.bulk.parts.db.claim(move |tx| {
            let settled = run::settle(tx, &claimed, &wanted)?;
            if let Settled::Done { stored, completed_run } = settled {
                let now = tx.now();
                let run_id = claimed.run_id.to_string();
                match &wanted {
                    Verdict::Failed(why) => {
                        let detail = json!({ "run": run_id, "why": why, "new_commits": stored });
                        event::add(tx, Some(&job), &subject, "collect_failed", &detail, now)?;
                    }
                    Verdict::Success if stored > 0 => {
                        let detail = json!({ "run": run_id, "new_commits": stored });
                        event::add(tx, Some(&job), &subject, "collected", &detail, now)?;
                    }
                    Verdict::Success => {}
                }
                if completed_run {
                    event::add(tx, Some(&job), &format!("run:{run_id}"), "run_completed", &json!({}), now)?;
                }
            }
            Ok(settled)
        });
        let settled = settled.await?;
        crate::fail::point("commits.settled");
        match settled {
            Settled::Lost => self.after_loss().await,
            Settled::Done { stored, .. } => {
                let has_failed = matches!(verdict, Verdict::Failed(_));
                if let Verdict::Failed(why) = verdict {
                    let mut findings = lock(&self.findings);
                    findings.failed += 1;
                    if findings.failed <= LISTED {
                        findings.problems.push(format!("{path} {branch}: {why}"));
                    }
                }
                self.bulk.progress.tell(&self.label, Update::Done(1));
                self.tell_step(|step| {
                    step.done += 1;
                    step.failed += i64::from(has_failed);
                    step.new_commits += stored;
                    step.target = format!("{path} {branch}");
                });
                Ok(true)
            }
        }
    }

    /// Notes how far the run is and tells whoever watches.
    fn tell_step(&self, change: impl FnOnce(&mut Step)) {
        let step = {
            let mut findings = lock(&self.findings);
            change(&mut findings.step);
            findings.step.clone()
        };
        let Step { failed, new_commits, target, .. } = &step;
        let failures = if *failed > 0 { format!(" · {failed} failed") } else { String::new() };
        let now = format!("{new_commits} new commits{failures} · {target}");
        self.bulk.progress.tell(&self.label, Update::Now(now));
        if let Some(watch) = &self.bulk.watch {
            watch(&step);
        }
    }

    /// The target is no longer ours: if the run was cancelled there is nothing more to do in it.
    async fn after_loss(&self) -> db::Result<bool> {
        let run_id = self.run_id;
        let run = self.bulk.parts.db.read(move |tx| run::find_run(tx, &run_id)).await?;
        let running = run.is_some_and(|run| run.status == RunStatus::Running);
        lock(&self.findings).overtaken |= running;
        Ok(running)
    }

    /// Remembers what stops all workers of this host.
    fn note(&self, halt: Halt) -> db::Result<()> {
        let mut findings = lock(&self.findings);
        match halt {
            Halt::Stopped | Halt::Lost => findings.stopped |= self.bulk.stop.is_cancelled(),
            Halt::Credentials(why) => findings.credentials = Some(why),
            Halt::Later(until, why) => {
                findings.waiting_until = findings.waiting_until.max(Some(until));
                findings.problems.push(format!("{}: {why}", self.source.host));
            }
            Halt::Db(error) => return Err(error),
        }
        self.stop.cancel();
        Ok(())
    }
}

/// Renews the lease of a target as long as it lives; its `stop` is cancelled when the lease is lost.
struct Kept {
    stop: CancellationToken,
    done: CancellationToken,
}

impl Kept {
    fn keep(worker: &Worker, claimed: Claimed) -> Self {
        let kept = Self { stop: worker.stop.child_token(), done: CancellationToken::new() };
        let (stop, done, db) = (kept.stop.clone(), kept.done.clone(), worker.bulk.parts.db.clone());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = done.cancelled() => return,
                    () = tokio::time::sleep(LEASE / 3) => {}
                }
                let claimed = claimed.clone();
                // A database that cannot be reached for a while is no lost lease: the fence decides at the next write.
                if let Ok(false) = db.claim(move |tx| run::renew(tx, &claimed, 0, LEASE)).await {
                    stop.cancel();
                    return;
                }
            }
        });
        kept
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.done.cancel();
    }
}
