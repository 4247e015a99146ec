//! `config`: where the file is, what it says without its secrets, and its schema for editors.

use clap::Subcommand;

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
        Command::Path => context.out.line(context.config_path()?.display().to_string())?,
        Command::Show => context.out.raw(context.load_config()?.masked_text().as_bytes())?,
        Command::Schema => context.out.json(&crate::config::schema(app::kinds()))?,
    }
    Ok(Exit::Fine)
}
