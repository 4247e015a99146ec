//! `run-due` and `run`: one shot of the same runner that the daemon uses.

use serde::Serialize;

use super::{Context, Error, Exit, Result, log, progress};
use crate::app::{self, App};
use crate::channel::outbox::SendReport;
use crate::db::Open;
use crate::engine::{Failure, Finished, Job, Runner, Selection, Skipped};
use crate::id::JobName;
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
    let finished = run_jobs(context, selection, Delivery::new(args.no_deliver), choose).await?;
    conclude(context, &finished, Held::IsFine)
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
    let finished = run_jobs(context, Selection::Forced, Delivery::new(args.no_deliver), choose).await?;
    conclude(context, &finished, Held::IsAnError)
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
    choose: impl FnOnce(&App) -> Result<Vec<Job>>,
) -> Result<Vec<(JobName, Finished)>> {
    log::start(&context.global, "info", context.out.colours_messages());
    let app = context.app(Open::Create).await?;
    let jobs = choose(&app)?;
    let runner = Runner::new(app.parts.db.clone(), progress::drawn(&context.out));
    let finished = runner.run(jobs, selection, &context.stop).await;
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
            Some(why) => context.out.line(format!("{}: would not run: {why}", plan.job))?,
            None => context.out.line(format!("{}: would run", plan.job))?,
        }
        for step in &plan.steps {
            context.out.line(format!("  {step}"))?;
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

fn why_skipped(skipped: &Skipped) -> String {
    match skipped {
        Skipped::Disabled => "it is disabled".into(),
        Skipped::NotDue(Some(next)) => format!("it is not due before {next}"),
        Skipped::NotDue(None) => "its schedule has no further date".into(),
        Skipped::Paused(reason) => format!("it is paused ({reason})"),
        Skipped::Held(holder) => format!("{} is at it since {}", holder.owner, holder.taken_at),
        Skipped::Moved(to) => format!("everything was moved to {to}"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    IsFine,
    IsAnError,
}

#[derive(Serialize)]
struct Told<'a> {
    job: &'a JobName,
    outcome: &'static str,
    message: String,
    problems: &'a [String],
}

/// Tells how each job ended, and turns all of it into one exit code.
fn conclude(context: &Context, finished: &[(JobName, Finished)], held: Held) -> Result {
    let mut told = Vec::new();
    for (job, finished) in finished {
        let (outcome, message, problems) = match finished {
            Finished::Skipped(skipped) => ("skipped", why_skipped(skipped), &[][..]),
            Finished::Ran(report) if report.problems.is_empty() => {
                ("success", report.summary.clone(), &[][..])
            }
            Finished::Ran(report) => ("partly", report.summary.clone(), &report.problems[..]),
            Finished::Failed(Failure::Interrupted) => {
                ("interrupted", Failure::Interrupted.to_string(), &[][..])
            }
            Finished::Failed(failure) => ("failed", failure.to_string(), &[][..]),
        };
        told.push(Told { job, outcome, message, problems });
    }
    if context.out.is_json() {
        context.out.json(&told)?;
    } else {
        for told in &told {
            let is_news = match told.outcome {
                "success" | "skipped" => !context.out.is_quiet(),
                _ => true,
            };
            if is_news && (told.outcome != "skipped" || held == Held::IsAnError) {
                context.out.line(format!("{}: {}: {}", told.job, told.outcome, told.message))?;
                for problem in told.problems {
                    context.out.line(format!("  {problem}"))?;
                }
            }
        }
    }
    let exit = exit_code(finished, held);
    if exit == Exit::Interrupted {
        context.out.note("Interrupted. Everything up to here is saved; `tsuzuki run-due` continues.");
    }
    Ok(exit)
}

fn exit_code(finished: &[(JobName, Finished)], held: Held) -> Exit {
    let failures: Vec<&Failure> = finished
        .iter()
        .filter_map(|(_, finished)| match finished {
            Finished::Failed(failure) => Some(failure),
            _ => None,
        })
        .collect();
    let ran_well = finished.iter().any(|(_, finished)| matches!(finished, Finished::Ran(_)));
    let partly = finished
        .iter()
        .any(|(_, finished)| matches!(finished, Finished::Ran(report) if !report.problems.is_empty()));
    let is_held =
        finished.iter().any(|(_, finished)| matches!(finished, Finished::Skipped(Skipped::Held(_))));
    if failures.iter().any(|failure| matches!(failure, Failure::Interrupted)) {
        return Exit::Interrupted;
    }
    match failures.as_slice() {
        [] if partly => Exit::Partly,
        [] if is_held && held == Held::IsAnError => Exit::Held,
        [] => Exit::Fine,
        _ if ran_well => Exit::Partly,
        failures if failures.iter().all(|failure| matches!(failure, Failure::Credentials(_))) => {
            Exit::Credentials
        }
        failures if failures.iter().all(|failure| matches!(failure, Failure::Config(_))) => Exit::Config,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Report;

    fn ran(problems: &[&str]) -> Finished {
        let problems = problems.iter().map(ToString::to_string).collect();
        Finished::Ran(Report { problems, ..Report::default() })
    }

    fn failed(failure: Failure) -> Finished {
        Finished::Failed(failure)
    }

    #[test]
    fn exit_codes_are_those_of_the_documentation() {
        let held = || {
            let at = "2026-01-15T00:00:00Z".parse().unwrap();
            let holder = crate::ledger::lease::Holder { owner: "x".into(), taken_at: at, expires_at: at };
            Finished::Skipped(Skipped::Held(holder))
        };
        let cases: Vec<(Vec<Finished>, Held, Exit)> = vec![
            (vec![], Held::IsFine, Exit::Fine),
            (vec![ran(&[])], Held::IsFine, Exit::Fine),
            (vec![Finished::Skipped(Skipped::Disabled)], Held::IsFine, Exit::Fine),
            (vec![held()], Held::IsFine, Exit::Fine),
            (vec![held()], Held::IsAnError, Exit::Held),
            (vec![ran(&["x"])], Held::IsFine, Exit::Partly),
            (vec![failed(Failure::Failed("x".into()))], Held::IsFine, Exit::Failed),
            (vec![ran(&[]), failed(Failure::Failed("x".into()))], Held::IsFine, Exit::Partly),
            (vec![failed(Failure::Credentials("x".into()))], Held::IsFine, Exit::Credentials),
            (vec![failed(Failure::Config("x".into()))], Held::IsFine, Exit::Config),
            (vec![failed(Failure::Interrupted), ran(&[])], Held::IsFine, Exit::Interrupted),
        ];
        for (number, (finished, held, exit)) in cases.into_iter().enumerate() {
            let finished: Vec<_> =
                finished.into_iter().map(|finished| ("j".parse().unwrap(), finished)).collect();
            assert_eq!(exit_code(&finished, held), exit, "case {number}");
        }
    }
}
