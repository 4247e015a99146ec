//! `status`: every job at a glance, and what needs a person.

use std::time::Duration;

use super::{Column, Context, Exit, Result};
use crate::app;
use crate::engine::overview::{self, JobOverview, Notice, Overview};
use crate::engine::view::State;
use crate::phrase::Speech;

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

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let app = context.look().await?;
    let all = args.all;
    loop {
        let found = context.find_db().await?;
        if found.is_none() {
            let place = context.place().await?;
            context.out.note(format!("Nothing has run yet: there is no database at {place}."));
        }
        let finder = app.finder(context.config().await?, 0);
        let read = found.unwrap_or(&app.env.db).read(move |tx| {
            let mut overview = Overview::find(&finder, tx)?;
            if all {
                overview.jobs.extend(overview::list_left(&finder, tx, app::PIPELINES)?);
            }
            Ok(overview)
        });
        show(&read.await?, context).await?;
        if !args.watch {
            return Ok(Exit::Fine);
        }
        tokio::select! {
            () = context.stop.cancelled() => return Ok(Exit::Fine),
            () = tokio::time::sleep(Duration::from_secs(2)) => context.out.note(""),
        }
    }
}

async fn show(overview: &Overview, context: &Context) -> Result<()> {
    let speech = context.speech().await?;
    if let Some(moved) = &overview.moved {
        context.out.warn(format!("nothing runs here any more: everything was moved to {}", moved.to));
    }
    show_jobs(&overview.jobs, &speech, context).await?;
    for notice in &overview.needs_you {
        let line = line(notice, &speech);
        match notice.state {
            // Nothing is wrong, and time or the schedule may end it.
            State::Quota | State::Done | State::Waiting => context.out.note(line),
            _ => context.out.warn(line),
        }
    }
    Ok(())
}

fn line(notice: &Notice, speech: &Speech) -> String {
    let (about, text) = (notice.about.spoken(), speech.phrase(&notice.text));
    format!("{about}: {text}: `tsuzuki {}`", notice.command)
}

async fn show_jobs(jobs: &[JobOverview], speech: &Speech, context: &Context) -> Result<()> {
    let times = context.times().await?;
    let columns = [
        Column::left("job"),
        Column::left("kind"),
        Column::left("state"),
        times.column("last run"),
        Column::left("last success"),
        Column::left("next run"),
        Column::long("last result"),
    ];
    if jobs.is_empty() && !context.out.is_json() {
        context.out.note("No jobs. `tsuzuki job add` or an editor adds one to the config file.");
        return Ok(());
    }
    context.out.listing(&columns, jobs, |job| {
        vec![
            job.job.clone(),
            job.kind.unwrap_or("-").into(),
            format!("{} {}", job.standing.state.mark(), speech.phrase(&job.standing.phrase())),
            times.cell(job.last_run_at),
            times.cell(job.last_success_at),
            times.cell(job.next_run_at),
            job.message.as_ref().map_or_else(String::new, |message| speech.phrase(message)),
        ]
    })
}
