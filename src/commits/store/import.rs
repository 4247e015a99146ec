//! Projects and commits of another program: added unchanged.

use std::collections::BTreeSet;

use super::{counts, projects};
use crate::commits::model::RemoteProject;
use crate::db::{self, Tx, Value};
use crate::time::Timestamp;
use crate::{params, sql, sql_rows};

/// A commit of another program, under our number of its project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedCommit {
    pub project_id: i64,
    pub branch_name: String,
    pub sha: String,
    pub author_name: String,
    /// Its author's address, a fingerprint of it, or the name when there is none.
    pub author_email: String,
    pub committed_at: Timestamp,
    pub additions: i64,
    pub deletions: i64,
}

/// Adds a project unless it is known; returns our number and whether it was new.
pub fn add_project(
    tx: &mut Tx<'_>,
    host: &str,
    remote: &RemoteProject,
    now: Timestamp,
) -> db::Result<(i64, bool)> {
    if let Some(project_id) = projects::find_id(tx, host, remote.remote_id)? {
        return Ok((project_id, false));
    }
    Ok((projects::put(tx, host, remote, now)?.project_id, true))
}

/// Adds commits, all columns of many rows in few statements; returns how many were new.
pub fn add_commits(tx: &mut Tx<'_>, commits: &[ImportedCommit]) -> db::Result<u64> {
    let mut values: Vec<Value<'_>> = Vec::with_capacity(commits.len() * COLUMNS);
    for commit in commits {
        let text = |text: &str| Value::Text(text.to_owned().into());
        values.extend([
            Value::Int(commit.project_id),
            text(&commit.branch_name),
            text(&commit.sha),
            text(&commit.author_name),
            text(&commit.author_email),
            Value::Text(commit.committed_at.to_string().into()),
            Value::Int(commit.additions),
            Value::Int(commit.deletions),
        ]);
    }
    let added = tx.execute_rows(
        sql_rows!(
            "INSERT INTO commits (project_id, branch_name, sha, author_name, author_email, committed_date_utc,
               additions, deletions) {rows} ON CONFLICT DO NOTHING"
        ),
        &values,
    )?;
    if added > 0 {
        let branches: BTreeSet<_> = commits.iter().map(|one| (one.project_id, &one.branch_name)).collect();
        for (project_id, branch_name) in branches {
            counts::mark_changed(tx, project_id, branch_name)?;
        }
    }
    Ok(added)
}

const COLUMNS: usize = 8;

/// Adds missing rows of branches that have commits, so that they are listed and counted; returns how many.
pub fn add_branches(tx: &mut Tx<'_>) -> db::Result<u64> {
    let mut added = 0;
    for (project_id, branch_name) in super::reading::list_pairs(tx)? {
        added += tx.execute(
            sql!(
                "INSERT INTO branches (project_id, branch_name, changes) VALUES (?1, ?2, 1) ON CONFLICT DO NOTHING"
            ),
            params![project_id, branch_name],
        )?;
    }
    Ok(added)
}
