//! Stored counts, and the versions that show whether they are up to date.

use super::reading::Scope;
use crate::db::{self, FromRow, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

crate::migration!(9, "commit counts", "../../../migrations/0009_commit_counts.sql");

/// The year that represents all of them.
pub const ALL_YEARS: i16 = 0;

/// When and from what a scope was counted.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct CountedAs {
    /// The sum of the changes of its branches.
    pub version: i64,
    /// A fingerprint of the config that affects counting.
    pub settings: String,
    pub counted_at: Timestamp,
    pub commits: i64,
}

fn key(scope: &Scope) -> String {
    let project = scope.project_id.map(|id| id.to_string()).unwrap_or_default();
    format!("{project}/{}", scope.branch_name.as_deref().unwrap_or_default())
}

/// The last count of a scope.
pub fn find(tx: &mut Tx<'_>, scope: &Scope) -> db::Result<Option<CountedAs>> {
    tx.find(
        sql!(
            "SELECT version, settings, counted_at, commits FROM commit_counts WHERE scope = ?1 AND year = 0"
        ),
        params![key(scope)],
        FromRow::from_row,
    )
}

/// The document of one year.
pub fn find_document(tx: &mut Tx<'_>, scope: &Scope, year: i16) -> db::Result<Option<String>> {
    tx.find(
        sql!("SELECT counts FROM commit_counts WHERE scope = ?1 AND year = ?2"),
        params![key(scope), i64::from(year)],
        |row| row.get(0),
    )
}

/// The years that have a document, newest first.
pub fn list_years(tx: &mut Tx<'_>, scope: &Scope) -> db::Result<Vec<i16>> {
    let years = tx.list(
        sql!("SELECT year FROM commit_counts WHERE scope = ?1 AND year <> 0 ORDER BY year DESC"),
        params![key(scope)],
        |row| row.get::<i64>(0),
    )?;
    Ok(years.into_iter().filter_map(|year| i16::try_from(year).ok()).collect())
}

/// Replaces the count of a scope.
pub fn put(
    tx: &mut Tx<'_>,
    scope: &Scope,
    counted_as: &CountedAs,
    documents: &[(i16, String)],
) -> db::Result<()> {
    let key = key(scope);
    tx.execute(sql!("DELETE FROM commit_counts WHERE scope = ?1"), params![key])?;
    let CountedAs { version, settings, counted_at, commits } = counted_as;
    for (year, counts) in documents {
        tx.execute(
            sql!(
                "INSERT INTO commit_counts (scope, year, version, settings, counted_at, commits, counts)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
            ),
            params![key, i64::from(*year), *version, settings, *counted_at, *commits, counts],
        )?;
    }
    Ok(())
}

/// The sum of the changes of the branches of a scope; it increases with every change of stored commits.
pub fn find_version(tx: &mut Tx<'_>, scope: &Scope) -> db::Result<i64> {
    let (first, last) = scope.project_id.map_or((i64::MIN, i64::MAX), |id| (id, id));
    tx.count(
        sql!(
            "SELECT CAST(COALESCE(SUM(changes), 0) AS BIGINT) FROM branches
             WHERE project_id BETWEEN ?1 AND ?2 AND (?3 = '' OR branch_name = ?3)"
        ),
        params![first, last, scope.branch_name.as_deref().unwrap_or_default()],
    )
}

/// Records that the stored commits of a branch have changed.
pub fn mark_changed(tx: &mut Tx<'_>, project_id: i64, branch_name: &str) -> db::Result<()> {
    tx.run(
        sql!("UPDATE branches SET changes = changes + 1 WHERE project_id = ?1 AND branch_name = ?2"),
        params![project_id, branch_name],
    )
}

/// How many commits are stored of these branches, up to `limit`.
pub fn count_up_to(tx: &mut Tx<'_>, pairs: &[(i64, String)], limit: usize) -> db::Result<usize> {
    let mut found = 0;
    for (project_id, branch_name) in pairs {
        if found >= limit {
            break;
        }
        let more = tx.count(
            sql!(
                "SELECT COUNT(*) FROM (SELECT sha FROM commits WHERE project_id = ?1 AND branch_name = ?2
                   ORDER BY project_id, branch_name, sha LIMIT ?3) few"
            ),
            params![project_id, branch_name, limit - found],
        )?;
        found += usize::try_from(more).unwrap_or(0);
    }
    Ok(found)
}
