//! Writes of runs and their targets; every write for a target checks the fence of its lease.

use super::super::model::{RunRow, Target, TargetStatus};
use super::runs::{find_run, find_running};
use crate::commits::store::branches;
use crate::db::{self, ToValue, Tx};
use crate::id::{Owner, RunId};
use crate::ledger::{lease, presence};
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql, sql_rows};

/// A claimed target, ours until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The run it belongs to.
    pub run_id: RunId,
    pub project_id: i64,
    pub branch_name: String,
    owner: Owner,
    fence: i64,
}

/// A target that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Commits that the run stored for it.
    pub stored: i64,
    /// Whether it was the last target of the run.
    pub is_last: bool,
}

/// Registers a run with all its targets; returns the running one instead, if there is one.
///
/// The statement that adds the run does nothing when another is running, so of two processes that begin at once one
/// loses and learns which run won.
pub fn register(
    tx: &mut Tx<'_>,
    run_id: RunId,
    job_name: Option<&str>,
    targets: &[Target],
) -> db::Result<Result<RunRow, RunRow>> {
    if let Some(running) = find_running(tx)? {
        return Ok(Err(running));
    }
    let now = tx.now();
    let added = tx.execute(
        sql!(
            "INSERT INTO bulk_collection_runs (run_id, started_at_utc, status, total_targets, job_name)
             VALUES (?1, ?2, 'running', ?3, ?4) ON CONFLICT DO NOTHING"
        ),
        params![run_id, now, targets.len(), job_name],
    )?;
    if added == 0 {
        return Err(db::Error::Collided("another run was registered at the same moment".into()));
    }
    let id = run_id.to_string();
    let values: Vec<_> = targets
        .iter()
        .flat_map(|target| {
            [
                id.to_value(),
                target.project_id.to_value(),
                target.branch_name.to_value(),
                target.host.to_value(),
                target.job_name.to_value(),
                TargetStatus::Pending.word().to_value(),
            ]
        })
        .collect();
    tx.execute_rows(
        sql_rows!(
            "INSERT INTO bulk_collection_results (run_id, project_id, branch_name, host, job_name, status) {rows}"
        ),
        &values,
    )?;
    match find_run(tx, &run_id)? {
        Some(run) => Ok(Ok(run)),
        None => Err(db::Error::Statement("a run that was just added is not there".into())),
    }
}

/// Claims a free pending target of `job` on `host`.
///
/// The outer `WHERE` repeats the inner one on purpose: on PostgreSQL two workers can pick the same row in the subquery,
/// and only the repeated test stops the second. With `IN` instead of `=` the subquery may be run once per row, and each
/// time claim another target, which would stay idle until its lease ends.
pub fn claim(
    tx: &mut Tx<'_>,
    run_id: &RunId,
    host: &str,
    job: &str,
    owner: &Owner,
) -> db::Result<Option<Claimed>> {
    let now = tx.now();
    let claimed = tx.find(
        sql!(
            "UPDATE bulk_collection_results
             SET lease_owner = ?3, lease_fence = lease_fence + 1, lease_until = ?5
             WHERE (run_id, project_id, branch_name) = (
                 SELECT r.run_id, r.project_id, r.branch_name FROM bulk_collection_results r
                 WHERE r.run_id = ?1 AND r.status = 'pending' AND r.host = ?2 AND r.job_name = ?6
                   AND (r.lease_until IS NULL OR r.lease_until <= ?4 OR r.lease_until > ?7)
                 LIMIT 1 {skip_locked})
               AND status = 'pending' AND (lease_until IS NULL OR lease_until <= ?4 OR lease_until > ?7)
               AND EXISTS (SELECT 1 FROM bulk_collection_runs b WHERE b.run_id = ?1 AND b.status = 'running')
             RETURNING project_id, branch_name, lease_fence"
        ),
        params![run_id, host, owner, now, now.plus(lease::LENGTH), job, lease::latest_end(now)],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok(claimed.map(|(project_id, branch_name, fence)| Claimed {
        run_id: *run_id,
        project_id,
        branch_name,
        owner: owner.clone(),
        fence,
    }))
}

/// Extends the lease, counts `stored` new commits, and returns whether the target is still ours.
///
/// The row stays locked until COMMIT, so a transaction that begins with this is fenced as a whole.
pub fn renew(tx: &mut Tx<'_>, claimed: &Claimed, stored: u64) -> db::Result<bool> {
    let now = tx.now();
    tx.execute_one(
        sql!(
            "UPDATE bulk_collection_results SET lease_until = ?7, stored_count = stored_count + ?8
             WHERE run_id = ?1 AND project_id = ?2 AND branch_name = ?3 AND status = 'pending'
               AND lease_owner = ?4 AND lease_fence = ?5 AND lease_until > ?6"
        ),
        params![
            claimed.run_id,
            claimed.project_id,
            claimed.branch_name,
            claimed.owner,
            claimed.fence,
            now,
            now.plus(lease::LENGTH),
            stored
        ],
    )
}

/// Releases an uncompleted target; the next worker continues it.
pub fn release(tx: &mut Tx<'_>, claimed: &Claimed) -> db::Result<()> {
    tx.run(
        sql!(
            "UPDATE bulk_collection_results SET lease_owner = NULL, lease_until = NULL
             WHERE run_id = ?1 AND project_id = ?2 AND branch_name = ?3 AND lease_owner = ?4 AND lease_fence = ?5"
        ),
        params![claimed.run_id, claimed.project_id, claimed.branch_name, claimed.owner, claimed.fence],
    )
}

/// Releases the targets of dead processes in a run.
pub fn release_gone(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<()> {
    let owners: Vec<String> = tx.list(
        sql!(
            "SELECT DISTINCT lease_owner FROM bulk_collection_results
             WHERE run_id = ?1 AND status = 'pending' AND lease_owner IS NOT NULL"
        ),
        params![run_id],
        |row| row.get(0),
    )?;
    for owner in owners.iter().filter(|owner| presence::is_gone(owner)) {
        tx.execute(
            sql!(
                "UPDATE bulk_collection_results SET lease_owner = NULL, lease_until = NULL
                 WHERE run_id = ?1 AND status = 'pending' AND lease_owner = ?2"
            ),
            params![run_id, owner],
        )?;
    }
    Ok(())
}

/// Completes a target, successfully or with a reason, updates the counters of its run, and completes the run after the
/// last one. `None` when the lease was lost: then nothing is written.
pub fn complete_target(
    tx: &mut Tx<'_>,
    claimed: &Claimed,
    outcome: Result<(), &Phrase>,
) -> db::Result<Option<Completed>> {
    let now = tx.now();
    let status = if outcome.is_ok() { TargetStatus::Success } else { TargetStatus::Failed };
    let stored = tx.find(
        sql!(
            "UPDATE bulk_collection_results
             SET status = ?6, error_message = ?7, processed_at_utc = ?8,
               new_commits_count = CASE WHEN ?6 = 'success' THEN stored_count END,
               lease_owner = NULL, lease_until = NULL
             WHERE run_id = ?1 AND project_id = ?2 AND branch_name = ?3 AND status = 'pending'
               AND lease_owner = ?4 AND lease_fence = ?5 AND lease_until > ?8
             RETURNING stored_count"
        ),
        params![
            claimed.run_id,
            claimed.project_id,
            claimed.branch_name,
            claimed.owner,
            claimed.fence,
            status.word(),
            outcome.err().map(Phrase::to_stored),
            now
        ],
        |row| row.get::<i64>(0),
    )?;
    let Some(stored) = stored else { return Ok(None) };
    note_failure(tx, claimed, outcome.err(), now)?;
    let (good, bad) = if outcome.is_ok() { (1, 0) } else { (0, 1) };
    let is_last = count_completed(tx, &claimed.run_id, good, bad)?;
    Ok(Some(Completed { stored, is_last }))
}

/// Records on the branch whether and why it fails, and on the result whether that was known.
fn note_failure(tx: &mut Tx<'_>, claimed: &Claimed, why: Option<&Phrase>, now: Timestamp) -> db::Result<()> {
    let (project_id, branch) = (claimed.project_id, claimed.branch_name.as_str());
    let Some(why) = why else { return branches::reset_failing(tx, project_id, branch) };
    if !branches::mark_failing(tx, project_id, branch, why, now)? {
        tx.execute(
            sql!(
                "UPDATE bulk_collection_results SET is_known_failure = 1
                 WHERE run_id = ?1 AND project_id = ?2 AND branch_name = ?3"
            ),
            params![claimed.run_id, project_id, branch],
        )?;
    }
    Ok(())
}

/// Updates the counters of a run; `true` when that was its last target.
fn count_completed(tx: &mut Tx<'_>, run_id: &RunId, good: u64, bad: u64) -> db::Result<bool> {
    let now = tx.now();
    tx.execute(
        sql!(
            "UPDATE bulk_collection_runs SET completed_count = completed_count + ?2,
               success_count = success_count + ?2, failed_count = failed_count + ?3 WHERE run_id = ?1"
        ),
        params![run_id, good, bad],
    )?;
    tx.execute_one(
        sql!(
            "UPDATE bulk_collection_runs SET status = 'completed', completed_at_utc = ?2
             WHERE run_id = ?1 AND status = 'running' AND completed_count + failed_count = total_targets"
        ),
        params![run_id, now],
    )
}

/// Reassigns the free pending targets of `from` on `host` to the job `to`.
pub fn reassign(
    tx: &mut Tx<'_>,
    run_id: &RunId,
    host: &str,
    from: Option<&str>,
    to: &str,
) -> db::Result<u64> {
    let now = tx.now();
    tx.execute(
        sql!(
            "UPDATE bulk_collection_results SET job_name = ?4
             WHERE run_id = ?1 AND host = ?2 AND COALESCE(job_name, '') = ?3 AND status = 'pending'
               AND (lease_until IS NULL OR lease_until <= ?5 OR lease_until > ?6)"
        ),
        params![run_id, host, from.unwrap_or_default(), to, now, lease::latest_end(now)],
    )
}

/// Marks the free pending targets of `job` on `host` as failed; returns how many, and whether the run has ended.
pub fn give_up(
    tx: &mut Tx<'_>,
    run_id: &RunId,
    host: &str,
    job: Option<&str>,
    why: &Phrase,
) -> db::Result<(u64, bool)> {
    let now = tx.now();
    let failed = tx.execute(
        sql!(
            "UPDATE bulk_collection_results
             SET status = 'failed', error_message = ?4, processed_at_utc = ?5, lease_owner = NULL, lease_until = NULL
             WHERE run_id = ?1 AND host = ?2 AND COALESCE(job_name, '') = ?3 AND status = 'pending'
               AND (lease_until IS NULL OR lease_until <= ?5 OR lease_until > ?6)
               AND EXISTS (SELECT 1 FROM bulk_collection_runs b WHERE b.run_id = ?1 AND b.status = 'running')"
        ),
        params![run_id, host, job.unwrap_or_default(), why.to_stored(), now, lease::latest_end(now)],
    )?;
    match failed {
        0 => Ok((0, false)),
        failed => Ok((failed, count_completed(tx, run_id, 0, failed)?)),
    }
}

/// Cancels a running run; its workers lose their leases at once. `false` when it is not running.
pub fn cancel(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<bool> {
    let now = tx.now();
    let cancelled = tx.execute(
        sql!(
            "UPDATE bulk_collection_runs SET status = 'cancelled', completed_at_utc = ?2
             WHERE run_id = ?1 AND status = 'running'"
        ),
        params![run_id, now],
    )?;
    tx.execute(
        sql!(
            "UPDATE bulk_collection_results SET lease_owner = NULL, lease_until = NULL
             WHERE run_id = ?1 AND status = 'pending' AND lease_owner IS NOT NULL"
        ),
        params![run_id],
    )?;
    Ok(cancelled == 1)
}

/// Marks the end of a run as announced; `false` when another process was first.
pub fn mark_announced(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<bool> {
    let now = tx.now();
    tx.execute_one(
        sql!("UPDATE bulk_collection_runs SET told_at = ?2 WHERE run_id = ?1 AND told_at IS NULL"),
        params![run_id, now],
    )
}
