//! What a branch no longer contains: the graph to find it by, and the marks, a bounded number of rows at a time.

use super::pages::BranchRef;
use crate::commits::model::Commit;
use crate::commits::reach;
use crate::db::{self, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// A piece of the graph of a project, and the edge that it ends with.
#[derive(Debug, Default)]
pub struct Edges {
    /// From child to parent, by their keys.
    pub edges: Vec<(u64, u64)>,
    /// Where the next piece begins; `None` when there is nothing more.
    pub last: Option<(String, String)>,
}

/// Up to `limit` edges of a project that come after the edge `after`.
pub fn list_edges(
    tx: &mut Tx<'_>,
    project_id: i64,
    after: &(String, String),
    limit: usize,
) -> db::Result<Edges> {
    let mut found = Edges::default();
    tx.each(
        sql!(
            "SELECT sha, parent_sha FROM commit_parents
             WHERE project_id = ?1 AND (sha, parent_sha) > (?2, ?3)
             ORDER BY project_id, sha, parent_sha LIMIT ?4"
        ),
        params![project_id, after.0, after.1, limit],
        |row| {
            let edge = (row.get::<String>(0)?, row.get::<String>(1)?);
            found.edges.push((reach::key(&edge.0), reach::key(&edge.1)));
            found.last = Some(edge);
            Ok(())
        },
    )?;
    Ok(found)
}

/// Up to `limit` SHAs of the commits stored on a branch that come after `after`, marked ones included: the index alone
/// answers that.
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

/// Do it before many are marked.
pub fn prepare_marking(tx: &mut Tx<'_>) -> db::Result<()> {
    db::analyze(tx, "commits")
}

/// Marks commits that the branch no longer contains; answers how many were not marked before.
///
/// From the first mark on the branch has no complete head: not all that the old one reaches is unmarked any more, and if
/// this is cut off and never continued, only the whole history puts it right.
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

/// How many commits the walk that is under way has marked.
pub fn count_lost(tx: &mut Tx<'_>, place: BranchRef<'_>) -> db::Result<i64> {
    tx.count(
        sql!("SELECT walking_lost FROM branches WHERE project_id = ?1 AND branch_name = ?2"),
        params![place.project_id, place.branch_name],
    )
}

/// The commits of a page are reachable again.
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
        // A sweep that was cut off may have marked them, and has counted them.
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
