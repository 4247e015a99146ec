//! The commits of fake projects: from a git repository on disk, or generated.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::History;

/// The source of a project's commits.
#[derive(Clone, Debug)]
pub enum Repository {
    /// A git repository on disk.
    Git(PathBuf),
    /// A straight history on `main`, with a merge every tenth commit.
    Synthetic {
        /// Makes its SHAs unique.
        id: i64,
        commits: usize,
    },
    /// A small history in memory, with branches and merges.
    Made(History),
}

/// Separates fields and commits in the output of git.
const FORMAT: &str = "%x01%H%x02%P%x02%an%x02%ae%x02%aI%x02%cn%x02%ce%x02%cI%x02%s%x02";

impl Repository {
    /// The branch that HEAD names, if it has commits.
    pub(super) async fn default_branch(&self) -> Option<String> {
        match self {
            Repository::Synthetic { commits, .. } => (*commits > 0).then(|| "main".to_owned()),
            Repository::Made(history) => history.head("main").map(|_| "main".to_owned()),
            Repository::Git(directory) => {
                let name = git(directory, &["symbolic-ref", "--short", "HEAD"]).await?.trim().to_owned();
                self.head(&name).await.map(|_| name)
            }
        }
    }

    pub(super) async fn head(&self, branch: &str) -> Option<String> {
        match self {
            Repository::Synthetic { id, commits } => {
                (branch == "main" && *commits > 0).then(|| synthetic_sha(*id, commits - 1))
            }
            Repository::Made(history) => history.head(branch),
            Repository::Git(directory) => {
                let reference = format!("refs/heads/{branch}");
                let sha = git(directory, &["rev-parse", "--verify", "--quiet", &reference]).await?;
                Some(sha.trim().to_owned())
            }
        }
    }

    pub(super) async fn branches(&self) -> Vec<(String, String)> {
        match self {
            Repository::Synthetic { .. } => {
                self.head("main").await.map(|sha| ("main".to_owned(), sha)).into_iter().collect()
            }
            Repository::Made(history) => history.branches(),
            Repository::Git(directory) => {
                let format = "--format=%(refname:lstrip=2) %(objectname)";
                let listed =
                    git(directory, &["for-each-ref", format, "refs/heads"]).await.unwrap_or_default();
                let split =
                    |line: &str| line.rsplit_once(' ').map(|(name, sha)| (name.to_owned(), sha.to_owned()));
                listed.lines().filter_map(split).collect()
            }
        }
    }

    /// The commits of `revision` as GitLab's JSON, and their number; `None` if it is unknown.
    pub(super) async fn list(
        &self,
        revision: &str,
        skip: usize,
        limit: usize,
        with_stats: bool,
    ) -> Option<(usize, String)> {
        match self {
            Repository::Synthetic { id, commits } => {
                list_synthetic(*id, *commits, revision, skip, limit, with_stats)
            }
            Repository::Made(history) => {
                let commits = history.list(revision, with_stats)?;
                let page: Vec<_> = commits.into_iter().skip(skip).take(limit).collect();
                Some((page.len(), serde_json::Value::Array(page).to_string()))
            }
            Repository::Git(directory) => {
                let (skip, limit) = (format!("--skip={skip}"), format!("--max-count={limit}"));
                let format = format!("--format={FORMAT}");
                let mut arguments = vec!["log", &skip, &limit, &format];
                if with_stats {
                    arguments.extend(["--diff-merges=first-parent", "--shortstat"]);
                }
                arguments.extend([revision, "--"]);
                let printed = git(directory, &arguments).await?;
                let commits: Vec<serde_json::Value> =
                    printed.split('\u{1}').skip(1).filter_map(|text| commit_json(text, with_stats)).collect();
                Some((commits.len(), serde_json::Value::Array(commits).to_string()))
            }
        }
    }
}

/// The output of git, or `None` if it fails.
async fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let output = tokio::process::Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(["-c", "i18n.logOutputEncoding=UTF-8", "-c", "safe.directory=*"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .await
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn commit_json(text: &str, with_stats: bool) -> Option<serde_json::Value> {
    let fields: Vec<&str> = text.split('\u{2}').collect();
    let [sha, parents, author, email, authored, committer, committer_email, committed, title, stats] =
        fields.as_slice()
    else {
        return None;
    };
    let parents: Vec<&str> = parents.split_whitespace().collect();
    let mut commit = json!({
        "id": sha, "short_id": &sha[..8], "parent_ids": parents, "title": title, "message": title,
        "author_name": author, "author_email": email, "authored_date": authored,
        "committer_name": committer, "committer_email": committer_email, "committed_date": committed,
        "created_at": committed, "trailers": {}, "web_url": format!("https://gitlab.example/-/commit/{sha}"),
    });
    if with_stats {
        let count = |word: &str| {
            let part = stats.split(',').find(|part| part.contains(word));
            part.and_then(|part| part.split_whitespace().next()?.parse::<i64>().ok()).unwrap_or(0)
        };
        let (additions, deletions) = (count("insertion"), count("deletion"));
        commit["stats"] =
            json!({ "additions": additions, "deletions": deletions, "total": additions + deletions });
    }
    Some(commit)
}

/// The SHA of a generated commit, unique among all.
pub(super) fn synthetic_sha(id: i64, number: usize) -> String {
    let mut state = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number as u64) << 1;
    let mut sha = String::with_capacity(48);
    for _ in 0..3 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let _ = write!(sha, "{:016x}", mixed ^ (mixed >> 31));
    }
    sha.truncate(40);
    sha
}

fn list_synthetic(
    id: i64,
    commits: usize,
    revision: &str,
    skip: usize,
    limit: usize,
    with_stats: bool,
) -> Option<(usize, String)> {
    let number_of = |sha: &str| {
        let newest_first = (0..commits).rev();
        if sha == "main" {
            return commits.checked_sub(1);
        }
        newest_first.into_iter().find(|number| synthetic_sha(id, *number) == sha)
    };
    let (first, last) = match revision.split_once("..") {
        Some((base, head)) => (number_of(base)? + 1, number_of(head)?),
        None => (0, number_of(revision)?),
    };
    let mut body = String::with_capacity(limit * 700);
    let mut count = 0;
    body.push('[');
    for number in (first..=last).rev().skip(skip).take(limit) {
        if count > 0 {
            body.push(',');
        }
        push_synthetic(&mut body, id, number, with_stats);
        count += 1;
    }
    body.push(']');
    Some((count, body))
}

fn push_synthetic(body: &mut String, id: i64, number: usize, with_stats: bool) {
    let sha = synthetic_sha(id, number);
    let mut parents = Vec::new();
    if number > 0 {
        parents.push(format!("\"{}\"", synthetic_sha(id, number - 1)));
    }
    if number % 10 == 9 {
        parents.push(format!("\"{}\"", synthetic_sha(id, number - 2)));
    }
    let author = (number * 7 + usize::try_from(id).unwrap_or(0)) % 40;
    let minutes = number * 37;
    let (day, month) = ((minutes / 1440) % 28 + 1, (minutes / 40_320) % 12 + 1);
    let year = 2000 + minutes / 483_840;
    let date =
        format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:00.000+09:00", minutes / 60 % 24, minutes % 60);
    let _ = write!(
        body,
        "{{\"id\":\"{sha}\",\"short_id\":\"{}\",\"created_at\":\"{date}\",\"parent_ids\":[{}],\
         \"title\":\"Change number {number}\",\"message\":\"Change number {number}\\n\\nThe reason for it, in a sentence or two that nobody stores.\\n\",\
         \"author_name\":\"Author {author}\",\"author_email\":\"author{author}@example.com\",\"authored_date\":\"{date}\",\
         \"committer_name\":\"Author {author}\",\"committer_email\":\"author{author}@example.com\",\"committed_date\":\"{date}\",\
         \"trailers\":{{}},\"extended_trailers\":{{}},\"web_url\":\"https://gitlab.example/group/project/-/commit/{sha}\"",
        &sha[..8],
        parents.join(",")
    );
    if with_stats {
        let (additions, deletions) = (number % 97, number % 31);
        let _ = write!(
            body,
            ",\"stats\":{{\"additions\":{additions},\"deletions\":{deletions},\"total\":{}}}",
            additions + deletions
        );
    }
    body.push('}');
}
