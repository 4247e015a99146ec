//! `config`: where the file is, what it says without its secrets, and its schema for editors.

use clap::Subcommand;
use serde_json::json;

use super::{Context, Exit, Result};
use crate::app;

/// Options of `config`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print where the config file is
    Path,
    /// Print the config file with literal secrets blotted out
    Show,
    /// Print a JSON Schema for editors
    Schema,
}

pub(super) fn run(args: &Args, context: &Context) -> Result {
    match args.command {
        Command::Path => {
            let path = context.config_path()?.display().to_string();
            match context.out.is_json() {
                true => context.out.json(&json!({ "path": path }))?,
                false => context.out.line(path)?,
            }
        }
        Command::Show => {
            let config = context.load_config()?;
            match context.out.is_json() {
                true => context.out.json(&config.masked_json())?,
                false => context.out.raw(config.masked_text().as_bytes())?,
            }
        }
        Command::Schema => context.out.json(&crate::config::schema(app::kinds()))?,
    }
    Ok(Exit::Fine)
}
