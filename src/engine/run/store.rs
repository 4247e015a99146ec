//! The seed's `bulk_collection_runs` and `bulk_collection_results`, with a lease in every pending row.

use std::time::Duration;

use crate::db::{self, Row, ToValue, Tx};
use crate::id::{Owner, RunId};
use crate::time::Timestamp;
use crate::{params, sql};

/// A state of a run; the words are the seed's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Targets are pending.
    Running,
    /// Every target is settled.
    Completed,
    /// Somebody ended it early.
    Cancelled,
}

/// A state of a target; the words are the seed's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetStatus {
    /// Being worked on, or not yet.
    Pending,
    /// It ended well.
    Success,
    /// It did not.
    Failed,
}

/// A run, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RunRow {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    pub run_id: RunId,
    /// When it was registered.
    pub started_at_utc: Timestamp,
    /// When it was completed or cancelled.
    pub completed_at_utc: Option<Timestamp>,
    /// Its state.
    pub status: RunStatus,
    /// How many targets it has.
    pub total_targets: i64,
    /// How many of them ended well.
    pub completed_count: i64,
    /// How many of them failed.
    pub failed_count: i64,
    /// The same as `completed_count`.
    pub success_count: i64,
    /// The job that registered it; `None` when it covers all jobs.
    pub job_name: Option<String>,
}

fn as_text<S: serde::Serializer>(run_id: &RunId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(run_id)
}

impl RunRow {
    /// How many targets are not settled.
    pub fn pending_count(&self) -> i64 {
        self.total_targets - self.completed_count - self.failed_count
    }
}

/// The seed's summary of a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// The run.
    #[serde(flatten)]
    pub run: RunRow,
    /// Targets not settled.
    pub pending_count: i64,
    /// Commits stored by the run so far.
    pub new_commits_count: i64,
}

/// What a run works on: one branch of one project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The project.
    pub project_id: i64,
    /// The branch.
    pub branch_name: String,
    /// The host that has it; a worker takes only targets of hosts that it can reach.
    pub host: String,
}

/// A target of a run, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TargetRow {
    /// The project.
    pub project_id: i64,
    /// The branch.
    pub branch_name: String,
    /// Its state.
    pub status: TargetStatus,
    /// How many commits were new; only when it ended well.
    pub new_commits_count: Option<i64>,
    /// Why it failed.
    pub error_message: Option<String>,
    /// When it was settled.
    pub processed_at_utc: Option<Timestamp>,
    /// Commits stored so far, whatever the state.
    pub stored_count: i64,
    /// Who works on it, if the lease has not been given back.
    pub lease_owner: Option<String>,
    /// Until when.
    pub lease_until: Option<Timestamp>,
}

/// A target that is ours to work on until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The run it belongs to.
    pub run_id: RunId,
    /// The project.
    pub project_id: i64,
    /// The branch.
    pub branch_name: String,
    owner: Owner,
    fence: i64,
}

/// How a target ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Well.
    Success,
    /// Not, for this reason.
    Failed(String),
}

/// What settling a target did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It is settled; `stored` commits were new, and the run may have ended with it.
    Done {
        /// Commits that the run stored for this target.
        stored: i64,
        /// Whether it was the last target of the run.
        completed_run: bool,
    },
    /// The lease was lost: nothing was written.
    Lost,
}

fn read_run(row: &Row<'_>) -> db::Result<RunRow> {
    let status = match row.text(3)? {
        "running" => RunStatus::Running,
        "completed" => RunStatus::Completed,
        "cancelled" => RunStatus::Cancelled,
        other => {
            return Err(db::Error::Unexpected { column: 3, wanted: "a run status", found: other.to_owned() });
        }
    };
    Ok(RunRow {
        run_id: row.get(0)?,
        started_at_utc: row.get(1)?,
        completed_at_utc: row.get(2)?,
        status,
        total_targets: row.get(4)?,
        completed_count: row.get(5)?,
        failed_count: row.get(6)?,
        success_count: row.get(7)?,
        job_name: row.get(8)?,
    })
}

/// Registers a run with all its targets; the running one instead, if there is one.
///
/// The statement that adds the run does nothing when another is running, so of two that begin at once one loses
/// and learns which run won.
pub fn register(
    tx: &mut Tx<'_>,
    run_id: RunId,
    job_name: Option<&str>,
    targets: &[Target],
) -> db::Result<Result<RunRow, RunRow>> {
    if let Some(running) = find_running(tx)? {
        return Ok(Err(running));
    }
    let now = tx.now();
    let added = tx.execute(
        sql!(
            "INSERT INTO bulk_collection_runs (run_id, started_at_utc, status, total_targets, job_name)
             VALUES (?1, ?2, 'running', ?3, ?4) ON CONFLICT DO NOTHING"
        ),
        params![run_id, now, targets.len(), job_name],
    )?;
    if added == 0 {
        return Err(db::Error::Collided("another run was registered at the same moment".into()));
    }
    let id = run_id.to_string();
    let values: Vec<_> = targets
        .iter()
        .flat_map(|target| {
            [id.to_value(), target.project_id.to_value(), target.branch_name.to_value(), target.host.to_value(), "pending".to_value()]
        })
        .collect();
    tx.execute_rows(
        &[
            (50, sql!("INSERT INTO bulk_collection_results (run_id, project_id, branch_name, host, status) {values 50x5}")),
            (1, sql!("INSERT INTO bulk_collection_results (run_id, project_id, branch_name, host, status) {values 1x5}")),
        ],
        5,
        &values,
    )?;
    match find_run(tx, &run_id)? {
        Some(run) => Ok(Ok(run)),
        None => Err(db::Error::Statement("a run that was just added is not there".into())),
    }
}

/// The run that is running; there is at most one.
pub fn find_running(tx: &mut Tx<'_>) -> db::Result<Option<RunRow>> {
    tx.find(
        sql!(
            "SELECT run_id, started_at_utc, completed_at_utc, status, total_targets, completed_count, failed_count,
               success_count, job_name
             FROM bulk_collection_runs WHERE status = 'running'"
        ),
        params![],
        read_run,
    )
}

/// The run of that id.
pub fn find_run(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Option<RunRow>> {
    tx.find(
        sql!(
            "SELECT run_id, started_at_utc, completed_at_utc, status, total_targets, completed_count, failed_count,
               success_count, job_name
             FROM bulk_collection_runs WHERE run_id = ?1"
        ),
        params![run_id],
        read_run,
    )
}

/// The run that was registered last.
pub fn find_latest(tx: &mut Tx<'_>) -> db::Result<Option<RunRow>> {
    Ok(list_runs(tx, 1)?.pop())
}

/// The newest runs, newest first.
pub fn list_runs(tx: &mut Tx<'_>, limit: usize) -> db::Result<Vec<RunRow>> {
    tx.list(
        sql!(
            "SELECT run_id, started_at_utc, completed_at_utc, status, total_targets, completed_count, failed_count,
               success_count, job_name
             FROM bulk_collection_runs ORDER BY started_at_utc DESC, run_id DESC LIMIT ?1"
        ),
        params![limit],
        read_run,
    )
}

/// The seed's summary of a run.
pub fn find_summary(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Option<Summary>> {
    let Some(run) = find_run(tx, run_id)? else { return Ok(None) };
    let new_commits_count = tx.count(
        sql!("SELECT CAST(SUM(stored_count) AS BIGINT) FROM bulk_collection_results WHERE run_id = ?1"),
        params![run_id],
    )?;
    Ok(Some(Summary { pending_count: count_pending(tx, run_id)?, new_commits_count, run }))
}

/// How many targets of a run are not settled, counted from its rows.
pub fn count_pending(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<i64> {
    tx.count(
        sql!("SELECT COUNT(*) FROM bulk_collection_results WHERE run_id = ?1 AND status = 'pending'"),
        params![run_id],
    )
}

fn read_target(row: &Row<'_>) -> db::Result<TargetRow> {
    let status = match row.text(2)? {
        "success" => TargetStatus::Success,
        "failed" => TargetStatus::Failed,
        _ => TargetStatus::Pending,
    };
    Ok(TargetRow {
        project_id: row.get(0)?,
        branch_name: row.get(1)?,
        status,
        new_commits_count: row.get(3)?,
        error_message: row.get(4)?,
        processed_at_utc: row.get(5)?,
        stored_count: row.get(6)?,
        lease_owner: row.get(7)?,
        lease_until: row.get(8)?,
    })
}

/// The targets of a run, failed ones first.
pub fn list_results(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Vec<TargetRow>> {
    tx.list(
        sql!(
            "SELECT project_id, branch_name, status, new_commits_count, error_message, processed_at_utc,
               stored_count, lease_owner, lease_until
             FROM bulk_collection_results WHERE run_id = ?1
             ORDER BY CASE status WHEN 'failed' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END, project_id, branch_name"
        ),
        params![run_id],
        read_target,
    )
}

/// The targets that are being worked on at this moment.
pub fn list_leased(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Vec<TargetRow>> {
    let now = tx.now();
    tx.list(
        sql!(
            "SELECT project_id, branch_name, status, new_commits_count, error_message, processed_at_utc,
               stored_count, lease_owner, lease_until
             FROM bulk_collection_results
             WHERE run_id = ?1 AND status = 'pending' AND lease_owner IS NOT NULL AND lease_until > ?2"
        ),
        params![run_id, now],
        read_target,
    )
}

/// The failed targets of a run.
pub fn list_failed(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Vec<Target>> {
    tx.list(
        sql!(
            "SELECT project_id, branch_name, host FROM bulk_collection_results
             WHERE run_id = ?1 AND status = 'failed' ORDER BY project_id, branch_name"
        ),
        params![run_id],
        |row| Ok(Target { project_id: row.get(0)?, branch_name: row.get(1)?, host: row.get(2)? }),
    )
}

/// The targets of a run that were never settled.
pub fn list_pending(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Vec<Target>> {
    tx.list(
        sql!(
            "SELECT project_id, branch_name, host FROM bulk_collection_results
             WHERE run_id = ?1 AND status = 'pending' ORDER BY project_id, branch_name"
        ),
        params![run_id],
        |row| Ok(Target { project_id: row.get(0)?, branch_name: row.get(1)?, host: row.get(2)? }),
    )
}

/// Takes a pending target of `host` that nobody works on.
///
/// The outer `WHERE` repeats the inner one on purpose: on PostgreSQL two workers can pick the same row in the
/// subquery, and only the repeated test stops the second.
pub fn claim(
    tx: &mut Tx<'_>,
    run_id: &RunId,
    host: &str,
    owner: &Owner,
    length: Duration,
) -> db::Result<Option<Claimed>> {
    let now = tx.now();
    let claimed = tx.find(
        sql!(
            "UPDATE bulk_collection_results
             SET lease_owner = ?3, lease_fence = lease_fence + 1, lease_until = ?5
             WHERE (run_id, project_id, branch_name) IN (
                 SELECT r.run_id, r.project_id, r.branch_name FROM bulk_collection_results r
                 WHERE r.run_id = ?1 AND r.status = 'pending' AND r.host = ?2
                   AND (r.lease_until IS NULL OR r.lease_until <= ?4)
                 LIMIT 1 {skip_locked})
               AND status = 'pending' AND (lease_until IS NULL OR lease_until <= ?4)
               AND EXISTS (SELECT 1 FROM bulk_collection_runs b WHERE b.run_id = ?1 AND b.status = 'running')
             RETURNING project_id, branch_name, lease_fence"
        ),
        params![run_id, host, owner, now, now.plus(length)],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok(claimed.map(|(project_id, branch_name, fence)| Claimed {
        run_id: *run_id,
        project_id,
        branch_name,
        owner: owner.clone(),
        fence,
    }))
}

/// Moves the end of the lease, counts `stored` new commits, and answers whether the target is still ours.
///
/// The row stays locked until COMMIT, so a transaction that begins with this is fenced as a whole.
pub fn renew(tx: &mut Tx<'_>, claimed: &Claimed, stored: u64, length: Duration) -> db::Result<bool> {
    let now = tx.now();
    let renewed = tx.execute(
        sql!(
            "UPDATE bulk_collection_results SET lease_until = ?7, stored_count = stored_count + ?8
             WHERE run_id = ?1 AND project_id = ?2 AND branch_name = ?3 AND status = 'pending'
               AND lease_owner = ?4 AND lease_fence = ?5 AND lease_until > ?6"
        ),
        params![
            claimed.run_id,
            claimed.project_id,
            claimed.branch_name,
            claimed.owner,
            claimed.fence,
            now,
            now.plus(length),
            stored
        ],
    )?;
    Ok(renewed == 1)
}

/// Gives a target back unsettled; whoever comes next continues it.
pub fn release(tx: &mut Tx<'_>, claimed: &Claimed) -> db::Result<()> {
    tx.execute(
        sql!(
            "UPDATE bulk_collection_results SET lease_owner = NULL, lease_until = NULL
             WHERE run_id = ?1 AND project_id = ?2 AND branch_name = ?3 AND lease_owner = ?4 AND lease_fence = ?5"
        ),
        params![claimed.run_id, claimed.project_id, claimed.branch_name, claimed.owner, claimed.fence],
    )?;
    Ok(())
}

/// Gives back every target of a run that `owner`, who is gone, held.
pub fn release_owner(tx: &mut Tx<'_>, run_id: &RunId, owner: &str) -> db::Result<u64> {
    tx.execute(
        sql!(
            "UPDATE bulk_collection_results SET lease_owner = NULL, lease_until = NULL
             WHERE run_id = ?1 AND status = 'pending' AND lease_owner = ?2"
        ),
        params![run_id, owner],
    )
}

/// Settles a target, moves the counters of its run, and completes the run if it was the last one.
pub fn settle(tx: &mut Tx<'_>, claimed: &Claimed, verdict: &Verdict) -> db::Result<Settled> {
    let now = tx.now();
    let (status, error) = match verdict {
        Verdict::Success => ("success", None),
        Verdict::Failed(why) => ("failed", Some(why.as_str())),
    };
    let stored = tx.find(
        sql!(
            "UPDATE bulk_collection_results
             SET status = ?6, error_message = ?7, processed_at_utc = ?8,
               new_commits_count = CASE WHEN ?6 = 'success' THEN stored_count END,
               lease_owner = NULL, lease_until = NULL
             WHERE run_id = ?1 AND project_id = ?2 AND branch_name = ?3 AND status = 'pending'
               AND lease_owner = ?4 AND lease_fence = ?5 AND lease_until > ?8
             RETURNING stored_count"
        ),
        params![
            claimed.run_id,
            claimed.project_id,
            claimed.branch_name,
            claimed.owner,
            claimed.fence,
            status,
            error,
            now
        ],
        |row| row.get::<i64>(0),
    )?;
    let Some(stored) = stored else { return Ok(Settled::Lost) };
    let (good, bad) = if error.is_none() { (1, 0) } else { (0, 1) };
    tx.execute(
        sql!(
            "UPDATE bulk_collection_runs SET completed_count = completed_count + ?2,
               success_count = success_count + ?2, failed_count = failed_count + ?3 WHERE run_id = ?1"
        ),
        params![claimed.run_id, good, bad],
    )?;
    let completed = tx.execute(
        sql!(
            "UPDATE bulk_collection_runs SET status = 'completed', completed_at_utc = ?2
             WHERE run_id = ?1 AND status = 'running' AND completed_count + failed_count = total_targets"
        ),
        params![claimed.run_id, now],
    )?;
    Ok(Settled::Done { stored, completed_run: completed == 1 })
}

/// Ends a running run early; its workers lose their leases at once. `false` when it is not running.
pub fn cancel(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<bool> {
    let now = tx.now();
    let cancelled = tx.execute(
        sql!(
            "UPDATE bulk_collection_runs SET status = 'cancelled', completed_at_utc = ?2
             WHERE run_id = ?1 AND status = 'running'"
        ),
        params![run_id, now],
    )?;
    tx.execute(
        sql!(
            "UPDATE bulk_collection_results SET lease_owner = NULL, lease_until = NULL
             WHERE run_id = ?1 AND status = 'pending' AND lease_owner IS NOT NULL"
        ),
        params![run_id],
    )?;
    Ok(cancelled == 1)
}
