//! `mail`: trying mail out.

use clap::Subcommand;

use super::{Context, Error, Exit, Result};
use crate::channel::{Channel, SendError};

/// Options of `mail`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send a test mail now, and say how far it came
    Test {
        /// The mail channel [default: the only one]
        #[arg(long, value_name = "NAME")]
        channel: Option<String>,
        /// Send it here instead of to the recipients of the channel
        #[arg(long, value_name = "ADDRESS")]
        to: Option<String>,
    },
}

pub(super) async fn run(args: Args, context: &Context) -> Result {
    let Command::Test { channel, to } = args.command;
    let app = context.look().await?;
    let parts = &app.parts;
    let chosen =
        choose(parts.channels.iter().filter(|one| one.kind() == "email"), channel.as_deref(), "mail")?;
    let outcomes =
        chosen.send_test(&parts.outside, parts.app.language, to.as_deref()).await.unwrap_or_default();
    let mut failure = None;
    for (recipient, outcome) in outcomes {
        match outcome {
            Ok(sent) => {
                let said = sent.remote_id.unwrap_or_else(|| "accepted".to_owned());
                context.out.line(format!("{recipient}: {said}"))?;
            }
            Err(error) => {
                let exit =
                    if matches!(error, SendError::Locked { .. }) { Exit::Credentials } else { Exit::Failed };
                failure = Some(Error::new(exit, format!("no mail to {recipient}: {error}")));
            }
        }
    }
    failure.map_or(Ok(Exit::Fine), Err)
}

/// The channel of that name, or the only one there is.
pub(super) fn choose<'a>(
    channels: impl Iterator<Item = &'a Channel>,
    name: Option<&str>,
    what: &str,
) -> Result<&'a Channel> {
    let channels: Vec<&Channel> = channels.collect();
    let names = channels.iter().map(|channel| channel.name.as_str()).collect::<Vec<_>>().join(", ");
    match (name, channels.as_slice()) {
        (_, []) => Err(Error::new(Exit::Config, format!("the config has no {what} channel"))
            .hint("add a `[channel.NAME]` table; `tsuzuki config schema` shows its keys")),
        (None, [only]) => Ok(only),
        (None, _) => Err(Error::usage(format!("there are several {what} channels: {names}"))
            .hint("name one with `--channel NAME`")),
        (Some(name), _) => channels.iter().find(|channel| channel.name == name).copied().ok_or_else(|| {
            Error::usage(format!("there is no {what} channel `{name}`")).hint(format!("known: {names}"))
        }),
    }
}
