//! Projects: added and kept up to date, never deleted.

use crate::commits::model::{Project, RemoteProject};
use crate::db::{self, FromRow, Tx};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

/// Projects of hosts after the first get numbers from here on, so that they never collide with the host's own.
const FIRST_ALLOCATED: i64 = 1_000_000_001;

/// Adds or updates a project; returns it with our number.
pub fn put(tx: &mut Tx<'_>, host: &str, remote: &RemoteProject, now: Timestamp) -> db::Result<Project> {
    let project_id = match find_id(tx, host, remote.remote_id)? {
        Some(project_id) => project_id,
        None => allocate(tx, host, remote.remote_id)?,
    };
    tx.execute(
        sql!(
            "INSERT INTO projects (project_id, host, remote_id, path, name, default_branch, web_url,
               first_seen_at, last_seen_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
             ON CONFLICT (host, remote_id) DO UPDATE SET path = excluded.path, name = excluded.name,
               default_branch = excluded.default_branch, web_url = excluded.web_url,
               last_seen_at = excluded.last_seen_at, removed_at = NULL"
        ),
        params![
            project_id,
            host,
            remote.remote_id,
            remote.path,
            remote.name,
            remote.default_branch,
            remote.web_url,
            now
        ],
    )?;
    Ok(Project {
        project_id,
        host: host.to_owned(),
        remote_id: remote.remote_id,
        path: remote.path.clone(),
        name: remote.name.clone(),
        default_branch: remote.default_branch.clone(),
        removed_at: None,
    })
}

pub(super) fn find_id(tx: &mut Tx<'_>, host: &str, remote_id: i64) -> db::Result<Option<i64>> {
    tx.find(
        sql!("SELECT project_id FROM projects WHERE host = ?1 AND remote_id = ?2"),
        params![host, remote_id],
        |row| row.get(0),
    )
}

/// The host's own number for the first host ever, the next free one above 10^9 for others.
fn allocate(tx: &mut Tx<'_>, host: &str, remote_id: i64) -> db::Result<i64> {
    let first_host: Option<String> = tx.find(
        sql!("SELECT host FROM projects WHERE project_id < ?1 ORDER BY project_id LIMIT 1"),
        params![FIRST_ALLOCATED],
        |row| row.get(0),
    )?;
    if first_host.is_none_or(|first| first == host) && remote_id < FIRST_ALLOCATED {
        return Ok(remote_id);
    }
    let highest = tx.count(sql!("SELECT MAX(project_id) FROM projects"), params![])?;
    Ok((highest + 1).max(FIRST_ALLOCATED))
}

/// The project with our number.
pub fn find(tx: &mut Tx<'_>, project_id: i64) -> db::Result<Option<Project>> {
    tx.find(
        sql!(
            "SELECT project_id, host, remote_id, path, name, default_branch, removed_at
             FROM projects WHERE project_id = ?1"
        ),
        params![project_id],
        FromRow::from_row,
    )
}

/// The projects of one host, or of all, by path.
pub fn list(tx: &mut Tx<'_>, host: Option<&str>) -> db::Result<Vec<Project>> {
    tx.list(
        sql!(
            "SELECT project_id, host, remote_id, path, name, default_branch, removed_at
             FROM projects WHERE host = COALESCE(?1, host) ORDER BY host, path, project_id"
        ),
        params![host],
        FromRow::from_row,
    )
}

/// Marks a project as gone for `job`; `true` if it was not marked before. Its commits stay.
///
/// Projects of another job are not marked: its token may see what ours does not.
pub fn mark_removed(tx: &mut Tx<'_>, project_id: i64, job: &JobName, now: Timestamp) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "UPDATE projects SET removed_at = ?2 WHERE project_id = ?1 AND removed_at IS NULL
               AND NOT EXISTS (
                 SELECT 1 FROM branches b
                 WHERE b.project_id = ?1 AND b.job_name <> ?3 AND b.ignored_at IS NULL
                   AND (b.is_named = 1 OR b.added_at IS NOT NULL))"
        ),
        params![project_id, now, job],
    )
}

/// The projects that `name` may refer to: a path, our number, or a unique suffix of a path.
pub fn find_named(tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Project>> {
    let all = list(tx, None)?;
    let is = |project: &&Project| project.path == name || project.project_id.to_string() == name;
    let exact: Vec<Project> = all.iter().filter(is).cloned().collect();
    if !exact.is_empty() {
        return Ok(exact);
    }
    let end = format!("/{name}");
    Ok(all.into_iter().filter(|project| project.path.ends_with(&end)).collect())
}
