//! Queries of the seed's `bulk_collection_runs` and `bulk_collection_results`.

use super::super::lease_name;
use super::super::model::{ListedRun, RunRow, RunStatus, Summary, Target, TargetRow, TargetStatus};
use crate::db::{self, FromRow, Row, Tx};
use crate::id::{JobName, RunId};
use crate::ledger::lease::{self, Holder};
use crate::ledger::presence;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql};

macro_rules! run_columns {
    () => {
        "SELECT run_id, started_at_utc, completed_at_utc, status, total_targets, completed_count, failed_count,
           success_count, job_name FROM bulk_collection_runs "
    };
}

macro_rules! target_columns {
    () => {
        "SELECT project_id, branch_name, status, new_commits_count, error_message, processed_at_utc,
           stored_count, lease_owner, lease_until, is_known_failure FROM bulk_collection_results "
    };
}

/// The running run; there is at most one.
pub fn find_running(tx: &mut Tx<'_>) -> db::Result<Option<RunRow>> {
    tx.find(sql!(concat!(run_columns!(), "WHERE status = 'running'")), params![], FromRow::from_row)
}

pub fn find_run(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Option<RunRow>> {
    tx.find(sql!(concat!(run_columns!(), "WHERE run_id = ?1")), params![run_id], FromRow::from_row)
}

pub fn find_latest(tx: &mut Tx<'_>) -> db::Result<Option<RunRow>> {
    Ok(list_runs(tx, 1)?.pop())
}

/// The newest runs, newest first.
pub fn list_runs(tx: &mut Tx<'_>, limit: usize) -> db::Result<Vec<RunRow>> {
    tx.list(
        sql!(concat!(run_columns!(), "ORDER BY started_at_utc DESC, run_id DESC LIMIT ?1")),
        params![limit],
        FromRow::from_row,
    )
}

/// The newest runs before a position, newest first.
pub fn list_runs_before(
    tx: &mut Tx<'_>,
    before: Option<(Timestamp, RunId)>,
    limit: usize,
) -> db::Result<Vec<RunRow>> {
    let Some((started_at, run_id)) = before else { return list_runs(tx, limit) };
    tx.list(
        sql!(concat!(
            run_columns!(),
            "WHERE (started_at_utc, run_id) < (?1, ?2) ORDER BY started_at_utc DESC, run_id DESC LIMIT ?3"
        )),
        params![started_at, run_id, limit],
        FromRow::from_row,
    )
}

/// The seed's summary of a run.
pub fn find_summary(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Option<Summary>> {
    let Some(run) = find_run(tx, run_id)? else { return Ok(None) };
    let new_commits_count = tx.count(
        sql!("SELECT CAST(SUM(stored_count) AS BIGINT) FROM bulk_collection_results WHERE run_id = ?1"),
        params![run_id],
    )?;
    let workers = list_workers(tx, &run)?;
    let (state, pending_count) = (run.state(&workers), count_pending(tx, run_id)?);
    Ok(Some(Summary { run, state, workers, pending_count, new_commits_count }))
}

/// The newest runs with their states, newest first.
pub fn list_states(tx: &mut Tx<'_>, limit: usize) -> db::Result<Vec<ListedRun>> {
    let mut listed = Vec::new();
    for run in list_runs(tx, limit)? {
        let state = run.state(&list_workers(tx, &run)?);
        listed.push(ListedRun { run, state });
    }
    Ok(listed)
}

/// The processes that work on a run now, the leading one first.
///
/// Every command uses this query, so that none shows a dead process.
pub fn list_workers(tx: &mut Tx<'_>, run: &RunRow) -> db::Result<Vec<Holder>> {
    if run.status != RunStatus::Running {
        return Ok(Vec::new());
    }
    let mut workers: Vec<Holder> = lease::find_holder(tx, &lease_name(&run.run_id))?.into_iter().collect();
    for target in list_leased(tx, &run.run_id)? {
        if let (Some(owner), Some(expires_at)) = (target.lease_owner, target.lease_until)
            && workers.iter().all(|worker| worker.owner != owner)
        {
            workers.push(Holder { owner, taken_at: expires_at.minus(lease::LENGTH), expires_at });
        }
    }
    Ok(workers)
}

/// How many targets of a run have not ended, counted from its rows.
pub fn count_pending(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<i64> {
    tx.count(
        sql!("SELECT COUNT(*) FROM bulk_collection_results WHERE run_id = ?1 AND status = 'pending'"),
        params![run_id],
    )
}

/// How many targets of `job` on `host` are pending in a running run, and how many of them are free.
pub fn count_left(tx: &mut Tx<'_>, run_id: &RunId, host: &str, job: &str) -> db::Result<(i64, i64)> {
    let now = tx.now();
    let found = tx.find(
        sql!(
            "SELECT COUNT(*), COUNT(CASE WHEN lease_until IS NULL OR lease_until <= ?4 OR lease_until > ?5 THEN 1 END)
             FROM bulk_collection_results
             WHERE run_id = ?1 AND host = ?2 AND job_name = ?3 AND status = 'pending'
               AND EXISTS (SELECT 1 FROM bulk_collection_runs b WHERE b.run_id = ?1 AND b.status = 'running')"
        ),
        params![run_id, host, job, now, lease::latest_end(now)],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(found.unwrap_or_default())
}

fn read_target(row: &Row<'_>) -> db::Result<TargetRow> {
    Ok(TargetRow {
        project_id: row.get(0)?,
        branch_name: row.get(1)?,
        status: row.get(2)?,
        new_commits_count: row.get(3)?,
        error_message: row.get::<Option<String>>(4)?.as_deref().map(Phrase::from_stored),
        processed_at_utc: row.get(5)?,
        stored_count: row.get(6)?,
        lease_owner: row.get::<Option<String>>(7)?.filter(|owner| !presence::is_gone(owner)),
        lease_until: row.get(8)?,
        is_known_failure: row.get(9)?,
    })
}

/// The targets of a run, failed ones first.
pub fn list_results(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Vec<TargetRow>> {
    tx.list(
        sql!(
            concat!(target_columns!(), "WHERE run_id = ?1
             ORDER BY CASE status WHEN 'failed' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END, project_id, branch_name")
        ),
        params![run_id],
        read_target,
    )
}

/// Up to `limit` targets of a run that are in `status`.
pub fn list_some_results(
    tx: &mut Tx<'_>,
    run_id: &RunId,
    status: TargetStatus,
    limit: usize,
) -> db::Result<Vec<TargetRow>> {
    tx.list(
        sql!(concat!(
            target_columns!(),
            "WHERE run_id = ?1 AND status = ?2 ORDER BY project_id, branch_name LIMIT ?3"
        )),
        params![run_id, status.word(), limit],
        read_target,
    )
}

/// The targets that are being worked on now; those of a dead process are free.
pub fn list_leased(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Vec<TargetRow>> {
    let now = tx.now();
    let mut leased = tx.list(
        sql!(concat!(
            target_columns!(),
            "WHERE run_id = ?1 AND status = 'pending' AND lease_owner IS NOT NULL
               AND lease_until > ?2 AND lease_until <= ?3"
        )),
        params![run_id, now, lease::latest_end(now)],
        read_target,
    )?;
    leased.retain(|target| target.lease_owner.is_some());
    Ok(leased)
}

/// The targets of a run that are in `status`.
pub fn list_targets(tx: &mut Tx<'_>, run_id: &RunId, status: TargetStatus) -> db::Result<Vec<Target>> {
    tx.list(
        sql!(
            "SELECT project_id, branch_name, host, job_name FROM bulk_collection_results
             WHERE run_id = ?1 AND status = ?2 ORDER BY project_id, branch_name"
        ),
        params![run_id, status.word()],
        FromRow::from_row,
    )
}

/// The jobs that a run collects for.
pub fn list_jobs(tx: &mut Tx<'_>, run: &RunRow) -> db::Result<Vec<String>> {
    if let Some(job) = &run.job_name {
        return Ok(vec![job.clone()]);
    }
    tx.list(
        sql!(
            "SELECT DISTINCT job_name FROM bulk_collection_results
             WHERE run_id = ?1 AND job_name IS NOT NULL ORDER BY job_name"
        ),
        params![run.run_id],
        |row| row.get(0),
    )
}

/// The figures of one job in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct JobFigures {
    /// Targets that ended well.
    pub done: i64,
    pub failed: i64,
    pub total: i64,
    pub new_commits: i64,
}

/// What a run came to for one of its jobs.
pub fn count_of_job(tx: &mut Tx<'_>, run_id: &RunId, job: &JobName) -> db::Result<JobFigures> {
    let figures = tx.find(
        sql!(
            "SELECT COUNT(CASE WHEN status = 'success' THEN 1 END) AS done,
               COUNT(CASE WHEN status = 'failed' THEN 1 END) AS failed, COUNT(*) AS total,
               CAST(COALESCE(SUM(stored_count), 0) AS BIGINT) AS new_commits
             FROM bulk_collection_results WHERE run_id = ?1 AND job_name = ?2"
        ),
        params![run_id, job],
        FromRow::from_row,
    )?;
    Ok(figures.unwrap_or_default())
}

/// The hosts and jobs that still have something to do in a run.
pub fn list_pending_jobs(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Vec<(String, Option<String>)>> {
    tx.list(
        sql!(
            "SELECT DISTINCT host, job_name FROM bulk_collection_results
             WHERE run_id = ?1 AND status = 'pending' ORDER BY host, job_name"
        ),
        params![run_id],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// The completed runs that are not announced, oldest first, each with its job.
pub fn list_unannounced(tx: &mut Tx<'_>) -> db::Result<Vec<(RunId, Option<String>)>> {
    tx.list(
        sql!(
            "SELECT run_id, job_name FROM bulk_collection_runs
             WHERE told_at IS NULL AND status = 'completed' ORDER BY started_at_utc, run_id"
        ),
        params![],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// When the last run before this one was completed.
pub fn find_last_completed(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Option<Timestamp>> {
    let last = tx.find(
        sql!(
            "SELECT completed_at_utc FROM bulk_collection_runs
             WHERE status = 'completed'
               AND started_at_utc < (SELECT started_at_utc FROM bulk_collection_runs WHERE run_id = ?1)
             ORDER BY started_at_utc DESC LIMIT 1"
        ),
        params![run_id],
        |row| row.get::<Option<Timestamp>>(0),
    )?;
    Ok(last.flatten())
}

/// The processes that work on the running run, for display.
pub fn list_busy(tx: &mut Tx<'_>) -> db::Result<Vec<String>> {
    let Some(running) = find_running(tx)? else { return Ok(Vec::new()) };
    let workers = super::list_workers(tx, &running)?;
    Ok(workers
        .iter()
        .map(|worker| {
            format!("run {} ({})", running.run_id, crate::ledger::presence::shown_owner(&worker.owner))
        })
        .collect())
}
