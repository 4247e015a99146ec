//! Channels, and the outbox that sends messages through them.
//!
//! ```text
//! pipeline ── News ──▶ Channel::render ──▶ outbox::add ═══ same transaction as the decision
//!                      (once, per recipient)    │
//!                                           Sender ──▶ Channel::send ──▶ the other side
//!                                               ▲            │
//!                                               └─ resolve ◀─┘ no answer
//! ```
//!
//! A channel is one file with its config, its rendering, its `send` and its resolver, and a line in [`KINDS`].

mod count;
pub mod email;
mod error;
mod header_text;
mod http;
mod kind;
pub mod mastodon;
mod notice;
pub mod outbox;
mod plain;
mod preview;
mod progress;
mod settings;
pub mod slack;
mod template;
pub mod webhook;

use std::time::Duration;

pub use email::NAME as MAIL;
pub use error::{Accepted, Finding, SendError};
pub use header_text::HeaderText;
pub use kind::ChannelKind;
pub use notice::{MailBody, News, Notice, NoticeEntry};
pub use preview::{Preview, as_text};
pub use progress::Progress;
pub use settings::Settings;
pub use template::Template;

use crate::config::value::Zone;
use crate::config::{Problems, Section};
pub use crate::fetch::Check;
use crate::fetch::Clients;
use crate::hash;
use crate::phrase;
use crate::time::Clock;
use kind::{Backend, Ctx};
use outbox::Row;

/// The kinds of channels: each is a file or a folder, and a line here.
pub const KINDS: &[ChannelKind] = &[mastodon::KIND, email::KIND, slack::KIND, webhook::KIND];

/// A configured channel.
#[derive(Debug)]
pub struct Channel {
    pub name: String,
    pub settings: Settings,
    kind: &'static ChannelKind,
    backend: Box<dyn Backend>,
}

/// HTTP clients and the clock, for channels.
#[derive(Clone, Debug)]
pub struct ChannelEnv {
    pub clients: Clients,
    pub clock: Clock,
}

/// A message rendered for one recipient, ready for [`outbox::NewMessage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub channel: String,
    pub recipient: String,
    /// The message, as JSON that only the channel reads.
    pub payload: String,
}

/// News that a channel could not render.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{channel}` cannot make a message of it: {why}")]
pub struct NotRendered {
    pub channel: String,
    pub why: String,
}

impl Channel {
    /// Reads a `[channel.NAME]` table.
    pub fn read(section: &Section, zone: &Zone) -> Result<Self, Problems> {
        let Some(kind) = KINDS.iter().find(|kind| kind.keys.name == section.kind) else {
            let known = KINDS.iter().map(|kind| kind.keys.name);
            return Err(section
                .unknown_name("kind", phrase!("kind of channel", "チャンネルの種類"), &section.kind, known)
                .into());
        };
        let (settings, backend) = (kind.open)(section, zone)?;
        Ok(Self { name: section.name.clone(), settings, kind, backend })
    }

    /// The kind in the config file.
    pub fn kind(&self) -> &'static str {
        self.kind.keys.name
    }

    fn ctx<'a>(&'a self, env: &'a ChannelEnv) -> Ctx<'a> {
        Ctx { channel: self, env }
    }

    /// Renders the messages, one per recipient. Call it once, before the transaction that adds them.
    pub async fn render(&self, channel_env: &ChannelEnv, news: &News) -> Result<Vec<Rendered>, NotRendered> {
        let rendered = self.backend.render(self.ctx(channel_env), news).await;
        let messages = rendered.map_err(|why| NotRendered { channel: self.name.clone(), why })?;
        Ok(messages
            .into_iter()
            .map(|(recipient, payload)| Rendered { channel: self.name.clone(), recipient, payload })
            .collect())
    }

    /// Sends a message. Only the outbox, as the caller, makes sure that it is sent once.
    pub async fn send(
        &self,
        channel_env: &ChannelEnv,
        row: &Row,
        progress: &Progress,
    ) -> Result<Accepted, SendError> {
        self.backend.send(self.ctx(channel_env), row, progress).await
    }

    /// Ids of messages there that may be this one, or why that cannot be found out.
    pub(crate) async fn resolve(&self, channel_env: &ChannelEnv, row: &Row) -> Result<Vec<String>, Finding> {
        self.backend.resolve(self.ctx(channel_env), row).await
    }

    /// Closes connections kept for the next message.
    pub(crate) async fn close(&self) {
        self.backend.close().await;
    }

    /// How long the server is known to deduplicate by our key.
    pub(crate) fn key_window(&self) -> Option<Duration> {
        self.kind.key_window
    }

    /// How long the server may take to answer once it has the whole message, if its protocol says so.
    pub(crate) fn answers_within(&self) -> Option<Duration> {
        self.kind.answers_within.map(|within| within.max(self.settings.timeout))
    }

    /// Shows whether the credentials have changed without revealing them: 16 bits of a hash.
    pub(crate) fn credentials_fingerprint(&self) -> String {
        let whole = hash::sha256_parts(&[&self.name, &self.backend.credentials()]);
        whole.get(..4).unwrap_or_default().to_owned()
    }

    /// Scheme and host of the address that messages are posted to, without its secret part; only for channels whose
    /// [`Channel::check`] does not connect to it.
    pub fn origin(&self) -> Option<url::Url> {
        self.backend.address()?.join("/").ok()
    }

    /// Checks whether messages could be sent, without sending one.
    pub async fn check(&self, channel_env: &ChannelEnv) -> Vec<Check> {
        self.backend.check(self.ctx(channel_env)).await
    }
}

/// The channels of a config file.
#[derive(Debug, Default)]
pub struct ChannelSet(Vec<Channel>);

impl ChannelSet {
    /// Reads every `[channel.NAME]` table; `zone` is that of `[app]`.
    pub fn read(sections: &[Section], zone: &Zone) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let whole = sections.iter().filter(|section| section.is_whole());
        let channels = whole.filter_map(|section| problems.note(Channel::read(section, zone))).collect();
        if problems.is_empty() { Ok(Self(channels)) } else { Err(problems) }
    }

    /// The channel of that name.
    pub fn find(&self, name: &str) -> Option<&Channel> {
        self.0.iter().find(|channel| channel.name == name)
    }

    /// Renders `news` for the channels of these names; returns the messages, and the channels that failed.
    ///
    /// Call it once, before the transaction that passes both to [`outbox::add_all`].
    pub async fn render(
        &self,
        names: &[String],
        channel_env: &ChannelEnv,
        news: &News,
    ) -> (Vec<Rendered>, Vec<NotRendered>) {
        let (mut rendered, mut failed) = (Vec::new(), Vec::new());
        for name in names {
            let made = match self.find(name) {
                Some(channel) => channel.render(channel_env, news).await,
                None => {
                    Err(NotRendered { channel: name.clone(), why: "there is no such channel".to_owned() })
                }
            };
            match made {
                Ok(messages) => rendered.extend(messages),
                Err(error) => failed.push(error),
            }
        }
        (rendered, failed)
    }

    /// All channels, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.0.iter()
    }

    /// The names of all channels.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|channel| channel.name.clone()).collect()
    }
}
