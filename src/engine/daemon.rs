//! The daemon's loop: starts what is due, again and again, until it is told to stop.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::runner::Skipped;
use super::{Job, Runner, Selection};
use crate::db;
use crate::id::JobName;
use crate::time::Timestamp;

/// The longest time between two looks: another process may have paused, resumed or run a job.
const POLL_EVERY: Duration = Duration::from_secs(15);
/// How long running jobs get to stop by themselves.
const GRACE: Duration = Duration::from_secs(20);

/// Runs `jobs` when they are due until `stop` is cancelled; a new list in `jobs` takes effect at the next look.
pub async fn serve(runner: &Runner, mut jobs: watch::Receiver<Arc<Vec<Job>>>, stop: &CancellationToken) {
    let mut running = JoinSet::new();
    let mut names: HashSet<JobName> = HashSet::new();
    let mut seen_due: BTreeMap<JobName, Timestamp> = BTreeMap::new();
    while !stop.is_cancelled() {
        let list = Arc::clone(&jobs.borrow_and_update());
        for job in due(runner, &list, &names, &mut seen_due).await {
            names.insert(job.name.clone());
            let (runner, stop) = (runner.clone(), stop.clone());
            running.spawn(async move {
                let name = job.name.clone();
                runner.run(vec![job], Selection::Due, &stop).await;
                name
            });
        }
        tokio::select! {
            () = stop.cancelled() => {}
            Some(done) = running.join_next() => {
                if let Ok(name) = done {
                    names.remove(&name);
                }
            }
            changed = jobs.changed() => {
                if changed.is_err() {
                    break;
                }
            }
            () = tokio::time::sleep(pause(runner, &list, &seen_due)) => {}
        }
    }
    if tokio::time::timeout(GRACE, running.join_all()).await.is_err() {
        warn!("Some jobs did not stop in time; their leases expire and the next run continues");
    }
}

/// Which of `jobs` starts first and when, small delay included; `None` when none starts by itself.
pub async fn find_next(runner: &Runner, jobs: &[Job]) -> db::Result<Option<(Timestamp, JobName)>> {
    let (picked, now) = (runner.pick(jobs, Selection::Due).await?, runner.clock().now());
    let starts = jobs.iter().zip(picked).filter_map(|(job, picked)| {
        let due_at = match picked.skipped {
            None => now,
            Some(Skipped::NotDue(next)) => next?,
            Some(_) => return None,
        };
        Some((due_at.plus(job.schedule.jitter(job.name.as_str())), job.name.clone()))
    });
    Ok(starts.min())
}

/// Which jobs to start now: due, not running here, and past their own small delay.
async fn due(
    runner: &Runner,
    jobs: &[Job],
    running: &HashSet<JobName>,
    seen_due: &mut BTreeMap<JobName, Timestamp>,
) -> Vec<Job> {
    let waiting: Vec<Job> = jobs.iter().filter(|job| !running.contains(&job.name)).cloned().collect();
    let picked = match runner.pick(&waiting, Selection::Due).await {
        Ok(picked) => picked,
        Err(error) => {
            warn!("Cannot see what is due: {error}");
            return Vec::new();
        }
    };
    let now = runner.clock().now();
    let mut start = Vec::new();
    if let Some(Skipped::Moved(to)) = picked.iter().find_map(|picked| picked.skipped.as_ref()) {
        warn!("Nothing runs here any more: everything was moved to {to}. Restart with the new [store] url");
    }
    for (job, picked) in waiting.into_iter().zip(picked) {
        if picked.skipped.is_some() {
            seen_due.remove(&job.name);
            continue;
        }
        let since = *seen_due.entry(job.name.clone()).or_insert(now);
        if now.since(since) >= job.schedule.jitter(job.name.as_str()) {
            seen_due.remove(&job.name);
            start.push(job);
        }
    }
    start
}

/// Until the next point of any schedule, or the end of the small delay of a job that is due, but never longer than
/// [`POLL_EVERY`].
fn pause(runner: &Runner, jobs: &[Job], seen_due: &BTreeMap<JobName, Timestamp>) -> Duration {
    let now = runner.clock().now();
    let delayed = |job: &Job| {
        let since = seen_due.get(&job.name)?;
        Some(since.plus(job.schedule.jitter(job.name.as_str())))
    };
    let next = jobs
        .iter()
        .filter(|job| job.enabled)
        .filter_map(|job| delayed(job).or_else(|| job.schedule.next_after(now)))
        .min();
    next.map_or(POLL_EVERY, |next| next.since(now)).clamp(Duration::from_millis(200), POLL_EVERY)
}
