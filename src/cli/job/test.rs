//! `job test`: one look at what a job watches, and what a run would find there.

use super::super::{Context, Exit, Result};
use super::no_such_job;
use crate::app;
use crate::db::Open;
use crate::engine::Trial;
use crate::text::{counted, one_line, shorten, width};

/// The widest name of a thing that others are aligned by.
const WIDEST: usize = 40;

pub(super) async fn run(name: &str, context: &Context) -> Result {
    let config = context.config().await?;
    let kind = config.find_job(name).map(|job| job.kind.as_str()).ok_or_else(|| no_such_job(name, config))?;
    let app = match app::counts_looks(kind) {
        true => context.app(Open::Create).await?,
        false => context.look().await?,
    };
    let job = app.jobs.iter().find(|job| job.name.as_str() == name);
    let trial = job.ok_or_else(|| no_such_job(name, config))?.work.test(&app.parts.db).await?;
    match context.out.is_json() {
        true => context.out.json(&trial)?,
        false => print(&trial, context)?,
    }
    let failed = trial.looks.iter().filter(|look| look.error.is_some()).count();
    Ok(match (failed, trial.looks.len()) {
        (0, _) => Exit::Fine,
        (failed, looks) if failed == looks => Exit::Failed,
        (failed, looks) => {
            context.out.warn(format!("{failed} of {} failed", counted(looks, "look")));
            Exit::Partly
        }
    })
}

fn print(trial: &Trial, context: &Context) -> Result<()> {
    let names: Vec<String> = trial.looks.iter().map(|look| shorten(&one_line(&look.what), WIDEST)).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    for (look, name) in trial.looks.iter().zip(&names) {
        let gap = " ".repeat(widest - width(name));
        let found = match &look.error {
            Some(error) => format!("failed: {error}"),
            None => look.found.clone(),
        };
        context.out.line(format!("{name}{gap}  {}", one_line(&found)))?;
        for first in &look.first {
            context.out.line(format!("  - {}", one_line(first)))?;
        }
    }
    trial.notes.iter().for_each(|note| context.out.note(format!("note: {note}")));
    Ok(())
}
