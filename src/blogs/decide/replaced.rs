//! Entries that come back under another id and address: a slug was corrected, permalinks changed, the domain moved, a
//! link contains the visitor's session. They are recognised by title and date. Pure.

use std::collections::{HashMap, HashSet};

use super::SeenEntries;
use crate::blogs::model::{Detector, DetectorResult, FoundEntry, Sighting, State};
use crate::time::Timestamp;

/// Keys of entries that the feed had at the last check and no longer lists.
pub fn list_vanished(state: &State, sighting: &Sighting) -> Vec<String> {
    let Ok(DetectorResult::Entries { detector: Detector::Feed, entries, .. }) = &sighting.outcome else {
        return Vec::new();
    };
    let listed: HashSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    let mut keys = state.recent_entry_keys.list();
    keys.retain(|key| !listed.contains(key.as_str()));
    keys
}

/// Which of the unknown entries replace one of `vanished`, by title and date.
///
/// Not more than have vanished: two of the same title and date may be two entries.
pub fn find_replacing(
    entries: &[FoundEntry],
    seen: &SeenEntries,
    vanished: impl IntoIterator<Item = (Option<String>, Option<Timestamp>)>,
) -> HashSet<String> {
    let mut free: HashMap<(String, Timestamp), usize> = HashMap::new();
    for (title, published_at) in vanished {
        if let (Some(title), Some(at)) = (title, published_at) {
            *free.entry((title, at)).or_default() += 1;
        }
    }
    if free.is_empty() {
        return HashSet::new();
    }
    let replaces = |entry: &&FoundEntry| {
        let (Some(title), Some(at)) = (&entry.title, entry.published_at) else { return false };
        free.get_mut(&(title.clone(), at)).is_some_and(|left| {
            let is_free = *left > 0;
            *left = left.saturating_sub(1);
            is_free
        })
    };
    let unseen = entries.iter().filter(|entry| !seen.knows(entry));
    unseen.filter(replaces).map(|entry| entry.key.clone()).collect()
}
