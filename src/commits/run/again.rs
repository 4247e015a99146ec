//! Resumes or retries earlier runs, and opens new ones: by a command, by a job or from a page.

use serde_json::json;

use super::decide::{self, Again, Begin, Running, Sharing};
use super::worker::Findings;
use super::{Bulk, Ended, RunRow, Target, store};
use crate::commits::events::{self, RunCode};
use crate::commits::store::branches;
use crate::db::{self, Tx};
use crate::engine::Failure;
use crate::id::{JobName, Owner, RunId};
use crate::ledger::event;
use crate::ledger::lease::Holder;
use crate::phrase;

impl Bulk {
    /// Continues an earlier run, or opens a new one for its pending or failed targets.
    ///
    /// `None`: there is no such run, or nothing left to do in it.
    pub async fn again(
        &self,
        run_id: Option<RunId>,
        again: Again,
        sharing: Sharing,
    ) -> Result<Option<Ended>, Failure> {
        let running = self.free_running().await?;
        let wanted = match (run_id, &running) {
            (Some(run_id), _) => self.env.db.read(move |tx| store::find_run(tx, &run_id)).await?,
            (None, Some(running)) if again == Again::Pending => Some(running.run.clone()),
            (None, _) => self.env.db.read(store::find_latest).await?,
        };
        let Some(wanted) = wanted else { return Ok(None) };
        match decide::reopen(&wanted, again, running) {
            Begin::Nothing => Ok(None),
            Begin::Busy(run, worker) => Ok(Some(Ended::Busy(run, worker))),
            Begin::Blocked(run) => Err(Failure::Failed(phrase!(
                "run {run} was interrupted and comes first: `tsuzuki bulk resume` ends it",
                "中断した収集 {run} が先です。`tsuzuki bulk resume` で終わらせてください",
                run = run.run_id.to_string()
            ))),
            Begin::Continue(_) => self.start(None, sharing).await.map(Some),
            Begin::New => {
                let list = move |tx: &mut Tx<'_>| store::list_targets(tx, &wanted.run_id, again.status());
                let targets = self.env.db.read(list).await?;
                match self.register(None, targets).await? {
                    Some((run, claim)) => {
                        let outcome = self.work(run, claim, Findings::default()).await?;
                        Ok(Some(Ended::Worked(outcome)))
                    }
                    None => self.start(None, sharing).await.map(Some),
                }
            }
        }
    }

    /// Releases the targets of dead processes in the running run; returns it with its live worker in another process.
    pub(super) async fn free_running(&self) -> db::Result<Option<Running>> {
        let me = self.owner.clone();
        self.env.db.write(move |tx| find_running_worked(tx, Some(&me))).await
    }
}

/// The running run without dead processes, with a live worker other than `me`.
pub(in crate::commits) fn find_running_worked(
    tx: &mut Tx<'_>,
    me: Option<&Owner>,
) -> db::Result<Option<Running>> {
    let Some(run) = store::find_running(tx)? else { return Ok(None) };
    store::release_gone(tx, &run.run_id)?;
    let is_me = |worker: &Holder| me.is_some_and(|me| worker.owner == me.as_str());
    let worker = store::list_workers(tx, &run)?.into_iter().find(|worker| !is_me(worker));
    Ok(Some(Running { run, worker }))
}

/// Opens a run with all its targets; `None` when another is running.
pub(in crate::commits) fn open(
    tx: &mut Tx<'_>,
    run_id: RunId,
    job: Option<&JobName>,
    targets: &[Target],
) -> db::Result<Option<RunRow>> {
    let Ok(run) = store::register(tx, run_id, job.map(JobName::as_str), targets)? else { return Ok(None) };
    for target in targets {
        branches::add(tx, target.project_id, &target.branch_name)?;
    }
    let (detail, now) = (json!({ "targets": targets.len() }), tx.now());
    event::add(tx, job, &events::run(&run_id), RunCode::Started, &detail, now)?;
    Ok(Some(run))
}
