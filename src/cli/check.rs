//! `check`: the config file, every table of it and how they fit together, without opening anything.

use super::doctor::keys;
use super::error::Message;
use super::{Context, Exit, Result};
use crate::app;
use crate::config::{self, Problem, Problems, Severity};
use crate::text::counted;
use crate::web;

/// Options of `check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Exit 5 also when a secret that the file names is not set
    #[arg(long)]
    strict: bool,
}

#[derive(serde::Serialize)]
struct Checked<'a> {
    path: String,
    /// The jobs that can be made out.
    jobs: Vec<&'a str>,
    /// Errors and warnings, in the order of the file.
    problems: &'a Problems,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let path = context.config_path()?;
    let (config, mut problems) = config::survey(&path, app::kinds(), &context.env);
    if let Some(config) = &config {
        config.hide_secrets();
        // What one table says about another shows only when all of them are put together.
        if let Err(error) = context.preview(config).await {
            match error.message {
                Message::Problems(more) => {
                    problems.extend(more);
                }
                _ => problems.push(Problem::of_file(&path, error.plain(config::Colour::Never))),
            }
        }
        // Nothing but `serve` listens, so nothing else refuses it.
        if let Ok(Err(error)) = config.web.keys().map(web::refuse_open) {
            problems.push(config.web.problem("listen", error.to_string()).with_hint(error.hint()));
        }
        problems.extend(config.list_needed_setup().into_iter().map(|(missing, problem)| {
            match keys::where_to_get(&missing.kind, &missing.key) {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            }
        }));
        problems.extend(config.warnings.clone());
        problems.extend(app::list_warnings(config));
    }
    let problems = problems.in_order();
    let count = |severity| problems.iter().filter(|problem| problem.severity == severity).count();
    let (errors, needed) = (count(Severity::Error), count(Severity::Setup));
    let is_wrong = errors > 0 || (args.strict && needed > 0);
    let exit = if is_wrong { Exit::Config } else { Exit::Fine };
    let jobs = config.iter().flat_map(|config| &config.jobs);
    let jobs: Vec<&str> = jobs.map(|job| job.name.as_str()).collect();
    if context.out.is_json() {
        context.out.json(&Checked { path: path.display().to_string(), jobs, problems: &problems })?;
        return Ok(exit);
    }
    if is_wrong || !context.out.is_quiet() {
        context.out.problems(&problems);
    }
    let needed = match needed {
        0 => String::new(),
        needed => format!(", needs setup: {} not set", counted(needed, "secret")),
    };
    match errors {
        0 => {
            let jobs = counted(jobs.len(), "job");
            context.out.note(format!("{}: {jobs}, no errors{needed}", path.display()));
        }
        errors => context.out.note(format!("{}: {}{needed}", path.display(), counted(errors, "error"))),
    }
    Ok(exit)
}
