//! The tasks that share the targets of a run, and their shared findings.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::super::GitSource;
use super::super::collect::{Halt, TargetCollector};
use super::super::host::Host;
use super::super::store::projects;
use super::{Bulk, Claimed, RunProgress, RunRow, RunStatus, store};
use crate::commits::events::{self, BranchCode, RunCode};
use crate::db;
use crate::engine::Update;
use crate::id::{JobName, RunId};
use crate::ledger::event;
use crate::ledger::lease::{self, KeepAlive};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// The most failures that are listed at the end of a run.
const LISTED: usize = 20;

/// The shared findings of all workers.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) step: RunProgress,
    pub(super) problems: Vec<Phrase>,
    /// Failed targets by reason: the first of them and how many more.
    failed: Vec<(String, Phrase, usize)>,
    /// Jobs whose credentials are refused, with the reason.
    pub(super) refused: BTreeMap<JobName, Phrase>,
    pub(super) waiting_until: Option<Timestamp>,
    pub(super) stopped: bool,
    pub(super) broken: Option<db::Error>,
}

impl Findings {
    /// Findings from before the run.
    pub(super) fn of(problems: Vec<Phrase>) -> Self {
        Self { problems, ..Self::default() }
    }

    /// The same, with the current figures of `run`.
    pub(super) fn at(self, run: &RunRow) -> Self {
        let step = RunProgress {
            done: run.completed_count + run.failed_count,
            total: run.total_targets,
            failed: run.failed_count,
            ..RunProgress::default()
        };
        Self { step, ..self }
    }

    /// Records that the credentials of `job` are refused.
    pub(super) fn refuse(&mut self, job: &JobName, why: &Phrase) {
        self.refused.entry(job.clone()).or_insert_with(|| why.clone());
    }

    /// Records a failed target; the same reason of many is listed once.
    fn fail(&mut self, target: &str, why: Phrase) {
        match self.failed.iter_mut().find(|(_, known, _)| *known == why) {
            Some((.., more)) => *more += 1,
            None => self.failed.push((target.to_owned(), why, 0)),
        }
    }

    pub(super) fn list_problems(&mut self, run_id: &RunId) -> Vec<Phrase> {
        let mut problems = std::mem::take(&mut self.problems);
        problems.extend(self.failed.iter().take(LISTED).map(|(target, why, more)| match more {
            0 => phrase!("{target}: {why}", "{target}：{why}"),
            more => {
                phrase!("{target} and {more} more: {why}", "{target} ほか {more} 件：{why}")
            }
        }));
        let left: usize = self.failed.iter().skip(LISTED).map(|(.., more)| more + 1).sum();
        if left > 0 {
            problems.push(phrase!(
                "… and {left} more; see `tsuzuki bulk show {run}`",
                "… ほか {left} 件（`tsuzuki bulk show {run}` で確認できます）",
                run = run_id.to_string()
            ));
        }
        problems
    }
}

pub(super) fn lock(findings: &Mutex<Findings>) -> std::sync::MutexGuard<'_, Findings> {
    findings.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of the tasks that share the targets of a job.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) bulk: Bulk,
    pub(super) run_id: RunId,
    pub(super) label: JobName,
    pub(super) source: Arc<GitSource>,
    pub(super) client: Arc<dyn Host>,
    pub(super) stop: CancellationToken,
    pub(super) findings: Arc<Mutex<Findings>>,
}

impl Worker {
    pub(super) async fn work(&self) {
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

    /// Claims one target and completes or releases it; `false` when none is left.
    async fn one(&self) -> db::Result<bool> {
        let (run_id, source, owner) = (self.run_id, Arc::clone(&self.source), self.bulk.owner.clone());
        let db = &self.bulk.env.db;
        let claimed =
            db.claim(move |tx| store::claim(tx, &run_id, &source.host, source.job.as_str(), &owner)).await?;
        let Some(claimed) = claimed else { return Ok(false) };
        let project_id = claimed.project_id;
        let Some(project) = db.read(move |tx| projects::find(tx, project_id)).await? else {
            let gone = phrase!(
                "project {project_id} is not in the database",
                "プロジェクト {project_id} はデータベースにありません"
            );
            return self.complete_target(&claimed, Err(gone), "").await;
        };
        let path = project.path.clone();
        let target = format!("{path} {}", claimed.branch_name);
        self.report_step(|step| (step.target, step.reading) = (target.clone(), None));
        let reporter = self.clone();
        let on_page = move |reading| {
            reporter.report_step(|step| (step.target, step.reading) = (target.clone(), Some(reading)));
        };
        let held = claimed.clone();
        let alive =
            KeepAlive::start(db.clone(), lease::LENGTH, &self.stop, move |tx| store::renew(tx, &held, 0));
        let collector = TargetCollector {
            client: Arc::clone(&self.client),
            db: db.clone(),
            clock: self.bulk.env.clock.clone(),
            claimed: claimed.clone(),
            project,
            since: self.source.since(),
            job: self.source.job.clone(),
            stop: alive.stop().clone(),
            on_page: Box::new(on_page),
        };
        let ended = collector.collect().await;
        let lost = alive.stop().is_cancelled() && !self.stop.is_cancelled();
        drop(alive);
        match ended {
            Ok(()) => self.complete_target(&claimed, Ok(()), &path).await,
            Err(Halt::Failed(why)) => self.complete_target(&claimed, Err(why), &path).await,
            Err(Halt::Lost) => self.after_loss().await,
            Err(Halt::Stopped) if lost => self.after_loss().await,
            Err(halt) => {
                self.note(halt)?;
                db.write(move |tx| store::release(tx, &claimed)).await?;
                Ok(true)
            }
        }
    }

    /// Completes a target, successfully or with a reason; `false` when nothing is left to do.
    async fn complete_target(
        &self,
        claimed: &Claimed,
        outcome: Result<(), Phrase>,
        path: &str,
    ) -> db::Result<bool> {
        crate::fail::point("commits.collected");
        let branch = &claimed.branch_name;
        let (claimed, wanted) = (claimed.clone(), outcome.clone());
        let (subject, job) = (events::branch(path, branch), self.source.job.clone());
        let completed = self.bulk.env.db.claim(move |tx| {
            let wanted = wanted.as_ref().copied();
            let completed = store::complete_target(tx, &claimed, wanted)?;
            let Some(store::Completed { stored, is_last }) = completed else { return Ok(None) };
            let (now, run_id) = (tx.now(), claimed.run_id.to_string());
            if let Err(why) = wanted {
                let detail = json!({ "run": run_id, "why": why.to_stored(), "new_commits": stored });
                event::add(tx, Some(&job), &subject, BranchCode::CollectFailed, &detail, now)?;
            } else if stored > 0 {
                let new = phrase!("{stored new commit}", "新しいコミット {stored} 件");
                let detail = json!({ "run": run_id, "new_commits": stored, "why": new.to_stored() });
                event::add(tx, Some(&job), &subject, BranchCode::Collected, &detail, now)?;
            }
            if is_last {
                let run = events::run(&claimed.run_id);
                event::add(tx, Some(&job), &run, RunCode::Completed, &json!({}), now)?;
            }
            Ok(Some(stored))
        });
        let completed = completed.await?;
        crate::fail::point("commits.settled");
        let Some(stored) = completed else { return self.after_loss().await };
        let has_failed = outcome.is_err();
        if let Err(why) = outcome {
            lock(&self.findings).fail(&format!("{path} {branch}"), why);
        }
        self.bulk.progress.report(&self.label, Update::Done(1));
        self.report_step(|step| {
            step.done += 1;
            step.failed += i64::from(has_failed);
            step.new_commits += stored;
            (step.target, step.reading) = (format!("{path} {branch}"), None);
        });
        Ok(true)
    }

    /// Updates the progress and reports it to the callback.
    fn report_step(&self, change: impl FnOnce(&mut RunProgress)) {
        let step = {
            let mut findings = lock(&self.findings);
            change(&mut findings.step);
            findings.step.clone()
        };
        let RunProgress { failed, new_commits, target, reading, .. } = &step;
        let failures = if *failed > 0 { format!(" · {failed} failed") } else { String::new() };
        let reading = reading.as_ref().map(|reading| format!(" ({reading})")).unwrap_or_default();
        let now = format!("{target}{reading} · {new_commits} new commits{failures}");
        self.bulk.progress.report(&self.label, Update::Now(now));
        if let Some(watch) = &self.bulk.watch {
            watch(&step);
        }
    }

    /// Handles a lost target: if the run was cancelled, nothing is left to do.
    async fn after_loss(&self) -> db::Result<bool> {
        let run_id = self.run_id;
        let run = self.bulk.env.db.read(move |tx| store::find_run(tx, &run_id)).await?;
        let running = run.is_some_and(|run| run.status == RunStatus::Running);
        Ok(running)
    }

    /// Records what stops all workers of this job.
    fn note(&self, halt: Halt) -> db::Result<()> {
        let mut findings = lock(&self.findings);
        match halt {
            Halt::Stopped | Halt::Lost | Halt::Failed(_) => findings.stopped |= self.bulk.stop.is_cancelled(),
            Halt::Credentials(why) => findings.refuse(&self.source.job, &why),
            // Nothing is wrong, and the pause of the host says why.
            Halt::Later(until, _) => findings.waiting_until = findings.waiting_until.max(Some(until)),
            Halt::Db(error) => return Err(error),
        }
        self.stop.cancel();
        Ok(())
    }
}
