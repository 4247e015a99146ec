//! The descriptor of a kind of channel; `KINDS` in the parent module lists them.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use url::Url;

use super::error::{Accepted, Finding, SendError};
use super::notice::News;
use super::outbox::Row;
use super::{Channel, ChannelEnv, Check, Progress, Settings};
use crate::config::value::Zone;
use crate::config::{Flag, Kind, Problems, Section};
use crate::fetch::SecretHint;
use crate::phrase::Phrase;

/// A kind of channel.
pub struct ChannelKind {
    /// Its name in the config file, and the struct of its table.
    pub keys: Kind,
    /// What it does, in a few words for help texts and questions.
    pub about: fn() -> Phrase,
    /// Options of `channel add`, and questions of `init`.
    pub flags: &'static [Flag],
    /// How often a message arrives, in the words of `docs/channels.md`.
    pub promise: &'static str,
    /// Where its secrets come from.
    pub secrets: &'static [SecretHint],
    /// How long the server is known to deduplicate by our key.
    pub(super) key_window: Option<Duration>,
    /// How long the server may take to answer once it has the whole message, if its protocol says so.
    pub(super) answers_within: Option<Duration>,
    /// Opens a channel from its table.
    pub(super) open: fn(&Section, &Zone) -> Result<Opened, Problems>,
    /// A payload of this kind in readable form; `None` for payloads of other kinds.
    pub(super) show: fn(&str) -> Option<String>,
}

impl Debug for ChannelKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.keys.name)
    }
}

/// The settings and the backend of a channel.
pub(super) type Opened = (Settings, Box<dyn Backend>);

/// The context of a call to a backend: the channel's settings, HTTP clients and the clock.
#[derive(Clone, Copy)]
pub(super) struct Ctx<'a> {
    pub(super) channel: &'a Channel,
    pub(super) env: &'a ChannelEnv,
}

/// The service behind a channel.
#[async_trait]
pub(super) trait Backend: Debug + Send + Sync {
    /// Renders `(recipient, payload)` pairs, or fails with a reason. Called once; only this backend reads the payload.
    async fn render(&self, ctx: Ctx<'_>, news: &News) -> Result<Vec<(String, String)>, String>;

    /// Sends one payload; reports to `progress` when it may have arrived.
    async fn send(&self, ctx: Ctx<'_>, row: &Row, progress: &Progress) -> Result<Accepted, SendError>;

    /// Ids of messages there that may be this one, or why that cannot be found out.
    async fn resolve(&self, ctx: Ctx<'_>, row: &Row) -> Result<Vec<String>, Finding>;

    /// Checks whether messages could be sent, without sending one.
    async fn check(&self, ctx: Ctx<'_>) -> Vec<Check>;

    /// Everything that authentication depends on.
    fn credentials(&self) -> String;

    /// Where messages are posted, if [`Backend::check`] does not connect to it.
    fn address(&self) -> Option<Url> {
        None
    }

    /// The length of a payload in the service's own measure, and its limit.
    async fn measure(&self, _: Ctx<'_>, _payload: &str) -> Option<(usize, usize)> {
        None
    }

    /// Changes the payload of a test message so that it disturbs as few people as possible.
    fn soften(&self, payload: String) -> String {
        payload
    }

    /// Closes connections kept for the next message.
    async fn close(&self) {}
}
