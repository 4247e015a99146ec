//! `status`: every job at a glance, and what needs a person.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use super::{Column, Context, Exit, Result, waiting};
use crate::app;
use crate::config::Config;
use crate::db::{self, Tx};
use crate::engine::{Job, JobState, runner, store};
use crate::ledger::{Subject, lease, pause};
use crate::phrase::Phrase;
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
    /// A single thing that the config of its job does not name any more, such as a blog.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
    kind: Option<&'static str>,
    state: String,
    last_run_at: Option<Timestamp>,
    last_success_at: Option<Timestamp>,
    next_run_at: Option<Timestamp>,
    message: Option<Phrase>,
    /// What has to be set before it can do its work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs_setup: Vec<String>,
    /// Messages of the job that wait for a person.
    messages_held: i64,
    /// Messages of the job that failed for good, not long ago.
    messages_failed: i64,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let app = context.look().await?;
    loop {
        let (jobs, all, now) = (app.jobs.clone(), args.all, context.clock.now());
        let found = context.find_db().await?;
        if found.is_none() {
            let place = context.place().await?;
            context.out.note(format!("Nothing has run yet: there is no database at {place}."));
        }
        let config = context.config().await?;
        let configured = config.clone();
        let missing = config.list_missing_secrets();
        let needs = |job: &Job| app::list_missing_of(job, config, &missing);
        let needs_setup: BTreeMap<String, Vec<String>> =
            jobs.iter().map(|job| (job.name.to_string(), needs(job))).collect();
        let sentences: BTreeSet<String> = needs_setup.values().flatten().cloned().collect();
        let read = found.unwrap_or(&app.env.db).read(move |tx| {
            let mut rows = list_rows(tx, &jobs, &needs_setup, now)?;
            if all {
                rows.extend(list_left(tx, &jobs, &configured)?);
            }
            let waiting = waiting::list(tx, now)?;
            for row in rows.iter_mut().filter(|row| row.left.is_none()) {
                let of_job = waiting.get(&row.job).copied().unwrap_or_default();
                (row.messages_held, row.messages_failed) = (of_job.held, of_job.failed);
            }
            let locked = waiting::list_locked(tx, now)?;
            Ok((rows, waiting::sum(waiting.values()), locked, db::find_moved_away(tx)?))
        });
        let (rows, waiting, locked, left) = read.await?;
        if let Some(left) = left {
            context.out.warn(format!("nothing runs here any more: everything was moved to {}", left.to));
        }
        show(&rows, context).await?;
        for why in sentences {
            context.out.warn(format!("needs setup: {why}; `tsuzuki doctor` says where to get it"));
        }
        let sentences = [waiting.held_sentence(), waiting.failed_sentence()];
        sentences.iter().flatten().for_each(|sentence| context.out.warn(sentence));
        for (channel, rest) in &locked {
            context.out.warn(waiting::locked_sentence(channel, &rest.reason.to_string()));
        }
        if !args.watch {
            return Ok(Exit::Fine);
        }
        tokio::select! {
            () = context.stop.cancelled() => return Ok(Exit::Fine),
            () = tokio::time::sleep(Duration::from_secs(2)) => context.out.note(""),
        }
    }
}

fn list_rows(
    tx: &mut Tx<'_>,
    jobs: &[Job],
    needs_setup: &BTreeMap<String, Vec<String>>,
    now: Timestamp,
) -> db::Result<Vec<Row>> {
    let states = store::list_states(tx)?;
    let mut rows = Vec::new();
    for job in jobs {
        let state = states.iter().find(|state| state.job_name == job.name.as_str());
        let rest = pause::find(tx, &Subject::job(&job.name), now)?;
        let holder = lease::find_holder(tx, &runner::lease_name(&job.name))?;
        let last_run_at = state.and_then(|state| state.last_run_at);
        let needs_setup = needs_setup.get(job.name.as_str()).cloned().unwrap_or_default();
        let word = match (&holder, &rest) {
            (Some(_), _) => "running".into(),
            (_, Some(rest)) => format!("paused: {}", rest.reason),
            _ if !job.enabled => "disabled".into(),
            _ if !needs_setup.is_empty() => "Needs setup".into(),
            _ => word_of(state),
        };
        let next_run_at = runner::next_run_at(job, state, holder.as_ref(), rest.as_ref(), now);
        rows.push(Row {
            job: job.name.to_string(),
            left: None,
            kind: Some(job.kind),
            state: word,
            last_run_at,
            last_success_at: state.and_then(|state| state.last_success_at),
            next_run_at,
            message: state.and_then(|state| state.last_message.clone()),
            needs_setup,
            messages_held: 0,
            messages_failed: 0,
        });
    }
    Ok(rows)
}

/// What is still in the database but no longer in the file: jobs, and single things of jobs that stay.
fn list_left(tx: &mut Tx<'_>, jobs: &[Job], config: &Config) -> db::Result<Vec<Row>> {
    let is_there = |name: &str| jobs.iter().any(|job| job.name.as_str() == name);
    let mut rows: Vec<Row> = store::list_states(tx)?
        .into_iter()
        .filter(|state| !is_there(&state.job_name))
        .map(|state| Row {
            job: state.job_name,
            left: None,
            kind: None,
            state: "not in the config".into(),
            last_run_at: state.last_run_at,
            last_success_at: state.last_success_at,
            next_run_at: None,
            message: state.last_message,
            needs_setup: Vec::new(),
            messages_held: 0,
            messages_failed: 0,
        })
        .collect();
    for pipeline in app::PIPELINES {
        let left = (pipeline.list_left)(tx, config)?;
        rows.extend(left.into_iter().filter(|left| is_there(&left.job)).map(|left| Row {
            job: left.job,
            state: format!("{} `{}` is not in the config", left.word, left.name),
            left: Some(left.name),
            kind: Some(pipeline.kind.name),
            last_run_at: Some(left.last_at),
            last_success_at: None,
            next_run_at: None,
            message: None,
            needs_setup: Vec::new(),
            messages_held: 0,
            messages_failed: 0,
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
    let (times, speech) = (context.times().await?, context.speech().await?);
    let columns = [
        Column::left("job"),
        Column::left("kind"),
        Column::left("state"),
        times.column("last run"),
        Column::left("last success"),
        Column::left("next run"),
        Column::long("last result"),
    ];
    if rows.is_empty() && !context.out.is_json() {
        context.out.note("No jobs. `tsuzuki job add` or an editor adds one to the config file.");
        return Ok(());
    }
    context.out.listing(&columns, rows, |row| {
        vec![
            row.job.clone(),
            row.kind.unwrap_or("-").into(),
            row.state.clone(),
            times.cell(row.last_run_at),
            times.cell(row.last_success_at),
            times.cell(row.next_run_at),
            row.message.as_ref().map_or_else(String::new, |message| speech.phrase(message)),
        ]
    })
}
