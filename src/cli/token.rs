//! `token`: the links to prompts that work, and ending one.

use clap::Subcommand;

use super::{Column, Context, Error, Exit, Result};
use crate::books::view::{self, Revoked, TokenState};

/// Options of `token`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List tokens that work, those that end last first
    Ls {
        /// Also those that are over
        #[arg(long)]
        all: bool,
        /// At most this many
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// End a token: its link answers "gone" from now on
    Revoke {
        /// The token, or its first eight characters or more
        token: String,
    },
}

pub(super) async fn run(args: Args, context: &Context) -> Result {
    match args.command {
        Command::Ls { all, limit } => list(all, limit, context).await,
        Command::Revoke { token } => revoke(token, context).await,
    }
}

async fn list(all: bool, limit: usize, context: &Context) -> Result {
    let times = context.times().await?;
    let now = context.clock.now();
    let tokens = context.view().await?.read(move |tx| view::list_tokens(tx, all, limit, now)).await?;
    let columns = [
        Column::left("token"),
        Column::left("state"),
        times.column("ends"),
        Column::left("isbn"),
        Column::long("title"),
    ];
    context.out.listing(&columns, &tokens, |token| {
        let state = match token.state {
            TokenState::Works => "works",
            TokenState::Expired => "expired",
            TokenState::Revoked => "revoked",
        };
        vec![
            token.token.clone(),
            state.to_owned(),
            times.cell(token.expires_at),
            token.isbn13.to_string(),
            token.title.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    })?;
    Ok(Exit::Fine)
}

async fn revoke(prefix: String, context: &Context) -> Result {
    let (wanted, now) = (prefix.clone(), context.clock.now());
    let answer = context.db().await?.write(move |tx| view::revoke(tx, &wanted, now)).await?;
    let list = "`tsuzuki token ls --all` lists them";
    let token = match answer {
        Revoked::Done(token) => token,
        Revoked::Before(token) => {
            context.out.note(format!("Token {} was revoked before", token.token));
            return Ok(Exit::Fine);
        }
        Revoked::Missing => return Err(Error::failed(format!("no token begins with `{prefix}`")).hint(list)),
        Revoked::Ambiguous => {
            return Err(
                Error::failed(format!("several tokens begin with `{prefix}`")).hint("write more of it")
            );
        }
        Revoked::Malformed => {
            return Err(Error::usage(
                "a token is named by its first eight characters or more, each 0-9 or a-f",
            )
            .hint(list));
        }
    };
    if context.out.is_json() {
        context.out.json(&token)?;
    } else {
        context.out.note(format!("Revoked token {} of {}", token.token, token.isbn13));
    }
    Ok(Exit::Fine)
}
