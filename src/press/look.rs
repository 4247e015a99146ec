//! An item for people: where it stands, what became of its post, and how it got there.

use serde_json::{Value as Json, json};

use super::model::Item;
use super::store::{self, Delivery};
use crate::db::{self, Tx};
use crate::ledger::event::{self, Event};
use crate::time::Timestamp;

/// Everything that is known about an item.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Story {
    /// The item.
    #[serde(flatten)]
    pub item: Item,
    /// Its messages.
    pub deliveries: Vec<Delivery>,
    /// How it got there, oldest first.
    pub events: Vec<Event>,
}

/// The story of an item, with at most `limit` events.
pub fn find_story(tx: &mut Tx<'_>, item: Item, limit: usize) -> db::Result<Story> {
    let deliveries = store::list_deliveries(tx, &item.job_name, &item.url)?;
    let mut events = event::list_about(tx, &store::about(&item.url), limit)?;
    events.retain(|event| event.job_name.as_ref().is_none_or(|job| *job == item.job_name));
    Ok(Story { item, deliveries, events })
}

/// The stories of the items with that address, or of `item:NUMBER`, as `why` shows them.
pub fn story(tx: &mut Tx<'_>, thing: &str, limit: usize, _now: Timestamp) -> db::Result<Option<Json>> {
    let items = match thing.strip_prefix("item:").and_then(|number| number.parse().ok()) {
        Some(number) => store::find(tx, number)?.into_iter().collect(),
        None => store::list_by_url(tx, thing)?,
    };
    let mut stories = Vec::new();
    for item in items {
        stories.push(find_story(tx, item, limit)?);
    }
    Ok(match stories.as_slice() {
        [] => None,
        [story] => Some(json!({ "item": story })),
        several => Some(json!({ "items": several })),
    })
}
