//! `channel`: lists, adds and tests channels.

mod add;
mod test;

use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;

pub(super) use add::add_table;
pub(super) use test::{choose, send_test};

use super::table::row;
use super::{Cell, Column, Context, Result};
use tsuzuki::channel::outbox::{self, ChannelStatus};
use tsuzuki::engine::things::external::judge_channel;
use tsuzuki::engine::view::State;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::time::Timestamp;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the channels: whether they send, what waits, when the last message was sent
    Ls,
    /// Add a channel to the config file, e.g. `channel add mastodon --instance https://mastodon.social`
    Add(Box<add::Args>),
    /// Send one test message now, and print what the server answered
    Test {
        /// The channel [default: the only one]
        name: Option<String>,
    },
}

/// A row of `channel ls`.
#[derive(Serialize)]
struct ListedChannel {
    channel: String,
    kind: &'static str,
    state: State,
    /// Why it does not send.
    why: Option<Phrase>,
    /// Until when; `None` also if only the user can end it.
    waits_until: Option<Timestamp>,
    /// Messages to be sent.
    messages: i64,
    last_sent_at: Option<Timestamp>,
    /// The jobs that deliver to it.
    jobs: Vec<String>,
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Ls => list(context).await,
        Command::Add(args) => add::run(&args, context).await,
        Command::Test { name } => {
            let app = context.read_only_app().await?;
            let chosen = choose(app.env.channels.iter(), name.as_deref(), "delivery", "channel test NAME")?;
            context.unless_stopped(send_test(chosen, None, &app, context)).await
        }
    }
}

async fn list(context: &Context) -> Result {
    let (app, now) = (context.read_only_app().await?, context.clock.now());
    let channels = Arc::clone(&app.env.channels);
    let statuses = app.env.db.read(move |tx| outbox::list_statuses(tx, &channels, now)).await?;
    let config = context.config().await?;
    let missing = config.list_missing_secrets();
    let jobs_of = |name: &str| -> Vec<String> {
        let is_its = |channel: &String| channel == name;
        let jobs = config.jobs.iter().filter(|job| job.deliver.iter().any(is_its));
        jobs.map(|job| job.name.to_string()).collect()
    };
    let listed = |status: ChannelStatus| {
        let (state, why) = judge_channel(&status, &missing);
        ListedChannel {
            state,
            why,
            waits_until: match (status.wait, status.retry) {
                (Some(wait), _) => wait.until,
                (None, retry) => retry.map(|retry| retry.next_at),
            },
            jobs: jobs_of(&status.channel),
            channel: status.channel,
            kind: status.kind,
            messages: status.messages,
            last_sent_at: status.last_sent_at,
        }
    };
    let listed: Vec<ListedChannel> = statuses.into_iter().map(listed).collect();
    let columns = [
        Column::left(phrase!("channel", "チャンネル")),
        Column::left(phrase!("kind", "種類")),
        Column::left(phrase!("state", "状態")),
        Column::moment(phrase!("last sent", "最終送信")),
        Column::right(phrase!("waiting", "送信待ち")),
        Column::moment(phrase!("until", "いつまで")).secondary(),
        Column::long(phrase!("why", "理由")).secondary(),
        Column::long(phrase!("jobs", "ジョブ")).secondary(),
    ];
    context.out.listing(&columns, &listed, |channel| {
        row![
            &channel.channel,
            channel.kind,
            Cell::state(channel.state, channel.state.phrase()),
            channel.last_sent_at,
            channel.messages,
            channel.waits_until,
            channel.why.clone(),
            channel.jobs.join(", "),
        ]
    })
}
