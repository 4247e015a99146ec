//! `status`: every job at a glance, and what needs a person.

use std::time::Duration;

use serde::Serialize;

use super::{Column, Context, Exit, Result};
use crate::db::{self, Open, Tx};
use crate::engine::{Job, JobState, runner, store};
use crate::ledger::{lease, pause};
use crate::time::Timestamp;

/// Options of `status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show again every two seconds, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Also what has left the config but is still in the database
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    job: String,
    kind: Option<&'static str>,
    state: String,
    last_run_at: Option<Timestamp>,
    last_success_at: Option<Timestamp>,
    next_run_at: Option<Timestamp>,
    message: Option<String>,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let app = context.app(Open::Create).await?;
    loop {
        let (jobs, all, now) = (app.jobs.clone(), args.all, context.clock.now());
        let rows = app.parts.db.read(move |tx| list_rows(tx, &jobs, all, now)).await?;
        show(&rows, context).await?;
        if !args.watch {
            return Ok(Exit::Fine);
        }
        tokio::select! {
            () = context.stop.cancelled() => return Ok(Exit::Fine),
            () = tokio::time::sleep(Duration::from_secs(2)) => context.out.note(""),
        }
    }
}

fn list_rows(tx: &mut Tx<'_>, jobs: &[Job], all: bool, now: Timestamp) -> db::Result<Vec<Row>> {
    let states = store::list_states(tx)?;
    let mut rows = Vec::new();
    for job in jobs {
        let state = states.iter().find(|state| state.job_name == job.name.as_str());
        let rest = pause::find(tx, &runner::pause_name(&job.name), now)?;
        let holder = lease::find_holder(tx, &runner::lease_name(&job.name))?;
        let last_run_at = state.and_then(|state| state.last_run_at);
        let word = match (&holder, &rest) {
            (Some(_), _) => "running".into(),
            (_, Some(rest)) => format!("paused: {}", rest.reason),
            _ if !job.enabled => "disabled".into(),
            _ => word_of(state),
        };
        let runs_by_itself = job.enabled && rest.is_none();
        rows.push(Row {
            job: job.name.to_string(),
            kind: Some(job.kind),
            state: word,
            last_run_at,
            last_success_at: state.and_then(|state| state.last_success_at),
            next_run_at: if runs_by_itself { job.schedule.due_at(last_run_at, now) } else { None },
            message: state.and_then(|state| state.last_message.clone()),
        });
    }
    if all {
        let gone = states.iter().filter(|state| !jobs.iter().any(|job| job.name.as_str() == state.job_name));
        rows.extend(gone.map(|state| Row {
            job: state.job_name.clone(),
            kind: None,
            state: "not in the config".into(),
            last_run_at: state.last_run_at,
            last_success_at: state.last_success_at,
            next_run_at: None,
            message: state.last_message.clone(),
        }));
    }
    Ok(rows)
}

fn word_of(state: Option<&JobState>) -> String {
    match state {
        None => "never ran".into(),
        Some(state) => match state.last_outcome {
            Some(outcome) => outcome.to_string(),
            None => "cut off".into(),
        },
    }
}

async fn show(rows: &[Row], context: &Context) -> Result<()> {
    let zone = context.config().await?.app.timezone.time_zone().clone();
    let local = |at: Option<Timestamp>| at.map_or("-".into(), |at| at.to_local_minute(&zone));
    let columns = [
        Column::left("job"),
        Column::left("kind"),
        Column::left("state"),
        Column::left("last run"),
        Column::left("last success"),
        Column::left("next run"),
        Column::left("said"),
    ];
    if rows.is_empty() && !context.out.is_json() {
        context.out.note("No jobs. `tsuzuki job add` or an editor adds one to the config file.");
    }
    context.out.listing(&columns, rows, |row| {
        vec![
            row.job.clone(),
            row.kind.unwrap_or("-").into(),
            row.state.clone(),
            local(row.last_run_at),
            local(row.last_success_at),
            local(row.next_run_at),
            crate::text::shorten(row.message.as_deref().unwrap_or(""), 60),
        ]
    })
}
