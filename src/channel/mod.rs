//! The places that messages go to, and the outbox that gets them there.
//!
//! ```text
//! pipeline ── News ──▶ Channel::render ──▶ outbox::add ═══ same transaction as the decision
//!                      (once, per recipient)    │
//!                                           Sender ──▶ Channel::send ──▶ the other side
//!                                               ▲            │
//!                                               └─ resolve ◀─┘ no answer
//! ```
//!
//! A channel is one file with its config, its rendering, its `send` and its resolver; a variant of `Backend`; and
//! an entry in [`KINDS`].

mod count;
mod email;
mod error;
mod header_text;
mod http;
mod mastodon;
mod notice;
pub mod outbox;
mod plain;
mod preview;
mod progress;
mod settings;
mod slack;
mod template;
mod webhook;

use std::time::Duration;

pub use email::{EmailConfig, Tls};
pub use error::{Finding, SendError, Sent};
pub use header_text::HeaderText;
pub use mastodon::{MastodonConfig, Visibility};
pub use notice::{Entry, MailBody, News, Notice};
pub use preview::{Preview, as_text};
pub use progress::Progress;
pub use settings::Settings;
pub use slack::SlackConfig;
pub use template::Template;
pub use webhook::WebhookConfig;

use crate::config::value::Zone;
use crate::config::{Kind, Problems, Section};
pub use crate::fetch::Check;
use crate::fetch::Clients;
use crate::hash;
use crate::time::Clock;
use outbox::Row;

/// The kinds of channels, for the config file.
pub const KINDS: &[Kind] = &[
    Kind::channel::<MastodonConfig>("mastodon").without(mastodon::UNUSED),
    Kind::channel::<EmailConfig>("email").with_env(email::ENV),
    Kind::channel::<SlackConfig>("slack"),
    Kind::channel::<WebhookConfig>("webhook"),
];

/// A place that messages go to.
#[derive(Debug)]
pub struct Channel {
    /// Its name in the config file.
    pub name: String,
    /// How it is used.
    pub settings: Settings,
    place: Backend,
}

#[derive(Debug)]
enum Backend {
    Mastodon(mastodon::Mastodon),
    Email(Box<email::Email>),
    Slack(slack::Slack),
    Webhook(webhook::Webhook),
}

/// Does the same with whatever place it is.
macro_rules! on_place {
    ($channel:expr, $place:ident => $do:expr) => {
        match &$channel.place {
            Backend::Mastodon($place) => $do,
            Backend::Email($place) => $do,
            Backend::Slack($place) => $do,
            Backend::Webhook($place) => $do,
        }
    };
}

/// What channels need of the world: connections and the time.
#[derive(Clone, Debug)]
pub struct ChannelEnv {
    /// Guarded HTTP clients.
    pub clients: Clients,
    /// The time.
    pub clock: Clock,
}

/// A message as a channel made it, for one recipient: what [`outbox::NewMessage`] wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The channel's name.
    pub channel: String,
    /// Who gets it.
    pub recipient: String,
    /// The message, as JSON that only the channel reads.
    pub payload: String,
}

/// News that a channel cannot make a message of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{channel}` cannot make a message of it: {why}")]
pub struct NotRendered {
    /// The channel's name.
    pub channel: String,
    /// Why.
    pub why: String,
}

impl Channel {
    /// Reads a `[channel.NAME]` table.
    pub fn read(section: &Section, zone: &Zone) -> Result<Self, Problems> {
        let (settings, place) = match section.kind.as_str() {
            "mastodon" => {
                let config: MastodonConfig = section.read()?;
                let settings = config.settings(section, zone);
                let (settings, place) = Problems::both(settings, mastodon::Mastodon::new(config, section))?;
                (settings, Backend::Mastodon(place))
            }
            "email" => {
                let config: EmailConfig = section.read()?;
                let settings = config.settings(section, zone);
                let (settings, place) = Problems::both(settings, email::Email::new(config, section))?;
                (settings, Backend::Email(Box::new(place)))
            }
            "slack" => {
                let config: SlackConfig = section.read()?;
                (config.settings(section, zone)?, Backend::Slack(slack::Slack::new(config)))
            }
            "webhook" => {
                let config: WebhookConfig = section.read()?;
                (config.settings(section, zone)?, Backend::Webhook(webhook::Webhook::new(config)))
            }
            other => {
                return Err(section
                    .unknown_name("kind", "kind of channel", other, KINDS.iter().map(|kind| kind.name))
                    .into());
            }
        };
        Ok(Self { name: section.name.clone(), settings, place })
    }

    /// The kind, as in the config file.
    pub fn kind(&self) -> &'static str {
        match &self.place {
            Backend::Mastodon(_) => "mastodon",
            Backend::Email(_) => "email",
            Backend::Slack(_) => "slack",
            Backend::Webhook(_) => "webhook",
        }
    }

    /// Makes the messages, one per recipient. Do it once, before the transaction that adds them.
    pub async fn render(&self, channel_env: &ChannelEnv, news: &News) -> Result<Vec<Rendered>, NotRendered> {
        let rendered = on_place!(self, place => place.render(self, channel_env, news).await);
        let messages = rendered.map_err(|why| NotRendered { channel: self.name.clone(), why })?;
        Ok(messages
            .into_iter()
            .map(|(recipient, payload)| Rendered { channel: self.name.clone(), recipient, payload })
            .collect())
    }

    /// Hands a message to the other side. The outbox is the only caller that keeps the promises.
    pub async fn send(
        &self,
        channel_env: &ChannelEnv,
        row: &Row,
        progress: &Progress,
    ) -> Result<Sent, SendError> {
        on_place!(self, place => place.send(self, channel_env, row, progress).await)
    }

    /// What the other side has that may be this message: its names for it, or why it cannot be said.
    pub(crate) async fn resolve(&self, channel_env: &ChannelEnv, row: &Row) -> Result<Vec<String>, Finding> {
        on_place!(self, place => place.resolve(self, channel_env, row).await)
    }

    /// Ends what was kept open for the next message.
    pub(crate) async fn close(&self) {
        if let Backend::Email(email) = &self.place {
            email.close().await;
        }
    }

    /// What a mail channel with `smtp = "memory:"` was given; empty for all others.
    pub fn kept_mails(&self) -> Vec<Vec<u8>> {
        match &self.place {
            Backend::Email(email) => email.kept_mails(),
            _ => Vec::new(),
        }
    }

    /// How long the other side is known to honour our key.
    pub(crate) fn key_window(&self) -> Option<Duration> {
        match &self.place {
            Backend::Mastodon(_) => Some(mastodon::KEY_WINDOW),
            Backend::Email(_) | Backend::Slack(_) | Backend::Webhook(_) => None,
        }
    }

    /// How long the other side may take to answer once it has the whole message, if its protocol says so.
    pub(crate) fn answers_within(&self) -> Option<Duration> {
        match &self.place {
            Backend::Email(_) => Some(email::ANSWERS_WITHIN.max(self.settings.timeout)),
            Backend::Mastodon(_) | Backend::Slack(_) | Backend::Webhook(_) => None,
        }
    }

    /// Tells whether the credentials have changed, without telling anything about them: 16 bits of a hash.
    pub(crate) fn credentials_fingerprint(&self) -> String {
        let secrets = on_place!(self, place => place.credentials());
        let whole = hash::sha256_parts(&[&self.name, &secrets]);
        whole.get(..4).unwrap_or_default().to_owned()
    }

    /// The place that messages are posted to, without the secret part of its address; only for those whose
    /// [`Channel::check`] does not speak to it.
    pub fn origin(&self) -> Option<url::Url> {
        let url = match &self.place {
            Backend::Slack(slack) => slack.address(),
            Backend::Webhook(webhook) => webhook.address(),
            Backend::Mastodon(_) | Backend::Email(_) => return None,
        };
        url?.join("/").ok()
    }

    /// Looks whether messages could be sent, without sending one.
    pub async fn check(&self, channel_env: &ChannelEnv) -> Vec<Check> {
        on_place!(self, place => place.check(self, channel_env).await)
    }
}

/// The channels of a config file.
#[derive(Debug, Default)]
pub struct ChannelSet(Vec<Channel>);

impl ChannelSet {
    /// Reads every `[channel.NAME]` table; `zone` is that of `[app]`.
    pub fn read(sections: &[Section], zone: &Zone) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let channels =
            sections.iter().filter_map(|section| problems.note(Channel::read(section, zone))).collect();
        if problems.is_empty() { Ok(Self(channels)) } else { Err(problems) }
    }

    /// The channel of that name.
    pub fn find(&self, name: &str) -> Option<&Channel> {
        self.0.iter().find(|channel| channel.name == name)
    }

    /// What the channels of these names make of `news`, and which of them can make nothing of it.
    ///
    /// Do it once, before the transaction that hands both to [`outbox::add_all`].
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

    /// All of them, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.0.iter()
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|channel| channel.name.clone()).collect()
    }
}
