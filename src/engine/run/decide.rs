//! What to do about runs: pure answers to "there is, or was, a run; now what?".

use super::rows::{RunRow, RunStatus};
use crate::ledger::lease::Holder;

/// A run that is `running`, and who works on it at this moment besides us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The run.
    pub run: RunRow,
    /// A live worker of another process, if there is one.
    pub worker: Option<Holder>,
}

/// How somebody who wants to collect begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Register a new run.
    New,
    /// Go on with the run that is there.
    Continue(RunRow),
    /// Leave it alone: another process works on it.
    Busy(RunRow, Holder),
}

/// Whether to share a run with another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Only a run that nobody works on is continued.
    Alone,
    /// The targets of a run are shared with whoever works on it.
    Join,
}

/// How to begin, given the run that is running, if any.
pub fn begin(running: Option<Running>, sharing: Sharing) -> Begin {
    match running {
        None => Begin::New,
        Some(Running { run, worker: Some(worker) }) if sharing == Sharing::Alone => Begin::Busy(run, worker),
        Some(Running { run, .. }) => Begin::Continue(run),
    }
}

/// Which targets of an earlier run are to be taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Those that were never settled (`bulk resume`).
    Pending,
    /// Those that failed (`bulk retry-failed`).
    Failed,
}

/// What taking up an earlier run means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reopen {
    /// It still runs: go on with it.
    Continue,
    /// It has ended, and ended runs stay ended: a new run gets the targets in question.
    NewRun,
    /// There is nothing left to do in it.
    Nothing,
    /// It still runs, so its failures cannot be retried yet.
    StillRunning,
}

/// What to do when somebody asks to take up `run` again.
pub fn reopen(run: &RunRow, again: Again) -> Reopen {
    let pending = run.pending_count();
    match (run.status, again) {
        (RunStatus::Running, Again::Pending) => Reopen::Continue,
        (RunStatus::Running, Again::Failed) if pending > 0 => Reopen::StillRunning,
        (_, Again::Pending) if pending > 0 => Reopen::NewRun,
        (_, Again::Failed) if run.failed_count > 0 => Reopen::NewRun,
        _ => Reopen::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RunId;
    use crate::time::Timestamp;

    fn run(status: RunStatus, success: i64, failed: i64) -> RunRow {
        RunRow {
            run_id: RunId::random(),
            started_at_utc: Timestamp::MIN,
            completed_at_utc: None,
            status,
            total_targets: 3,
            completed_count: success,
            failed_count: failed,
            success_count: success,
            job_name: None,
        }
    }

    #[test]
    fn a_run_with_a_live_worker_is_left_alone_unless_joined() {
        let row = run(RunStatus::Running, 0, 0);
        let holder = Holder { owner: "a/1/x".into(), taken_at: Timestamp::MIN, expires_at: Timestamp::MAX };
        let alone = Running { run: row.clone(), worker: None };
        let held = Running { run: row.clone(), worker: Some(holder.clone()) };
        assert_eq!(begin(None, Sharing::Alone), Begin::New);
        assert_eq!(begin(Some(alone), Sharing::Alone), Begin::Continue(row.clone()));
        assert_eq!(begin(Some(held.clone()), Sharing::Alone), Begin::Busy(row.clone(), holder));
        assert_eq!(begin(Some(held), Sharing::Join), Begin::Continue(row));
    }

    #[test]
    fn ended_runs_stay_ended_and_only_what_was_asked_for_is_taken_up() {
        use RunStatus::{Cancelled, Completed, Running};
        for (status, success, failed, again, expected) in [
            (Running, 1, 0, Again::Pending, Reopen::Continue),
            (Running, 1, 1, Again::Failed, Reopen::StillRunning),
            (Cancelled, 1, 1, Again::Pending, Reopen::NewRun),
            (Cancelled, 1, 1, Again::Failed, Reopen::NewRun),
            (Cancelled, 2, 0, Again::Failed, Reopen::Nothing),
            (Completed, 2, 1, Again::Pending, Reopen::Nothing),
            (Completed, 2, 1, Again::Failed, Reopen::NewRun),
            (Completed, 3, 0, Again::Failed, Reopen::Nothing),
        ] {
            assert_eq!(reopen(&run(status, success, failed), again), expected, "{status:?} {again:?}");
        }
    }
}
