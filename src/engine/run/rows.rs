//! The seed's `bulk_collection_runs` and `bulk_collection_results` as they are read.

use super::store::latest_end;
use crate::db::{self, Row, Tx};
use crate::id::RunId;
use crate::time::Timestamp;
use crate::{params, sql};

/// A state of a run; the words are the seed's.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    serde::Serialize,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RunStatus {
    /// Targets are pending.
    Running,
    /// Every target is settled.
    Completed,
    /// Somebody ended it early.
    Cancelled,
}

impl RunStatus {
    /// All of them, in the order of their declaration.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The word that is stored and shown.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// A state of a target; the words are the seed's.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    serde::Serialize,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TargetStatus {
    /// Being worked on, or not yet.
    Pending,
    /// It ended well.
    Success,
    /// It did not.
    Failed,
}

impl TargetStatus {
    /// All of them, in the order of their declaration.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The word that is stored and shown.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

// A word that means nothing to us is an error, never another meaning.
db::from_text!(RunStatus = "a run status" TargetStatus = "a target status");

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
    /// The job whose settings it is collected with; `None` until somebody takes it over.
    pub job_name: Option<String>,
}

impl Target {
    /// Reads the columns project, branch, host and job, in that order.
    pub fn read(row: &Row<'_>) -> db::Result<Self> {
        Ok(Self {
            project_id: row.get(0)?,
            branch_name: row.get(1)?,
            host: row.get(2)?,
            job_name: row.get(3)?,
        })
    }
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

fn read_run(row: &Row<'_>) -> db::Result<RunRow> {
    Ok(RunRow {
        run_id: row.get("run_id")?,
        started_at_utc: row.get("started_at_utc")?,
        completed_at_utc: row.get("completed_at_utc")?,
        status: row.get("status")?,
        total_targets: row.get("total_targets")?,
        completed_count: row.get("completed_count")?,
        failed_count: row.get("failed_count")?,
        success_count: row.get("success_count")?,
        job_name: row.get("job_name")?,
    })
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
    Ok(TargetRow {
        project_id: row.get("project_id")?,
        branch_name: row.get("branch_name")?,
        status: row.get("status")?,
        new_commits_count: row.get("new_commits_count")?,
        error_message: row.get("error_message")?,
        processed_at_utc: row.get("processed_at_utc")?,
        stored_count: row.get("stored_count")?,
        lease_owner: row.get("lease_owner")?,
        lease_until: row.get("lease_until")?,
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
             WHERE run_id = ?1 AND status = 'pending' AND lease_owner IS NOT NULL
               AND lease_until > ?2 AND lease_until <= ?3"
        ),
        params![run_id, now, latest_end(now)],
        read_target,
    )
}

/// The failed targets of a run.
pub fn list_failed(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Vec<Target>> {
    tx.list(
        sql!(
            "SELECT project_id, branch_name, host, job_name FROM bulk_collection_results
             WHERE run_id = ?1 AND status = 'failed' ORDER BY project_id, branch_name"
        ),
        params![run_id],
        Target::read,
    )
}

/// The targets of a run that were never settled.
pub fn list_pending(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Vec<Target>> {
    tx.list(
        sql!(
            "SELECT project_id, branch_name, host, job_name FROM bulk_collection_results
             WHERE run_id = ?1 AND status = 'pending' ORDER BY project_id, branch_name"
        ),
        params![run_id],
        Target::read,
    )
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

/// The completed runs whose end was not told, oldest first, each with its job.
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

/// Whether the end of a run has been told.
pub fn is_announced(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<bool> {
    let told = tx.find(
        sql!("SELECT 1 FROM bulk_collection_runs WHERE run_id = ?1 AND told_at IS NOT NULL"),
        params![run_id],
        |row| row.get::<i64>(0),
    )?;
    Ok(told.is_some())
}
