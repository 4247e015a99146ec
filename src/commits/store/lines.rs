//! Commits without line counts: the next ones to request, and the results.

use super::{counts, projects};
use crate::db::{self, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// A row that lacks its line counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub project_id: i64,
    /// The project's number on the host.
    pub remote_id: i64,
    pub branch_name: String,
    pub sha: String,
}

impl Missing {
    /// Whether it is that commit, on whatever branch.
    pub fn is_same_commit(&self, other: &Self) -> bool {
        (self.remote_id, &self.sha) == (other.remote_id, &other.sha)
    }
}

/// Up to `limit` rows of a host that lack line counts and were not asked for since `before`.
pub fn list_missing(
    tx: &mut Tx<'_>,
    host: &str,
    before: Timestamp,
    limit: usize,
) -> db::Result<Vec<Missing>> {
    let mut missing = Vec::new();
    for project in projects::list(tx, Some(host))?.into_iter().filter(|project| project.removed_at.is_none())
    {
        let left = limit - missing.len();
        if left == 0 {
            break;
        }
        missing.extend(tx.list(
            sql!(
                "SELECT branch_name, sha FROM commits
                 WHERE project_id = ?1 AND stats_missing = 1 AND stats_tried_at < ?2 AND unreachable_since IS NULL
                 ORDER BY stats_tried_at LIMIT ?3"
            ),
            params![project.project_id, before, left],
            |row| {
                Ok(Missing {
                    project_id: project.project_id,
                    remote_id: project.remote_id,
                    branch_name: row.get(0)?,
                    sha: row.get(1)?,
                })
            },
        )?);
    }
    Ok(missing)
}

/// Writes the line counts of a commit, or that the host does not have them.
pub fn put(tx: &mut Tx<'_>, row: &Missing, lines: Option<(i64, i64)>, now: Timestamp) -> db::Result<()> {
    let (additions, deletions) = lines.unwrap_or_default();
    let filled = tx.execute(
        sql!(
            "UPDATE commits SET additions = ?4, deletions = ?5, stats_missing = ?6, stats_tried_at = ?7
             WHERE project_id = ?1 AND branch_name = ?2 AND sha = ?3 AND stats_missing = 1"
        ),
        params![row.project_id, row.branch_name, row.sha, additions, deletions, lines.is_none(), now],
    )?;
    if filled > 0 && lines.is_some() {
        counts::mark_changed(tx, row.project_id, &row.branch_name)?;
    }
    Ok(())
}
