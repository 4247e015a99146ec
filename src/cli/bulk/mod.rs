//! `bulk`: collects commits in runs that can be shared, interrupted, continued and retried.

mod show;

use std::io::IsTerminal;
use std::sync::Arc;

use clap::Subcommand;

use super::error::unless_unread;
use super::sending;
use super::since::SinceArgs;
use super::{Context, Error, Exit, Result, log, progress};
use tsuzuki::commits::run::decide::{Again, Sharing};
use tsuzuki::commits::run::{self, Bulk, Ended, Only, Summary, Watch, WorkedRun};
use tsuzuki::commits::{GitSource, KIND, commands};
use tsuzuki::config::Config;
use tsuzuki::db::{Db, Open};
use tsuzuki::engine::{Failure, Job};
use tsuzuki::id::{JobName, RunId};
use tsuzuki::ledger::presence;
use tsuzuki::phrase;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Collect what is new on every branch; continue a run that was cut off
    Start {
        /// Only the branches of this job
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
        /// Only the branches of this project, by path or number
        #[arg(long)]
        project: Option<String>,
        /// Only branches of this name
        #[arg(long)]
        branch: Option<String>,
        /// Share the targets of a run that another process works on
        #[arg(long)]
        join: bool,
    },
    /// Show the run that is running, or the last one
    Status,
    /// End a run early; what was collected stays
    Cancel {
        /// The run [default: the one that is running]
        run: Option<RunId>,
    },
    /// Do what is pending in a run; of an ended run in a new one
    Resume {
        /// The run [default: the one that is running, else the last]
        run: Option<RunId>,
        /// Share the targets with a process that works on them
        #[arg(long)]
        join: bool,
    },
    /// Try again what failed in a run, in a new one
    RetryFailed {
        /// The run [default: the last]
        run: Option<RunId>,
    },
    /// List runs, newest first
    Ls {
        #[command(flatten)]
        since: SinceArgs,
        /// At most this many
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show a run and all its targets
    Show {
        /// The run [default: the last]
        run: Option<RunId>,
    },
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Start { job, project, branch, join } => {
            start(job.as_deref(), Only { project, branch }, sharing(join), context).await
        }
        Command::Status => show::status(context).await,
        Command::Cancel { run } => cancel(run, context).await,
        Command::Resume { run, join } => again(run, Again::Pending, sharing(join), context).await,
        Command::RetryFailed { run } => again(run, Again::Failed, Sharing::Alone, context).await,
        Command::Ls { since, limit } => show::list(&since, limit, context).await,
        Command::Show { run } => show::show(run, context).await,
    }
}

fn sharing(join: bool) -> Sharing {
    if join { Sharing::Join } else { Sharing::Alone }
}

/// The `commits` jobs of the config: all, or the one of that name.
pub(super) fn read_sources(config: &Config, job: Option<&str>) -> Result<Vec<Arc<GitSource>>> {
    let jobs: Vec<_> = config
        .jobs
        .iter()
        .filter(|found| found.kind == KIND && job.is_none_or(|job| found.name.as_str() == job))
        .collect();
    match (jobs.is_empty(), job) {
        (true, Some(job)) => Err(Error::usage(phrase!("there is no job `{job}` of kind `{kind}`", "種類 `{kind}` のジョブ `{job}` はありません", kind = KIND))
            .hint(phrase!("`tsuzuki job ls` lists the jobs", "ジョブの一覧は `tsuzuki job ls` で確認できます"))),
        (true, None) => Err(Error::new(Exit::Config, phrase!("the config has no job of kind `{kind}`", "設定に種類 `{kind}` のジョブがありません", kind = KIND))
            .hint(phrase!("add a [[job]] with kind = \"commits\", gitlab, token and projects; see docs/commits.md", "kind = \"commits\"、gitlab、token、projects を書いた [[job]] を追加してください（docs/commits.md を参照）"))),
        (false, _) => jobs.into_iter().map(|job| Ok(Arc::new(GitSource::read(job)?))).collect(),
    }
}

async fn worker(job: Option<&str>, context: &Context) -> Result<(Bulk, tsuzuki::app::App)> {
    log::start(&context.global, "warn", context.out.colours_messages());
    let app = context.app(Open::Create).await?;
    let sources = read_sources(context.config().await?, job)?;
    let drawn = progress::drawn(&context.out);
    let bulk = Bulk::new(app.env.clone(), sources, drawn, context.stop.clone());
    Ok((bulk.watched(told_as_lines(context)).staying(), app))
}

/// Without a terminal every step is a line of JSON on stderr.
fn told_as_lines(context: &Context) -> Watch {
    let out = context.out.clone();
    let silent = out.is_quiet() || std::io::stderr().is_terminal();
    Arc::new(move |step| {
        if !silent && let Ok(line) = serde_json::to_string(step) {
            out.note(line);
        }
    })
}

async fn start(job: Option<&str>, only: Only, sharing: Sharing, context: &Context) -> Result {
    let (bulk, app) = worker(job, context).await?;
    let (is_whole, began_at) = (only == Only::default(), app.env.clock.now());
    let bulk = bulk.only(only);
    let name: Option<JobName> = job.and_then(|job| job.parse().ok());
    let ended = bulk.start(name.as_ref(), sharing).await;
    let pause = bulk.find_pause().await?;
    // Its bars go with it.
    drop(bulk);
    if let (Err(Failure::Failed(why)), Some(_)) = (&ended, pause) {
        return context.out.done(why.clone());
    }
    if is_whole {
        let is_meant = |found: &Job| found.kind == KIND && job.is_none_or(|job| found.name.as_str() == job);
        let jobs = app.jobs.iter().filter(|job| is_meant(job)).cloned().collect();
        run::note_manual_run(&app.env.db, jobs, &ended, began_at).await?;
    }
    conclude(ended.map(Some), &app, context).await
}

async fn again(run: Option<RunId>, again: Again, sharing: Sharing, context: &Context) -> Result {
    let (bulk, app) = worker(None, context).await?;
    refuse_unknown_run(run, &app.env.db).await?;
    let ended = bulk.again(run, again, sharing).await;
    drop(bulk);
    conclude(ended, &app, context).await
}

/// Refuses an unknown run.
async fn refuse_unknown_run(run: Option<RunId>, db: &Db) -> Result<()> {
    let Some(run_id) = run else { return Ok(()) };
    if db.read(move |tx| run::find_run(tx, &run_id)).await?.is_some() {
        return Ok(());
    }
    Err(Error::usage(phrase!(
        "there is no run {run_id}",
        "収集 {run_id} はありません",
        run_id = run_id.to_string()
    ))
    .hint(phrase!("`tsuzuki bulk ls` lists the runs", "収集の一覧は `tsuzuki bulk ls` で確認できます")))
}

/// Prints the result, sends queued messages, and returns the exit code.
async fn conclude(
    ended: Result<Option<Ended>, Failure>,
    app: &tsuzuki::app::App,
    context: &Context,
) -> Result {
    let outcome = match ended {
        Ok(Some(Ended::Worked(outcome))) => outcome,
        Ok(Some(Ended::Busy(run, holder))) => {
            return Err(Error::new(
                Exit::Held,
                phrase!(
                    "run {run} is already running ({owner}, since {at})",
                    "実行 {run} は処理中です（{owner}、{at} から）",
                    run = run.run_id.to_string(),
                    owner = presence::shown_owner(&holder.owner),
                    at = holder.taken_at
                ),
            )
            .hint(phrase!(
                "add --join to share its targets, or wait until it has ended",
                "--join で分担するか、終わるまで待ってください"
            )));
        }
        Ok(Some(Ended::Nothing(problems))) => {
            let error = Error::failed(phrase!(
                "nothing to collect: no branch was found",
                "収集するものがありません（ブランチが見つかりません）"
            ));
            return Err(problems.into_iter().fold(error, Error::hint).hint(phrase!(
                "name projects in the job, or add a branch with `tsuzuki branch add PROJECT BRANCH`",
                "ジョブに projects を書くか、`tsuzuki branch add PROJECT BRANCH` でブランチを追加してください"
            )));
        }
        Ok(None) => {
            return context.out.done(phrase!("There is nothing left to do.", "残りはありません。"));
        }
        Err(Failure::Interrupted) => {
            context.out.note(phrase!(
                "Interrupted. Everything up to here is saved; `tsuzuki bulk resume` continues.",
                "中断しました。ここまでの内容は保存済みです。`tsuzuki bulk resume` で再開できます。"
            ));
            return Ok(Exit::Interrupted);
        }
        Err(Failure::Credentials(why)) => {
            return Err(Error::new(Exit::Credentials, why).hint(phrase!(
                "what was collected is saved; with a good token `tsuzuki bulk start` continues",
                "収集済みの内容は保存されています。有効なトークンがあれば `tsuzuki bulk start` で続けられます"
            )));
        }
        Err(failure) => return Err(failure.into()),
    };
    let sent = app.send_now(&context.stop).await?;
    unless_unread(print_outcome(&outcome, context))?;
    sending::report(&sent, &context.out);
    let exit = if outcome.problems.is_empty() { Exit::Fine } else { Exit::Partly };
    Ok(sending::exit_code(&sent, exit))
}

fn print_outcome(outcome: &WorkedRun, context: &Context) -> Result<()> {
    if context.out.is_json() {
        return context.out.json(outcome);
    }
    if !context.out.is_quiet() || !outcome.problems.is_empty() {
        context.out.prose(sentence(&outcome.run, context))?;
    }
    for problem in &outcome.problems {
        context.out.warn(problem);
    }
    if let Some(until) = outcome.waiting_until {
        context.out.note(phrase!(
            "The host asks to wait until {until}; `tsuzuki bulk resume` continues then.",
            "ホストの指示により {until} まで待ちます。その後 `tsuzuki bulk resume` で再開できます。"
        ));
    }
    if outcome.run.run.failed_count > 0 {
        context.out.note(phrase!(
            "`tsuzuki bulk retry-failed {run_id}` tries the failed ones again.",
            "失敗したものは `tsuzuki bulk retry-failed {run_id}` でやり直せます。",
            run_id = outcome.run.run.run_id.to_string()
        ));
    }
    Ok(())
}

fn sentence(summary: &Summary, context: &Context) -> String {
    let run = &summary.run;
    context.out.speech().phrase(&phrase!(
        "run {id} {state}: {done} of {total} branches up to date, {failed} failed, {pending} pending, {new} new commits",
        "収集 {id}（{state}）：{total} ブランチ中 {done} 件が最新、失敗 {failed} 件、残り {pending} 件、新しいコミット {new} 件",
        id = run.run_id.to_string(),
        state = summary.state.phrase(),
        done = run.success_count,
        total = run.total_targets,
        failed = run.failed_count,
        pending = summary.pending_count,
        new = summary.new_commits_count
    ))
}

async fn cancel(run_id: Option<RunId>, context: &Context) -> Result {
    refuse_unknown_run(run_id, context.db().await?).await?;
    let cancelled = context.db().await?.write(move |tx| commands::cancel(tx, run_id)).await?;
    match cancelled {
        None => Err(Error::failed(phrase!("no run is running", "実行中の収集はありません")).hint(phrase!(
            "`tsuzuki bulk ls` lists the runs",
            "収集の一覧は `tsuzuki bulk ls` で確認できます"
        ))),
        Some((summary, false)) => {
            let run = &summary.run;
            Err(Error::failed(phrase!(
                "run {run_id} is {status} already",
                "収集 {run_id} はすでに終わっています（{status}）",
                run_id = run.run_id.to_string(),
                status = run.status.word()
            )))
        }
        Some((summary, true)) => {
            if context.out.is_json() {
                context.out.json(&summary)?;
            } else {
                context.out.prose(sentence(&summary, context))?;
            }
            context.out.done(phrase!(
                "`tsuzuki bulk resume {run_id}` does what is pending in a new run.",
                "残りは `tsuzuki bulk resume {run_id}` で新しい収集として行えます。",
                run_id = summary.run.run_id.to_string()
            ))
        }
    }
}
