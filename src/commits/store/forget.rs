//! Deletes the collected data of a branch, a limited number of rows at a time.

use std::collections::HashSet;

use super::counts;
use super::pages::{self, BranchRef};
use crate::commits::reach;
use crate::db::{self, Tx};
use crate::{params, sql};

/// What would be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Forgotten {
    /// Commits of the branch.
    pub commits: i64,
    /// … that no other branch of the project has.
    pub only_here: i64,
}

/// Counts the commits of a branch.
pub fn count(tx: &mut Tx<'_>, place: BranchRef<'_>) -> db::Result<Forgotten> {
    let mut elsewhere = HashSet::new();
    tx.each(
        sql!("SELECT sha FROM commits WHERE project_id = ?1 AND branch_name <> ?2"),
        params![place.project_id, place.branch_name],
        |row| {
            elsewhere.insert(reach::key(row.text(0)?));
            Ok(())
        },
    )?;
    let mut found = Forgotten { commits: 0, only_here: 0 };
    tx.each(
        sql!("SELECT sha FROM commits WHERE project_id = ?1 AND branch_name = ?2"),
        params![place.project_id, place.branch_name],
        |row| {
            found.commits += 1;
            found.only_here += i64::from(!elsewhere.contains(&reach::key(row.text(0)?)));
            Ok(())
        },
    )?;
    Ok(found)
}

/// Resets how far the branch was collected, before its rows are deleted: if it is ever collected again, it is from the
/// beginning.
pub fn reset_state(tx: &mut Tx<'_>, place: BranchRef<'_>) -> db::Result<()> {
    pages::reset_walk(tx, place)?;
    tx.run(
        sql!(
            "UPDATE branches SET complete_head = NULL, complete_since = NULL, last_walk_at = NULL,
               open_parents = NULL, failing_since = NULL, failing_why = NULL
             WHERE project_id = ?1 AND branch_name = ?2"
        ),
        params![place.project_id, place.branch_name],
    )
}

/// Deletes up to `limit` commits of a branch; returns how many.
pub fn delete_commits(tx: &mut Tx<'_>, place: BranchRef<'_>, limit: usize) -> db::Result<u64> {
    counts::mark_changed(tx, place.project_id, place.branch_name)?;
    tx.execute(
        sql!(
            "DELETE FROM commits WHERE project_id = ?1 AND branch_name = ?2 AND sha IN (
               SELECT c.sha FROM commits c WHERE c.project_id = ?1 AND c.branch_name = ?2
               ORDER BY c.sha LIMIT ?3)"
        ),
        params![place.project_id, place.branch_name, limit],
    )
}

/// Deletes the roots of a project that has no commits left.
pub fn reset_roots(tx: &mut Tx<'_>, project_id: i64) -> db::Result<()> {
    let any = tx.find(
        sql!("SELECT 1 FROM commits WHERE project_id = ?1 ORDER BY project_id, branch_name, sha LIMIT 1"),
        params![project_id],
        |row| row.get::<i64>(0),
    )?;
    if any.is_none() {
        tx.execute(sql!("DELETE FROM commit_roots WHERE project_id = ?1"), params![project_id])?;
    }
    Ok(())
}
