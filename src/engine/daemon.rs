//! The daemon's loop: starts due jobs until it is stopped.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{Job, Runner, Selection, Skipped};
use crate::db;
use crate::id::JobName;
use crate::time::Timestamp;

/// The longest time between two polls: another process may have paused, resumed or run a job.
const POLL_EVERY: Duration = Duration::from_secs(15);
/// Capacity of the queue of start requests.
const QUEUED_AT_MOST: usize = 16;
/// How long running jobs get to stop by themselves.
const GRACE: Duration = Duration::from_secs(20);

/// Requests runs from the daemon of this process. Cheap to clone.
#[derive(Clone)]
pub struct Starter(mpsc::Sender<StartRequest>);

/// The requests, as the daemon receives them.
pub struct StartRequests(mpsc::Receiver<StartRequest>);

struct StartRequest {
    job: JobName,
    answer: oneshot::Sender<Option<Skipped>>,
}

/// A connected pair: one to request runs, one for the daemon.
pub fn starter() -> (Starter, StartRequests) {
    let (sender, receiver) = mpsc::channel(QUEUED_AT_MOST);
    (Starter(sender), StartRequests(receiver))
}

/// There is no daemon in this process, or it does not know the job.
#[derive(Debug, PartialEq, Eq)]
pub struct NotStarted;

impl Starter {
    /// Starts a job whatever its schedule says; answers why it was skipped, if it was.
    pub async fn start(&self, job: JobName) -> Result<Option<Skipped>, NotStarted> {
        let (answer, answered) = oneshot::channel();
        self.0.send(StartRequest { job, answer }).await.map_err(|_| NotStarted)?;
        answered.await.map_err(|_| NotStarted)
    }
}

/// Runs `jobs` when they are due or requested, until `stop` is cancelled. A new list in `jobs` takes effect at the next
/// poll.
pub async fn serve(
    runner: &Runner,
    mut jobs: watch::Receiver<Arc<Vec<Job>>>,
    StartRequests(mut requests): StartRequests,
    stop: &CancellationToken,
) {
    let mut running = JoinSet::new();
    let mut names: HashSet<JobName> = HashSet::new();
    let mut seen_due: BTreeMap<JobName, Timestamp> = BTreeMap::new();
    while !stop.is_cancelled() {
        let list = Arc::clone(&jobs.borrow_and_update());
        for job in due(runner, &list, &names, &mut seen_due).await {
            names.insert(job.name.clone());
            running.spawn(run(runner.clone(), job, Selection::Due, stop.clone()));
        }
        tokio::select! {
            () = stop.cancelled() => {}
            Some(done) = running.join_next() => {
                if let Ok(name) = done {
                    names.remove(&name);
                }
            }
            Some(request) = requests.recv() => {
                let Some(job) = list.iter().find(|job| job.name == request.job) else { continue };
                let skipped = find_obstacle(runner, job).await;
                if skipped.is_none() {
                    names.insert(job.name.clone());
                    running.spawn(run(runner.clone(), job.clone(), Selection::Forced, stop.clone()));
                }
                let _ = request.answer.send(skipped);
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

async fn run(runner: Runner, job: Job, selection: Selection, stop: CancellationToken) -> JobName {
    let name = job.name.clone();
    runner.run(vec![job], selection, &stop).await;
    name
}

/// Why a requested job cannot run: it is running already, here or elsewhere.
async fn find_obstacle(runner: &Runner, job: &Job) -> Option<Skipped> {
    match runner.find_holder(job).await {
        Ok(Some(holder)) => Some(Skipped::Held(holder)),
        Ok(None) => None,
        Err(error) => {
            warn!("Cannot check whether {} is running: {error}", job.name);
            None
        }
    }
}

/// Which of `jobs` starts first and when, with its jitter; `None` if none is scheduled.
pub async fn find_next(runner: &Runner, jobs: &[Job]) -> db::Result<Option<(Timestamp, JobName)>> {
    let (skipped, now) = (runner.list_skipped(jobs, Selection::Due).await?, runner.clock().now());
    let starts = jobs.iter().zip(skipped).filter_map(|(job, skipped)| {
        let due_at = match skipped {
            None => now,
            Some(Skipped::NotDue(next)) => next?,
            Some(_) => return None,
        };
        Some((due_at.plus(job.schedule.jitter(job.name.as_str())), job.name.clone()))
    });
    Ok(starts.min())
}

/// The jobs to start now: due, not running here, and past their jitter.
async fn due(
    runner: &Runner,
    jobs: &[Job],
    running: &HashSet<JobName>,
    seen_due: &mut BTreeMap<JobName, Timestamp>,
) -> Vec<Job> {
    let waiting: Vec<Job> = jobs.iter().filter(|job| !running.contains(&job.name)).cloned().collect();
    let skipped = match runner.list_skipped(&waiting, Selection::Due).await {
        Ok(skipped) => skipped,
        Err(error) => {
            warn!("Cannot find out which jobs are due: {error}");
            return Vec::new();
        }
    };
    let now = runner.clock().now();
    let mut start = Vec::new();
    if let Some(Skipped::Moved(to)) = skipped.iter().find_map(Option::as_ref) {
        warn!("Nothing runs here any more: everything was moved to {to}. Restart with the new [store] url");
    }
    for (job, skipped) in waiting.into_iter().zip(skipped) {
        if skipped.is_some() {
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

/// The time until the next scheduled point or the end of a due job's jitter, at most [`POLL_EVERY`].
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
