//! `config`: where the file is, what it says without its secrets, and its schema for editors.

use std::io::IsTerminal as _;

use clap::Subcommand;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::json;

use super::{Context, Error, Exit, Result};
use crate::app;
use crate::web;

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
    /// Read a password and print the hash of it that [web.auth] takes
    HashPassword,
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
        Command::HashPassword => {
            let password = read_password(context)?;
            let hash = web::password::hash(&password).ok_or_else(|| Error::failed("it cannot be hashed"))?;
            match context.out.is_json() {
                true => context.out.json(&json!({ "password": hash }))?,
                false => context.out.line(hash)?,
            }
        }
    }
    Ok(Exit::Fine)
}

/// One line of standard input; a terminal does not show it.
fn read_password(context: &Context) -> Result<String> {
    let stdin = std::io::stdin();
    let shown = match stdin.is_terminal() {
        false => None,
        true => {
            context.out.note("Password, which is not shown:");
            let shown = tcgetattr(&stdin).map_err(std::io::Error::from)?;
            let mut hidden = shown.clone();
            hidden.local_modes.remove(LocalModes::ECHO);
            tcsetattr(&stdin, OptionalActions::Now, &hidden).map_err(std::io::Error::from)?;
            Some(shown)
        }
    };
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    if let Some(shown) = shown {
        tcsetattr(&stdin, OptionalActions::Now, &shown).map_err(std::io::Error::from)?;
    }
    read?;
    match line.trim_end_matches(['\r', '\n']) {
        "" => Err(Error::usage("the password is empty")),
        password => Ok(password.to_owned()),
    }
}
