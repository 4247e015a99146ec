//! Adds what all channels rendered about one thing, and records what they could not render.

use serde_json::json;

use super::events::MessageCode;
use super::model::{Added, NewMessage};
use super::restored::Provenance;
use super::store;
use crate::channel::{NotRendered, Rendered};
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::ledger::{Subject, event};
use crate::time::Timestamp;

/// What the messages about one thing have in common.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub job: &'a JobName,
    /// The owner of the messages.
    pub topic: &'a str,
    /// What they are about, in the owner's words.
    pub subject: &'a str,
    /// 0, or higher for an intended repeat.
    pub generation: u32,
    /// Wait for a person instead of being sent.
    pub hold: bool,
    /// How the news was found.
    pub found: Provenance,
    /// The subject of the event when a message could not be rendered.
    pub about: &'a Subject,
}

/// Adds the messages that are new, and an event `not_rendered` for each that could not be rendered; returns how many
/// were added. Call it in the transaction that decides to send them.
pub fn add_all(
    tx: &mut Tx<'_>,
    batch: &Batch<'_>,
    rendered: &[Rendered],
    failed: &[NotRendered],
    now: Timestamp,
) -> db::Result<usize> {
    let mut added = 0;
    for message in rendered {
        let message = NewMessage {
            job: batch.job,
            channel: &message.channel,
            recipient: &message.recipient,
            topic: batch.topic,
            subject: batch.subject,
            generation: batch.generation,
            payload: &message.payload,
            hold: batch.hold,
            not_before: None,
            found: batch.found,
        };
        added += usize::from(matches!(store::add(tx, &message, now)?, Added::Added(_)));
        crate::fail::point("outbox.adding");
    }
    for NotRendered { channel, why } in failed {
        let detail = json!({ "channel": channel, "message": batch.subject, "why": why });
        event::add(tx, Some(batch.job), batch.about, MessageCode::NotRendered, &detail, now)?;
    }
    Ok(added)
}
