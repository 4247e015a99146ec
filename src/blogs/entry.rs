//! The story of one entry: on which blog it was seen, when, and in which message it was told or why not.

use serde::Serialize;

use super::decide::Code;
use super::model::url_key;
use super::store::{self, EntryRow, Filter};
use super::view::{self, Listed};
use crate::db::{self, Tx};
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};
use crate::parse::url::Url;

/// Changes and decisions of a blog that are searched for an entry, newest first.
const SEARCHED: usize = 1_000;

/// Everything that is known about an entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntryView {
    /// The entry.
    #[serde(flatten)]
    pub entry: EntryRow,
    /// What tells it, and what became of that; empty when it was not news.
    pub changes: Vec<Listed>,
    /// What was decided about its blog when it was seen first, oldest first.
    pub events: Vec<Event>,
}

/// The stories of all entries at an address.
pub fn list_views(tx: &mut Tx<'_>, url: &Url) -> db::Result<Vec<EntryView>> {
    let entries = store::list_entries_at(tx, &url_key(url))?;
    entries.into_iter().map(|entry| find_story(tx, entry)).collect()
}

fn find_story(tx: &mut Tx<'_>, entry: EntryRow) -> db::Result<EntryView> {
    let filter = Filter { blog: Some(entry.blog_id.clone()), code: Some(Code::New), ..Filter::default() };
    let mut changes = view::list_changes(tx, &filter, SEARCHED)?;
    changes.retain(|listed| {
        let detail = &listed.change.detail;
        let is_named = detail.entries.iter().any(|told| told.key == entry.key);
        // A change names its first entries only; the others were written down in the same moment.
        is_named || (detail.more > 0 && listed.change.found_at == entry.first_seen_at)
    });
    changes.reverse();
    let mut events = event::list_about(tx, &Subject::blog(&entry.blog_id), SEARCHED)?;
    events.retain(|event| event.at == entry.first_seen_at);
    Ok(EntryView { entry, changes, events })
}
