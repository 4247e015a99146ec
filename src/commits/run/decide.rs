//! Decides how to begin or continue runs, and which job collects a branch when several use one host. Pure.

use super::model::{RunRow, RunStatus, TargetStatus};
use crate::id::JobName;
use crate::ledger::lease::Holder;
use crate::phrase;
use crate::phrase::Phrase;

/// A run that is `running`, and another process that works on it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    pub run: RunRow,
    /// A live worker of another process, if there is one.
    pub worker: Option<Holder>,
}

/// How a process begins to collect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Register a new run.
    New,
    /// Continue the running run.
    Continue(RunRow),
    /// Another process works on it.
    Busy(RunRow, Holder),
    /// An interrupted run has to be ended first.
    Blocked(RunRow),
    Nothing,
}

/// Whether to share a run with another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Continue only a run that no process works on.
    Alone,
    /// Share the targets of a run with the processes that work on it.
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

/// Which targets of an earlier run to collect again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Those that never ended (`bulk resume`).
    Pending,
    /// Those that failed (`bulk retry-failed`).
    Failed,
}

impl Again {
    /// The status of those targets.
    pub fn status(self) -> TargetStatus {
        match self {
            Again::Pending => TargetStatus::Pending,
            Again::Failed => TargetStatus::Failed,
        }
    }
}

/// How to begin when the user asks to continue or retry `wanted`, given the running run, if any.
///
/// Ended runs stay ended: their remaining targets go into a new run.
pub fn reopen(wanted: &RunRow, again: Again, running: Option<Running>) -> Begin {
    let left = match again {
        Again::Pending => wanted.pending_count(),
        Again::Failed => wanted.failed_count,
    };
    let still_runs = wanted.status == RunStatus::Running;
    match running {
        _ if still_runs && again == Again::Pending => Begin::Continue(wanted.clone()),
        Some(Running { run, worker }) if still_runs || left > 0 => match worker {
            Some(worker) => Begin::Busy(run, worker),
            None => Begin::Blocked(run),
        },
        _ if left > 0 => Begin::New,
        _ => Begin::Nothing,
    }
}

/// A `commits` job of the config, for assigning branches and targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostJob {
    pub job: JobName,
    /// The host it collects from.
    pub host: String,
    pub enabled: bool,
}

/// The stored owner of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The job that collects it.
    pub job: Option<String>,
    /// Whether that job's config names it, or it was added by hand.
    pub is_wanted: bool,
}

/// Whether `me` collects the branches of `owner` on its host.
pub fn is_fallback_job(jobs_on_host: &[HostJob], me: &HostJob, owner: Option<&str>) -> bool {
    find_fallback_job(jobs_on_host, &me.host, owner).is_some_and(|fallback_job| fallback_job.job == me.job)
}

/// The job that collects the branches of `owner` on `host`: `owner` itself, or the first one there if it is no longer
/// in the config.
pub fn find_fallback_job<'a>(
    jobs_on_host: &'a [HostJob],
    host: &str,
    owner: Option<&str>,
) -> Option<&'a HostJob> {
    let here = || jobs_on_host.iter().filter(|host_job| host_job.host == host);
    here()
        .find(|host_job| Some(host_job.job.as_str()) == owner)
        .or_else(|| here().find(|host_job| host_job.enabled))
        .or_else(|| here().next())
}

/// Whether `me`, whose config names a branch of its host, may take it: not from a job that names it, too.
pub fn may_take(jobs_on_host: &[HostJob], me: &HostJob, owner: &Owner) -> bool {
    let is_rival = |host_job: &HostJob| {
        host_job.host == me.host
            && host_job.job != me.job
            && Some(host_job.job.as_str()) == owner.job.as_deref()
    };
    !(owner.is_wanted && jobs_on_host.iter().any(is_rival))
}

/// The job that collects a pending target of `owner` on `host`, where `started` are the jobs that are being run now; or
/// why none can.
pub fn find_collector<'a>(
    jobs_on_host: &'a [HostJob],
    started: &[&JobName],
    host: &str,
    owner: Option<&str>,
) -> Result<&'a JobName, Phrase> {
    match find_fallback_job(jobs_on_host, host, owner) {
        None => Err(phrase!(
            "no job of the config collects from {host} any more",
            "{host} から収集するジョブが設定にありません"
        )),
        Some(host_job) if host_job.enabled || started.contains(&&host_job.job) => Ok(&host_job.job),
        Some(host_job) => Err(phrase!(
            "the job `{job}` is disabled",
            "ジョブ `{job}` は無効です",
            job = host_job.job.as_str()
        )),
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

    fn holder() -> Holder {
        Holder { owner: "a/1/x".into(), taken_at: Timestamp::MIN, expires_at: Timestamp::MAX }
    }

    #[test]
    fn a_run_with_a_live_worker_is_left_alone_unless_joined() {
        let row = run(RunStatus::Running, 0, 0);
        let holder = holder();
        let alone = Running { run: row.clone(), worker: None };
        let held = Running { run: row.clone(), worker: Some(holder.clone()) };
        assert_eq!(begin(None, Sharing::Alone), Begin::New);
        assert_eq!(begin(Some(alone), Sharing::Alone), Begin::Continue(row.clone()));
        assert_eq!(begin(Some(held.clone()), Sharing::Alone), Begin::Busy(row.clone(), holder));
        assert_eq!(begin(Some(held), Sharing::Join), Begin::Continue(row));
    }

    #[test]
    fn ended_runs_stay_ended_and_only_what_was_asked_for_is_taken_up() {
        use Again::{Failed, Pending};
        use RunStatus::{Cancelled, Completed, Running as Runs};
        let idle = |run: &RunRow| Running { run: run.clone(), worker: None };
        for (status, success, failed, again, expected) in [
            (Cancelled, 1, 1, Pending, Begin::New),
            (Cancelled, 1, 1, Failed, Begin::New),
            (Cancelled, 2, 0, Failed, Begin::Nothing),
            (Completed, 2, 1, Pending, Begin::Nothing),
            (Completed, 2, 1, Failed, Begin::New),
            (Completed, 3, 0, Failed, Begin::Nothing),
        ] {
            let wanted = run(status, success, failed);
            assert_eq!(reopen(&wanted, again, None), expected, "{status:?} {again:?}");
            let other = run(Runs, 0, 0);
            let behind = if expected == Begin::New { Begin::Blocked(other.clone()) } else { expected };
            assert_eq!(
                reopen(&wanted, again, Some(idle(&other))),
                behind,
                "{status:?} {again:?} behind another"
            );
        }
        let running = run(Runs, 1, 0);
        assert_eq!(reopen(&running, Pending, Some(idle(&running))), Begin::Continue(running.clone()));
        assert_eq!(reopen(&running, Failed, Some(idle(&running))), Begin::Blocked(running.clone()));
        let worker = holder();
        let held = Running { run: running.clone(), worker: Some(worker.clone()) };
        assert_eq!(reopen(&running, Failed, Some(held)), Begin::Busy(running, worker));
    }

    fn host_job(job: &str, host: &str, enabled: bool) -> HostJob {
        HostJob { job: job.parse().unwrap(), host: host.to_owned(), enabled }
    }

    fn jobs_on_host() -> Vec<HostJob> {
        vec![
            host_job("off", "x", false),
            host_job("one", "x", true),
            host_job("two", "x", true),
            host_job("far", "y", true),
            host_job("still", "z", false),
        ]
    }

    #[test]
    fn what_nobody_owns_falls_to_the_first_job_of_its_host() {
        for (host, owner, expected) in [
            ("x", Some("two"), Some("two")),
            ("x", Some("off"), Some("off")),
            ("x", Some("removed"), Some("one")),
            ("x", None, Some("one")),
            // It collects from another host now.
            ("x", Some("far"), Some("one")),
            ("z", None, Some("still")),
            ("gone", Some("one"), None),
        ] {
            let jobs_on_host = jobs_on_host();
            let fallback_job =
                find_fallback_job(&jobs_on_host, host, owner).map(|host_job| host_job.job.as_str());
            assert_eq!(fallback_job, expected, "{host} {owner:?}");
        }
    }

    #[test]
    fn a_branch_that_two_jobs_name_stays_with_the_one_that_has_it() {
        let jobs_on_host = jobs_on_host();
        let me = host_job("two", "x", true);
        for (job, is_wanted, expected) in [
            (None, false, true),
            (Some("two"), true, true),
            (Some("one"), true, false),
            (Some("off"), true, false),
            (Some("one"), false, true),
            (Some("removed"), true, true),
            (Some("far"), true, true),
        ] {
            let owner = Owner { job: job.map(str::to_owned), is_wanted };
            assert_eq!(may_take(&jobs_on_host, &me, &owner), expected, "{owner:?}");
        }
    }

    #[test]
    fn a_target_is_given_up_only_when_nobody_may_collect_it() {
        let (jobs_on_host, off) = (jobs_on_host(), "off".parse().unwrap());
        let collector =
            |started: &[&JobName], host, owner| match find_collector(&jobs_on_host, started, host, owner) {
                Ok(job) => job.to_string(),
                Err(why) => why.to_string(),
            };
        assert_eq!(collector(&[], "x", Some("two")), "two");
        assert_eq!(collector(&[], "x", Some("removed")), "one");
        assert_eq!(collector(&[], "x", Some("off")), "the job `off` is disabled");
        assert_eq!(collector(&[&off], "x", Some("off")), "off", "somebody runs it all the same");
        assert_eq!(collector(&[], "z", None), "the job `still` is disabled");
        assert_eq!(collector(&[], "gone", None), "no job of the config collects from gone any more");
    }
}
