//! Parses GitLab's JSON: strict about identities, lenient elsewhere.

use serde::Deserialize;

use crate::commits::author::{Emails, author_of, title_of};
use crate::commits::model::{Commit, RemoteProject, is_sha};
use crate::text::one_line;

#[derive(Deserialize)]
struct WireCommit {
    id: Box<str>,
    author_name: Option<String>,
    author_email: Option<String>,
    title: Option<String>,
    committed_date: Option<Box<str>>,
    parent_ids: Option<Vec<Box<str>>>,
    stats: Option<WireStats>,
}

#[derive(Deserialize)]
struct WireStats {
    additions: Option<i64>,
    deletions: Option<i64>,
}

impl WireStats {
    fn lines(self) -> Option<(i64, i64)> {
        let bounded = |lines: i64| lines.clamp(0, MOST_LINES);
        Some((bounded(self.additions?), bounded(self.deletions?)))
    }
}

/// Reads the line counts of one commit, if it has any.
pub(super) fn read_lines(body: &[u8]) -> Result<Option<(i64, i64)>, String> {
    #[derive(Deserialize)]
    struct WithStats {
        stats: Option<WireStats>,
    }
    let commit: WithStats =
        serde_json::from_slice(body).map_err(|error| format!("the commit cannot be read: {error}"))?;
    Ok(commit.stats.and_then(WireStats::lines))
}

/// Reads a page of commits.
pub(super) fn read_commits(body: &[u8], emails: Emails) -> Result<Vec<Commit>, String> {
    let wire: Vec<WireCommit> = serde_json::from_slice(body)
        .map_err(|error| format!("the list of commits cannot be read: {error}"))?;
    wire.into_iter().map(|commit| read_commit(commit, emails)).collect()
}

/// The limit of the line counts of a commit: sums of millions of such commits still fit.
const MOST_LINES: i64 = 1_000_000_000_000;

fn read_commit(wire: WireCommit, emails: Emails) -> Result<Commit, String> {
    let parents = wire.parent_ids.unwrap_or_default();
    if let Some(bad) = std::iter::once(&wire.id).chain(&parents).find(|sha| !is_sha(sha)) {
        return Err(format!("`{}` is not the SHA of a commit", crate::text::shorten(&one_line(bad), 60)));
    }
    let (author_name, author_email) = author_of(wire.author_name, wire.author_email, emails);
    let text = wire.committed_date.unwrap_or_default();
    let lines = wire.stats.and_then(WireStats::lines);
    Ok(Commit {
        sha: wire.id,
        title: title_of(wire.title),
        author_name,
        author_email,
        committed_at: text.parse().map_err(|_| one_line(&text).into()),
        lines,
        parents,
    })
}

#[derive(Deserialize)]
struct WireProject {
    id: i64,
    path_with_namespace: String,
    name: Option<String>,
    default_branch: Option<String>,
    web_url: Option<String>,
    empty_repo: Option<bool>,
}

impl From<WireProject> for RemoteProject {
    fn from(wire: WireProject) -> Self {
        let path = one_line(&wire.path_with_namespace);
        Self {
            remote_id: wire.id,
            name: wire
                .name
                .map(|name| one_line(&name))
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| path.clone()),
            // Without access to the repository both are missing.
            is_empty: wire.empty_repo.unwrap_or(false),
            default_branch: wire.default_branch.filter(|branch| !branch.is_empty()),
            web_url: wire.web_url,
            path,
        }
    }
}

/// Reads one project.
pub(super) fn read_project(body: &[u8]) -> Result<RemoteProject, String> {
    serde_json::from_slice::<WireProject>(body)
        .map(RemoteProject::from)
        .map_err(|error| format!("the project cannot be read: {error}"))
}

/// Reads a page of projects.
pub(super) fn read_projects(body: &[u8]) -> Result<Vec<RemoteProject>, String> {
    serde_json::from_slice::<Vec<WireProject>>(body)
        .map(|wire| wire.into_iter().map(RemoteProject::from).collect())
        .map_err(|error| format!("the list of projects cannot be read: {error}"))
}

#[derive(Deserialize)]
struct WireBranch {
    name: String,
    commit: Option<WireHead>,
}

#[derive(Deserialize)]
struct WireHead {
    id: String,
}

/// Reads the head of one branch.
pub(super) fn read_head(body: &[u8]) -> Result<String, String> {
    let branch: WireBranch =
        serde_json::from_slice(body).map_err(|error| format!("the branch cannot be read: {error}"))?;
    branch.commit.map(|commit| commit.id).filter(|sha| is_sha(sha)).ok_or("the branch has no head".to_owned())
}

/// Reads the names of a page of branches.
pub(super) fn read_branches(body: &[u8]) -> Result<Vec<String>, String> {
    serde_json::from_slice::<Vec<WireBranch>>(body)
        .map(|wire| wire.into_iter().map(|branch| branch.name).collect())
        .map_err(|error| format!("the list of branches cannot be read: {error}"))
}

/// Whether it is text that is not JSON.
pub(super) fn is_text(body: &[u8]) -> bool {
    body.trim_ascii_start().first().is_some_and(|first| !b"{[".contains(first))
}

/// Whether it is a web page and not JSON.
pub(super) fn is_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// The message of an error answer, if it has one that can be shown.
pub(super) fn read_message(body: &[u8]) -> Option<String> {
    let json: serde_json::Value = serde_json::from_slice(body).ok()?;
    let text = ["message", "error_description", "error"].iter().find_map(|key| json.get(key));
    let text = match text? {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(crate::text::shorten(&one_line(&text), 200))
}

/// Parses any bytes as each kind of answer; for `fuzz/`.
#[cfg(fuzzing)]
pub fn fuzz_answers(body: &[u8]) {
    for emails in [Emails::Plain, Emails::Hidden] {
        for commit in read_commits(body, emails).unwrap_or_default() {
            assert!(is_sha(&commit.sha) && commit.parents.iter().all(|parent| is_sha(parent)));
            assert!(!commit.title.contains(char::is_control));
        }
    }
    let _ = (read_lines(body), read_project(body), read_projects(body), read_head(body), read_branches(body));
    let _ = read_message(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

    fn read(json: &serde_json::Value, emails: Emails) -> Result<Vec<Commit>, String> {
        read_commits(json.to_string().as_bytes(), emails)
    }

    #[test]
    fn a_commit_is_read_with_what_is_missing_named() {
        let json = serde_json::json!([{
            "id": SHA, "title": "ignored", "author_name": " Ann\u{1b}[31m\nB ", "author_email": "",
            "committed_date": "2024-02-29T23:30:00.000+09:00", "parent_ids": []
        }]);
        let commit = read(&json, Emails::Plain).unwrap().remove(0);
        assert_eq!(&*commit.author_name, "Ann[31m B");
        assert_eq!(commit.author_email, commit.author_name, "no address: the name stands in");
        assert_eq!(commit.committed_at.unwrap().to_string(), "2024-02-29T14:30:00.000Z");
        assert_eq!(commit.lines, None);
    }

    #[test]
    fn an_unreadable_date_is_an_error_of_that_commit_alone() {
        for date in ["yesterday", "", "2024-02-30T00:00:00Z"] {
            let json = serde_json::json!([
                { "id": SHA, "author_name": "A", "author_email": "a@x", "committed_date": date, "parent_ids": [] },
                { "id": SHA, "author_name": "A", "author_email": "a@x", "committed_date": "2024-01-01T00:00:00Z" },
            ]);
            let commits = read(&json, Emails::Plain).unwrap();
            assert_eq!(commits[0].committed_at, Err(date.into()));
            assert!(commits[1].committed_at.is_ok());
        }
    }

    #[test]
    fn hidden_addresses_are_the_same_for_every_spelling() {
        let json = |email: &str| serde_json::json!([{ "id": SHA, "author_name": "A", "author_email": email, "committed_date": "x" }]);
        let of = |email: &str| read(&json(email), Emails::Hidden).unwrap().remove(0).author_email;
        assert_eq!(of("Ann@Example.com"), of("ann@example.com"));
        assert!(of("ann@example.com").starts_with("sha256:") && !of("ann@example.com").contains('@'));
    }

    #[test]
    fn a_page_with_a_false_sha_is_refused() {
        for (id, parent) in [("../../etc", SHA), (SHA, "HEAD"), (&SHA[1..], SHA), ("ABCDEF", SHA)] {
            let json = serde_json::json!([{ "id": id, "committed_date": "x", "parent_ids": [parent] }]);
            assert!(read(&json, Emails::Plain).is_err(), "{id} {parent}");
        }
        assert!(read_commits(b"<html>", Emails::Plain).is_err());
        assert!(read_commits(b"{}", Emails::Plain).is_err());
    }
}
