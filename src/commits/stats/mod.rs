//! Commits and lines per person and month, week, day, project or branch: one pass over the commits, each counted once.
//!
//! ```text
//!  rows (SQLite) or groups (PostgreSQL) ──▶ who: people, mailmap, exclusions ──▶ sums per period and person
//! ```

mod behind;
mod periods;
mod series;
mod tally;

use std::collections::HashSet;
use std::sync::Arc;

pub use behind::{Behind, CommitBehind, find_behind};
pub use periods::period_bounds;
pub use series::{PersonSeries, Series, cumulative, find_series};
pub use tally::Sum;

use self::periods::Periods;
use self::tally::Tally;
use super::people::People;
use super::store::projects;
use super::store::reading::{self, Counted, Grain, Repeats, Scope};
use crate::config::value::Zone;
use crate::db::{self, Tx};
use crate::engine::Cell;

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Each person in each month.
    Month,
    /// Each person in each week, from Monday on.
    Week,
    /// Each person on each day.
    Day,
    /// Each project.
    Project,
    /// Each person.
    Person,
    /// Each branch.
    Branch,
}

#[derive(Clone, Debug)]
pub struct Counting {
    /// Which commits.
    pub scope: Scope,
    /// The time zone in which days begin.
    pub zone: Zone,
    /// Identities and exclusions.
    pub people: Arc<People>,
    /// Whether the lines of merges count.
    pub with_merges: bool,
}

impl Counting {
    /// Everything of `scope`, with the lines of merges left out.
    pub fn new(scope: Scope, zone: Zone, people: Arc<People>) -> Self {
        Self { scope, zone, people, with_merges: false }
    }
}

/// One line of the statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct StatRow {
    /// `2026-01`, `2026-W03` or `2026-01-15`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The project's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The person's name, with a tag if several share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub people: Option<usize>,
    #[serde(flatten)]
    pub sum: Sum,
}

impl StatRow {
    fn of(sum: Sum) -> Self {
        Self { sum, ..Self::default() }
    }
}

/// Commits that the config excludes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    pub authors: i64,
    pub titles: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    pub by: By,
    /// The time zone in which days begin.
    pub timezone: String,
    /// Whether the lines of merges are in the sums.
    pub with_merges: bool,
    /// By period, project, branch and name.
    pub rows: Vec<StatRow>,
    /// All rows together.
    #[serde(flatten)]
    pub total: Sum,
    /// Commits counted without lines, because the host gave none.
    pub stats_missing: i64,
    /// Excluded commits.
    pub left_out: LeftOut,
}

/// Counts commits. A SHA on several branches or in several forks counts once, by project once in each project, by
/// branch once on each branch; unreachable commits do not count.
pub fn count(tx: &mut Tx<'_>, counting: &Counting, by: By) -> db::Result<Stats> {
    let mut stats = Stats {
        by,
        timezone: counting.zone.name().to_owned(),
        with_merges: counting.with_merges,
        rows: Vec::new(),
        total: Sum::default(),
        stats_missing: 0,
        left_out: LeftOut::default(),
    };
    for part in list_parts(tx, counting, by)? {
        let mut tally = Tally::new(Periods::new(by, &counting.zone), &counting.people, counting.with_merges);
        let part_of = Counting { scope: part.scope, ..counting.clone() };
        each_once(tx, &part_of, periods::grain(by, &counting.zone), |commit| tally.add(commit).map(drop))?;
        let total = tally.total();
        stats.total.extend(&total);
        stats.left_out.authors += tally.contributors.left_out.authors;
        stats.left_out.titles += tally.contributors.left_out.titles;
        match part.project {
            Some(_) if tally.people() == 0 => {}
            Some(project) => stats.rows.push(StatRow {
                project: Some(project),
                branch: part_of.scope.branch_name.filter(|_| by == By::Branch),
                people: Some(tally.people()),
                ..StatRow::of(total)
            }),
            None => stats.rows.extend(tally.rows()),
        }
    }
    stats.stats_missing = stats.total.stats_missing;
    stats.rows.sort_by(|a, b| (&a.project, &a.branch).cmp(&(&b.project, &b.branch)));
    Ok(stats)
}

/// A part of the scope that is counted separately.
struct StatsPart {
    scope: Scope,
    /// The path of its project, if the row is about one.
    project: Option<String>,
}

/// The whole scope, or each of its projects or branches.
fn list_parts(tx: &mut Tx<'_>, counting: &Counting, by: By) -> db::Result<Vec<StatsPart>> {
    let scope = &counting.scope;
    if !matches!(by, By::Project | By::Branch) {
        return Ok(vec![StatsPart { scope: scope.clone(), project: None }]);
    }
    let mut parts: Vec<StatsPart> = Vec::new();
    for (project_id, branch) in reading::list_pairs_of(tx, scope)? {
        let branch_name = if by == By::Branch { Some(branch) } else { scope.branch_name.clone() };
        let scope = Scope { project_id: Some(project_id), branch_name, ..scope.clone() };
        if parts.last().is_some_and(|last| last.scope == scope) {
            continue;
        }
        let path =
            projects::find(tx, project_id)?.map_or_else(|| project_id.to_string(), |project| project.path);
        parts.push(StatsPart { scope, project: Some(path) });
    }
    Ok(parts)
}

/// Passes every commit to `each` once, alone or grouped with others of its author in the same time range.
fn each_once(
    tx: &mut Tx<'_>,
    counting: &Counting,
    grain: Grain,
    mut each: impl FnMut(&Counted<'_>) -> db::Result<()>,
) -> db::Result<()> {
    if tx.dialect().groups_by_hashing() && !counting.people.excludes_titles() {
        let repeats = if may_repeat(tx, &counting.scope)? { Repeats::Possible } else { Repeats::Never };
        return reading::each_group(tx, &counting.scope, grain, repeats, each);
    }
    each_commit_once(tx, &counting.scope, &mut each)
}

/// Passes every commit to `each` once, alone.
fn each_commit_once(
    tx: &mut Tx<'_>,
    scope: &Scope,
    each: &mut dyn FnMut(&Counted<'_>) -> db::Result<()>,
) -> db::Result<()> {
    if !may_repeat(tx, scope)? {
        return reading::each_commit(tx, scope, each);
    }
    let mut seen = HashSet::new();
    // Of a commit in several rows, prefer one with line counts: those without are read last.
    for without_lines in [false, true] {
        let mut is_any_left = false;
        reading::each_commit(tx, scope, |commit| {
            if (commit.stats_missing()? != 0) != without_lines {
                is_any_left = true;
            } else if seen.insert(short_key(commit.sha()?)) {
                each(commit)?;
            }
            Ok(())
        })?;
        if !is_any_left {
            break;
        }
    }
    Ok(())
}

/// Sixteen bytes of a SHA are enough to identify a commit.
fn short_key(sha: &str) -> u128 {
    sha.get(..32).and_then(|start| u128::from_str_radix(start, 16).ok()).unwrap_or(0)
}

/// Whether one commit can be in several rows of the scope.
///
/// Two branches of a project can share commits. Two projects can only if they share a commit without parents, or if the
/// graph of a project is not known.
fn may_repeat(tx: &mut Tx<'_>, scope: &Scope) -> db::Result<bool> {
    if scope.project_id.is_some() && scope.branch_name.is_some() {
        return Ok(false);
    }
    let pairs: Vec<i64> =
        reading::list_pairs_of(tx, scope)?.into_iter().map(|(project_id, _)| project_id).collect();
    let projects: HashSet<i64> = pairs.iter().copied().collect();
    if projects.len() < pairs.len() {
        return Ok(true);
    }
    if projects.len() < 2 {
        return Ok(false);
    }
    let mut rooted = HashSet::new();
    let mut roots = HashSet::new();
    for (project_id, sha) in reading::list_roots(tx)? {
        if projects.contains(&project_id) {
            rooted.insert(project_id);
            if !roots.insert(sha) {
                return Ok(true);
            }
        }
    }
    Ok(rooted.len() < projects.len())
}

impl Stats {
    /// The headings of its rows; that of periods names the zone.
    pub fn columns(&self) -> Vec<String> {
        let period = |word: &str| format!("{word} ({})", self.timezone);
        let mut columns = match self.by {
            By::Month => vec![period("month"), "author".into()],
            By::Week => vec![period("week"), "author".into()],
            By::Day => vec![period("day"), "author".into()],
            By::Person => vec!["author".into()],
            By::Project => vec!["project".into(), "people".into()],
            By::Branch => vec!["project".into(), "branch".into(), "people".into()],
        };
        columns.extend(["commits", "merges", "additions", "deletions"].map(str::to_owned));
        columns
    }

    /// The values of a row, one for each heading.
    pub fn fields(&self, row: &StatRow) -> Vec<Cell> {
        let StatRow { period, project, branch, author, people, sum } = row;
        let mut fields: Vec<Cell> = period.iter().map(Cell::word).collect();
        fields.extend([project, branch, author].into_iter().flatten().map(Cell::from));
        fields.extend(people.map(|people| Cell::Int(i64::try_from(people).unwrap_or(i64::MAX))));
        fields.extend([sum.commits, sum.merges, sum.additions, sum.deletions].map(Cell::Int));
        fields
    }
}
