//! The descriptor of the commits pipeline.

use super::events::{BRANCH, BranchCode, COMMIT, PERSON, PROJECT, ProjectCode, RUN, RunCode};
use super::store::export::{After as CommitKey, list_after};
use super::store::reading::CommitRow;
use super::store::{branches, projects};
use super::{GitSource, KIND, commands, config, counts, findings, host, make, pages, run, view};
use crate::config::{Flag, FlagShape, Kind};
use crate::engine::Pipeline;
use crate::engine::pipeline::{Example, Thing, Uses, WithoutChannel};
use crate::engine::table::{After, Cell, Table, TablePage};
use crate::phrase;

/// The flags of `job add`: the address of each host, and the common ones.
macro_rules! flags {
    ($(#[$about:meta])* $host:ident, $($(#[$abouts:meta])* $hosts:ident,)*) => {
        &[
            host::$host::KIND.address,
            $(host::$hosts::KIND.address,)*
            Flag::variable("token-env", "token", host::$host::KIND.token_variable, || {
                phrase!(
                    "the name of the environment variable that holds the token",
                    "トークンを入れた環境変数の名前"
                )
            }),
            Flag::new("project", "PROJECT", || {
                phrase!(
                    "a project by path or number",
                    "プロジェクトのパスまたは番号"
                )
            })
            .writes("projects")
            .shaped(FlagShape::List),
            Flag::new("group", "GROUP", || {
                phrase!(
                    "every project of this group",
                    "グループ内のすべてのプロジェクト"
                )
            })
            .shaped(FlagShape::List),
            Flag::new("branch", "BRANCH", || {
                phrase!(
                    "a branch by name or pattern",
                    "ブランチの名前またはパターン"
                )
            })
            .writes("branches")
            .shaped(FlagShape::List),
            Flag::new("since", "DATE", || {
                phrase!(
                    "leave older commits out, e.g. 2024-01-01",
                    "これより古いコミットを除く（例：2024-01-01）"
                )
            }),
        ]
    };
}

/// Where the token of each host comes from.
macro_rules! tokens {
    ($($(#[$about:meta])* $host:ident,)+) => {
        &[$(host::$host::KIND.token),+]
    };
}

pub static PIPELINE: Pipeline = Pipeline {
    kind: Kind::job::<config::Keys>(KIND).with_check(config::check).without(config::UNUSED),
    about: || phrase!("commits of Git projects, for statistics", "Git プロジェクトのコミット（統計用）"),
    every: super::EVERY,
    make,
    topics: |topics| topics,
    without_channel: WithoutChannel { instead: || "".into(), listing: "commits stats" },
    check_jobs: |_| crate::config::Problems::default(),
    list_warnings: |_, _| crate::config::Problems::default(),
    prune: &[],
    quotas: &[],
    uses: Uses { llm: false, quota_for_tests: false },
    steps: &[],
    resume: |_, _| Ok(false),
    flags: host::hosts!(flags),
    example: Example { en: include_str!("init/en.toml"), ja: include_str!("init/ja.toml") },
    secrets: host::hosts!(tokens),
    lacks: |section| {
        let words = phrase!(
            "without a token only public projects can be read",
            "トークンがないと公開プロジェクトしか読めません"
        );
        (!section.has("token")).then_some((words, "token"))
    },
    things: &[
        &Thing {
            list_stored: |tx| {
                let names = branches::list(tx, None)?.into_iter().map(|row| row.branch_name);
                Ok(names.collect::<std::collections::BTreeSet<_>>().into_iter().collect())
            },
            ..Thing::new(BRANCH, view::find_branches, "branch ls")
        },
        &Thing {
            list_stored: |tx| Ok(projects::list(tx, None)?.into_iter().map(|project| project.path).collect()),
            ..Thing::new(PROJECT, view::find_projects, "project ls")
        },
        &Thing { act: commands::act, ..Thing::new(RUN, view::find_runs, "bulk ls") },
        &Thing::new(COMMIT, view::find_commits, "commits ls"),
        // Listing the names would read every commit.
        &Thing::new(PERSON, view::find_people, "commits stats --by person"),
    ],
    tables: &[&COMMITS],
    pages: &[&pages::PAGE],
    documents: &[],
    words: &[BranchCode::words, ProjectCode::words, RunCode::words],
    list_findings: findings::list,
    list_busy: run::store::list_busy,
    list_left: |_, _| Ok(Vec::new()),
    list_needs: view::list_failing,
    refresh: |config, db, clock| Box::pin(counts::refresh(config, db, clock)),
};

static COMMITS: Table = Table {
    name: "commits",
    about: "Commits, without the addresses of their authors",
    columns: &[
        "project",
        "branch_name",
        "sha",
        "author_name",
        "committed_date_utc",
        "additions",
        "deletions",
        "stats_missing",
        "unreachable_since",
        "is_merge",
        "title",
    ],
    page: |tx, filter, after| {
        let span = (filter.since, filter.until);
        let found = list_after(tx, &key(after), filter.owner.as_deref(), span, filter.limit)?;
        let next = found
            .last()
            .map(|(_, key)| serde_json::json!([key.project_id, key.branch_name, key.sha]).to_string());
        Ok(TablePage { rows: found.iter().map(|(commit, _)| fields(commit)).collect(), next })
    },
    owner: |config, name| {
        let job = config.find_job(name).filter(|job| job.kind == KIND)?;
        Some(GitSource::read(job).ok()?.host)
    },
};

/// The last commit of a page: a project, a branch and a SHA.
fn key(after: After<'_>) -> CommitKey {
    match serde_json::from_str(after.0) {
        Ok((project_id, branch_name, sha)) => CommitKey { project_id, branch_name, sha },
        Err(_) => CommitKey { project_id: i64::MIN, ..CommitKey::default() },
    }
}

fn fields(commit: &CommitRow) -> Vec<Cell> {
    vec![
        Cell::text(&commit.project),
        Cell::text(&commit.branch_name),
        Cell::word(&commit.sha),
        Cell::text(&commit.author_name),
        commit.committed_date_utc.into(),
        Cell::Int(commit.additions),
        Cell::Int(commit.deletions),
        Cell::Flag(commit.stats_missing),
        commit.unreachable_since.into(),
        Cell::Flag(commit.is_merge),
        commit.title.as_ref().into(),
    ]
}
