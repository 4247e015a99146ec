//! Which commits are reachable from a head: a pure walk over the graph, small enough for a million commits.
//!
//! This is not done by recursive SQL, because a database keeps the reached commits in memory, too, as text and several
//! times, and because reads do not block: only rows of lost commits are written.

use std::collections::HashSet;

/// The edges from child to parent, 16 bytes each.
#[derive(Debug, Default)]
pub struct Graph {
    edges: Vec<(u64, u64)>,
}

/// Everything reachable from one commit, itself included.
#[derive(Debug)]
pub struct Reached {
    edges: Vec<(u64, u64)>,
    /// By the number of a child's first edge.
    is_reached: Vec<bool>,
    /// Commits without parents.
    roots: HashSet<u64>,
}

/// A commit by the first 16 digits of its SHA.
///
/// A collision in one project would have to be made on purpose, and would at most leave lost commits of that project
/// unmarked.
pub fn key(sha: &str) -> u64 {
    sha.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

impl Graph {
    /// Adds edges, in any order.
    pub fn add(&mut self, edges: &[(u64, u64)]) {
        self.edges.extend_from_slice(edges);
    }

    /// The commits reachable from `head`.
    pub fn reached_from(mut self, head: &str) -> Reached {
        self.edges.sort_unstable();
        let mut reached =
            Reached { is_reached: vec![false; self.edges.len()], edges: self.edges, roots: HashSet::new() };
        let mut open = vec![key(head)];
        while let Some(commit) = open.pop() {
            let Some(first) = reached.first_edge(commit) else {
                reached.roots.insert(commit);
                continue;
            };
            if !std::mem::replace(&mut reached.is_reached[first], true) {
                let parents = reached.edges[first..].iter().take_while(|(child, _)| *child == commit);
                open.extend(parents.map(|(_, parent)| *parent));
            }
        }
        reached
    }
}

impl Reached {
    pub fn contains(&self, sha: &str) -> bool {
        let commit = key(sha);
        match self.first_edge(commit) {
            Some(first) => self.is_reached[first],
            None => self.roots.contains(&commit),
        }
    }

    fn first_edge(&self, commit: u64) -> Option<usize> {
        let first = self.edges.partition_point(|(child, _)| *child < commit);
        self.edges.get(first).filter(|(child, _)| *child == commit).map(|_| first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn sha(number: u32) -> String {
        crate::hash::sha256_hex(number.to_string())
    }

    fn graph(edges: &[(u32, u32)]) -> Graph {
        let mut graph = Graph::default();
        for (child, parent) in edges {
            graph.add(&[(key(&sha(*child)), key(&sha(*parent)))]);
        }
        graph
    }

    #[test]
    fn a_head_reaches_its_ancestors_by_every_parent_and_nothing_else() {
        // 0 ◀ 1 ◀ 2 ◀ 5 (merge of 2 and 4), 1 ◀ 3 ◀ 4, and 2 ◀ 6 aside; 7 is a root of its own.
        let edges = [(1, 0), (2, 1), (3, 1), (4, 3), (5, 2), (5, 4), (6, 2)];
        for (head, expected) in
            [(5, vec![0, 1, 2, 3, 4, 5]), (6, vec![0, 1, 2, 6]), (0, vec![0]), (7, vec![7])]
        {
            let reached = graph(&edges).reached_from(&sha(head));
            let found: Vec<u32> = (0..8).filter(|number| reached.contains(&sha(*number))).collect();
            assert_eq!(found, expected, "from {head}");
        }
    }

    #[test]
    fn what_is_no_sha_is_reached_by_nobody() {
        let reached = graph(&[(1, 0)]).reached_from(&sha(1));
        for text in ["", "short", "zzzzzzzzzzzzzzzzzzzz", "äöüäöüäöüäöüäöü"] {
            assert!(!reached.contains(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_graph_is_walked_as_a_plain_search_would(
            edges in proptest::collection::vec((0u32..40, 0u32..40), 0..120),
            head in 0u32..40,
        ) {
            let mut expected = BTreeSet::new();
            let mut open = vec![head];
            while let Some(at) = open.pop() {
                if expected.insert(at) {
                    open.extend(edges.iter().filter(|(child, _)| *child == at).map(|(_, parent)| *parent));
                }
            }
            let reached = graph(&edges).reached_from(&sha(head));
            let found: BTreeSet<u32> = (0..40).filter(|number| reached.contains(&sha(*number))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
