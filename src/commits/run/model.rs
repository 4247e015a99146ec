//! Runs and their targets: the seed's `bulk_collection_runs` and `bulk_collection_results`.

use crate::db::from_text;
use crate::id::RunId;
use crate::ledger::lease::Holder;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::word_enum;

word_enum! {
    /// A state of a run; the words are the seed's.
    pub enum RunStatus {
        /// Targets are pending.
        Running = "running",
        /// Every target has ended.
        Completed = "completed",
        /// It was ended early by a user.
        Cancelled = "cancelled",
    }
}

from_text! {
    RunStatus = "a run status"
    TargetStatus = "a target status"
}

word_enum! {
    /// The state of a run for users: an interrupted one is stored as running, but no process works on it.
    pub enum RunState {
        Running = "running",
        Interrupted = "interrupted",
        Completed = "completed",
        Cancelled = "cancelled",
    }
}

impl RunState {
    pub fn phrase(self) -> Phrase {
        match self {
            RunState::Running => phrase!("running", "実行中"),
            RunState::Interrupted => phrase!("interrupted", "中断"),
            RunState::Completed => phrase!("completed", "完了"),
            RunState::Cancelled => phrase!("cancelled", "取り消し"),
        }
    }
}

word_enum! {
    /// A state of a target; the words are the seed's.
    pub enum TargetStatus {
        Pending = "pending",
        Success = "success",
        Failed = "failed",
    }
}

impl TargetStatus {
    pub fn phrase(self) -> Phrase {
        match self {
            TargetStatus::Pending => phrase!("pending", "未処理"),
            TargetStatus::Success => phrase!("success", "成功"),
            TargetStatus::Failed => phrase!("failed", "失敗"),
        }
    }
}

/// A run, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, crate::db::FromRow)]
pub struct RunRow {
    #[serde(serialize_with = "as_text")]
    pub run_id: RunId,
    /// When it was registered.
    pub started_at_utc: Timestamp,
    /// When it was completed or cancelled.
    pub completed_at_utc: Option<Timestamp>,
    pub status: RunStatus,
    /// How many targets it has.
    pub total_targets: i64,
    /// How many of them succeeded.
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
    /// How many targets have not ended.
    pub fn pending_count(&self) -> i64 {
        self.total_targets - self.completed_count - self.failed_count
    }

    /// Its state, given the processes that work on it.
    pub fn state(&self, workers: &[Holder]) -> RunState {
        match self.status {
            RunStatus::Running if workers.is_empty() => RunState::Interrupted,
            RunStatus::Running => RunState::Running,
            RunStatus::Completed => RunState::Completed,
            RunStatus::Cancelled => RunState::Cancelled,
        }
    }
}

/// A run in a list of runs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ListedRun {
    #[serde(flatten)]
    pub run: RunRow,
    pub state: RunState,
}

/// The seed's summary of a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    #[serde(flatten)]
    pub run: RunRow,
    pub state: RunState,
    /// The processes that work on it now.
    pub workers: Vec<Holder>,
    /// Targets that have not ended.
    pub pending_count: i64,
    /// Commits stored by the run so far.
    pub new_commits_count: i64,
}

/// A target of a run: one branch of one project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, crate::db::FromRow)]
pub struct Target {
    pub project_id: i64,
    pub branch_name: String,
    /// Its host; a worker claims only targets of hosts that it can reach.
    pub host: String,
    /// The job whose settings it is collected with; `None` until a job takes it over.
    pub job_name: Option<String>,
}

/// A target of a run, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TargetRow {
    pub project_id: i64,
    pub branch_name: String,
    pub status: TargetStatus,
    /// How many commits were new; only after success.
    pub new_commits_count: Option<i64>,
    /// Why it failed.
    pub error_message: Option<Phrase>,
    /// When it ended.
    pub processed_at_utc: Option<Timestamp>,
    /// Commits stored so far, whatever the state.
    pub stored_count: i64,
    /// Who works on it now.
    pub lease_owner: Option<String>,
    pub lease_until: Option<Timestamp>,
    /// Whether it failed for the same reason as before.
    pub is_known_failure: bool,
}
