//! What a kind of channel says of itself in its own file; `KINDS` in the folder above lists them.

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
    /// Its name in the config file, and the struct that its table is read into.
    pub keys: Kind,
    /// What it does, in a few words for help texts and questions.
    pub about: fn() -> Phrase,
    /// Options of `channel add`, and questions of `init`.
    pub flags: &'static [Flag],
    /// How often a message arrives, in the words of `docs/channels.md`.
    pub promise: &'static str,
    /// Where its secrets come from.
    pub secrets: &'static [SecretHint],
    /// How long the other side is known to honour our key.
    pub(super) key_window: Option<Duration>,
    /// How long the other side may take to answer once it has the whole message, if its protocol says so.
    pub(super) answers_within: Option<Duration>,
    /// Reads its table.
    pub(super) open: fn(&Section, &Zone) -> Result<Opened, Problems>,
    /// A payload of this kind as its reader would see it; `None` for those of others.
    pub(super) show: fn(&str) -> Option<String>,
}

impl Debug for ChannelKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.keys.name)
    }
}

/// How a channel is used, and the other side.
pub(super) type Opened = (Settings, Box<dyn Backend>);

/// What the other side is used with: how its channel is used, and connections and the time.
#[derive(Clone, Copy)]
pub(super) struct Ctx<'a> {
    pub(super) channel: &'a Channel,
    pub(super) env: &'a ChannelEnv,
}

/// The other side of a channel.
#[async_trait]
pub(super) trait Backend: Debug + Send + Sync {
    /// Makes `(recipient, payload)` pairs, or says why it cannot. Done once; nobody else reads the payload.
    async fn render(&self, ctx: Ctx<'_>, news: &News) -> Result<Vec<(String, String)>, String>;

    /// Hands one payload over; `progress` learns when the other side can have it.
    async fn send(&self, ctx: Ctx<'_>, row: &Row, progress: &Progress) -> Result<Accepted, SendError>;

    /// What the other side has that may be this message: its names for it, or why it cannot be said.
    async fn resolve(&self, ctx: Ctx<'_>, row: &Row) -> Result<Vec<String>, Finding>;

    /// Looks whether messages could be sent, without sending one.
    async fn check(&self, ctx: Ctx<'_>) -> Vec<Check>;

    /// Everything that the other side's opinion of us depends on.
    fn credentials(&self) -> String;

    /// Where messages are posted, if [`Backend::check`] does not speak to it.
    fn address(&self) -> Option<Url> {
        None
    }

    /// How long a payload is in the other side's own measure, and how long it may be.
    async fn measure(&self, _: Ctx<'_>, _payload: &str) -> Option<(usize, usize)> {
        None
    }

    /// The payload of a test message, such that it disturbs as few people as the other side allows.
    fn soften(&self, payload: String) -> String {
        payload
    }

    /// Ends what was kept open for the next message.
    async fn close(&self) {}
}
