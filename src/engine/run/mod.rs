//! Bulk runs: many targets registered at once, shared by any number of workers, continued by whoever comes next.
//!
//! ```text
//!            register (one transaction)                    whoever settles the last target
//!  nothing ────────────────────────────▶ running ─────────────────────────────────────────▶ completed
//!                                         │   ▲
//!   target: pending ──claim──▶ leased ────┤   │ a crash or Ctrl-C: leases end, the run stays
//!              ▲                 │        │   │
//!              └── lease over ───┘        └── cancel ──▶ cancelled (terminal)
//!           leased ──settle──▶ success | failed
//!           pending ──give up──▶ failed (nobody can take it, and it is in the way of others)
//! ```
//!
//! Every write for a target carries the fence of its lease, so a worker that stalled, was overtaken or belongs to a
//! cancelled run can no longer change anything.

pub mod decide;
mod import;
mod rows;
mod store;

use std::time::Duration;

pub use decide::{Begin, Reopen, Running};
pub use import::{ImportedResult, ImportedRun, add_imported_result, add_imported_run};
pub use rows::{
    RunRow, RunStatus, Summary, Target, TargetRow, TargetStatus, count_pending, find_last_completed,
    find_latest, find_run, find_running, find_summary, is_announced, list_failed, list_leased, list_pending,
    list_pending_jobs, list_results, list_runs, list_unannounced,
};
pub use store::{
    Claimed, TargetCompletion, Verdict, cancel, claim, complete_target, give_up, mark_announced, reassign,
    register, release, release_owner, renew,
};

/// How long a target is kept without a sign of life.
pub const LEASE: Duration = Duration::from_secs(60);

/// The name of the lease by which the first process of a run shows that it is alive.
pub fn lease_name(run_id: &crate::id::RunId) -> String {
    format!("bulk:{run_id}")
}
