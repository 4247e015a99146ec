//! Reads commits: all of them for statistics, the newest for listings.

use crate::db::{self, FromRow, Row, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// Which commits to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Of this project only.
    pub project_id: Option<i64>,
    /// On this branch only.
    pub branch_name: Option<String>,
    /// Committed from then on …
    pub from: Option<Timestamp>,
    /// … and before then.
    pub until: Option<Timestamp>,
}

impl Scope {
    fn bounds(&self) -> (Timestamp, Timestamp) {
        (self.from.unwrap_or(Timestamp::MIN), self.until.unwrap_or(Timestamp::MAX))
    }
}

/// A row for statistics: a commit, or several of one author in one time range, borrowed from the row.
pub struct Counted<'a> {
    row: &'a Row<'a>,
}

impl Counted<'_> {
    /// Its SHA; of a single commit only.
    pub fn sha(&self) -> db::Result<&str> {
        self.row.text(0)
    }

    pub fn author_name(&self) -> db::Result<&str> {
        self.row.text(1)
    }

    /// Its author's address or fingerprint: to identify people, never to be shown.
    pub fn author_email(&self) -> db::Result<&str> {
        self.row.text(2)
    }

    /// When it, or the last of them, was committed, as fixed-width text in UTC.
    pub fn committed_date_utc(&self) -> db::Result<&str> {
        self.row.text(3)
    }

    /// Lines added, and lines deleted.
    pub fn lines(&self) -> db::Result<(i64, i64)> {
        Ok((self.row.get(4)?, self.row.get(5)?))
    }

    /// How many of them have no line counts.
    pub fn stats_missing(&self) -> db::Result<i64> {
        self.row.get(6)
    }

    /// How many commits these are.
    pub fn commits(&self) -> db::Result<i64> {
        self.row.get(7)
    }

    /// Whether it is a merge, or all of them are.
    pub fn is_merge(&self) -> db::Result<bool> {
        self.row.get(8)
    }

    /// Its first line; of a single commit only.
    pub fn title(&self) -> db::Result<&str> {
        self.row.text(9)
    }

    /// The project of the row; of a single commit only.
    pub fn project_id(&self) -> db::Result<i64> {
        self.row.get(10)
    }

    /// The branch of the row; of a single commit only.
    pub fn branch_name(&self) -> db::Result<&str> {
        self.row.text(11)
    }
}

/// How much of a date distinguishes periods, in characters of its fixed-width text.
///
/// Months and days of a zone begin at other moments than those of UTC, but always near them: around the turn of a month
/// dates are distinguished to the minute, elsewhere the month is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain {
    /// On the first and on the last days of a month.
    pub at_turns: usize,
    /// On other days.
    pub within: usize,
}

/// Whether a commit may be in several rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Every row is another commit.
    Never,
    /// A SHA may be on several branches or in several forks.
    Possible,
}

/// Counts the reachable commits of the scope in the database: a row for each spelling of an author, time range, and
/// whether they are merges.
pub fn each_group(
    tx: &mut Tx<'_>,
    scope: &Scope,
    grain: Grain,
    repeats: Repeats,
    mut each: impl FnMut(&Counted<'_>) -> db::Result<()>,
) -> db::Result<()> {
    let (from, until) = scope.bounds();
    let (first, last) = scope.project_id.map_or((i64::MIN, i64::MAX), |id| (id, id));
    let branch = scope.branch_name.as_deref().unwrap_or_default();
    let params = params![from, until, first, last, branch, grain.at_turns, grain.within];
    let each = |row: &Row<'_>| each(&Counted { row });
    match repeats {
        Repeats::Never => tx.each(
            sql!(
                "SELECT '', author_name, author_email, MAX(committed_date_utc), CAST(SUM(additions) AS BIGINT),
                   CAST(SUM(deletions) AS BIGINT), CAST(SUM(stats_missing) AS BIGINT), COUNT(*), is_merge
                 FROM commits
                 WHERE unreachable_since IS NULL AND committed_date_utc >= ?1 AND committed_date_utc < ?2
                   AND project_id BETWEEN ?3 AND ?4 AND (?5 = '' OR branch_name = ?5)
                 GROUP BY author_email, author_name, is_merge, substr(committed_date_utc, 1, CASE
                   WHEN substr(committed_date_utc, 9, 2) IN ('01', '28', '29', '30', '31')
                   THEN CAST(?6 AS INTEGER) ELSE CAST(?7 AS INTEGER) END)"
            ),
            params,
            each,
        ),
        Repeats::Possible => tx.each(
            sql!(
                "SELECT '', author_name, author_email, MAX(committed_date_utc), CAST(SUM(additions) AS BIGINT),
                   CAST(SUM(deletions) AS BIGINT), CAST(SUM(stats_missing) AS BIGINT), COUNT(*), is_merge
                 FROM (SELECT sha, MIN(author_name) AS author_name, MIN(author_email) AS author_email,
                         MIN(committed_date_utc) AS committed_date_utc, MAX(additions) AS additions,
                         MAX(deletions) AS deletions, MIN(stats_missing) AS stats_missing, MAX(is_merge) AS is_merge
                       FROM commits
                       WHERE unreachable_since IS NULL AND committed_date_utc >= ?1 AND committed_date_utc < ?2
                         AND project_id BETWEEN ?3 AND ?4 AND (?5 = '' OR branch_name = ?5)
                       GROUP BY sha) once
                 GROUP BY author_email, author_name, is_merge, substr(committed_date_utc, 1, CASE
                   WHEN substr(committed_date_utc, 9, 2) IN ('01', '28', '29', '30', '31')
                   THEN CAST(?6 AS INTEGER) ELSE CAST(?7 AS INTEGER) END)"
            ),
            params,
            each,
        ),
    }
}

macro_rules! counted_columns {
    () => {
        "SELECT sha, author_name, author_email, committed_date_utc, additions, deletions, stats_missing, 1, is_merge,
           COALESCE(title, ''), project_id, branch_name
         FROM commits WHERE unreachable_since IS NULL"
    };
}

/// Passes every reachable commit of the scope to `each`, one row per branch.
///
/// A limited scope is read branch by branch, by the index of dates.
pub fn each_commit(
    tx: &mut Tx<'_>,
    scope: &Scope,
    mut each: impl FnMut(&Counted<'_>) -> db::Result<()>,
) -> db::Result<()> {
    let mut each = |row: &Row<'_>| each(&Counted { row });
    if *scope == Scope::default() {
        return tx.each(sql!(counted_columns!()), params![], each);
    }
    let (from, until) = scope.bounds();
    for (project_id, branch) in list_pairs_of(tx, scope)? {
        tx.each(
            sql!(concat!(
                counted_columns!(),
                " AND project_id = ?1 AND branch_name = ?2 AND committed_date_utc >= ?3 AND committed_date_utc < ?4"
            )),
            params![project_id, branch, from, until],
            &mut each,
        )?;
    }
    Ok(())
}

/// Every project and branch of the scope that has commits, of any date.
pub fn list_pairs_of(tx: &mut Tx<'_>, scope: &Scope) -> db::Result<Vec<(i64, String)>> {
    if let (Some(project_id), Some(branch)) = (scope.project_id, &scope.branch_name) {
        return Ok(vec![(project_id, branch.clone())]);
    }
    Ok(list_pairs_among(&list_pairs(tx)?, scope))
}

/// Those of `pairs` that are of the scope.
pub fn list_pairs_among(pairs: &[(i64, String)], scope: &Scope) -> Vec<(i64, String)> {
    let is_meant = |(project_id, branch): &&(i64, String)| {
        scope.project_id.is_none_or(|wanted| wanted == *project_id)
            && scope.branch_name.as_ref().is_none_or(|wanted| wanted == branch)
    };
    pairs.iter().filter(is_meant).cloned().collect()
}

/// Every project and branch that has commits, by steps through the index.
pub fn list_pairs(tx: &mut Tx<'_>) -> db::Result<Vec<(i64, String)>> {
    tx.list(
        sql!(concat!(
            "WITH RECURSIVE ",
            pairs!(),
            " SELECT project_id, branch_name FROM pairs WHERE branch_name IS NOT NULL
              ORDER BY project_id, branch_name"
        )),
        params![],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// The commits without parents of every project: projects that have one in common share history.
pub fn list_roots(tx: &mut Tx<'_>) -> db::Result<Vec<(i64, String)>> {
    tx.list(sql!("SELECT project_id, sha FROM commit_roots"), params![], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// A commit in listings, without the author's address.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, FromRow)]
pub struct CommitRow {
    /// The project's path.
    pub project: String,
    pub branch_name: String,
    pub sha: String,
    /// Its author's name.
    pub author_name: String,
    pub committed_date_utc: Timestamp,
    /// Lines added.
    pub additions: i64,
    /// Lines deleted.
    pub deletions: i64,
    pub stats_missing: bool,
    /// Since when the branch does not contain it any more.
    pub unreachable_since: Option<Timestamp>,
    pub is_merge: bool,
    /// Its first line; `None` for commits of another program.
    pub title: Option<String>,
}

/// The newest commits of the scope, newest first.
pub fn list_commits(tx: &mut Tx<'_>, scope: &Scope, limit: usize) -> db::Result<Vec<CommitRow>> {
    let (from, until) = scope.bounds();
    let mut found = Vec::new();
    // The newest of each branch through its index, then the newest of those.
    for (project_id, branch) in list_pairs_of(tx, scope)? {
        found.extend(tx.list(
            sql!(
                "SELECT p.path AS project, c.branch_name, c.sha, c.author_name, c.committed_date_utc, c.additions,
                   c.deletions, c.stats_missing, c.unreachable_since, c.is_merge, c.title
                 FROM commits c JOIN projects p ON p.project_id = c.project_id
                 WHERE c.project_id = ?1 AND c.branch_name = ?2
                   AND c.committed_date_utc >= ?3 AND c.committed_date_utc < ?4
                 ORDER BY c.committed_date_utc DESC LIMIT ?5"
            ),
            params![project_id, branch, from, until, limit],
            FromRow::from_row,
        )?);
        if found.len() > limit.saturating_mul(8) {
            keep_newest(&mut found, limit);
        }
    }
    keep_newest(&mut found, limit);
    Ok(found)
}

/// The commits with this prefix of the SHA, once for each branch.
pub fn list_by_sha(tx: &mut Tx<'_>, prefix: &str, limit: usize) -> db::Result<Vec<CommitRow>> {
    // Each branch through its index; no hexadecimal digit sorts after `f`.
    let mut found: Vec<CommitRow> = tx.list(
        sql!(
            "SELECT p.path AS project, c.branch_name, c.sha, c.author_name, c.committed_date_utc, c.additions,
               c.deletions, c.stats_missing, c.unreachable_since, c.is_merge, c.title
             FROM branches b CROSS JOIN commits c CROSS JOIN projects p
             WHERE c.project_id = b.project_id AND c.branch_name = b.branch_name AND c.sha >= ?1 AND c.sha < ?2
               AND p.project_id = b.project_id
             LIMIT ?3"
        ),
        params![prefix, format!("{prefix}g"), limit],
        FromRow::from_row,
    )?;
    found.sort_by(|a, b| (&a.sha, &a.project, &a.branch_name).cmp(&(&b.sha, &b.project, &b.branch_name)));
    Ok(found)
}

fn keep_newest(found: &mut Vec<CommitRow>, limit: usize) {
    found.sort_by(|a, b| {
        (b.committed_date_utc, &a.sha, &a.branch_name).cmp(&(a.committed_date_utc, &b.sha, &b.branch_name))
    });
    found.truncate(limit);
}
