//! Notifies the owners of messages, in the transaction that records the outcome, without knowing pipelines.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::events::DeliveryCode;
use super::model::{DeliveryOutcome, Row};
use super::store;
use crate::db::{self, Tx};
use crate::ledger::{Subject, event};
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// What an owner does when one of its messages is final.
pub type OnDelivered = Arc<dyn Fn(&mut Tx<'_>, &Row, DeliveryOutcome) -> db::Result<()> + Send + Sync>;

/// The owners by topic. `app` registers them; `channel` knows no pipeline.
#[derive(Clone, Default)]
pub struct Topics(BTreeMap<String, OnDelivered>);

impl Topics {
    /// Without owners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers what to do when a message of `topic` is final.
    ///
    /// It runs in the transaction that records the outcome, and may run again for the same message, as a requested
    /// repeat is final at some time, too.
    pub fn on(
        mut self,
        topic: &str,
        on_delivered: impl Fn(&mut Tx<'_>, &Row, DeliveryOutcome) -> db::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.0.insert(topic.to_owned(), Arc::new(on_delivered));
        self
    }

    /// Notifies the owner of `row`, which is final, and records that.
    pub(super) fn notify_owner(
        &self,
        tx: &mut Tx<'_>,
        row: &Row,
        outcome: DeliveryOutcome,
        now: Timestamp,
    ) -> db::Result<()> {
        match self.0.get(&row.topic) {
            Some(on_delivered) => on_delivered(tx, row, outcome)?,
            None => tracing::debug!(topic = row.topic, "No owner is registered for delivery {}", row.id),
        }
        store::mark_owner_notified(tx, row.id, now)
    }
}

impl std::fmt::Debug for Topics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Adds an event about `row`.
pub(super) fn note(
    tx: &mut Tx<'_>,
    row: &Row,
    code: DeliveryCode,
    why: Option<&Phrase>,
    now: Timestamp,
) -> db::Result<()> {
    let mut detail = json!({ "channel": row.channel, "subject": row.subject, "attempts": row.attempts });
    if let Some(why) = why {
        detail["why"] = why.to_stored().into();
    }
    event::add(tx, Some(&row.job_name), &Subject::delivery(row.id), code, &detail, now)
}
