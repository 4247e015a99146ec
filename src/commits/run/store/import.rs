//! Runs and results of another program, added unchanged.

use super::super::model::{RunStatus, TargetStatus};
use crate::db::{self, Tx};
use crate::id::RunId;
use crate::time::Timestamp;
use crate::{params, sql};

/// A run of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedRun {
    pub run_id: RunId,
    /// When it began.
    pub started_at_utc: Timestamp,
    /// When it ended.
    pub completed_at_utc: Option<Timestamp>,
    pub status: RunStatus,
    /// How many targets it has.
    pub total_targets: i64,
    /// How many of them succeeded.
    pub success_count: i64,
    /// How many of them failed.
    pub failed_count: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedResult {
    pub run_id: RunId,
    pub project_id: i64,
    pub branch_name: String,
    pub host: String,
    pub status: TargetStatus,
    pub new_commits_count: Option<i64>,
    /// Why it failed.
    pub error_message: Option<String>,
    /// When it ended.
    pub processed_at_utc: Option<Timestamp>,
}

/// Adds a run unless it is known; `true` if it was new. An ended one counts as announced.
pub fn add_imported_run(tx: &mut Tx<'_>, run: &ImportedRun, job_name: Option<&str>) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO bulk_collection_runs (run_id, started_at_utc, completed_at_utc, status, total_targets,
               completed_count, failed_count, success_count, job_name, told_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?6, ?8, ?3) ON CONFLICT DO NOTHING"
        ),
        params![
            run.run_id,
            run.started_at_utc,
            run.completed_at_utc,
            run.status.word(),
            run.total_targets,
            run.success_count,
            run.failed_count,
            job_name
        ],
    )
}

/// Adds a target of an imported run unless it is known; `true` if it was new.
pub fn add_imported_result(tx: &mut Tx<'_>, result: &ImportedResult) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO bulk_collection_results (run_id, project_id, branch_name, status, new_commits_count,
               error_message, processed_at_utc, host, stored_count)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING"
        ),
        params![
            result.run_id,
            result.project_id,
            result.branch_name,
            result.status.word(),
            result.new_commits_count,
            result.error_message,
            result.processed_at_utc,
            result.host,
            result.new_commits_count.unwrap_or(0)
        ],
    )
}
