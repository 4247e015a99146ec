//! `check`: the config file, every table of it and how they fit together, without opening anything.

use super::{Context, Exit, Result};
use crate::config::Colour;

/// Options of `check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

#[derive(serde::Serialize)]
struct Checked<'a> {
    path: String,
    jobs: Vec<&'a str>,
    warnings: Vec<String>,
}

pub(super) async fn run(_: &Args, context: &Context) -> Result {
    let config = context.load_config()?;
    // What one table says about another shows only when all of them are put together.
    context.try_out(&config).await?;
    let colour = if context.out.colours_messages() { Colour::Always } else { Colour::Never };
    if context.out.is_json() {
        context.out.json(&Checked {
            path: config.path.display().to_string(),
            jobs: config.jobs.iter().map(|job| job.name.as_str()).collect(),
            warnings: config.warnings.iter().map(ToString::to_string).collect(),
        })?;
        return Ok(Exit::Fine);
    }
    if !config.warnings.is_empty() {
        context.out.note(config.warnings.render(colour).trim_end());
    }
    let plural = if config.jobs.len() == 1 { "" } else { "s" };
    context.out.note(format!("{}: {} job{plural}, no errors", config.path.display(), config.jobs.len()));
    Ok(Exit::Fine)
}
