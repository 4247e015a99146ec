//! Decides how to walk the history of a branch so that nothing is missed. Pure, over pinned commits.
//!
//! Dates never decide what is fetched. A walk lists what is reachable from a pinned commit and not from the previous
//! one; merges of old branches, back-dated and future-dated commits are in that list like any other.

use std::collections::BTreeSet;

use super::model::{BranchState, Commit, Walk};
use crate::time::Timestamp;

/// The next step for a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchStep {
    /// Everything is stored.
    Nothing,
    /// Continue an interrupted walk.
    Continue(Walk),
    /// Walk the new commits, or everything.
    Begin(Walk),
}

/// The next step for a branch whose current head is `head`.
///
/// An unfinished walk is finished first, whatever has happened to the branch since: what it has stored counts, and
/// the next step starts from there. One that has stored no page is begun anew: the host may have lost its head since, and
/// would be asked for it for ever. A lowered `since` needs the whole history again.
pub fn next_step(state: &BranchState, head: &str, since: Option<Timestamp>) -> BranchStep {
    if let Some(walk) = &state.walking
        && walk.since == since
        && walk.page != 1
    {
        return BranchStep::Continue(walk.clone());
    }
    let wants_older = match (state.complete_since, since) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(had), Some(wanted)) => wanted < had,
    };
    match &state.complete_head {
        Some(complete) if complete == head && !wants_older => BranchStep::Nothing,
        Some(complete) if !wants_older => BranchStep::Begin(Walk::between(Some(complete), head, since)),
        _ => BranchStep::Begin(Walk::between(None, head, since)),
    }
}

/// Since when a branch is complete after `walk`.
pub fn complete_since(state: &BranchState, walk: &Walk) -> Option<Timestamp> {
    match walk.base {
        Some(_) => state.complete_since.max(walk.since),
        None => walk.since,
    }
}

/// Whether a list can be trusted, by its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPage {
    /// It begins with the requested commit.
    Sound,
    /// No commits between base and head: the branch was rewound, or the host no longer knows the base.
    Empty,
    /// It is not the requested list.
    Foreign,
}

/// Checks the first page of a walk: the pinned commit itself must be in it.
pub fn check_first_page(walk: &Walk, commits: &[Commit]) -> FirstPage {
    if commits.iter().any(|commit| *commit.sha == *walk.head) {
        FirstPage::Sound
    } else if commits.is_empty() {
        FirstPage::Empty
    } else {
        FirstPage::Foreign
    }
}

impl Walk {
    /// A walk from the start.
    pub fn between(base: Option<&str>, head: &str, since: Option<Timestamp>) -> Self {
        Self {
            head: head.to_owned(),
            base: base.map(str::to_owned),
            page: 1,
            since,
            open: Vec::new(),
            met_base: false,
        }
    }

    /// The same walk over the whole history.
    pub fn whole(&self) -> Self {
        Self::between(None, &self.head, self.since)
    }

    /// The walk after `commits` of one page: their parents are open until they are listed themselves.
    pub fn after(&self, commits: &[Commit], next_page: u32) -> Self {
        let mut open: BTreeSet<&str> = self.open.iter().map(String::as_str).collect();
        open.extend(commits.iter().flat_map(|commit| commit.parents.iter().map(AsRef::as_ref)));
        for commit in commits {
            open.remove(&*commit.sha);
        }
        let names_base = |commit: &Commit| {
            self.base.as_ref().is_some_and(|base| commit.parents.iter().any(|parent| **parent == **base))
        };
        Self {
            open: open.into_iter().map(str::to_owned).collect(),
            met_base: self.met_base || commits.iter().any(names_base),
            page: next_page,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(sha: &str, parents: &[&str]) -> Commit {
        Commit {
            sha: sha.into(),
            author_name: "a".into(),
            author_email: "a".into(),
            committed_at: Ok(Timestamp::MIN),
            title: "".into(),
            lines: None,
            parents: parents.iter().map(|parent| (*parent).into()).collect(),
        }
    }

    fn at(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn the_next_step_finishes_walks_first_and_never_trusts_dates() {
        let complete = |since| BranchState {
            complete_head: Some("a".into()),
            complete_since: since,
            ..BranchState::default()
        };
        let (y2020, y2024) = (at("2020-01-01T00:00:00Z"), at("2024-01-01T00:00:00Z"));
        let full = |head: &str, since| BranchStep::Begin(Walk::between(None, head, since));
        let range = |since| BranchStep::Begin(Walk::between(Some("a"), "b", since));
        assert_eq!(next_step(&BranchState::default(), "b", None), full("b", None), "first");
        assert_eq!(next_step(&complete(None), "a", None), BranchStep::Nothing, "unmoved");
        assert_eq!(next_step(&complete(None), "b", None), range(None), "moved");
        assert_eq!(next_step(&complete(y2024), "a", y2024), BranchStep::Nothing, "same since");
        assert_eq!(next_step(&complete(y2020), "b", y2024), range(y2024), "raised since");
        assert_eq!(next_step(&complete(y2024), "a", y2020), full("a", y2020), "lowered since");
        assert_eq!(next_step(&complete(y2024), "a", None), full("a", None), "dropped since");

        let walk = Walk { page: 7, ..Walk::between(Some("a"), "x", None) };
        let cut_off = BranchState { walking: Some(walk.clone()), ..complete(None) };
        assert_eq!(
            next_step(&cut_off, "b", None),
            BranchStep::Continue(walk),
            "pinned, though the head moved"
        );
        assert_eq!(next_step(&cut_off, "b", y2020), range(y2020), "walked under another since");
        let unread = BranchState { walking: Some(Walk::between(None, "x", None)), ..BranchState::default() };
        assert_eq!(next_step(&unread, "b", None), full("b", None), "no page of it was read");
    }

    #[test]
    fn parents_are_open_until_they_are_met_in_any_order() {
        let walk = Walk::between(Some("base"), "d", None);
        let walk = walk.after(&[commit("d", &["c", "b"]), commit("b", &["a"])], 2);
        assert_eq!(walk.open, ["a", "c"]);
        assert!(!walk.met_base);
        let walk = walk.after(&[commit("c", &["base"]), commit("a", &[])], 3);
        assert_eq!(walk.open, ["base"]);
        assert!(walk.met_base && walk.page == 3);
        let walk = walk.after(&[commit("base", &[])], 4);
        assert!(walk.met_base && walk.open.is_empty(), "met once is met");
    }

    #[test]
    fn a_range_leaves_the_older_limit_in_force_and_a_whole_walk_replaces_it() {
        let state = BranchState { complete_since: at("2024-01-01T00:00:00Z"), ..BranchState::default() };
        let older = at("2020-01-01T00:00:00Z");
        assert_eq!(complete_since(&state, &Walk::between(Some("a"), "b", older)), state.complete_since);
        assert_eq!(complete_since(&state, &Walk::between(None, "b", older)), older);
        assert_eq!(complete_since(&state, &Walk::between(None, "b", None)), None);
    }

    #[test]
    fn a_list_without_the_pinned_commit_is_not_the_list_that_was_asked_for() {
        let walk = Walk::between(Some("a"), "b", None);
        assert_eq!(check_first_page(&walk, &[commit("b", &[])]), FirstPage::Sound);
        assert_eq!(check_first_page(&walk, &[]), FirstPage::Empty);
        assert_eq!(check_first_page(&walk, &[commit("c", &[])]), FirstPage::Foreign);
    }
}
