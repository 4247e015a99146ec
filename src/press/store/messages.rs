//! The messages about an item, in the outbox.

use super::super::TOPIC;
use crate::channel::outbox::State;
use crate::db::{self, FromRow, Tx};
use crate::phrase::Phrase;
use crate::{params, sql};

/// The state of the other messages about an item.
pub fn find_messages(tx: &mut Tx<'_>, job: &str, url: &str, except: i64) -> db::Result<Messages> {
    let states = tx.list(
        sql!("SELECT state FROM outbox WHERE topic = ?1 AND subject = ?2 AND job_name = ?3 AND id <> ?4"),
        params![TOPIC, url, job, except],
        |row| row.get::<State>(0),
    )?;
    Ok(Messages {
        any_open: states.iter().any(|state| state.is_open()),
        any_sent: states.contains(&State::Sent),
    })
}

/// A message about an item, for its view.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, FromRow)]
pub struct ItemDelivery {
    pub id: i64,
    pub channel: String,
    pub state: State,
    /// The last error, or why it waits.
    pub last_error: Option<Phrase>,
}

/// The messages about an item, oldest first.
pub fn list_deliveries(tx: &mut Tx<'_>, job: &str, url: &str) -> db::Result<Vec<ItemDelivery>> {
    tx.list(
        sql!(
            "SELECT id, channel, state, last_error FROM outbox
             WHERE topic = ?1 AND subject = ?2 AND job_name = ?3"
        ),
        params![TOPIC, url, job],
        FromRow::from_row,
    )
}

/// The state of the messages about an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// One is queued or being sent.
    pub any_open: bool,
    /// One was sent.
    pub any_sent: bool,
}
