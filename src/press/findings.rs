//! Items in feeds and search results.

use super::events;
use super::model::Item;
use super::store::{self, ItemFilter};
use crate::db::{self, Tx};
use crate::engine::finding::FoundThing;
use crate::id::JobName;

pub(super) fn list(tx: &mut Tx<'_>, job: Option<&JobName>, limit: usize) -> db::Result<Vec<FoundThing>> {
    let filter = ItemFilter { job: job.map(ToString::to_string), ..ItemFilter::default() };
    let items = store::list(tx, &filter, limit)?;
    Ok(items.into_iter().map(finding).collect())
}

fn finding(item: Item) -> FoundThing {
    FoundThing {
        about: events::numbered(item.id).to_string(),
        title: item.title,
        link: Some(item.url),
        at: Some(item.published_at),
        summary: item.summary.or(item.excerpt),
        names: Vec::new(),
    }
}
