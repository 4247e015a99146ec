//! Pages of commits: rows, graph and position in one transaction with few statements.

use super::counts;
use crate::commits::model::{Commit, Walk};
use crate::db::{self, Tx, Value};
use crate::id::RunId;
use crate::time::Timestamp;
use crate::{params, sql, sql_rows};

crate::migration!(12, "commit parents", "../../../migrations/0012_commit_parents.sql");

/// Which branch a page belongs to.
#[derive(Clone, Copy, Debug)]
pub struct BranchRef<'a> {
    pub project_id: i64,
    pub branch_name: &'a str,
}

/// Adds the commits of a page of `run_id` that are not older than `since`, and records the others as not stored;
/// returns how many were new.
pub fn add_commits(
    tx: &mut Tx<'_>,
    place: BranchRef<'_>,
    commits: &[Commit],
    since: Option<Timestamp>,
    run_id: &RunId,
) -> db::Result<u64> {
    let BranchRef { project_id, branch_name } = place;
    let mut rows: Vec<Value<'_>> = Vec::with_capacity(commits.len() * COMMIT_COLUMNS);
    let mut left_out: Vec<Value<'_>> = Vec::new();
    for commit in commits {
        if commit.parents.is_empty() {
            add_root(tx, project_id, &commit.sha)?;
        }
        let (why, met_by) = match commit.committed_at {
            Ok(at) if since.is_none_or(|since| at >= since) => {
                let (additions, deletions) = commit.lines.unwrap_or_default();
                rows.extend([
                    Value::Int(project_id),
                    text(branch_name),
                    text(&commit.sha),
                    text(&commit.author_name),
                    text(&commit.author_email),
                    Value::Text(at.to_string().into()),
                    Value::Int(additions),
                    Value::Int(deletions),
                    Value::Int(commit.lines.is_none().into()),
                    Value::Int(commit.is_merge().into()),
                    text(&commit.title),
                    Value::Text(commit.parents.join(" ").into()),
                ]);
                continue;
            }
            Ok(_) => ("before_since", Value::Null),
            Err(_) => ("unreadable", Value::Text(run_id.to_string().into())),
        };
        left_out.extend([
            Value::Int(project_id),
            text(branch_name),
            text(&commit.sha),
            text(why),
            met_by,
            Value::Text(commit.parents.join(" ").into()),
        ]);
    }
    add_left_out(tx, &left_out)?;
    let new = add_rows(tx, &rows)?;
    let mut changed = new;
    if usize::try_from(new).is_ok_and(|new| new < rows.len() / COMMIT_COLUMNS) {
        changed += complete_rows(tx, place, commits)?;
    }
    if changed > 0 {
        counts::mark_changed(tx, project_id, branch_name)?;
    }
    Ok(new)
}

/// Completes stored commits: line counts, or columns that another program did not collect; returns how many.
fn complete_rows(tx: &mut Tx<'_>, place: BranchRef<'_>, commits: &[Commit]) -> db::Result<u64> {
    let mut completed = 0;
    for commit in commits {
        let (additions, deletions) = commit.lines.unwrap_or_default();
        completed += tx.execute(
            sql!(
                "UPDATE commits SET is_merge = ?4, title = ?5, parents = ?9,
                   additions = CASE WHEN stats_missing = 1 THEN ?6 ELSE additions END,
                   deletions = CASE WHEN stats_missing = 1 THEN ?7 ELSE deletions END,
                   stats_missing = CASE WHEN stats_missing = 1 THEN ?8 ELSE stats_missing END
                 WHERE project_id = ?1 AND branch_name = ?2 AND sha = ?3 AND (title IS NULL OR stats_missing = 1)"
            ),
            params![
                place.project_id,
                place.branch_name,
                &*commit.sha,
                commit.is_merge(),
                &*commit.title,
                additions,
                deletions,
                commit.lines.is_none(),
                commit.parents.join(" ")
            ],
        )?;
    }
    Ok(completed)
}

const COMMIT_COLUMNS: usize = 12;

/// Control characters were removed from names and addresses when they were parsed, so there is no NUL to check for.
fn text(text: &str) -> Value<'_> {
    Value::Text(text.into())
}

fn add_rows(tx: &mut Tx<'_>, values: &[Value<'_>]) -> db::Result<u64> {
    tx.execute_rows(
        sql_rows!(
            "INSERT INTO commits (project_id, branch_name, sha, author_name, author_email, committed_date_utc,
               additions, deletions, stats_missing, is_merge, title, parents) {rows} ON CONFLICT DO NOTHING"
        ),
        values,
    )
}

fn add_left_out(tx: &mut Tx<'_>, values: &[Value<'_>]) -> db::Result<u64> {
    tx.execute_rows(
        sql_rows!(
            "INSERT INTO commits_left_out (project_id, branch_name, sha, why, run_id, parents)
             {rows} ON CONFLICT DO NOTHING"
        ),
        values,
    )
}

fn add_root(tx: &mut Tx<'_>, project_id: i64, sha: &str) -> db::Result<()> {
    tx.execute(
        sql!("INSERT INTO commit_roots (project_id, sha) VALUES (?1, ?2) ON CONFLICT DO NOTHING"),
        params![project_id, sha],
    )?;
    Ok(())
}

/// Writes the position of the walk.
pub fn put_walk(tx: &mut Tx<'_>, place: BranchRef<'_>, walk: &Walk) -> db::Result<()> {
    let open = serde_json::to_string(&walk.open).unwrap_or_default();
    tx.execute(
        sql!(
            "INSERT INTO branches (project_id, branch_name, walking_head, walking_base, walking_page,
               walking_since, walking_open, walking_met_base)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (project_id, branch_name) DO UPDATE SET walking_head = excluded.walking_head,
               walking_base = excluded.walking_base, walking_page = excluded.walking_page,
               walking_since = excluded.walking_since, walking_open = excluded.walking_open,
               walking_met_base = excluded.walking_met_base"
        ),
        params![
            place.project_id,
            place.branch_name,
            walk.head,
            walk.base,
            walk.page.to_string(),
            walk.since,
            open,
            walk.met_base
        ],
    )?;
    Ok(())
}

/// Discards an unfinished walk.
pub fn reset_walk(tx: &mut Tx<'_>, place: BranchRef<'_>) -> db::Result<()> {
    tx.execute(
        sql!(
            "UPDATE branches SET walking_head = NULL, walking_base = NULL, walking_page = NULL,
               walking_since = NULL, walking_open = NULL, walking_met_base = 0, walking_lost = 0
             WHERE project_id = ?1 AND branch_name = ?2"
        ),
        params![place.project_id, place.branch_name],
    )?;
    Ok(())
}

/// How many of `parents` are neither stored on this branch nor excluded on purpose.
pub fn count_missing(tx: &mut Tx<'_>, place: BranchRef<'_>, parents: &[String]) -> db::Result<i64> {
    let mut missing = 0;
    for parent in parents {
        if !is_known(tx, place, parent)? {
            missing += 1;
        }
    }
    Ok(missing)
}

/// Whether a commit was walked on this branch: stored, or excluded on purpose.
pub fn is_known(tx: &mut Tx<'_>, place: BranchRef<'_>, sha: &str) -> db::Result<bool> {
    let known = tx.find(
        sql!(
            "SELECT 1 FROM commits
             WHERE project_id = ?1 AND branch_name = ?2 AND sha = ?3 AND unreachable_since IS NULL
             UNION ALL
             SELECT 1 FROM commits_left_out WHERE project_id = ?1 AND branch_name = ?2 AND sha = ?3"
        ),
        params![place.project_id, place.branch_name, sha],
        |row| row.get::<i64>(0),
    )?;
    Ok(known.is_some())
}

/// Whether anything is stored for a branch.
pub fn has_commits(tx: &mut Tx<'_>, place: BranchRef<'_>) -> db::Result<bool> {
    let any = tx.find(
        sql!(
            "SELECT 1 FROM commits WHERE project_id = ?1 AND branch_name = ?2
             ORDER BY project_id, branch_name, sha LIMIT 1"
        ),
        params![place.project_id, place.branch_name],
        |row| row.get::<i64>(0),
    )?;
    Ok(any.is_some())
}

/// Everything up to `head` is stored: the walk is over.
pub fn mark_complete(
    tx: &mut Tx<'_>,
    place: BranchRef<'_>,
    head: &str,
    since: Option<Timestamp>,
    now: Timestamp,
) -> db::Result<()> {
    tx.execute(
        sql!(
            "UPDATE branches SET complete_head = ?3, complete_since = ?4, last_walk_at = ?5, open_parents = 0,
               walking_head = NULL, walking_base = NULL, walking_page = NULL,
               walking_since = NULL, walking_open = NULL, walking_met_base = 0, walking_lost = 0
             WHERE project_id = ?1 AND branch_name = ?2"
        ),
        params![place.project_id, place.branch_name, head, since, now],
    )?;
    Ok(())
}

/// Records that the walk ended with missing parents: the branch is not complete.
pub fn mark_open(tx: &mut Tx<'_>, place: BranchRef<'_>, missing: i64, now: Timestamp) -> db::Result<()> {
    tx.execute(
        sql!(
            "UPDATE branches SET open_parents = ?3, last_walk_at = ?4
             WHERE project_id = ?1 AND branch_name = ?2"
        ),
        params![place.project_id, place.branch_name, missing, now],
    )?;
    Ok(())
}

/// The SHAs of commits that a run could not store on this branch because their date is unreadable.
pub fn list_unreadable(tx: &mut Tx<'_>, place: BranchRef<'_>, run_id: &RunId) -> db::Result<Vec<String>> {
    tx.list(
        sql!(
            "SELECT sha FROM commits_left_out
             WHERE project_id = ?1 AND branch_name = ?2 AND why = 'unreadable' AND run_id = ?3 ORDER BY sha"
        ),
        params![place.project_id, place.branch_name, run_id],
        |row| row.get(0),
    )
}

/// Deletes up to `limit` of the records of commits that were not stored; returns how many.
pub fn reset_left_out(tx: &mut Tx<'_>, place: BranchRef<'_>, limit: usize) -> db::Result<u64> {
    tx.execute(
        sql!(
            "DELETE FROM commits_left_out WHERE project_id = ?1 AND branch_name = ?2 AND sha IN (
               SELECT o.sha FROM commits_left_out o WHERE o.project_id = ?1 AND o.branch_name = ?2
               ORDER BY o.sha LIMIT ?3)"
        ),
        params![place.project_id, place.branch_name, limit],
    )
}
