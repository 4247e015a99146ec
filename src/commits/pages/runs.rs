//! The runs on the page: the last one branch by branch with its actions, and earlier ones.

use crate::commits::run::{self, RunRow, RunState, RunStatus, Summary, TargetRow, TargetStatus};
use crate::commits::store::projects;
use crate::commits::{commands, events};
use crate::db::{self, Tx};
use crate::engine::page::{Block, PageQuery, ProgressBlock, TableBlock, TableRow};
use crate::engine::view::State;
use crate::id::RunId;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// How many branches of the last run, and how many runs, are shown at once.
const SHOWN: usize = 50;
/// The query parameter of the position: a moment and a run.
const BEFORE: &str = "runs_before";

/// The blocks about runs; none if there was no run.
pub(super) fn find(tx: &mut Tx<'_>, query: &PageQuery) -> db::Result<Vec<Block>> {
    let before = query.find(BEFORE).and_then(parse_position);
    let mut rows = run::list_runs_before(tx, before, SHOWN + 1)?;
    let next = (rows.len() > SHOWN)
        .then(|| rows.truncate(SHOWN))
        .and_then(|()| rows.last())
        .map(|last| query.with(BEFORE, format!("{}/{}", last.started_at_utc, last.run_id)));
    let mut blocks = Vec::new();
    if before.is_none()
        && let Some(latest) = rows.first()
        && let Some(summary) = run::find_summary(tx, &latest.run_id)?
    {
        blocks.push(Block::Progress(Box::new(progress(tx, &summary)?)));
    }
    if rows.len() > 1 || before.is_some() {
        blocks.push(Block::Table(TableBlock {
            title: phrase!("Runs", "収集の履歴"),
            columns: vec![
                phrase!("started", "開始"),
                phrase!("job", "ジョブ"),
                phrase!("branches", "ブランチ"),
                phrase!("failed", "失敗"),
                phrase!("took", "所要時間"),
            ],
            rows: rows.iter().map(run_row).collect(),
            next,
        }));
    }
    Ok(blocks)
}

fn parse_position(text: &str) -> Option<(Timestamp, RunId)> {
    let (started_at, run_id) = text.split_once('/')?;
    Some((started_at.parse().ok()?, run_id.parse().ok()?))
}

fn state_of(run: &RunRow) -> State {
    match run.status {
        RunStatus::Running => State::Running,
        RunStatus::Completed if run.failed_count > 0 => State::Failing,
        RunStatus::Completed => State::Ok,
        RunStatus::Cancelled => State::Disabled,
    }
}

fn run_row(run: &RunRow) -> TableRow {
    TableRow {
        state: Some(state_of(run)),
        cells: vec![
            run.started_at_utc.into(),
            run.job_name.as_deref().into(),
            run.total_targets.into(),
            run.failed_count.into(),
            run.completed_at_utc.map(|end| end.since(run.started_at_utc)).into(),
        ],
        about: Some(events::run(&run.run_id).to_string()),
        ..TableRow::default()
    }
}

fn progress(tx: &mut Tx<'_>, summary: &Summary) -> db::Result<ProgressBlock> {
    let run = &summary.run;
    let id = run.run_id.to_string();
    let short = id.get(..8).unwrap_or(&id);
    let is_cut_off = summary.state == RunState::Interrupted;
    let title = phrase!("Run {short}: {state}", "収集 {short}：{state}", state = summary.state.phrase());
    Ok(ProgressBlock {
        title,
        jobs: run::list_jobs(tx, run)?,
        state: if is_cut_off { State::Due } else { state_of(run) },
        done: run.completed_count + run.failed_count,
        total: run.total_targets,
        text: phrase!(
            "{done} of {total} up to date, {failed} failed, {pending} pending; {new} new commits, counted per branch",
            "{total} 件中 {done} 件完了、失敗 {failed} 件、残り {pending} 件。新しいコミット {new} 件（ブランチごとの数）",
            done = run.success_count,
            total = run.total_targets,
            failed = run.failed_count,
            pending = summary.pending_count,
            new = summary.new_commits_count
        ),
        about: events::run(&run.run_id).to_string(),
        actions: commands::list_actions(summary),
        parts: TableBlock {
            title: parts_title(run.total_targets),
            columns: vec![
                phrase!("project", "プロジェクト"),
                phrase!("branch", "ブランチ"),
                phrase!("state", "状態"),
                phrase!("new commits", "新しいコミット"),
                phrase!("note", "備考"),
            ],
            rows: target_rows(tx, &run.run_id)?,
            next: None,
        },
    })
}

/// What is shown of the branches of a run.
fn parts_title(total: i64) -> Phrase {
    if total > SHOWN as i64 {
        phrase!(
            "{shown} of {total} branches, those that failed first",
            "ブランチ {total} 件中 {shown} 件（失敗したものから表示）",
            shown = SHOWN
        )
    } else {
        phrase!("Branches", "ブランチ")
    }
}

/// Failed branches first, then those at work, then the others.
fn target_rows(tx: &mut Tx<'_>, run_id: &RunId) -> db::Result<Vec<TableRow>> {
    let mut targets = Vec::new();
    for status in [TargetStatus::Failed, TargetStatus::Pending, TargetStatus::Success] {
        targets.extend(run::list_some_results(tx, run_id, status, SHOWN)?);
    }
    targets.sort_by_key(|target| (target.status != TargetStatus::Failed, target.lease_owner.is_none()));
    targets.truncate(SHOWN);
    targets.iter().map(|target| target_row(tx, target)).collect()
}

fn target_row(tx: &mut Tx<'_>, target: &TargetRow) -> db::Result<TableRow> {
    let path = projects::find(tx, target.project_id)?.map_or_else(String::new, |project| project.path);
    let (state, said): (State, Phrase) = match (target.status, &target.lease_owner) {
        (TargetStatus::Success, _) => (State::Ok, phrase!("up to date", "完了")),
        (TargetStatus::Failed, _) => (State::Failing, phrase!("failed", "失敗")),
        (TargetStatus::Pending, Some(_)) => (State::Running, phrase!("collecting", "収集中")),
        (TargetStatus::Pending, None) => (State::New, phrase!("pending", "待機中")),
    };
    let about = events::branch(&path, &target.branch_name).to_string();
    Ok(TableRow {
        state: Some(state),
        cells: vec![
            path.into(),
            (&target.branch_name).into(),
            said.into(),
            Value::Count(target.new_commits_count.unwrap_or(target.stored_count)),
            target.error_message.clone().into(),
        ],
        about: Some(about),
        ..TableRow::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_branches_does_not_pass_for_all_of_them() {
        assert_eq!(parts_title(50), "Branches");
        assert_eq!(parts_title(420), "50 of 420 branches, those that failed first");
    }
}
