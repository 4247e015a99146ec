//! Shows runs: the current one, the last ones, and the branches of one.

use super::super::since::SinceArgs;
use super::super::table::row;
use super::super::{Column, Context, Error, Exit, Result};
use super::{refuse_unknown_run, sentence};
use tsuzuki::commits::run::{self, RunState, Summary, TargetRow};
use tsuzuki::commits::store::projects;
use tsuzuki::id::RunId;
use tsuzuki::ledger::presence;
use tsuzuki::phrase;
use tsuzuki::text::one_line;

pub(super) async fn status(context: &Context) -> Result {
    let found = context
        .view()
        .await?
        .read(|tx| {
            let run = match run::find_running(tx)? {
                Some(run) => Some(run),
                None => run::find_latest(tx)?,
            };
            let Some(run) = run else { return Ok(None) };
            let Some(summary) = run::find_summary(tx, &run.run_id)? else { return Ok(None) };
            Ok(Some((summary, run::list_leased(tx, &run.run_id)?)))
        })
        .await?;
    let Some((summary, leased)) = found else {
        context.out.note(phrase!(
            "No run has been started yet; `tsuzuki bulk start` begins one.",
            "収集はまだ行われていません。`tsuzuki bulk start` で始められます。"
        ));
        return context.out.nothing();
    };
    if context.out.is_json() {
        context.out.json(&summary)?;
        return Ok(Exit::Fine);
    }
    context.out.prose(sentence(&summary, context))?;
    if summary.state == RunState::Interrupted {
        context.out.note(phrase!(
            "Nobody works on it; `tsuzuki bulk resume` continues.",
            "実行中のプロセスはありません。`tsuzuki bulk resume` で再開できます。"
        ));
    }
    for target in leased {
        let owner = presence::shown_owner(&target.lease_owner.unwrap_or_default());
        context.out.prose(context.out.speech().phrase(&phrase!(
            "  project {project} {branch}: {count commit} so far, by {owner}",
            "  プロジェクト {project} {branch}：これまでにコミット {count} 件（{owner}）",
            project = target.project_id,
            branch = one_line(&target.branch_name),
            count = target.stored_count
        )))?;
    }
    Ok(Exit::Fine)
}

pub(super) async fn list(since: &SinceArgs, limit: usize, context: &Context) -> Result {
    let since = since.moment(context).await?;
    let mut runs = context.view().await?.read(move |tx| run::list_states(tx, limit)).await?;
    runs.retain(|listed| listed.run.started_at_utc >= since);
    let columns = [
        Column::left(phrase!("run", "実行")),
        Column::moment(phrase!("started", "開始")),
        Column::moment(phrase!("ended", "終了")).secondary(),
        Column::left(phrase!("status", "状態")),
        Column::right(phrase!("targets", "対象")),
        Column::right(phrase!("succeeded", "成功")).secondary(),
        Column::right(phrase!("failed", "失敗")),
        Column::left(phrase!("job", "ジョブ")).secondary(),
    ];
    context.out.listing(&columns, &runs, |listed| {
        let run = &listed.run;
        row![
            run.run_id.to_string(),
            run.started_at_utc,
            run.completed_at_utc,
            listed.state.phrase(),
            run.total_targets,
            run.success_count,
            run.failed_count,
            run.job_name.as_deref(),
        ]
    })
}

#[derive(serde::Serialize)]
struct ShownRun {
    #[serde(flatten)]
    summary: Summary,
    targets: Vec<ShownTarget>,
}

#[derive(serde::Serialize)]
struct ShownTarget {
    project: String,
    #[serde(flatten)]
    row: TargetRow,
}

pub(super) async fn show(run_id: Option<RunId>, context: &Context) -> Result {
    let db = context.view().await?;
    refuse_unknown_run(run_id, &db).await?;
    let shown = db
        .read(move |tx| {
            let run = match run_id {
                Some(run_id) => run::find_run(tx, &run_id)?,
                None => run::find_latest(tx)?,
            };
            let Some(run) = run else { return Ok(None) };
            let Some(summary) = run::find_summary(tx, &run.run_id)? else { return Ok(None) };
            let mut targets = Vec::new();
            for row in run::list_results(tx, &run.run_id)? {
                let project = projects::find(tx, row.project_id)?.map(|project| project.path);
                targets.push(ShownTarget {
                    project: project.unwrap_or_else(|| row.project_id.to_string()),
                    row,
                });
            }
            Ok(Some(ShownRun { summary, targets }))
        })
        .await?;
    let Some(shown) = shown else {
        return Err(Error::failed(phrase!("no run has been started yet", "収集はまだ行われていません"))
            .hint(phrase!("`tsuzuki bulk start` begins one", "`tsuzuki bulk start` で始められます")));
    };
    if context.out.is_json() {
        context.out.json(&shown)?;
        return Ok(Exit::Fine);
    }
    context.out.prose(sentence(&shown.summary, context))?;
    let columns = [
        Column::left(phrase!("project", "プロジェクト")),
        Column::left(phrase!("branch", "ブランチ")),
        Column::left(phrase!("status", "状態")),
        Column::right(phrase!("new", "新着")),
        Column::moment(phrase!("processed", "処理")),
        Column::long(phrase!("error", "エラー")),
    ];
    context.out.listing(&columns, &shown.targets, |target| {
        row![
            &target.project,
            &target.row.branch_name,
            target.row.status.phrase(),
            target.row.stored_count,
            target.row.processed_at_utc,
            target.row.error_message.clone(),
        ]
    })
}
