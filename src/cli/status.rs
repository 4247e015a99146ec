//! `status`: the state of every job, and what needs the user.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::names::no_such;
use super::{Cell, Column, Context, Exit, Result};
use tsuzuki::app::{self, App};
use tsuzuki::engine::notice::Notice;
use tsuzuki::engine::overview::{self, JobOverview, Overview};
use tsuzuki::engine::view::State;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;

/// Columns of a text in a row without a terminal; `why` and `--json` show all of it.
const MAX_TEXT_COLUMNS: usize = 100;
/// The most notices of one state that are listed one by one; more are counted.
const MAX_NOTICES: usize = 5;

/// How often `--watch` polls.
const WATCH_EVERY: Duration = Duration::from_secs(2);

/// Options of `status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only these jobs
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Redraw every two seconds, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Only jobs that fail, wait, lack something or need a decision
    #[arg(long)]
    failing: bool,
    /// Also what has left the config but is still in the database
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let app = context.read_only_app().await?;
    if !args.watch {
        let overview = find(args, &app, context).await?;
        show_jobs(&overview.jobs, args, context)?;
        print_notices(&overview, context);
        return Ok(Exit::Fine);
    }
    let mut resized = signal(SignalKind::window_change())?;
    loop {
        draw(&find(args, &app, context).await?, context)?;
        tokio::select! {
            () = context.stop.cancelled() => return Ok(Exit::Fine),
            () = tokio::time::sleep(WATCH_EVERY) => {}
            _ = resized.recv() => {}
        }
    }
}

async fn find(args: &Args, app: &App, context: &Context) -> Result<Overview> {
    let (found, all) = (context.find_db().await?, args.all);
    if found.is_none() && !args.watch {
        context.out.note(phrase!(
            "Nothing has run yet: there is no database at {place}.",
            "まだ実行されていません（データベース {place} がありません）。",
            place = context.place().await?.to_string()
        ));
    }
    let finder = app.finder(context.config().await?, 0);
    let read = found.unwrap_or(&app.env.db).read(move |tx| {
        let mut overview = Overview::find(&finder, tx)?;
        if all {
            overview.jobs.extend(overview::list_left(&finder, tx, app::PIPELINES)?);
        }
        Ok(overview)
    });
    let mut overview = read.await?;
    let known = |name: &String| overview.jobs.iter().any(|job| job.job == *name);
    if let Some(name) = args.names.iter().find(|name| !known(name)) {
        return Err(no_such("job", name, overview.jobs.iter().map(|job| job.job.as_str())));
    }
    let is_meant = |job: &str| args.names.is_empty() || args.names.iter().any(|name| name == job);
    let is_fine = |job: &JobOverview| {
        matches!(job.standing.state, State::Ok | State::New | State::Running | State::Due)
    };
    overview.jobs.retain(|job| is_meant(&job.job) && !(args.failing && is_fine(job)));
    if !args.names.is_empty() {
        overview.needs_you.retain(|notice| notice.about.name_of("job").is_some_and(is_meant));
    }
    Ok(overview)
}

fn show_jobs(jobs: &[JobOverview], args: &Args, context: &Context) -> Result {
    if !jobs.is_empty() || context.out.is_json() {
        return context.out.listing(&list_columns(), jobs, list_cells);
    }
    context.out.done(if args.failing {
        phrase!("No job fails or waits.", "失敗または待機中のジョブはありません。")
    } else {
        phrase!(
            "No jobs to show. `tsuzuki job add` or an editor adds one to the config file.",
            "表示するジョブはありません。`tsuzuki job add` またはエディターで設定ファイルに追加できます。"
        )
    })
}

/// Prints what needs the user, on stderr.
fn print_notices(overview: &Overview, context: &Context) {
    if let Some(moved) = &overview.moved {
        context.out.warn(phrase!(
            "nothing runs here any more: everything was moved to {to}",
            "ここでは何も実行されません。すべて {to} に移行済みです",
            to = &moved.to
        ));
    }
    for (state, line) in summarise(overview) {
        match state {
            // No failure: time or the schedule may end it.
            State::Quota | State::Done | State::Waiting => context.out.note(line),
            _ => context.out.warn(line),
        }
    }
}

/// Redraws everything in place.
fn draw(overview: &Overview, context: &Context) -> Result<()> {
    if context.out.is_json() {
        return context.out.json(&overview.jobs);
    }
    let rows: Vec<Vec<Cell>> = overview.jobs.iter().map(list_cells).collect();
    let (table, speech) = (context.out.render_table(&list_columns(), &rows), context.out.speech());
    let say = |(state, line): &(State, Phrase)| format!("{} {}", state.mark(), speech.phrase(line));
    let mut notices: Vec<String> = summarise(overview).iter().map(say).collect();
    if !notices.is_empty() {
        notices.insert(0, String::new());
    }
    context.out.redraw(&table, &notices)
}

fn list_columns() -> [Column; 7] {
    [
        Column::left(phrase!("job", "ジョブ")),
        Column::left(phrase!("kind", "種類")).secondary(),
        Column::long(phrase!("state", "状態")).at_most(MAX_TEXT_COLUMNS),
        Column::moment(phrase!("last run", "最終実行")),
        Column::moment(phrase!("last success", "最終成功")).secondary(),
        Column::moment(phrase!("next run", "次回")),
        Column::long(phrase!("last result", "前回の結果")).at_most(MAX_TEXT_COLUMNS),
    ]
}

fn list_cells(job: &JobOverview) -> Vec<Cell> {
    vec![
        Cell::from(&job.job),
        job.kind.into(),
        Cell::state(job.standing.state, job.standing.phrase()),
        job.last_run_at.into(),
        job.last_success_at.into(),
        job.next_run_at.into(),
        job.message.clone().unwrap_or_else(|| Phrase::verbatim("")).into(),
    ]
}

/// What needs the user, the worst first; many of one sort are one line with the command that lists them.
fn summarise(overview: &Overview) -> Vec<(State, Phrase)> {
    let mut lines = Vec::new();
    for (at, notice) in overview.needs_you.iter().enumerate() {
        let state = notice.state;
        let is_alike = |other: &&Notice| other.state == state && other.about.word() == notice.about.word();
        let many = overview.needs_you.iter().filter(is_alike).count();
        let before = overview.needs_you[..at].iter().filter(is_alike).count();
        let is_about_job = notice.about.name_of("job").is_some();
        if many <= MAX_NOTICES || (before < MAX_NOTICES && !is_about_job) {
            lines.push((state, line(notice)));
        } else if is_about_job && before == 0 {
            let (all, state_words) = (overview.jobs.len(), state.phrase());
            let summary = phrase!(
                "{state_words}: {many} of {all job}: `tsuzuki status --failing`",
                "{state_words}：{all} 件中 {many} 件：`tsuzuki status --failing`"
            );
            lines.push((state, summary));
        } else if before == MAX_NOTICES && !is_about_job {
            lines.push((state, phrase!("… and {more} more", "… ほか {more} 件", more = many - before)));
        }
    }
    lines
}

fn line(notice: &Notice) -> Phrase {
    phrase!(
        "{about}: {text}: `tsuzuki {command}`",
        "{about}：{text}：`tsuzuki {command}`",
        about = notice.about.phrase(),
        text = &notice.text,
        command = &notice.command
    )
}
