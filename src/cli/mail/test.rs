//! `mail test`: a mail that is sent now, and how far it came.

use super::super::{Context, Error, Exit, Result};
use crate::channel::{Channel, MAIL, SendError};

/// A mail that the server took, and what it said.
#[derive(serde::Serialize)]
struct Accepted {
    recipient: String,
    said: String,
}

pub(super) async fn run(channel: Option<&str>, to: Option<&str>, context: &Context) -> Result {
    let app = context.look().await?;
    let env = &app.env;
    let chosen = choose(env.channels.iter().filter(|one| one.kind() == MAIL), channel, "mail")?;
    let outcomes =
        chosen.send_test(&env.channel_env, env.app.message_language(), to).await.unwrap_or_default();
    let mut failure = None;
    let mut accepted = Vec::new();
    for (recipient, outcome) in outcomes {
        match outcome {
            Ok(sent) => {
                let said = sent.remote_id.unwrap_or_else(|| "accepted".to_owned());
                accepted.push(Accepted { recipient, said });
            }
            Err(error) => {
                let exit =
                    if matches!(error, SendError::Locked { .. }) { Exit::Credentials } else { Exit::Failed };
                failure = Some(Error::new(exit, format!("no mail to {recipient}: {error}")));
            }
        }
    }
    match context.out.is_json() {
        true => context.out.json(&accepted)?,
        false => accepted
            .iter()
            .try_for_each(|Accepted { recipient, said }| context.out.line(format!("{recipient}: {said}")))?,
    }
    failure.map_or(Ok(Exit::Fine), Err)
}

/// The channel of that name, or the only one there is.
pub(crate) fn choose<'a>(
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
