//! The seed's `job_state`: when each job last began, and when it last ended well.

use crate::db::{self, FromRow, Tx};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::word_enum;
use crate::{params, sql};

/// The saved state of a job.
#[derive(Clone, Debug, PartialEq, serde::Serialize, FromRow)]
pub struct JobState {
    pub job_name: String,
    /// When it last succeeded completely.
    pub last_success_at: Option<Timestamp>,
    pub last_run_at: Option<Timestamp>,
    /// How its last run ended; `None` while it runs, and after a crash.
    pub last_outcome: Option<RunOutcome>,
    /// The message of its last run.
    pub last_message: Option<Phrase>,
    pub failures_in_a_row: i64,
    /// When to retry after a failed run; `None` if the schedule alone decides.
    pub retry_at: Option<Timestamp>,
}

word_enum! {
    /// How a run ended.
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum RunOutcome {
        /// Everything was done.
        Success = "success",
        /// It has to wait for a quota or a provider; everything else is done.
        Waiting = "waiting",
        /// Some parts failed; the rest is saved.
        Partly = "partly",
        Failed = "failed",
        /// It was asked to stop.
        Interrupted = "interrupted",
    }
}

impl RunOutcome {
    /// In words.
    pub fn phrase(self) -> Phrase {
        match self {
            RunOutcome::Success => phrase!("success", "成功"),
            RunOutcome::Waiting => phrase!("waiting", "待機"),
            RunOutcome::Partly => phrase!("partly failed", "一部失敗"),
            RunOutcome::Failed => phrase!("failed", "失敗"),
            RunOutcome::Interrupted => phrase!("interrupted", "中断"),
        }
    }
}

// An unknown word is an error: read as no outcome, it would mean an interrupted run.
db::from_text!(RunOutcome = "an outcome");

impl JobState {
    /// Whether the last run was interrupted by a signal or a crash, so that the next one is due at once.
    pub fn is_unfinished(&self) -> bool {
        self.last_run_at.is_some() && matches!(self.last_outcome, None | Some(RunOutcome::Interrupted))
    }
}

/// The saved state of one job.
pub fn find_state(tx: &mut Tx<'_>, job_name: &str) -> db::Result<Option<JobState>> {
    tx.find(
        sql!(
            "SELECT job_name, last_success_at, last_run_at, last_outcome, last_message, failures_in_a_row,
               retry_at
             FROM job_state WHERE job_name = ?1"
        ),
        params![job_name],
        FromRow::from_row,
    )
}

/// The states of all jobs, also of those that are no longer in the config.
pub fn list_states(tx: &mut Tx<'_>) -> db::Result<Vec<JobState>> {
    tx.list(
        sql!(
            "SELECT job_name, last_success_at, last_run_at, last_outcome, last_message, failures_in_a_row,
               retry_at
             FROM job_state ORDER BY job_name"
        ),
        params![],
        FromRow::from_row,
    )
}

/// Adds the state of a job of another program unless it has run here; `true` if it was new.
///
/// The last run is saved as ended, so that the job keeps its schedule instead of being due at once.
pub fn add_state(
    tx: &mut Tx<'_>,
    job_name: &str,
    last_success_at: Option<Timestamp>,
    last_run_at: Option<Timestamp>,
) -> db::Result<bool> {
    let outcome = match (last_success_at, last_run_at) {
        (_, None) => None,
        (Some(success), Some(run)) if success >= run => Some(RunOutcome::Success),
        _ => Some(RunOutcome::Failed),
    };
    tx.execute_one(
        sql!(
            "INSERT INTO job_state (job_name, last_success_at, last_run_at, last_outcome) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (job_name) DO NOTHING"
        ),
        params![job_name, last_success_at, last_run_at, outcome.map(RunOutcome::word)],
    )
}

/// Records that a run has begun, in the transaction that takes the lease.
pub fn mark_begun(tx: &mut Tx<'_>, job_name: &str, now: Timestamp) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO job_state (job_name, last_run_at) VALUES (?1, ?2)
             ON CONFLICT (job_name) DO UPDATE SET last_run_at = excluded.last_run_at, last_outcome = NULL,
               retry_at = NULL"
        ),
        params![job_name, now],
    )
}

/// Records how a run ended, and when to retry; only a complete success moves `last_success_at`.
pub fn mark_ended(
    tx: &mut Tx<'_>,
    job_name: &str,
    outcome: RunOutcome,
    message: &Phrase,
    retry_at: Option<Timestamp>,
    now: Timestamp,
) -> db::Result<()> {
    let success_at = (outcome == RunOutcome::Success).then_some(now);
    let failed = matches!(outcome, RunOutcome::Failed);
    // An interruption says nothing about whether the job works.
    let keeps_count = matches!(outcome, RunOutcome::Interrupted);
    tx.run(
        sql!(
            "UPDATE job_state SET last_outcome = ?2, last_message = ?3,
               last_success_at = COALESCE(?4, last_success_at),
               failures_in_a_row = CASE WHEN ?5 = 1 THEN failures_in_a_row + 1
                                        WHEN ?6 = 1 THEN failures_in_a_row ELSE 0 END,
               retry_at = ?7
             WHERE job_name = ?1"
        ),
        params![job_name, outcome.word(), message, success_at, failed, keeps_count, retry_at],
    )
}
