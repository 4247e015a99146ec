//! `run-due` and `run`: one pass of the runner that the daemon also uses.

mod report;

use serde::Serialize;

use self::report::{Held, RunReporter};
use super::error::unless_unread;
use super::names::no_such;
use super::progress::Bars;
use super::sending;
use super::waiting::Before;
use super::{Context, Error, Exit, Result, log};
use tsuzuki::app::{self, App};
use tsuzuki::db::Open;
use tsuzuki::engine::{DeliveryMode, Finished, Job, Runner, Selection, Skipped, runner};
use tsuzuki::fail;
use tsuzuki::id::JobName;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;

/// Options of `run-due`.
#[derive(Debug, clap::Args)]
pub(super) struct DueArgs {
    /// Only say what would be done: change nothing, send nothing, call nothing that costs
    #[arg(long)]
    dry_run: bool,
    /// Run jobs that are not due, too
    #[arg(long)]
    force: bool,
    /// Collect and save, but send nothing: the next run without this option sends what is new
    #[arg(long)]
    no_deliver: bool,
    /// Only these jobs
    #[arg(long, value_name = "NAME")]
    job: Vec<String>,
    /// Only jobs of this kind
    #[arg(long)]
    kind: Option<String>,
}

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub(super) struct NamedArgs {
    /// The jobs
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Only say what would be done: change nothing, send nothing, call nothing that costs
    #[arg(long)]
    dry_run: bool,
    /// Collect and save, but send nothing: the next run without this option sends what is new
    #[arg(long)]
    no_deliver: bool,
    /// Only one step of a job that has steps, e.g. collect, screen or post
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
}

pub(super) async fn run_due(args: &DueArgs, context: &Context) -> Result {
    if let Some(kind) = args.kind.as_deref().filter(|kind| !app::job_kinds().any(|known| known == *kind)) {
        let error =
            Error::usage(phrase!("there is no kind of job `{kind}`", "ジョブの種類 `{kind}` はありません"));
        let kinds = app::job_kinds().collect::<Vec<_>>().join(", ");
        let all = phrase!("known: {kinds}", "種類：{kinds}");
        return Err(error.hint_nearest(kind, app::job_kinds(), all));
    }
    let selection = if args.force { Selection::Forced } else { Selection::Due };
    let choose = |app: &App| -> Result<Vec<Job>> {
        let named = choose_named(app, &args.job)?;
        let jobs = if args.job.is_empty() { app.jobs.clone() } else { named };
        Ok(jobs
            .into_iter()
            .filter(|job| args.kind.as_ref().is_none_or(|kind| kind == job.kind))
            // `--force` overrides the schedule, not the switch in the config.
            .filter(|job| job.enabled || !args.job.is_empty() || selection == Selection::Due)
            .collect())
    };
    if args.dry_run {
        return plan(context, selection, choose).await;
    }
    let report = RunReporter::new(context, Held::IsFine).await?;
    run_jobs(context, selection, delivery(args.no_deliver), &report, choose).await
}

pub(super) async fn run_named(args: &NamedArgs, context: &Context) -> Result {
    let choose = |app: &App| {
        let jobs = choose_named(app, &args.names)?;
        match &args.step {
            Some(step) => jobs.into_iter().map(|job| narrow(job, step)).collect(),
            None => Ok(jobs),
        }
    };
    if args.dry_run {
        return plan(context, Selection::Forced, choose).await;
    }
    let report = RunReporter::new(context, Held::IsAnError).await?;
    run_jobs(context, Selection::Forced, delivery(args.no_deliver), &report, choose).await
}

fn narrow(job: Job, step: &str) -> Result<Job> {
    let steps = app::PIPELINES.iter().filter(|of| !of.steps.is_empty());
    let hint = Phrase::list(steps.map(|of| {
        phrase!(
            "{kind} jobs have the steps {steps}",
            "{kind} ジョブの段階：{steps}",
            kind = of.kind.name,
            steps = of.steps.join(", ")
        )
    }));
    match job.collector.only(step) {
        Some(collector) => Ok(Job { collector, ..job }),
        None => Err(Error::usage(phrase!(
            "`{name}` is a {kind} job and has no step `{step}`",
            "`{name}` は {kind} ジョブで、段階 `{step}` はありません",
            name = job.name.to_string(),
            kind = job.kind.to_string()
        ))
        .hint(hint)),
    }
}

fn choose_named(app: &App, names: &[String]) -> Result<Vec<Job>> {
    names
        .iter()
        .map(|name| {
            app.jobs
                .iter()
                .find(|job| job.name.as_str() == name)
                .cloned()
                .ok_or_else(|| no_such("job", name, app.jobs.iter().map(|job| job.name.as_str())))
        })
        .collect()
}

fn delivery(no_deliver: bool) -> DeliveryMode {
    if no_deliver { DeliveryMode::NoDeliver } else { DeliveryMode::Queue }
}

/// Makes a pass, then prints the results. A closed pipe does not stop it.
async fn run_jobs(
    context: &Context,
    selection: Selection,
    delivery: DeliveryMode,
    report: &RunReporter<'_>,
    choose: impl FnOnce(&App) -> Result<Vec<Job>>,
) -> Result {
    // This command prints how jobs ended, so do not log it.
    let usual = format!("info,{}=off", runner::ENDED);
    log::start(&context.global, &usual, context.out.colours_messages());
    let app = context.app(Open::Create).await?;
    let chosen = choose(&app)?;
    let db = &app.env.db;
    let before = Before::note(db).await?;
    fail::point("run.opened");
    let bars = Bars::new(&context.out);
    let mut written = Ok(());
    let on_end = |job: &JobName, finished: &Finished| {
        let line = bars.end(job, || report.print_line(job, finished));
        if written.is_ok() {
            written = line;
        }
    };
    let pass = app.run_pass(chosen, selection, delivery, bars.progress(), &context.stop, on_end).await?;
    sending::report(&pass.sent, &context.out);
    before.warn_of_new(db, (pass.sent.held, pass.sent.failed), &context.out).await?;
    let config = context.config().await?;
    let first = pass.first_runs.iter().filter_map(|name| config.find_job(name.as_str()));
    sending::warn_without_channel(first, &context.out);
    sending::warn_of_missing(&app.finder(config, 0).missing, &pass, &context.out);
    let (exit, concluded) = report.conclude(&pass.finished);
    unless_unread(written.and(concluded))?;
    Ok(sending::exit_code(&pass.sent, exit))
}

/// Prints what would be done.
async fn plan(
    context: &Context,
    selection: Selection,
    choose: impl FnOnce(&App) -> Result<Vec<Job>>,
) -> Result {
    let app = context.read_only_app().await?;
    let db = &app.env.db;
    let jobs = choose(&app)?;
    let runner = Runner::new(db.clone(), tsuzuki::engine::Progress::default());
    let skipped = runner.list_skipped(&jobs, selection).await?;
    let speech = context.speech().await?;
    let mut planned = Vec::new();
    for (job, skipped) in jobs.iter().zip(skipped) {
        let steps = match &skipped {
            Some(_) => Vec::new(),
            None => job.collector.plan(db, context.clock.now()).await?.steps,
        };
        planned.push(Planned {
            job: job.name.clone(),
            skipped: skipped.as_ref().map(Skipped::phrase),
            steps,
        });
    }
    if context.out.is_json() {
        context.out.json(&planned)?;
        return Ok(Exit::Fine);
    }
    for plan in &planned {
        match &plan.skipped {
            Some(why) => context.out.prose(speech.phrase(&phrase!(
                "{job}: would not run: {why}",
                "{job}：実行されません：{why}",
                job = &plan.job
            )))?,
            None => context.out.prose(speech.phrase(&phrase!(
                "{job}: would run",
                "{job}：実行されます",
                job = &plan.job
            )))?,
        }
        for step in &plan.steps {
            context.out.prose(format!("  {}", speech.phrase(step)))?;
        }
    }
    Ok(Exit::Fine)
}

#[derive(Serialize)]
struct Planned {
    #[serde(rename = "job_name")]
    job: JobName,
    skipped: Option<Phrase>,
    steps: Vec<Phrase>,
}
