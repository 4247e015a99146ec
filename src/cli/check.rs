//! `check`: the config file, every table of it and how they fit together, without opening anything.

use super::error::Message;
use super::{Context, Exit, Result};
use crate::app;
use crate::config::{self, Problem, Problems, Severity};
use crate::text::counted;
use crate::web;

/// Options of `check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

#[derive(serde::Serialize)]
struct Checked<'a> {
    path: String,
    /// The jobs that can be made out.
    jobs: Vec<&'a str>,
    /// Errors and warnings, in the order of the file.
    problems: &'a Problems,
}

pub(super) async fn run(_: &Args, context: &Context) -> Result {
    let path = context.config_path()?;
    let (config, mut problems) = config::survey(&path, app::kinds(), &context.env);
    if let Some(config) = &config {
        config.hide_secrets();
        // What one table says about another shows only when all of them are put together.
        if let Err(error) = context.try_out(config).await {
            match error.message {
                Message::Problems(more) => {
                    problems.extend(more.into_iter().filter(|problem| !problem.is_of_stand_in()));
                }
                _ => problems.push(Problem::of_file(&path, error.plain(config::Colour::Never))),
            }
        }
        // Nothing but `serve` listens, so nothing else refuses it.
        if let Ok(Err(error)) = config.web.read().map(|read| web::refuse_open(&read)) {
            problems.push(config.web.problem("listen", error.to_string()).with_hint(error.hint()));
        }
        problems.extend(config.warnings.clone());
        problems.extend(app::list_warnings(config));
    }
    let problems = problems.in_order();
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let exit = if errors == 0 { Exit::Fine } else { Exit::Config };
    let is_named = |job: &&config::Job| !job.section.problem("name", "").is_of_stand_in();
    let jobs = config.iter().flat_map(|config| &config.jobs).filter(is_named);
    let jobs: Vec<&str> = jobs.map(|job| job.name.as_str()).collect();
    if context.out.is_json() {
        context.out.json(&Checked { path: path.display().to_string(), jobs, problems: &problems })?;
        return Ok(exit);
    }
    if errors > 0 || !context.out.is_quiet() {
        context.out.problems(&problems);
    }
    match errors {
        0 => context.out.note(format!("{}: {}, no errors", path.display(), counted(jobs.len(), "job"))),
        errors => context.out.note(format!("{}: {}", path.display(), counted(errors, "error"))),
    }
    Ok(exit)
}
