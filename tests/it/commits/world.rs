//! Shared by tests of commits: generated git repositories, a GitLab over them, and the job that collects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tsuzuki::app::{self, App};
use tsuzuki::commits::GitSource;
use tsuzuki::commits::run::decide::Sharing;
use tsuzuki::commits::run::{Bulk, Ended, WorkedRun};
use tsuzuki::commits::store::branches::{self, BranchRow};
use tsuzuki::config::{self, Env};
use tsuzuki::db::Db;
use tsuzuki::demo::gitlab::GitLab;
use tsuzuki::engine::{Failure, JobEnv, Progress};

use crate::databases::Fixture;

pub(crate) const TOKEN: &str = "glpat-not-a-real-token";

/// A git repository for one test.
pub(crate) struct Repo {
    pub(crate) dir: PathBuf,
    commits: std::cell::Cell<u32>,
}

impl Repo {
    pub(crate) fn create(parent: &Path, name: &str) -> Self {
        let dir = parent.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let repo = Self { dir, commits: std::cell::Cell::new(0) };
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_at("2025-06-01T12:00:00Z", arguments)
    }

    fn git_at(&self, date: &str, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(&self.dir)
            .args(["-c", "commit.gpgsign=false", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null"])
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_AUTHOR_NAME", "Ann Author")
            .env("GIT_AUTHOR_EMAIL", "ann@example.com")
            .env("GIT_COMMITTER_NAME", "Carl Committer")
            .env("GIT_COMMITTER_EMAIL", "carl@example.com")
            .env("GIT_AUTHOR_DATE", date)
            .env("GIT_COMMITTER_DATE", date)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Creates a new commit at `date`; returns its SHA.
    pub(crate) fn commit(&self, date: &str) -> String {
        let number = self.commits.get() + 1;
        self.commits.set(number);
        std::fs::write(self.dir.join(format!("file{number}")), format!("line {number}\nsecond line\n"))
            .unwrap();
        self.git(&["add", "."]);
        self.git_at(date, &["commit", "--quiet", "-m", &format!("Change {number}")]);
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// Adds that many commits to the current branch, an hour apart.
    pub(crate) fn commit_many(&self, count: u32) {
        use std::io::Write;
        let branch = self.git(&["symbolic-ref", "HEAD"]).trim().to_owned();
        let parent = Command::new("git")
            .arg("-C")
            .arg(&self.dir)
            .args(["rev-parse", "--verify", "-q", "HEAD"])
            .output()
            .unwrap();
        let parent = String::from_utf8(parent.stdout).unwrap().trim().to_owned();
        let mut stream = String::new();
        for number in 1..=count {
            let at = 1_600_000_000 + u64::from(self.commits.get() + number) * 3600;
            stream.push_str(&format!(
                "commit {branch}\ncommitter Ann Author <ann@example.com> {at} +0900\ndata 4\nmany\n"
            ));
            if number == 1 && !parent.is_empty() {
                stream.push_str(&format!("from {parent}\n"));
            }
            let text = format!("{}", self.commits.get() + number);
            stream.push_str(&format!("M 100644 inline many\ndata {}\n{text}\n\n", text.len()));
        }
        self.commits.set(self.commits.get() + count);
        let mut import = Command::new("git")
            .arg("-C")
            .arg(&self.dir)
            .args(["fast-import", "--quiet"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        import.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
        assert!(import.wait().unwrap().success());
        self.git(&["reset", "--quiet", "--hard"]);
    }

    /// The commits of a branch, according to git.
    pub(crate) fn rev_list(&self, branch: &str) -> BTreeSet<String> {
        self.git(&["rev-list", branch, "--"]).lines().map(str::to_owned).collect()
    }
}

/// A GitLab, a config with one job for it, and a database.
pub(crate) struct World {
    pub(crate) gitlab: GitLab,
    pub(crate) env: JobEnv,
    pub(crate) sources: Vec<Arc<GitSource>>,
    pub(crate) db: Db,
}

impl World {
    /// A job named `code` with the given further keys.
    pub(crate) async fn new(db: &Db, keys: &str) -> Self {
        let gitlab = GitLab::start().await.unwrap();
        gitlab.set_token(TOKEN);
        let (env, sources) = read_job(db, &gitlab, TOKEN, keys);
        Self { gitlab, env, sources, db: db.clone() }
    }

    /// The same over a repository of the test, which is the project `team/app`.
    pub(crate) async fn over_repo(fixture: &Fixture, keys: &str) -> (Repo, Self) {
        let (repo, world) = (Repo::create(fixture.dir.path(), "app"), Self::new(&fixture.db, keys).await);
        world.gitlab.add_repository(7, "team/app", &repo.dir);
        (repo, world)
    }

    /// The same world with another config.
    pub(crate) fn set_keys(&mut self, token: &str, keys: &str) {
        (self.env, self.sources) = read_job(&self.db, &self.gitlab, token, keys);
    }

    pub(crate) fn bulk(&self, stop: &CancellationToken) -> Bulk {
        Bulk::new(self.env.clone(), self.sources.clone(), Progress::default(), stop.clone())
    }

    /// One `bulk start`, to its end.
    pub(crate) async fn start(&self) -> Result<WorkedRun, Failure> {
        match self.bulk(&CancellationToken::new()).start(None, Sharing::Alone).await? {
            Ended::Worked(outcome) => Ok(outcome),
            other => panic!("{other:?}"),
        }
    }

    /// The commits that are stored and reachable on a branch.
    pub(crate) async fn stored(&self, branch: &str) -> BTreeSet<String> {
        let rows = rows(&self.db).await;
        rows.into_iter().filter(|row| row.branch == branch && row.reachable).map(|row| row.sha).collect()
    }

    pub(crate) async fn branch(&self, name: &str) -> BranchRow {
        let all = self.db.read(|tx| branches::list(tx, None)).await.unwrap();
        all.into_iter().find(|branch| branch.branch_name == name).unwrap()
    }
}

pub(crate) fn config_text(gitlab: &str, token: &str, keys: &str) -> String {
    format!(
        "[app]\ntimezone = \"UTC\"\n[[job]]\nname = \"code\"\nkind = \"commits\"\nallow_private = [\"127.0.0.1\"]\n\
         gitlab = \"{gitlab}\"\ntoken = \"{token}\"\n{keys}\n"
    )
}

fn read_job(db: &Db, gitlab: &GitLab, token: &str, keys: &str) -> (JobEnv, Vec<Arc<GitSource>>) {
    let text = config_text(&gitlab.url(), token, keys);
    let config = config::parse(&text, Path::new("test.toml"), app::kinds(), &Env::of([])).unwrap();
    let sources = config.jobs.iter().map(|job| Arc::new(GitSource::read(job).unwrap())).collect();
    (App::new(&config, db.clone()).unwrap().env, sources)
}

/// A stored commit.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) project_id: i64,
    pub(crate) branch: String,
    pub(crate) sha: String,
    pub(crate) author_name: String,
    pub(crate) author_email: String,
    pub(crate) committed: String,
    pub(crate) additions: i64,
    pub(crate) stats_missing: bool,
    pub(crate) reachable: bool,
}

/// Every stored commit.
pub(crate) async fn rows(db: &Db) -> Vec<Stored> {
    db.read(|tx| {
        tx.list(
            tsuzuki::sql!(
                "SELECT project_id, branch_name, sha, author_name, author_email, committed_date_utc, additions,
                   stats_missing, unreachable_since FROM commits ORDER BY project_id, branch_name, sha"
            ),
            tsuzuki::params![],
            |row| {
                Ok(Stored {
                    project_id: row.get(0)?,
                    branch: row.get(1)?,
                    sha: row.get(2)?,
                    author_name: row.get(3)?,
                    author_email: row.get(4)?,
                    committed: row.get(5)?,
                    additions: row.get(6)?,
                    stats_missing: row.get(7)?,
                    reachable: row.get::<Option<String>>(8)?.is_none(),
                })
            },
        )
    })
    .await
    .unwrap()
}
