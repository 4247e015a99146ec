//! Adds what all channels made of one thing, and notes what they could not make a message of.

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

/// What the messages about one thing share.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The job that has something to tell.
    pub job: &'a JobName,
    /// Whose messages they are.
    pub topic: &'a str,
    /// What they are about, in the owner's words.
    pub subject: &'a str,
    /// 0, or higher for an intended repeat.
    pub generation: u32,
    /// Wait for a person instead of being sent.
    pub hold: bool,
    /// How what they tell was found.
    pub found: Provenance,
    /// What `why` is asked about when a message could not be made.
    pub about: &'a Subject,
}

/// Adds the messages that are not known, and an event `not_rendered` for each that could not be made; answers how
/// many were added. Do it in the transaction that decides them.
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
