//! An item for people: where it stands, what became of its post, and how it got there.

use super::model::Item;
use super::store::{self, Delivery};
use crate::db::{self, Tx};
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};

/// Everything that is known about an item.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ItemView {
    /// The item.
    #[serde(flatten)]
    pub item: Item,
    /// Its messages.
    pub deliveries: Vec<Delivery>,
    /// How it got there, oldest first.
    pub events: Vec<Event>,
}

/// The story of an item, with at most `limit` events.
pub fn find_view(tx: &mut Tx<'_>, item: Item, limit: usize) -> db::Result<ItemView> {
    let deliveries = store::list_deliveries(tx, &item.job_name, &item.url)?;
    let mut events = event::list_about(tx, &Subject::item(&item.url), limit)?;
    events.retain(|event| event.job_name.as_ref().is_none_or(|job| *job == item.job_name));
    Ok(ItemView { item, deliveries, events })
}
