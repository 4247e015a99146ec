//! Which process checks which blogs of a run: a run is divided into chunks of 64 blogs, and each is processed under a
//! claim.
//!
//! A chunk has an owner, a fence that increases with every claim, and an end by the database's clock. The results of
//! its blogs are written together with [`put_progress`], which returns whether the chunk is still ours. So a worker
//! that stalled can no longer write, and a blog that one worker has checked is not checked by the next.

use crate::blogs::report::RoundCounts;
use crate::db::{self, ToValue as _, Tx, Value};
use crate::id::{JobName, Owner};
use crate::ledger::{lease, presence};
use crate::{params, sql, sql_rows};

crate::migration!(10, "blog chunks", "../../../migrations/0010_blog_chunks.sql");
crate::migration!(14, "pending chunks", "../../../migrations/0014_pending_chunks.sql");

/// Blogs of a chunk: one bit each in `pending`.
pub const CHUNK: usize = 64;

/// A chunk that its owner may process until another process takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkClaim {
    /// The run: the fence of the job's lease when it began.
    pub round: i64,
    /// Its blogs are those from `number * CHUNK` on, in the order of the config.
    pub number: usize,
    fence: i64,
}

/// The progress of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkProgress {
    /// A bit for each blog that is still to be checked.
    pub pending: u64,
    /// The counts of the others.
    pub counts: RoundCounts,
}

/// The blogs of a job as a run shares them: processes whose configs differ do not share a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlogList {
    /// A hash of the blogs, their settings and their order.
    pub hash: String,
    pub count: usize,
}

/// Lays out a run with every blog pending.
pub fn open(tx: &mut Tx<'_>, job: &JobName, round: i64, list: &BlogList) -> db::Result<()> {
    tx.execute(sql!("DELETE FROM blog_chunks WHERE job_name = ?1"), params![job])?;
    let counts = super::text(&RoundCounts::default());
    let values: Vec<Value<'_>> = (0i64..)
        .zip((0..list.count).step_by(CHUNK))
        .flat_map(|(number, first)| {
            let blogs = (list.count - first).min(CHUNK);
            [
                job.to_value(),
                Value::Int(number),
                Value::Int(round),
                list.hash.to_value(),
                Value::Int((u64::MAX >> (CHUNK - blogs)).cast_signed()),
                counts.to_value(),
            ]
        })
        .collect();
    tx.execute_rows(
        sql_rows!("INSERT INTO blog_chunks (job_name, number, round, list_hash, pending, counts) {rows}"),
        &values,
    )?;
    Ok(())
}

/// Whether the last run that was laid out had these blogs, so that it can be continued.
pub fn is_same_list(tx: &mut Tx<'_>, job: &JobName, list: &BlogList) -> db::Result<bool> {
    let text = sql!("SELECT COUNT(*) FROM blog_chunks WHERE job_name = ?1 AND list_hash = ?2");
    Ok(tx.count(text, params![job, list.hash])? > 0)
}

/// Claims a free chunk with pending blogs.
///
/// The outer `WHERE` repeats the inner one on purpose: on PostgreSQL two workers can pick the same row in the
/// subquery, and only the repeated test stops the second. With `IN` instead of `=` the subquery may be run once per
/// row, and each time take another chunk.
pub fn claim(
    tx: &mut Tx<'_>,
    job: &JobName,
    list: &BlogList,
    owner: &Owner,
) -> db::Result<Option<(ChunkClaim, ChunkProgress)>> {
    let now = tx.now();
    tx.find(
        sql!(
            "UPDATE blog_chunks SET lease_owner = ?3, lease_fence = lease_fence + 1, lease_until = ?5
             WHERE job_name = ?1 AND number = (
                 SELECT c.number FROM blog_chunks c
                 WHERE c.job_name = ?1 AND c.list_hash = ?2 AND c.pending <> 0
                   AND (c.lease_until IS NULL OR c.lease_until <= ?4 OR c.lease_until > ?6)
                 ORDER BY c.number LIMIT 1 {skip_locked})
               AND list_hash = ?2 AND pending <> 0
               AND (lease_until IS NULL OR lease_until <= ?4 OR lease_until > ?6)
             RETURNING round, number, lease_fence, pending, counts"
        ),
        params![job, list.hash, owner, now, now.plus(lease::LENGTH), lease::latest_end(now)],
        |row| {
            let number = usize::try_from(row.get::<i64>("number")?).unwrap_or(0);
            let claim = ChunkClaim { round: row.get("round")?, number, fence: row.get("lease_fence")? };
            let pending = row.get::<i64>("pending")?.cast_unsigned();
            let counts = serde_json::from_str(&row.get::<String>("counts")?).unwrap_or_default();
            Ok((claim, ChunkProgress { pending, counts }))
        },
    )
}

/// Whether a free chunk is left.
pub fn has_free(tx: &mut Tx<'_>, job: &JobName, list: &BlogList) -> db::Result<bool> {
    let now = tx.now();
    let free = tx.count(
        sql!(
            "SELECT COUNT(*) FROM blog_chunks WHERE job_name = ?1 AND list_hash = ?2 AND pending <> 0
               AND (lease_until IS NULL OR lease_until <= ?3 OR lease_until > ?4)"
        ),
        params![job, list.hash, now, lease::latest_end(now)],
    )?;
    Ok(free > 0)
}

/// Writes the progress of a chunk and extends its claim; `false` when it is no longer ours.
///
/// The row stays locked until COMMIT, so a transaction that does this before it writes anything else is fenced.
pub fn put_progress(
    tx: &mut Tx<'_>,
    job: &JobName,
    owner: &Owner,
    claim: &ChunkClaim,
    progress: &ChunkProgress,
) -> db::Result<bool> {
    let now = tx.now();
    tx.execute_one(
        sql!(
            "UPDATE blog_chunks SET pending = ?6, counts = ?7, lease_until = ?9
             WHERE job_name = ?1 AND number = ?2 AND round = ?3 AND lease_owner = ?4 AND lease_fence = ?5
               AND lease_until > ?8"
        ),
        params![
            job,
            claim.number,
            claim.round,
            owner,
            claim.fence,
            progress.pending.cast_signed(),
            super::text(&progress.counts),
            now,
            now.plus(lease::LENGTH)
        ],
    )
}

/// Extends all claims of `owner`.
pub fn renew(tx: &mut Tx<'_>, job: &JobName, owner: &Owner) -> db::Result<()> {
    let now = tx.now();
    tx.run(
        sql!(
            "UPDATE blog_chunks SET lease_until = ?4
             WHERE job_name = ?1 AND lease_owner = ?2 AND pending <> 0 AND lease_until > ?3"
        ),
        params![job, owner, now, now.plus(lease::LENGTH)],
    )
}

/// Releases the chunks of `owner`; another process checks their pending blogs.
pub fn release(tx: &mut Tx<'_>, job: &JobName, owner: &str) -> db::Result<()> {
    tx.run(
        sql!(
            "UPDATE blog_chunks SET lease_owner = NULL, lease_until = NULL
             WHERE job_name = ?1 AND lease_owner = ?2 AND pending <> 0"
        ),
        params![job, owner],
    )
}

/// Releases the chunks of dead processes of this machine.
pub fn release_gone(tx: &mut Tx<'_>, job: &JobName) -> db::Result<()> {
    let owners: Vec<String> = tx.list(
        sql!(
            "SELECT DISTINCT lease_owner FROM blog_chunks
             WHERE job_name = ?1 AND pending <> 0 AND lease_owner IS NOT NULL"
        ),
        params![job],
        |row| row.get(0),
    )?;
    owners.iter().filter(|owner| presence::is_gone(owner)).try_for_each(|owner| release(tx, job, owner))
}

/// The counts of all workers in the last run; `None` while blogs are pending.
pub fn find_counts(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Option<RoundCounts>> {
    let mut sum = Some(RoundCounts::default());
    tx.each(
        sql!("SELECT pending, counts FROM blog_chunks WHERE job_name = ?1 ORDER BY number"),
        params![job],
        |row| {
            let is_done = row.get::<i64>("pending")? == 0;
            let counts: String = row.get("counts")?;
            sum = sum.take().filter(|_| is_done);
            if let Some(sum) = &mut sum {
                sum.add(serde_json::from_str(&counts).unwrap_or_default());
            }
            Ok(())
        },
    )?;
    Ok(sum)
}
