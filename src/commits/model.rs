//! Projects, branches, commits and pages of commits.

use crate::time::Timestamp;

/// A project in the database.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, crate::db::FromRow)]
pub struct Project {
    /// Our number: the host's own for the first host, above 10^9 for others.
    pub project_id: i64,
    pub host: String,
    /// The host's number.
    pub remote_id: i64,
    /// Its path, such as `group/project`.
    pub path: String,
    pub name: String,
    /// Its default branch; none while it is empty.
    pub default_branch: Option<String>,
    pub removed_at: Option<Timestamp>,
}

/// A project on its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteProject {
    /// The host's number.
    pub remote_id: i64,
    pub path: String,
    pub name: String,
    /// Its default branch; none while it is empty.
    pub default_branch: Option<String>,
    pub web_url: Option<String>,
    /// Whether it has no commits at all.
    pub is_empty: bool,
}

/// How far a branch has been collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchState {
    /// Everything reachable from this commit is stored.
    pub complete_head: Option<String>,
    /// … except commits older than this.
    pub complete_since: Option<Timestamp>,
    /// The unfinished walk.
    pub walking: Option<Walk>,
    pub deleted_at: Option<Timestamp>,
    /// Whether some of its stored commits are no longer reachable.
    pub has_unreachable: bool,
}

/// A walk over the history of one pinned commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    pub head: String,
    /// Commits reachable from this one are excluded; `None` for the whole history.
    pub base: Option<String>,
    /// The page to fetch next; 0 when every page is stored and unreachable commits have to be marked.
    pub page: u32,
    /// Older commits are walked but not stored.
    pub since: Option<Timestamp>,
    /// Parents that have not been listed yet.
    pub open: Vec<String>,
    /// Whether a child of the base was listed: the branch moved forward.
    pub met_base: bool,
}

/// A commit to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub sha: Box<str>,
    pub author_name: Box<str>,
    /// Its author's address, a fingerprint of it, or the name when there is none.
    pub author_email: Box<str>,
    /// When it was committed; an error when the host's text is not a time.
    pub committed_at: Result<Timestamp, Box<str>>,
    /// Its first line.
    pub title: Box<str>,
    /// Lines added and deleted; `None` when the host does not include them.
    pub lines: Option<(i64, i64)>,
    pub parents: Vec<Box<str>>,
}

impl Commit {
    /// Whether it is a merge: its line counts repeat those of the merged branch.
    pub fn is_merge(&self) -> bool {
        self.parents.len() > 1
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPage {
    pub commits: Vec<Commit>,
    /// The number of the next page, if there is one.
    pub next: Option<u32>,
    /// The length of the whole list, if the host reports it.
    pub total: Option<u64>,
}

/// Whether `text` is the SHA of a commit, in lower-case hex.
pub fn is_sha(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
