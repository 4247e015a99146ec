//! Items as feeds and searches show them.

use super::events;
use super::model::Item;
use super::store;
use crate::db::{self, Tx};
use crate::engine::finding::Finding;
use crate::id::JobName;

pub(super) fn list(tx: &mut Tx<'_>, job: Option<&JobName>, limit: usize) -> db::Result<Vec<Finding>> {
    let items = store::list_before(tx, i64::MAX, job.map(JobName::as_str), limit)?;
    Ok(items.into_iter().map(finding).collect())
}

fn finding(item: Item) -> Finding {
    Finding {
        about: events::numbered(item.id).to_string(),
        title: item.title,
        link: Some(item.url),
        at: Some(item.published_at),
        summary: item.summary.or(item.excerpt),
        names: Vec::new(),
    }
}
