//! Views of branches, projects, bulk runs, people and commits.

use std::sync::Arc;

use super::commands;
use super::events::{self, BRANCH, COMMIT, PERSON, PROJECT, RUN};
use super::model::Project;
use super::people::People;
use super::run::{self, RunStatus, Summary};
use super::stats::{self, Behind, Counting};
use super::store::branches::{self, BranchRow, Failing};
use super::store::projects;
use super::store::reading::{self, CommitRow, Scope};
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::finder::read_address;
use crate::engine::notice::Notice;
use crate::engine::view::{Line, State, View, with_events};
use crate::id::RunId;
use crate::ledger::Subject;
use crate::phrase;
use crate::text::shell_word;

/// Finds by `PROJECT/BRANCH`, or `PROJECT BRANCH` as runs write it; both may contain slashes.
pub(super) fn find_branches(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let mut views = Vec::new();
    for (end, _) in name.match_indices(['/', ' ']) {
        for project in projects::find_named(tx, &name[..end])? {
            let rows = branches::list(tx, Some(project.project_id))?;
            for row in rows.into_iter().filter(|row| row.branch_name == name[end + 1..]) {
                views.push(branch_view(finder, tx, &row)?);
            }
        }
    }
    Ok(views)
}

fn branch_view(finder: &Finder, tx: &mut Tx<'_>, branch: &BranchRow) -> db::Result<View> {
    let subject = events::branch(&branch.project, &branch.branch_name);
    let events = finder.list_events(tx, &subject)?;
    let title = phrase!(
        "branch {branch} of project {project}",
        "プロジェクト {project} のブランチ {branch}",
        branch = &branch.branch_name,
        project = &branch.project
    );
    let mut view = View::new(BRANCH, &subject, title, with_events(branch, &events));
    view.state = Some(match branch {
        BranchRow { ignored_at: Some(_), .. } | BranchRow { deleted_at: Some(_), .. } => State::Disabled,
        BranchRow { failing_since: Some(_), .. } => State::Failing,
        BranchRow { walking: true, .. } => State::Running,
        BranchRow { closed: Some(true), .. } => State::Ok,
        _ => State::New,
    });
    view.fact(phrase!("commits", "コミット"), branch.commits);
    view.fact(phrase!("newest commit", "最新のコミット"), branch.last_commit_at);
    view.fact(phrase!("read up to", "取得済みの先頭"), branch.complete_head.as_deref());
    view.fact(phrase!("last read", "最終取得"), branch.last_walk_at);
    view.fact(
        phrase!("history", "履歴"),
        branch.closed.map(|closed| {
            if closed {
                phrase!("complete: every parent is stored", "完全（親コミットはすべて保存済み）")
            } else {
                phrase!(
                    "has a gap: some parents are not stored",
                    "欠けあり（保存されていない親コミットがあります）"
                )
            }
        }),
    );
    for (label, count) in [
        (phrase!("no longer on the branch", "ブランチから外れたもの"), branch.unreachable),
        (phrase!("without line counts", "行数のないもの"), branch.stats_missing),
        (phrase!("could not be read", "読めなかったもの"), branch.unreadable),
    ] {
        view.fact(label, (count > 0).then_some(count));
    }
    if branch.walking {
        view.fact(
            phrase!("now", "現在"),
            phrase!("being read; the next run continues", "取得の途中（次回の実行で再開）"),
        );
    }
    view.fact(phrase!("gone since", "削除"), branch.deleted_at);
    view.fact(phrase!("failing since", "失敗"), branch.failing_since);
    view.fact(phrase!("because", "理由"), branch.failing_why.clone());
    view.fact(
        phrase!("left out since", "対象外"),
        branch.ignored_at.map(|at| phrase!("{at}, by `branch rm`", "{at}（`branch rm`）")),
    );
    finder.add_events(&mut view, &events);
    Ok(view)
}

/// Finds by path or number; a name that is not a project may be a branch.
pub(super) fn find_projects(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let found = projects::find_named(tx, name)?;
    if found.is_empty() {
        return find_branches(finder, tx, name);
    }
    found.iter().map(|project| project_view(finder, tx, project)).collect()
}

fn project_view(finder: &Finder, tx: &mut Tx<'_>, project: &Project) -> db::Result<View> {
    let subject = events::project(&project.path);
    let events = finder.list_events(tx, &subject)?;
    let title = phrase!(
        "project {path} ({id}) on {host}",
        "{host} のプロジェクト {path}（{id}）",
        path = &project.path,
        id = project.project_id,
        host = &project.host
    );
    let mut view = View::new(PROJECT, &subject, title, with_events(project, &events));
    view.state = Some(if project.removed_at.is_some() { State::Disabled } else { State::Ok });
    view.fact(phrase!("default branch", "既定のブランチ"), project.default_branch.as_deref());
    view.fact(phrase!("gone since", "削除"), project.removed_at);
    finder.add_events(&mut view, &events);
    view.command(
        phrase!("list its branches", "ブランチを一覧する"),
        format!("branch ls {}", shell_word(&project.path)),
    );
    Ok(view)
}

pub(super) fn find_runs(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let Ok(run_id) = name.parse::<RunId>() else { return Ok(Vec::new()) };
    let found = run::find_summary(tx, &run_id)?;
    found.iter().map(|summary| run_view(finder, tx, summary)).collect()
}

fn run_view(finder: &Finder, tx: &mut Tx<'_>, summary: &Summary) -> db::Result<View> {
    let run = &summary.run;
    let subject = events::run(&run.run_id);
    let events = finder.list_events(tx, &subject)?;
    let id = run.run_id.to_string();
    let title = phrase!("run {id}", "収集 {id}", id = &id);
    let mut view = View::new(RUN, &subject, title, with_events(summary, &events));
    view.state = Some(match run.status {
        RunStatus::Running => State::Running,
        RunStatus::Completed if run.failed_count > 0 => State::Failing,
        RunStatus::Completed => State::Ok,
        RunStatus::Cancelled => State::Disabled,
    });
    view.fact(phrase!("state", "状態"), summary.state.phrase());
    view.fact(phrase!("job", "ジョブ"), run.job_name.as_deref());
    view.fact(phrase!("started", "開始"), run.started_at_utc);
    view.fact(phrase!("ended", "終了"), run.completed_at_utc);
    view.fact(
        phrase!("branches", "ブランチ"),
        phrase!(
            "{done} of {total} up to date, {failed} failed, {pending} pending",
            "{total} 件中 {done} 件完了、失敗 {failed} 件、残り {pending} 件",
            done = run.success_count,
            total = run.total_targets,
            failed = run.failed_count,
            pending = summary.pending_count
        ),
    );
    view.fact(
        phrase!("new commits", "新しいコミット"),
        phrase!(
            "{count}, counted per branch",
            "{count} 件（ブランチごとの数）",
            count = summary.new_commits_count
        ),
    );
    finder.add_events(&mut view, &events);
    if run.failed_count > 0 {
        view.command(phrase!("show what failed", "失敗した分を表示する"), format!("bulk show {id}"));
    }
    view.actions.extend(commands::list_actions(summary));
    Ok(view)
}

/// `NAME@PERIOD` or `NAME PERIOD`; without a period, the last twelve months.
///
/// A period uses the index of dates. Without one, every unknown name would read the whole history.
pub(super) fn find_people(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    // No person is named like an address or a number, and the search reads a year of commits.
    if read_address(name).is_some() || name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Vec::new());
    }
    let zone = &finder.config.app.timezone;
    let split = name
        .rsplit_once(['@', ' '])
        .and_then(|(who, period)| Some((who.trim(), period, stats::period_bounds(period, zone)?)));
    let (who, period, (from, until)) =
        split.unwrap_or_else(|| (name.trim(), "", (finder.now.minus(YEAR), crate::time::Timestamp::MAX)));
    let scope = Scope { from: Some(from), until: Some(until), ..Scope::default() };
    // An unreadable mailmap was reported when the jobs were made.
    let people = Arc::new(People::of(&finder.config).unwrap_or_default());
    let counting = Counting::new(scope, zone.clone(), people);
    let found = stats::find_behind(tx, &counting, who, finder.limit)?;
    Ok(found.iter().map(|behind| person_view(behind, period, zone.name())).collect())
}

const YEAR: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 60 * 60);

fn person_view(behind: &Behind, period: &str, zone: &str) -> View {
    let (name, title) = match period {
        "" => (
            behind.author.clone(),
            phrase!("{who}, the last 12 months", "{who}（直近 12 か月）", who = &behind.author),
        ),
        period => (
            format!("{}@{period}", behind.author),
            phrase!("{who} in {period} ({zone})", "{who}、{period}（{zone}）", who = &behind.author),
        ),
    };
    let mut view = View::new(
        PERSON,
        format!("{PERSON}:{name}"),
        title,
        serde_json::to_value(behind).unwrap_or_default(),
    );
    let sum = &behind.sum;
    view.fact(phrase!("commits", "コミット"), sum.commits);
    view.fact(
        phrase!("merges", "マージ"),
        (sum.merges > 0).then(|| {
            phrase!(
                "{count}, their lines are not counted",
                "{count} 件（行数は含めません）",
                count = sum.merges
            )
        }),
    );
    view.fact(
        phrase!("lines", "行数"),
        phrase!("+{added} -{deleted}", "+{added} -{deleted}", added = sum.additions, deleted = sum.deletions),
    );
    view.fact(
        phrase!("without line counts", "行数のないもの"),
        (sum.stats_missing > 0).then_some(sum.stats_missing),
    );
    let line = |commit: &stats::CommitBehind| {
        let (sha, place) = (
            commit.sha.get(..10).unwrap_or(&commit.sha),
            format!("{} {}", commit.project, commit.branch_name),
        );
        let (title, at) = (commit.title.as_str(), commit.committed_date_utc);
        let text = match (commit.is_merge, commit.lines) {
            (true, _) => {
                phrase!("{sha} {place} merge {title}", "{sha} {place} マージ {title}")
            }
            (false, Some((added, deleted))) => {
                phrase!(
                    "{sha} {place} +{added} -{deleted} {title}",
                    "{sha} {place} +{added} -{deleted} {title}"
                )
            }
            (false, None) => {
                phrase!("{sha} {place} (no line counts) {title}", "{sha} {place}（行数なし） {title}")
            }
        };
        Line::at(at, text)
    };
    view.section(phrase!("commits", "コミット"), behind.commits.iter().map(line));
    let all = sum.commits + sum.merges;
    let shown = i64::try_from(behind.commits.len()).unwrap_or(i64::MAX);
    if all > shown {
        view.fact(
            phrase!("shown", "表示"),
            phrase!(
                "the newest {shown} of {all}; --limit shows more",
                "全 {all} 件のうち新しい {shown} 件（--limit で変更）"
            ),
        );
    }
    view
}

/// The shortest prefix of a SHA that git prints.
const MIN_SHA: usize = 7;

/// Finds by SHA, or a prefix of it.
pub(super) fn find_commits(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    if name.len() < MIN_SHA || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(Vec::new());
    }
    let rows = reading::list_by_sha(tx, &name.to_ascii_lowercase(), finder.limit)?;
    Ok(rows.chunk_by(|one, other| one.sha == other.sha).filter_map(commit_view).collect())
}

/// A commit, from its rows: one for each branch that has it.
fn commit_view(rows: &[CommitRow]) -> Option<View> {
    let commit = rows.first()?;
    let sha = commit.sha.chars().take(8).collect::<String>();
    let title = match commit.title.as_deref().filter(|title| !title.is_empty()) {
        Some(title) => phrase!("commit {sha}: {title}", "コミット {sha}：{title}"),
        None => phrase!("commit {sha}", "コミット {sha}"),
    };
    let data = serde_json::to_value(rows).unwrap_or_default();
    let mut view = View::new(COMMIT, Subject::new(COMMIT, &commit.sha), title, data);
    let is_gone = rows.iter().all(|row| row.unreachable_since.is_some());
    view.state = Some(if is_gone { State::Disabled } else { State::Ok });
    view.fact(phrase!("author", "作成者"), &commit.author_name);
    view.fact(phrase!("committed", "日時"), commit.committed_date_utc);
    let (added, deleted) = (commit.additions, commit.deletions);
    view.fact(
        phrase!("lines", "行数"),
        match commit {
            CommitRow { is_merge: true, .. } => phrase!(
                "+{added} -{deleted}, counted only with --with-merges: it is a merge",
                "+{added} -{deleted}（マージのため --with-merges のときだけ集計）"
            ),
            CommitRow { stats_missing: true, .. } => phrase!("not known yet", "未取得"),
            _ => phrase!("+{added} -{deleted}", "+{added} -{deleted}"),
        },
    );
    view.section(
        phrase!("branches", "ブランチ"),
        rows.iter().map(|row| {
            let (project, branch) = (&row.project, &row.branch_name);
            match row.unreachable_since {
                Some(since) => phrase!(
                    "{project} {branch}, not any more since {since}",
                    "{project} {branch}（{since} 以降は外れています）"
                ),
                None => phrase!("{project} {branch}", "{project} {branch}"),
            }
            .into()
        }),
    );
    Some(view)
}

/// The most failing branches that are read for notices.
const MOST_FAILING: usize = 1_000;
/// The most reasons that are listed one by one.
const MOST_REASONS: usize = 20;

/// Notices about failing branches: one for each reason, whatever the number of branches.
pub(super) fn list_failing(tx: &mut Tx<'_>) -> db::Result<Vec<Notice>> {
    let mut reasons: Vec<(Failing, i64)> = Vec::new();
    for branch in branches::list_failing(tx, MOST_FAILING)? {
        match reasons.iter_mut().find(|(first, _)| first.why == branch.why) {
            Some((_, more)) => *more += 1,
            None => reasons.push((branch, 0)),
        }
    }
    reasons.truncate(MOST_REASONS);
    Ok(reasons.into_iter().map(|(first, more)| failing_notice(&first, more)).collect())
}

fn failing_notice(first: &Failing, more: i64) -> Notice {
    let Failing { project, branch_name: branch, since, why } = first;
    let about = events::branch(project, branch);
    let (text, command) = if more == 0 {
        let text = phrase!(
            "{project} {branch} cannot be collected since {since}: {why}",
            "{project} {branch} は {since} から収集できません：{why}"
        );
        (text, format!("why {about}"))
    } else {
        let text = phrase!(
            "{project} {branch} and {more} more cannot be collected since {since}: {why}",
            "{project} {branch} ほか {more} 件は {since} から収集できません：{why}"
        );
        (text, "branch ls".to_owned())
    };
    Notice { state: State::Failing, about, text, command, actions: Vec::new() }
}
