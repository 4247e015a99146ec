//! `post`: what a message would look like before anything is sent.

use clap::Subcommand;

use super::channel::choose;
use super::{Context, Error, Exit, Result};
use tsuzuki::channel::{News, Notice};
use tsuzuki::config::value::HttpUrl;
use tsuzuki::phrase;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show what a channel would make of a title, a summary and a link; nothing is sent
    Preview {
        /// The channel [default: the only one]
        #[arg(long, value_name = "NAME")]
        channel: Option<String>,
        /// The headline
        #[arg(long)]
        title: String,
        /// The summary
        #[arg(long, default_value = "")]
        summary: String,
        /// The link
        #[arg(long, value_name = "URL")]
        link: Option<HttpUrl>,
        /// Hashtags, without #
        #[arg(long, value_name = "TAG")]
        tag: Vec<String>,
    },
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    let Command::Preview { channel, title, summary, link, tag } = command;
    let app = context.read_only_app().await?;
    let env = &app.env;
    let chosen = choose(env.channels.iter(), channel.as_deref(), "delivery", "--channel NAME")?;
    let notice = Notice {
        summary,
        link: link.map(Into::into),
        tags: tag,
        ..Notice::new(title, env.app.message_language())
    };
    let previews = chosen
        .preview(&env.channel_env, &News::from(notice))
        .await
        .map_err(|error| Error::failed(error.to_string()))?;
    if context.out.is_json() {
        context.out.json(&previews)?;
        return Ok(Exit::Fine);
    }
    for preview in previews {
        context.out.line(&preview.text)?;
        if let (Some(length), Some(limit)) = (preview.length, preview.limit) {
            context.out.note(phrase!("{length} of {limit} characters", "{limit} 文字中 {length} 文字"));
        }
    }
    Ok(Exit::Fine)
}
