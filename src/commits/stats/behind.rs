//! The commits behind a number: those of one person in one period.

use std::collections::HashSet;

use super::periods::Periods;
use super::tally::{Sum, Tally};
use super::{By, Counting, each_commit_once};
use crate::commits::store::projects;
use crate::db::{self, Tx};
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Behind {
    /// The person's name, with a tag if several share it.
    pub author: String,
    /// The same figures as in the statistics.
    #[serde(flatten)]
    pub sum: Sum,
    /// The newest commits, oldest first.
    pub commits: Vec<CommitBehind>,
}

/// One of the commits.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CommitBehind {
    pub committed_date_utc: Timestamp,
    /// The project's path.
    pub project: String,
    /// One of the branches that it is on.
    pub branch_name: String,
    pub sha: String,
    /// Its first line.
    pub title: String,
    pub is_merge: bool,
    /// Lines added and deleted; `None` when the host gave none.
    pub lines: Option<(i64, i64)>,
}

/// The people called `name` who committed in the scope, each with up to `limit` of their commits.
///
/// Two passes, because a person is shown by their latest name in the scope.
pub fn find_behind(
    tx: &mut Tx<'_>,
    counting: &Counting,
    name: &str,
    limit: usize,
) -> db::Result<Vec<Behind>> {
    let new_tally =
        || Tally::new(Periods::new(By::Person, &counting.zone), &counting.people, counting.with_merges);
    let mut tally = new_tally();
    each_commit_once(tx, &counting.scope, &mut |commit| tally.add(commit).map(drop))?;
    let names = tally.contributors.list_names();
    let meant: HashSet<u32> = (0..)
        .zip(&tally.contributors.all)
        .filter(|(_, one)| one.is_called(name))
        .map(|(number, _)| number)
        .collect();
    if meant.is_empty() {
        return Ok(Vec::new());
    }
    let mut found: Vec<(u32, Behind)> = tally
        .list()
        .into_iter()
        .filter(|(_, person, _)| meant.contains(person))
        .map(|(_, person, sum)| {
            (person, Behind { author: names[person as usize].clone(), sum, commits: Vec::new() })
        })
        .collect();
    // People are numbered in the order in which they appear, which is the same in both passes.
    let mut again = new_tally();
    let mut shas: Vec<(u32, i64, CommitBehind)> = Vec::new();
    each_commit_once(tx, &counting.scope, &mut |commit| {
        if let Some(person) = again.add(commit)?.filter(|person| meant.contains(person)) {
            let lines = if commit.stats_missing()? == 0 { Some(commit.lines()?) } else { None };
            let listed = CommitBehind {
                committed_date_utc: commit.committed_date_utc()?.parse().unwrap_or(Timestamp::MIN),
                project: String::new(),
                branch_name: commit.branch_name()?.to_owned(),
                sha: commit.sha()?.to_owned(),
                title: commit.title()?.to_owned(),
                is_merge: commit.is_merge()?,
                lines,
            };
            shas.push((person, commit.project_id()?, listed));
            if shas.len() > limit.saturating_mul(8).max(1_000) {
                keep_newest(&mut shas, limit);
            }
        }
        Ok(())
    })?;
    keep_newest(&mut shas, limit);
    for (person, project_id, mut commit) in shas {
        commit.project = projects::find(tx, project_id)?.map(|project| project.path).unwrap_or_default();
        if let Some((_, behind)) = found.iter_mut().find(|(number, _)| *number == person) {
            behind.commits.insert(0, commit);
        }
    }
    Ok(found.into_iter().map(|(_, behind)| behind).collect())
}

fn keep_newest(shas: &mut Vec<(u32, i64, CommitBehind)>, limit: usize) {
    shas.sort_by(|(_, _, a), (_, _, b)| (b.committed_date_utc, &a.sha).cmp(&(a.committed_date_utc, &b.sha)));
    shas.truncate(limit);
}
