//! Commits in feeds and search results, never with the address of their author.

use super::events;
use super::store::branches;
use super::store::reading::{self, CommitRow, Scope};
use crate::db::{self, Tx};
use crate::engine::finding::FoundThing;
use crate::id::JobName;

/// The least number of commits of each branch.
const OF_EACH: usize = 10;
/// The most branches that are read.
const MAX_BRANCHES: usize = 500;

pub(super) fn list(tx: &mut Tx<'_>, job: Option<&JobName>, limit: usize) -> db::Result<Vec<FoundThing>> {
    let mut pairs = match job {
        Some(job) => branches::list_of_job(tx, job)?,
        None => reading::list_pairs(tx)?,
    };
    pairs.truncate(MAX_BRANCHES);
    let of_each = if job.is_some() { limit } else { (limit / pairs.len().max(1)).max(OF_EACH) };
    let mut commits = Vec::new();
    for (project_id, branch_name) in pairs {
        let scope =
            Scope { project_id: Some(project_id), branch_name: Some(branch_name), ..Scope::default() };
        commits.extend(reading::list_commits(tx, &scope, of_each)?);
    }
    commits.retain(|commit| commit.unreachable_since.is_none());
    commits.sort_by(|a, b| (b.committed_date_utc, &b.sha).cmp(&(a.committed_date_utc, &a.sha)));
    // A commit on several branches counts once.
    commits.dedup_by(|a, b| a.sha == b.sha && a.project == b.project);
    commits.truncate(limit);
    Ok(commits.into_iter().map(finding).collect())
}

fn finding(commit: CommitRow) -> FoundThing {
    let CommitRow { project, branch_name, sha, author_name, .. } = commit;
    FoundThing {
        about: events::branch(&project, &branch_name).to_string(),
        title: commit.title.unwrap_or_else(|| sha.clone()),
        link: None,
        at: Some(commit.committed_date_utc),
        summary: Some(format!(
            "{author_name}, {project}/{branch_name}, +{} −{}",
            commit.additions, commit.deletions
        )),
        names: vec![sha],
    }
}
