//! Assigns the targets of a run to jobs, and gives up those that no job can collect.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::super::host::Host;
use super::super::{GitSource, POLL_EVERY, list_host_jobs};
use super::worker::{Findings, lock};
use super::{Bulk, decide, store};
use crate::commits::events::{self, RunCode};
use crate::db;
use crate::id::{JobName, RunId};
use crate::ledger::event;
use crate::phrase;
use crate::phrase::Phrase;

impl Bulk {
    /// The jobs with targets in a run. Only the process that `leads` it reassigns targets of jobs that have left the
    /// config, and gives up those that no job can collect, which would block every later run.
    pub(super) async fn assign(
        &self,
        run_id: RunId,
        leads: bool,
    ) -> db::Result<(BTreeSet<JobName>, Vec<Phrase>)> {
        let jobs_on_host = list_host_jobs(&self.env.jobs);
        let started: Vec<JobName> = self.sources.iter().map(|source| source.job.clone()).collect();
        let label = self.sources.first().map(|source| source.job.clone());
        let shared = self.env.db.write(move |tx| {
            let (mut jobs, mut given_up) = (BTreeSet::new(), Vec::new());
            let started: Vec<&JobName> = started.iter().collect();
            for (host, job) in store::list_pending_jobs(tx, &run_id)? {
                match decide::find_collector(&jobs_on_host, &started, &host, job.as_deref()) {
                    Ok(fallback_job) => {
                        if leads && job.as_deref() != Some(fallback_job.as_str()) {
                            store::reassign(tx, &run_id, &host, job.as_deref(), fallback_job.as_str())?;
                        }
                        jobs.insert(fallback_job.clone());
                    }
                    Err(why) if leads => {
                        given_up.extend(give_up(tx, run_id, &host, job.as_deref(), &why, label.as_ref())?);
                    }
                    Err(_) => {}
                }
            }
            Ok((jobs, given_up))
        });
        shared.await
    }

    /// Waits while other processes work on our targets; `true` as soon as one is free, because its worker was lost.
    pub(super) async fn wait_for_others(
        &self,
        run_id: RunId,
        clients: &[(Arc<GitSource>, Arc<dyn Host>)],
        findings: &Mutex<Findings>,
    ) -> db::Result<bool> {
        loop {
            let places: Vec<(String, JobName)> = {
                let findings = lock(findings);
                if self.stop.is_cancelled() || findings.broken.is_some() || findings.waiting_until.is_some() {
                    return Ok(false);
                }
                let is_well = |source: &&Arc<GitSource>| !findings.refused.contains_key(&source.job);
                let sources = clients.iter().map(|(source, _)| source).filter(is_well);
                sources.map(|source| (source.host.clone(), source.job.clone())).collect()
            };
            let left = self.env.db.write(move |tx| {
                store::release_gone(tx, &run_id)?;
                let (mut pending, mut free) = (0, 0);
                for (host, job) in &places {
                    let left = store::count_left(tx, &run_id, host, job.as_str())?;
                    (pending, free) = (pending + left.0, free + left.1);
                }
                Ok((pending, free))
            });
            match left.await? {
                (0, _) => return Ok(false),
                (_, 0) => {}
                _ => return Ok(true),
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(POLL_EVERY) => {}
            }
        }
    }

    /// Gives up the pending targets of jobs whose token is refused, if they block another of our jobs.
    ///
    /// A single job leaves them pending: with a valid token the run continues.
    pub(super) async fn step_over_refused(&self, run_id: RunId, findings: &mut Findings) -> db::Result<()> {
        if self.sources.iter().all(|source| findings.refused.contains_key(&source.job)) {
            return Ok(());
        }
        let refused = findings.refused.clone();
        let given_up = self.env.db.write(move |tx| {
            let mut given_up = Vec::new();
            for (host, job) in store::list_pending_jobs(tx, &run_id)? {
                let Some((job, why)) = refused.iter().find(|(name, _)| Some(name.as_str()) == job.as_deref())
                else {
                    continue;
                };
                given_up.extend(give_up(tx, run_id, &host, Some(job.as_str()), why, Some(job))?);
            }
            Ok(given_up)
        });
        findings.problems.extend(given_up.await?);
        Ok(())
    }
}

/// Marks targets that no job can collect as failed, and reports it if there were any.
fn give_up(
    tx: &mut db::Tx<'_>,
    run_id: RunId,
    host: &str,
    job: Option<&str>,
    why: &Phrase,
    owner: Option<&JobName>,
) -> db::Result<Option<Phrase>> {
    let (failed, completed_run) = store::give_up(tx, &run_id, host, job, why)?;
    if failed == 0 {
        return Ok(None);
    }
    let (subject, now) = (events::run(&run_id), tx.now());
    let detail = json!({ "host": host, "job": job, "targets": failed, "why": why.to_stored() });
    event::add(tx, owner, &subject, RunCode::GivenUp, &detail, now)?;
    if completed_run {
        event::add(tx, owner, &subject, RunCode::Completed, &json!({}), now)?;
    }
    let (run, whose) = (run_id.to_string(), job.unwrap_or("?"));
    Ok(Some(phrase!(
        "run {run}: {count branch} of `{whose}` on {host} given up as failed: {why}; when that is mended, `tsuzuki bulk retry-failed {run}` tries again",
        "収集 {run}：{host} の {count} ブランチ（`{whose}`）を断念しました：{why}。解消後に `tsuzuki bulk retry-failed {run}` で再試行できます",
        count = failed
    )))
}
