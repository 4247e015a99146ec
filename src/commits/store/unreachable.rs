//! Unreachable commits: the graph to find them by, and the marks, a limited number of rows at a time.

use super::pages::BranchRef;
use crate::commits::model::Commit;
use crate::commits::reach;
use crate::db::{self, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// A piece of the graph of a branch.
#[derive(Debug, Default)]
pub struct Edges {
    /// From child to parent, by their keys.
    pub edges: Vec<(u64, u64)>,
    /// The last commit; `None` when there are no more.
    pub last: Option<String>,
}

/// The parents of up to `limit` commits that were walked on a branch, stored or not, and sort after the commit `after`.
pub fn list_edges(tx: &mut Tx<'_>, place: BranchRef<'_>, after: &str, limit: usize) -> db::Result<Edges> {
    let mut found = Edges::default();
    tx.each(
        sql!(
            "SELECT sha, parents FROM commits
             WHERE project_id = ?1 AND branch_name = ?2 AND sha > ?3 AND parents IS NOT NULL
             UNION ALL
             SELECT sha, parents FROM commits_left_out
             WHERE project_id = ?1 AND branch_name = ?2 AND sha > ?3
             ORDER BY sha LIMIT ?4"
        ),
        params![place.project_id, place.branch_name, after, limit],
        |row| {
            let child = row.text(0)?;
            found.last = Some(child.to_owned());
            let child = reach::key(child);
            found
                .edges
                .extend(row.text(1)?.split_ascii_whitespace().map(|parent| (child, reach::key(parent))));
            Ok(())
        },
    )?;
    Ok(found)
}

/// Up to `limit` SHAs of the commits stored on a branch that sort after `after`, including marked ones: the index alone
/// answers this query.
pub fn list_stored(
    tx: &mut Tx<'_>,
    place: BranchRef<'_>,
    after: &str,
    limit: usize,
) -> db::Result<Vec<String>> {
    tx.list(
        sql!(
            "SELECT sha FROM commits WHERE project_id = ?1 AND branch_name = ?2 AND sha > ?3
             ORDER BY project_id, branch_name, sha LIMIT ?4"
        ),
        params![place.project_id, place.branch_name, after, limit],
        |row| row.get(0),
    )
}

/// To be called before many commits are marked.
pub fn prepare_marking(tx: &mut Tx<'_>) -> db::Result<()> {
    db::analyze(tx, "commits")
}

/// Marks commits that the branch no longer contains; returns how many were not marked before.
///
/// From the first mark on the branch has no complete head: some commits reachable from the old one are already marked,
/// and if this is interrupted and never continued, only a walk of the whole history corrects it.
pub fn mark(tx: &mut Tx<'_>, place: BranchRef<'_>, shas: &[String], now: Timestamp) -> db::Result<u64> {
    let mut marked = 0;
    for sha in shas {
        marked += tx.execute(
            sql!(
                "UPDATE commits SET unreachable_since = ?4
                 WHERE project_id = ?1 AND branch_name = ?2 AND sha = ?3 AND unreachable_since IS NULL"
            ),
            params![place.project_id, place.branch_name, sha, now],
        )?;
    }
    if marked > 0 {
        tx.execute(
            sql!(
                "UPDATE branches SET complete_head = NULL, walking_lost = walking_lost + ?3, changes = changes + 1
                 WHERE project_id = ?1 AND branch_name = ?2"
            ),
            params![place.project_id, place.branch_name, marked],
        )?;
    }
    Ok(marked)
}

/// How many commits the current walk has marked.
pub fn count_lost(tx: &mut Tx<'_>, place: BranchRef<'_>) -> db::Result<i64> {
    tx.count(
        sql!("SELECT walking_lost FROM branches WHERE project_id = ?1 AND branch_name = ?2"),
        params![place.project_id, place.branch_name],
    )
}

/// Unmarks the commits of a page, which are reachable again.
pub fn reset(tx: &mut Tx<'_>, place: BranchRef<'_>, commits: &[Commit]) -> db::Result<u64> {
    let mut back = 0;
    for commit in commits {
        back += tx.execute(
            sql!(
                "UPDATE commits SET unreachable_since = NULL
                 WHERE project_id = ?1 AND branch_name = ?2 AND sha = ?3 AND unreachable_since IS NOT NULL"
            ),
            params![place.project_id, place.branch_name, &*commit.sha],
        )?;
    }
    if back > 0 {
        // An interrupted sweep may have marked and counted them.
        tx.execute(
            sql!(
                "UPDATE branches SET changes = changes + 1,
                   walking_lost = CASE WHEN walking_lost > ?3 THEN walking_lost - ?3 ELSE 0 END
                 WHERE project_id = ?1 AND branch_name = ?2"
            ),
            params![place.project_id, place.branch_name, back],
        )?;
    }
    Ok(back)
}
