//! `run-due` and `run`: one shot of the same runner that the daemon uses.

mod telling;

use serde::Serialize;

use self::telling::{Held, Telling};
use super::progress::Bars;
use super::{Context, Error, Exit, Result, log};
use crate::app::{self, App};
use crate::channel::outbox::SendReport;
use crate::db::Open;
use crate::engine::{Finished, Job, Runner, Selection, Skipped, runner};
use crate::id::JobName;
use crate::ledger::presence;
use crate::text::{counted, nearest};

/// Options of `run-due`.
#[derive(Debug, clap::Args)]
pub(super) struct DueArgs {
    /// Only say what would be done: change nothing, send nothing, call nothing that costs
    #[arg(long)]
    dry_run: bool,
    /// Run jobs that are not due, too
    #[arg(long)]
    force: bool,
    /// Collect and save, but send nothing
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
    /// Collect and save, but send nothing
    #[arg(long)]
    no_deliver: bool,
    /// Only one step of a press job: collect, screen or post
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
}

pub(super) async fn run_due(args: &DueArgs, context: &Context) -> Result {
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
    let telling = Telling::new(context, Held::IsFine).await?;
    let finished = run_jobs(context, selection, Delivery::new(args.no_deliver), &telling, choose).await?;
    telling.conclude(&finished)
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
    let telling = Telling::new(context, Held::IsAnError).await?;
    let delivery = Delivery::new(args.no_deliver);
    let finished = run_jobs(context, Selection::Forced, delivery, &telling, choose).await?;
    telling.conclude(&finished)
}

fn narrow(job: Job, step: &str) -> Result<Job> {
    match job.work.only(step) {
        Some(work) => Ok(Job { work, ..job }),
        None => Err(Error::usage(format!("`{}` is a {} job and has no step `{step}`", job.name, job.kind))
            .hint("press jobs have the steps collect, screen and post")),
    }
}

fn choose_named(app: &App, names: &[String]) -> Result<Vec<Job>> {
    names
        .iter()
        .map(|name| {
            app.jobs.iter().find(|job| job.name.as_str() == name).cloned().ok_or_else(|| {
                let error = Error::usage(format!("there is no job `{name}`"));
                match nearest(name, app.jobs.iter().map(|job| job.name.as_str())) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint("`tsuzuki job ls` lists the jobs"),
                }
            })
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Send,
    OnlyQueue,
}

impl Delivery {
    fn new(no_deliver: bool) -> Self {
        if no_deliver { Delivery::OnlyQueue } else { Delivery::Send }
    }
}

async fn run_jobs(
    context: &Context,
    selection: Selection,
    delivery: Delivery,
    telling: &Telling<'_>,
    choose: impl FnOnce(&App) -> Result<Vec<Job>>,
) -> Result<Vec<(JobName, Finished)>> {
    // How a job ended is our own line to write.
    let usual = format!("info,{}=off", runner::ENDED);
    log::start(&context.global, &usual, context.out.colours_messages());
    let app = context.app(Open::Create).await?;
    let jobs = choose(&app)?;
    let bars = Bars::new(&context.out);
    let mut told = Ok(());
    let finished = Runner::new(app.parts.db.clone(), bars.progress())
        .run_telling(jobs, selection, &context.stop, |job, finished| {
            let line = bars.end(job, || telling.tell(job, finished));
            // A reader that has gone does not end the other jobs.
            if told.is_ok() {
                told = line;
            }
        })
        .await;
    told?;
    if delivery == Delivery::Send && !context.stop.is_cancelled() {
        let sent = app.sender().send_due(&context.stop).await?;
        tell_deliveries(context, &sent);
    }
    if let Some(keep) = context.config().await?.store.keep_history {
        app::prune(&app.parts.db, context.clock.now().minus(keep.into())).await?;
    }
    Ok(finished)
}

fn tell_deliveries(context: &Context, sent: &SendReport) {
    if sent.sent > 0 {
        context.out.note(format!("delivered {}", counted(sent.sent, "message")));
    }
    if sent.failed + sent.held + sent.unknown > 0 {
        context.out.warn(format!(
            "messages that failed: {}, that wait for you: {}, with an unknown outcome: {}; see `tsuzuki delivery ls`",
            sent.failed, sent.held, sent.unknown
        ));
    }
    for channel in &sent.locked {
        context
            .out
            .warn(format!("channel `{channel}` refuses our credentials and rests: see `tsuzuki doctor`"));
    }
    for channel in &sent.orphans {
        context.out.warn(format!("messages wait for channel `{channel}`, which the config does not name"));
    }
}

/// What would be done, without doing it.
async fn plan(
    context: &Context,
    selection: Selection,
    choose: impl FnOnce(&App) -> Result<Vec<Job>>,
) -> Result {
    let app = context.look().await?;
    let db = &app.parts.db;
    let jobs = choose(&app)?;
    let picked = Runner::new(db.clone(), crate::engine::Progress::default()).pick(&jobs, selection).await?;
    let times = context.times().await?;
    let mut planned = Vec::new();
    for (job, picked) in jobs.iter().zip(picked) {
        let steps = match &picked.skipped {
            Some(_) => Vec::new(),
            None => job.work.plan(db, context.clock.now()).await?.steps,
        };
        planned.push(Planned {
            job: job.name.clone(),
            skipped: picked.skipped.as_ref().map(why_skipped),
            steps,
        });
    }
    if context.out.is_json() {
        context.out.json(&planned)?;
        return Ok(Exit::Fine);
    }
    for plan in &planned {
        match &plan.skipped {
            Some(why) => context.out.line(format!("{}: would not run: {}", plan.job, times.told(why)))?,
            None => context.out.line(format!("{}: would run", plan.job))?,
        }
        for step in &plan.steps {
            context.out.line(format!("  {}", times.told(step)))?;
        }
    }
    Ok(Exit::Fine)
}

#[derive(Serialize)]
struct Planned {
    job: JobName,
    skipped: Option<String>,
    steps: Vec<String>,
}

/// Why a job was not run; moments as they are stored.
pub(super) fn why_skipped(skipped: &Skipped) -> String {
    match skipped {
        Skipped::Disabled => "it is disabled".into(),
        Skipped::NotDue(Some(next)) => format!("it is not due before {next}"),
        Skipped::NotDue(None) => "its schedule has no further date".into(),
        Skipped::Paused(reason) => format!("it is paused ({reason})"),
        Skipped::Held(holder) => {
            let who = presence::shown_owner(&holder.owner);
            format!("{who} is at it since {}", holder.taken_at)
        }
        Skipped::Moved(to) => format!("everything was moved to {to}"),
    }
}
