//! `check`: checks the config file, every table of it and their relations, without opening anything.

use super::doctor::keys;
use super::{Context, Exit, Result};
use tsuzuki::app::survey::survey;
use tsuzuki::config::{Problems, Severity};
use tsuzuki::phrase;
use tsuzuki::web;

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
    /// The jobs that could be read.
    jobs: Vec<&'a str>,
    /// Errors and warnings, in the order of the file.
    problems: &'a Problems,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let path = context.config_path()?;
    let (config, mut problems) = survey(&path, &context.env, &context.clock).await;
    if let Some(config) = &config {
        context.speak_as_in(config);
        // Only `serve` listens, so no other command refuses it.
        if let Ok(Err(error)) = config.web.keys().map(web::refuse_open) {
            problems.push(config.web.problem("listen", error.phrase()).with_hint(error.hint()));
        }
        problems.extend(config.list_needed_setup().into_iter().map(|(missing, problem)| {
            match keys::where_to_get(&missing.kind, &missing.key) {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            }
        }));
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
        0 => "".into(),
        needed => {
            phrase!(", needs setup: {needed secret} not set", "、設定不足：未設定の秘密情報 {needed} 件")
        }
    };
    let path = path.display().to_string();
    context.out.note(match errors {
        0 => phrase!(
            "{path}: {jobs job}, no errors{needed}",
            "{path}：ジョブ {jobs} 件、エラーなし{needed}",
            jobs = jobs.len()
        ),
        errors => phrase!("{path}: {errors error}{needed}", "{path}：エラー {errors} 件{needed}"),
    });
    Ok(exit)
}
