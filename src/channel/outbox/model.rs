//! A message in the outbox, and the words for what becomes of it.

use super::lease::Lease;
use super::restored::Provenance;
use crate::hash;
use crate::id::JobName;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::{Timestamp, Uptime};
use crate::word_enum;

word_enum! {
    /// Where a message stands.
    pub enum State {
        /// It waits for its turn.
        Ready = "ready",
        /// A sender has it; if that sender dies, nobody knows what became of it.
        Sending = "sending",
        /// The other side has accepted it.
        Sent = "sent",
        /// It may or may not have been sent; the channel's resolver looks before anything else happens.
        Unknown = "unknown",
        /// It was not sent and will not be, unless somebody says so.
        Failed = "failed",
        /// It waits for a person.
        Held = "held",
        /// A person decided against it.
        Skipped = "skipped",
    }
}

impl State {
    /// Whether something is still to happen: its item or book is spoken for.
    pub fn is_open(self) -> bool {
        !matches!(self, State::Sent | State::Failed | State::Skipped)
    }
}

word_enum! {
    /// Why a message that looks unsent may have been sent all the same.
    pub enum Suspicion {
        /// The database was restored from a backup, by us or by somebody else.
        Restored = "restored",
        /// The database was moved elsewhere, and is in use again.
        Reopened = "reopened",
        /// It was decided after a restore, and may have been told in the time that was lost.
        Retold = "retold",
    }
}

impl Suspicion {
    /// For people.
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

/// A message to add. Do it in the transaction that decides it.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    /// The job that has something to tell.
    pub job: &'a JobName,
    /// The name of the channel.
    pub channel: &'a str,
    /// Who gets it, in the channel's own words.
    pub recipient: &'a str,
    /// Whose message it is: the name under which the owner's `on_delivered` is registered.
    pub topic: &'a str,
    /// What it is about, in the owner's words: an item's URL, a delivery's number.
    pub subject: &'a str,
    /// 0, or higher for an intended repeat.
    pub generation: u32,
    /// The message as the channel rendered it.
    pub payload: &'a str,
    /// Wait for a person instead of being sent.
    pub hold: bool,
    /// Not to be sent earlier.
    pub not_before: Option<Timestamp>,
    /// How what it tells was found: after a restore it may have been told before.
    pub found: Provenance,
}

impl NewMessage<'_> {
    /// What makes two messages the same message; also the idempotency key that goes to the other side.
    pub fn key(&self) -> String {
        key(self.job.as_str(), self.channel, self.recipient, self.subject, self.generation)
    }
}

pub(super) fn key(job: &str, channel: &str, recipient: &str, subject: &str, generation: u32) -> String {
    hash::sha256_parts(&[job, channel, recipient, subject, &generation.to_string()])
}

/// The answer to adding a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is in the outbox now, or again after it had failed.
    Added(i64),
    /// The same message was there already; nothing was changed.
    Known(i64),
}

/// A message as it stands in the database.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Row {
    /// Its number, as people name it.
    pub id: i64,
    /// Its idempotency key.
    pub key: String,
    /// The job that made it.
    pub job_name: JobName,
    /// The channel it goes through.
    pub channel: String,
    /// Who gets it.
    pub recipient: String,
    /// Whose message it is.
    pub topic: String,
    pub subject: String,
    /// Which intended repeat it is.
    pub generation: u32,
    /// The message as rendered.
    #[serde(skip)]
    pub payload: String,
    pub state: State,
    pub created_at: Timestamp,
    /// Not to be touched earlier.
    pub not_before: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// How many checks in a row have failed, while nobody knows whether it was sent.
    pub resolve_attempts: u32,
    pub first_attempt_at: Option<Timestamp>,
    pub last_attempt_at: Option<Timestamp>,
    /// When it was sent again although nobody knew whether it had arrived; that is done once.
    pub resent_at: Option<Timestamp>,
    /// When its owner learned how it ended.
    pub settled_at: Option<Timestamp>,
    /// The fence of the claim that holds it, or held it last.
    #[serde(skip)]
    pub lease_fence: i64,
    /// Until when a sender has it.
    pub lease_until: Option<Timestamp>,
    /// The same by the boot clock of the sender's kernel.
    #[serde(skip)]
    pub lease_uptime: Option<Uptime>,
    /// Why it may have been sent although it looks unsent.
    pub suspicion: Option<Suspicion>,
    /// Since when it may have been; `None`: since it was added.
    pub suspect_since: Option<Timestamp>,
    /// What the other side calls it.
    pub remote_id: Option<String>,
    /// What went wrong last, or why it waits for a person.
    pub last_error: Option<Phrase>,
}

/// What a resolver needs to know about earlier attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// The earliest moment at which it can have been sent.
    pub since: Timestamp,
    /// Whether that moment is when we tried first, and not a guess.
    pub is_certain: bool,
}

impl Row {
    /// The sender's hold on it, if somebody has it.
    pub(super) fn lease(&self) -> Option<Lease> {
        self.lease_until.map(|until| Lease { until, uptime: self.lease_uptime.clone() })
    }

    /// Why a sent message was not sent now: it was suspected, and found on the other side.
    pub fn found_there(&self) -> Option<Phrase> {
        let why = self.suspicion.filter(|_| self.state == State::Sent)?.phrase();
        Some(phrase!("it was there already: {why}", "すでに届いていました：{why}"))
    }

    /// The earliest moment at which this message can have reached the other side.
    pub fn attempted(&self) -> Attempted {
        match (self.first_attempt_at, self.suspicion) {
            (Some(first), None) => Attempted { since: first, is_certain: true },
            _ => Attempted { since: self.suspect_since.unwrap_or(self.created_at), is_certain: false },
        }
    }
}

/// How a message ended, as its owner is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The other side has accepted it.
    Sent,
    /// It was refused, or every attempt failed.
    Failed,
    /// A person decided against it.
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
