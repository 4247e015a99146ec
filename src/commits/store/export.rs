//! Commits for export, in pages by their key.

use super::reading::CommitRow;
use crate::db::{self, FromRow, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// The last commit of a page: where the next one begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct After {
    pub project_id: i64,
    pub branch_name: String,
    pub sha: String,
}

/// The next commits after `after`, of one host or of all, committed in `since..until`.
///
/// Without a join, so that every page uses the index of the key and never sorts everything.
pub fn list_after(
    tx: &mut Tx<'_>,
    after: &After,
    host: Option<&str>,
    (since, until): (Timestamp, Timestamp),
    limit: usize,
) -> db::Result<Vec<(CommitRow, After)>> {
    tx.list(
        sql!(
            "SELECT (SELECT p.path FROM projects p WHERE p.project_id = c.project_id) AS project, c.branch_name, c.sha,
               c.author_name, c.committed_date_utc, c.additions, c.deletions, c.stats_missing,
               c.unreachable_since, c.is_merge, c.title, c.project_id
             FROM commits c
             WHERE (c.project_id, c.branch_name, c.sha) > (?1, ?2, ?3)
               AND (CAST(?4 AS TEXT) IS NULL OR c.project_id IN (SELECT project_id FROM projects WHERE host = ?4))
               AND c.committed_date_utc >= ?5 AND c.committed_date_utc < ?6
             ORDER BY c.project_id, c.branch_name, c.sha LIMIT ?7"
        ),
        params![after.project_id, after.branch_name, after.sha, host, since, until, limit],
        |row| {
            let commit = CommitRow::from_row(row)?;
            let after = After {
                project_id: row.get("project_id")?,
                branch_name: commit.branch_name.clone(),
                sha: commit.sha.clone(),
            };
            Ok((commit, after))
        },
    )
}
