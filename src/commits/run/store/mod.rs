//! The SQL of runs: the only place that names their tables.

mod import;
mod runs;
mod targets;

pub use import::{ImportedResult, ImportedRun, add_imported_result, add_imported_run};
pub use runs::{
    JobFigures, count_left, count_of_job, count_pending, find_last_completed, find_latest, find_run,
    find_running, find_summary, list_busy, list_jobs, list_leased, list_pending_jobs, list_results,
    list_runs, list_runs_before, list_some_results, list_states, list_targets, list_unannounced,
    list_workers,
};
pub use targets::{
    Claimed, Completed, cancel, claim, complete_target, give_up, mark_announced, reassign, register, release,
    release_gone, renew,
};
