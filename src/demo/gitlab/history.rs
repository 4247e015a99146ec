//! A generated history in memory: commits with parents, growing branches, merges of old work.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use super::repository::synthetic_sha;
use crate::time::Timestamp;

/// A growing repository, shared by its clones.
#[derive(Clone, Debug)]
pub struct History(Arc<Mutex<Graph>>);

/// A commit to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Who made it.
    pub author: &'static str,
    /// Its first line.
    pub title: String,
    pub at: Timestamp,
    /// Lines added and removed.
    pub lines: (u32, u32),
}

#[derive(Debug)]
struct Graph {
    /// Makes its SHAs unique.
    seed: i64,
    commits: Vec<(Change, Vec<usize>)>,
    branches: BTreeMap<String, usize>,
}

impl History {
    /// An empty repository; its SHAs depend on `seed`.
    pub fn new(seed: i64) -> Self {
        Self(Arc::new(Mutex::new(Graph { seed, commits: Vec::new(), branches: BTreeMap::new() })))
    }

    /// Adds a commit to `branch`, which is created if necessary.
    pub fn commit(&self, branch: &str, change: Change) {
        let mut graph = self.0.lock();
        let parents = graph.branches.get(branch).copied().into_iter().collect();
        graph.add(branch, change, parents);
    }

    /// Creates `branch` at `from`.
    pub fn branch(&self, branch: &str, from: &str) {
        let mut graph = self.0.lock();
        if let Some(at) = graph.branches.get(from).copied() {
            graph.branches.insert(branch.to_owned(), at);
        }
    }

    /// Merges `from` into `into`, and removes `from`.
    pub fn merge(&self, from: &str, into: &str, change: Change) {
        let mut graph = self.0.lock();
        let parents = [into, from].into_iter().filter_map(|name| graph.branches.get(name).copied()).collect();
        graph.branches.remove(from);
        graph.add(into, change, parents);
    }

    /// The number of commits.
    pub fn len(&self) -> usize {
        self.0.lock().commits.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn head(&self, branch: &str) -> Option<String> {
        let graph = self.0.lock();
        graph.branches.get(branch).map(|at| graph.sha(*at))
    }

    pub(super) fn branches(&self) -> Vec<(String, String)> {
        let graph = self.0.lock();
        graph.branches.iter().map(|(name, at)| (name.clone(), graph.sha(*at))).collect()
    }

    /// The commits of `revision` (a branch, a SHA, or `old..new`), newest first; `None` if it is unknown.
    pub(super) fn list(&self, revision: &str, with_stats: bool) -> Option<Vec<Json>> {
        let graph = self.0.lock();
        let known: HashMap<String, usize> = (0..graph.commits.len()).map(|at| (graph.sha(at), at)).collect();
        let find = |name: &str| graph.branches.get(name).or_else(|| known.get(name)).copied();
        let (base, head) = match revision.split_once("..") {
            Some((base, head)) => (Some(find(base)?), find(head)?),
            None => (None, find(revision)?),
        };
        let left_out = base.map(|base| graph.reachable(base)).unwrap_or_default();
        let mut listed: Vec<usize> =
            graph.reachable(head).into_iter().filter(|at| !left_out.contains(at)).collect();
        // A commit is added after its parents, so this order has every child before its parents.
        listed.sort_unstable_by(|a, b| b.cmp(a));
        Some(listed.into_iter().map(|at| graph.show(at, with_stats)).collect())
    }
}

impl Graph {
    fn add(&mut self, branch: &str, change: Change, parents: Vec<usize>) {
        self.commits.push((change, parents));
        self.branches.insert(branch.to_owned(), self.commits.len() - 1);
    }

    fn sha(&self, at: usize) -> String {
        synthetic_sha(self.seed, at)
    }

    fn reachable(&self, from: usize) -> HashSet<usize> {
        let (mut seen, mut open) = (HashSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            if seen.insert(at) {
                open.extend(&self.commits[at].1);
            }
        }
        seen
    }

    fn show(&self, at: usize, with_stats: bool) -> Json {
        let (change, parents) = &self.commits[at];
        let sha = self.sha(at);
        let parents: Vec<String> = parents.iter().map(|parent| self.sha(*parent)).collect();
        let email = format!("{}@example.com", change.author.to_lowercase().replace(' ', "."));
        let mut commit = json!({
            "id": sha, "short_id": &sha[..8], "parent_ids": parents, "title": change.title, "message": change.title,
            "author_name": change.author, "author_email": email, "authored_date": change.at,
            "committer_name": change.author, "committer_email": email, "committed_date": change.at,
            "created_at": change.at, "trailers": {}, "web_url": format!("https://gitlab.example/-/commit/{sha}"),
        });
        if with_stats {
            let (additions, deletions) = change.lines;
            commit["stats"] =
                json!({ "additions": additions, "deletions": deletions, "total": additions + deletions });
        }
        commit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(title: &str) -> Change {
        Change { author: "A", title: title.into(), at: Timestamp::from_millis(0), lines: (1, 0) }
    }

    #[test]
    fn a_range_lists_what_the_old_head_did_not_reach() {
        let history = History::new(1);
        history.commit("main", change("one"));
        history.branch("side", "main");
        history.commit("side", change("aside"));
        history.commit("main", change("two"));
        let old = history.head("main").unwrap();
        history.merge("side", "main", change("merge"));
        let titles = |revision: &str| -> Vec<String> {
            let listed = history.list(revision, true).unwrap();
            listed.iter().map(|commit| commit["title"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(titles(&format!("{old}..main")), ["merge", "aside"]);
        assert_eq!(titles("main"), ["merge", "two", "aside", "one"]);
        assert_eq!(history.list("side", true), None, "it was merged and removed");
    }
}
