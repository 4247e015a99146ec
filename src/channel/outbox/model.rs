//! A message in the outbox, and its states.

use super::lease::Lease;
use super::restored::Provenance;
use crate::hash;
use crate::id::JobName;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::{Timestamp, Uptime};
use crate::word_enum;

word_enum! {
    /// The state of a message.
    pub enum State {
        /// It waits to be sent.
        Ready = "ready",
        /// A sender has claimed it; if that sender dies, the outcome is unknown.
        Sending = "sending",
        /// The server has accepted it.
        Sent = "sent",
        /// It may have been sent; the channel's resolver checks that before anything else happens.
        Unknown = "unknown",
        /// It was not sent and will not be, unless a person retries it.
        Failed = "failed",
        /// It waits for a person's decision.
        Held = "held",
        /// A person discarded it.
        Skipped = "skipped",
    }
}

impl State {
    /// Whether it is not final yet: its item or book is not free for another message.
    pub fn is_open(self) -> bool {
        !matches!(self, State::Sent | State::Failed | State::Skipped)
    }
}

word_enum! {
    /// Why a message that looks unsent may have been sent.
    pub enum Suspicion {
        /// The database was restored from a backup, by this program or otherwise.
        Restored = "restored",
        /// The data was moved to another database, and this one is in use again.
        Reopened = "reopened",
        /// It was created after a restore, and may repeat a message of the time that was lost.
        Retold = "retold",
    }
}

impl Suspicion {
    /// In words.
    pub(super) fn phrase(self) -> Phrase {
        match self {
            Suspicion::Restored => {
                phrase!(
                    "the database was restored from a backup",
                    "データベースがバックアップから復元されました"
                )
            }
            Suspicion::Reopened => phrase!(
                "the database was moved elsewhere, and is in use again",
                "別の場所へ移したデータベースが再び使われています"
            ),
            Suspicion::Retold => phrase!(
                "it may have been sent between the backup and its restore",
                "バックアップから復元までの間に通知済みの可能性があります"
            ),
        }
    }
}

// An unknown suspicion is an error, not none: without it the message would be sent blindly.
crate::db::from_text!(State = "a state" Suspicion = "a suspicion");

/// A message to add. Do it in the transaction that decides to send it.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    pub job: &'a JobName,
    pub channel: &'a str,
    /// The recipient, in the channel's format.
    pub recipient: &'a str,
    /// The owner: the name under which its `on_delivered` is registered.
    pub topic: &'a str,
    /// What it is about, in the owner's words: an item's URL, a delivery's number.
    pub subject: &'a str,
    /// 0, or higher for an intended repeat.
    pub generation: u32,
    /// As rendered by the channel.
    pub payload: &'a str,
    /// Wait for a person instead of being sent.
    pub hold: bool,
    /// Do not send it earlier.
    pub not_before: Option<Timestamp>,
    /// How the news was found: after a restore it may be a repeat.
    pub found: Provenance,
}

impl NewMessage<'_> {
    /// Identifies the message; also the idempotency key that is sent along.
    pub fn key(&self) -> String {
        key(self.job.as_str(), self.channel, self.recipient, self.subject, self.generation)
    }
}

pub(super) fn key(job: &str, channel: &str, recipient: &str, subject: &str, generation: u32) -> String {
    hash::sha256_parts(&[job, channel, recipient, subject, &generation.to_string()])
}

/// The result of adding a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is now in the outbox, or ready again if it had failed.
    Added(i64),
    /// The same message was there already; nothing has changed.
    Known(i64),
}

/// A message in the database.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Row {
    pub id: i64,
    pub key: String,
    pub job_name: JobName,
    pub channel: String,
    pub recipient: String,
    /// The owner, see [`NewMessage::topic`].
    pub topic: String,
    pub subject: String,
    pub generation: u32,
    #[serde(skip)]
    pub payload: String,
    pub state: State,
    pub created_at: Timestamp,
    /// It may not be claimed earlier.
    pub not_before: Timestamp,
    pub attempts: u32,
    /// How many checks in a row have failed while its outcome was unknown.
    pub resolve_attempts: u32,
    pub first_attempt_at: Option<Timestamp>,
    pub last_attempt_at: Option<Timestamp>,
    /// When it was resent blindly, that is with an unknown outcome; done only once.
    pub resent_at: Option<Timestamp>,
    /// When its owner was notified of the final state.
    pub settled_at: Option<Timestamp>,
    /// The fence of the latest claim.
    #[serde(skip)]
    pub lease_fence: i64,
    pub lease_until: Option<Timestamp>,
    /// The same by the boot clock of the sender's kernel.
    #[serde(skip)]
    pub lease_uptime: Option<Uptime>,
    /// Why it may have been sent although it looks unsent.
    pub suspicion: Option<Suspicion>,
    /// Since when it may have been sent; `None`: since it was added.
    pub suspect_since: Option<Timestamp>,
    /// Its id on the server.
    pub remote_id: Option<String>,
    /// The last failure, or why it needs a person.
    pub last_error: Option<Phrase>,
}

/// What a resolver needs to know about earlier attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// The earliest moment at which it can have been sent.
    pub since: Timestamp,
    /// Whether that moment is our first attempt and not a guess.
    pub is_certain: bool,
}

impl Row {
    /// The lease of the sender that holds it.
    pub(super) fn lease(&self) -> Option<Lease> {
        self.lease_until.map(|until| Lease { until, uptime: self.lease_uptime.clone() })
    }

    /// Why a sent message was not sent this time: it was suspected, and found on the server.
    pub fn found_there(&self) -> Option<Phrase> {
        let why = self.suspicion.filter(|_| self.state == State::Sent)?.phrase();
        Some(phrase!("it was there already: {why}", "すでに届いていました：{why}"))
    }

    /// The earliest moment at which this message can have been sent.
    pub fn attempted(&self) -> Attempted {
        match (self.first_attempt_at, self.suspicion) {
            (Some(first), None) => Attempted { since: first, is_certain: true },
            _ => Attempted { since: self.suspect_since.unwrap_or(self.created_at), is_certain: false },
        }
    }
}

/// The final outcome of a message, for its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The server has accepted it.
    Sent,
    /// It was refused, or every attempt failed.
    Failed,
    /// A person discarded it.
    Skipped,
}

impl DeliveryOutcome {
    pub(super) fn of(state: State) -> Option<Self> {
        match state {
            State::Sent => Some(DeliveryOutcome::Sent),
            State::Failed => Some(DeliveryOutcome::Failed),
            State::Skipped => Some(DeliveryOutcome::Skipped),
            State::Ready | State::Sending | State::Unknown | State::Held => None,
        }
    }
}
