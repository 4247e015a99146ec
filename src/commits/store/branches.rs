//! Branches: which are collected, how far, and whether their history has gaps.

use crate::commits::model::{BranchState, Walk};
use crate::commits::run::Target;
use crate::commits::run::decide::Owner;
use crate::db::{self, FromRow, Row, Tx};
use crate::id::JobName;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql};

/// A branch in listings.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BranchRow {
    pub project_id: i64,
    pub project: String,
    pub branch_name: String,
    pub commits: i64,
    /// The seed's checkpoint: the newest commit date.
    pub last_commit_at: Option<Timestamp>,
    /// The commit up to which everything is stored.
    pub complete_head: Option<String>,
    /// Since when everything is stored; `None` is from the beginning.
    pub complete_since: Option<Timestamp>,
    /// Whether a walk is unfinished.
    pub walking: bool,
    /// Whether every parent of every commit is stored or excluded; `None` before the first walk has ended.
    pub closed: Option<bool>,
    /// Stored commits that the branch no longer contains.
    pub unreachable: i64,
    /// Commits without line counts.
    pub stats_missing: i64,
    /// Unreadable commits.
    pub unreadable: i64,
    /// When it was last walked to the end.
    pub last_walk_at: Option<Timestamp>,
    /// Since when it is gone from its host.
    pub deleted_at: Option<Timestamp>,
    /// Since when it is not collected any more, by `branch rm`.
    pub ignored_at: Option<Timestamp>,
    /// Since when it cannot be collected.
    pub failing_since: Option<Timestamp>,
    pub failing_why: Option<Phrase>,
}

/// How far a branch has been collected.
pub fn find_state(tx: &mut Tx<'_>, project_id: i64, branch_name: &str) -> db::Result<BranchState> {
    let state = tx.find(
        sql!(
            "SELECT complete_head, complete_since, deleted_at, walking_head, walking_base, walking_page,
               walking_since, walking_open, walking_met_base
             FROM branches WHERE project_id = ?1 AND branch_name = ?2"
        ),
        params![project_id, branch_name],
        read_state,
    )?;
    let unreachable = tx.find(
        sql!(
            "SELECT 1 FROM commits
             WHERE project_id = ?1 AND branch_name = ?2 AND unreachable_since IS NOT NULL LIMIT 1"
        ),
        params![project_id, branch_name],
        |row| row.get::<i64>(0),
    )?;
    Ok(BranchState { has_unreachable: unreachable.is_some(), ..state.unwrap_or_default() })
}

fn read_state(row: &Row<'_>) -> db::Result<BranchState> {
    let head: Option<String> = row.get(3)?;
    let page: Option<String> = row.get(5)?;
    let open: Option<String> = row.get(7)?;
    let walking = match (head, page.and_then(|page| page.parse().ok())) {
        (Some(head), Some(page)) => Some(Walk {
            head,
            base: row.get(4)?,
            page,
            since: row.get(6)?,
            open: open.and_then(|open| serde_json::from_str(&open).ok()).unwrap_or_default(),
            met_base: row.get(8)?,
        }),
        _ => None,
    };
    Ok(BranchState {
        complete_head: row.get(0)?,
        complete_since: row.get(1)?,
        deleted_at: row.get(2)?,
        walking,
        has_unreachable: false,
    })
}

/// Adds the row of a branch unless it exists.
pub fn add(tx: &mut Tx<'_>, project_id: i64, branch_name: &str) -> db::Result<bool> {
    tx.execute_one(
        sql!("INSERT INTO branches (project_id, branch_name) VALUES (?1, ?2) ON CONFLICT DO NOTHING"),
        params![project_id, branch_name],
    )
}

/// Adds a branch that the config does not name to `job` (`branch add`).
pub fn put_added(
    tx: &mut Tx<'_>,
    project_id: i64,
    branch_name: &str,
    job: &JobName,
    now: Timestamp,
) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO branches (project_id, branch_name, job_name, added_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (project_id, branch_name) DO UPDATE SET job_name = excluded.job_name,
               added_at = excluded.added_at, ignored_at = NULL"
        ),
        params![project_id, branch_name, job, now],
    )
}

/// Assigns a branch to `job`.
pub fn put_owner(
    tx: &mut Tx<'_>,
    project_id: i64,
    branch_name: &str,
    job: &JobName,
    is_named: bool,
) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO branches (project_id, branch_name, job_name, is_named) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (project_id, branch_name) DO UPDATE SET job_name = excluded.job_name,
               is_named = excluded.is_named"
        ),
        params![project_id, branch_name, job, is_named],
    )
}

/// A branch, with everything that decides which job collects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub project_id: i64,
    pub branch_name: String,
    pub owner: Owner,
    /// Whether the config of that job names it.
    pub is_named: bool,
    /// Whether `branch add` added it.
    pub is_added: bool,
    /// Whether `branch rm` removed it.
    pub is_ignored: bool,
}

/// The branches of a host with their jobs.
pub fn list_owned(tx: &mut Tx<'_>, host: &str) -> db::Result<Vec<Owned>> {
    tx.list(
        sql!(
            "SELECT b.project_id, b.branch_name, b.job_name, b.is_named,
               CASE WHEN b.added_at IS NULL THEN 0 ELSE 1 END, CASE WHEN b.ignored_at IS NULL THEN 0 ELSE 1 END
             FROM branches b JOIN projects p ON p.project_id = b.project_id WHERE p.host = ?1"
        ),
        params![host],
        |row| {
            let (is_named, is_added) = (row.get(3)?, row.get(4)?);
            Ok(Owned {
                project_id: row.get(0)?,
                branch_name: row.get(1)?,
                owner: Owner { job: row.get(2)?, is_wanted: is_named || is_added },
                is_named,
                is_added,
                is_ignored: row.get(5)?,
            })
        },
    )
}

/// Stops collecting a branch (`branch rm`); its commits stay. `false` when it is not known.
pub fn mark_ignored(tx: &mut Tx<'_>, project_id: i64, branch_name: &str, now: Timestamp) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "UPDATE branches SET ignored_at = ?3, added_at = NULL
             WHERE project_id = ?1 AND branch_name = ?2 AND ignored_at IS NULL"
        ),
        params![project_id, branch_name, now],
    )
}

/// Records that a branch cannot be collected; `false` if that was known, for the same reason.
pub fn mark_failing(
    tx: &mut Tx<'_>,
    project_id: i64,
    branch_name: &str,
    why: &Phrase,
    now: Timestamp,
) -> db::Result<bool> {
    let known = tx.find(
        sql!("SELECT failing_why FROM branches WHERE project_id = ?1 AND branch_name = ?2"),
        params![project_id, branch_name],
        |row| row.get::<Option<Phrase>>(0),
    )?;
    let is_known = known.flatten().is_some_and(|known| without_figures(&known) == without_figures(why));
    let is_noted = tx.execute_one(
        sql!(
            "UPDATE branches SET failing_why = ?3, failing_since = COALESCE(failing_since, ?4)
             WHERE project_id = ?1 AND branch_name = ?2"
        ),
        params![project_id, branch_name, why, now],
    )?;
    Ok(is_noted && !is_known)
}

/// A reason without its figures and units, which do not make it another reason: how long to wait, or how often it was
/// tried.
fn without_figures(why: &Phrase) -> String {
    let mut words = Vec::new();
    let mut is_counted = false;
    for word in why.to_string().split_whitespace().map(str::to_owned) {
        let is_figure = word.starts_with(|c: char| c.is_ascii_digit());
        if !is_figure && !is_counted {
            words.push(word);
        }
        is_counted = is_figure;
    }
    words.join(" ")
}

/// Records that a branch can be collected again.
pub fn reset_failing(tx: &mut Tx<'_>, project_id: i64, branch_name: &str) -> db::Result<()> {
    tx.run(
        sql!(
            "UPDATE branches SET failing_why = NULL, failing_since = NULL
             WHERE project_id = ?1 AND branch_name = ?2 AND failing_since IS NOT NULL"
        ),
        params![project_id, branch_name],
    )
}

/// A branch that cannot be collected.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Failing {
    pub project: String,
    pub branch_name: String,
    /// Since when.
    pub since: Timestamp,
    pub why: Phrase,
}

/// Up to `limit` branches that cannot be collected and were not removed, the oldest failure first.
pub fn list_failing(tx: &mut Tx<'_>, limit: usize) -> db::Result<Vec<Failing>> {
    tx.list(
        sql!(
            "SELECT p.path AS project, b.branch_name, b.failing_since AS since, b.failing_why AS why
             FROM branches b JOIN projects p ON p.project_id = b.project_id
             WHERE b.failing_since IS NOT NULL AND b.ignored_at IS NULL AND p.removed_at IS NULL
             ORDER BY b.failing_since LIMIT ?1"
        ),
        params![limit],
        FromRow::from_row,
    )
}

/// Marks a branch as gone from its host; `true` if it was not marked before.
pub fn mark_deleted(tx: &mut Tx<'_>, project_id: i64, branch_name: &str, now: Timestamp) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "UPDATE branches SET deleted_at = ?3
             WHERE project_id = ?1 AND branch_name = ?2 AND deleted_at IS NULL"
        ),
        params![project_id, branch_name, now],
    )
}

/// Clears the mark of a deleted branch, which is back.
pub fn reset_deleted(tx: &mut Tx<'_>, project_id: i64, branch_name: &str) -> db::Result<()> {
    tx.run(
        sql!("UPDATE branches SET deleted_at = NULL WHERE project_id = ?1 AND branch_name = ?2"),
        params![project_id, branch_name],
    )
}

/// The seed's "pairs that have been collected", of one host, plus those added by hand, each with its job.
///
/// The seed's `SELECT DISTINCT` reads every commit; this steps from pair to pair through the index.
pub fn list_collected(tx: &mut Tx<'_>, host: &str) -> db::Result<Vec<Target>> {
    tx.list(
        sql!(concat!(
            "WITH RECURSIVE ",
            pairs!(),
            ",
             wanted (project_id, branch_name) AS (
               SELECT project_id, branch_name FROM pairs WHERE branch_name IS NOT NULL
               UNION
               SELECT project_id, branch_name FROM branches
               WHERE added_at IS NOT NULL OR complete_head IS NOT NULL OR walking_head IS NOT NULL)
             SELECT w.project_id, w.branch_name, p.host, b.job_name FROM wanted w
             JOIN projects p ON p.project_id = w.project_id
             LEFT JOIN branches b ON b.project_id = w.project_id AND b.branch_name = w.branch_name
             WHERE p.host = ?1 AND p.removed_at IS NULL AND b.ignored_at IS NULL
             ORDER BY w.project_id, w.branch_name"
        )),
        params![host],
        FromRow::from_row,
    )
}

/// The branches that a job collects.
pub fn list_of_job(tx: &mut Tx<'_>, job: &JobName) -> db::Result<Vec<(i64, String)>> {
    tx.list(
        sql!(
            "SELECT project_id, branch_name FROM branches WHERE job_name = ?1 AND ignored_at IS NULL
             ORDER BY project_id, branch_name"
        ),
        params![job],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// The branches of one project, or of all, with their figures.
pub fn list(tx: &mut Tx<'_>, project_id: Option<i64>) -> db::Result<Vec<BranchRow>> {
    tx.list(
        sql!(
            "SELECT b.project_id, p.path, b.branch_name,
               (SELECT COUNT(*) FROM commits c
                WHERE c.project_id = b.project_id AND c.branch_name = b.branch_name),
               (SELECT MAX(c.committed_date_utc) FROM commits c
                WHERE c.project_id = b.project_id AND c.branch_name = b.branch_name),
               b.complete_head, b.complete_since,
               CASE WHEN b.walking_head IS NULL THEN 0 ELSE 1 END, b.open_parents,
               (SELECT COUNT(*) FROM commits c WHERE c.project_id = b.project_id
                AND c.branch_name = b.branch_name AND c.unreachable_since IS NOT NULL),
               (SELECT COUNT(*) FROM commits c WHERE c.project_id = b.project_id
                AND c.branch_name = b.branch_name AND c.stats_missing = 1),
               (SELECT COUNT(*) FROM commits_left_out o WHERE o.project_id = b.project_id
                AND o.branch_name = b.branch_name AND o.why = 'unreadable'),
               b.last_walk_at, b.deleted_at, b.ignored_at, b.failing_since, b.failing_why
             FROM branches b JOIN projects p ON p.project_id = b.project_id
             WHERE b.project_id = COALESCE(?1, b.project_id)
             ORDER BY p.host, p.path, b.branch_name"
        ),
        params![project_id],
        |row| {
            let open: Option<i64> = row.get(8)?;
            Ok(BranchRow {
                project_id: row.get(0)?,
                project: row.get(1)?,
                branch_name: row.get(2)?,
                commits: row.get(3)?,
                last_commit_at: row.get(4)?,
                complete_head: row.get(5)?,
                complete_since: row.get(6)?,
                walking: row.get(7)?,
                closed: open.map(|open| open == 0),
                unreachable: row.get(9)?,
                stats_missing: row.get(10)?,
                unreadable: row.get(11)?,
                last_walk_at: row.get(12)?,
                deleted_at: row.get(13)?,
                ignored_at: row.get(14)?,
                failing_since: row.get(15)?,
                failing_why: row.get::<Option<String>>(16)?.as_deref().map(Phrase::from_stored),
            })
        },
    )
}
