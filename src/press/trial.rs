//! A look at the feed as a run would read it; nothing is written, and no model is asked.

use serde_json::json;

use super::collect::{Fetched, fetch_feed, find_new, read_entries};
use super::{Failure, Press};
use crate::db::Db;
use crate::engine::Look;
use crate::engine::trial::NAMED;
use crate::fetch::{self, Validators};
use crate::text;
use crate::time::Timestamp;

/// What a run would do with the feed.
pub(super) async fn look(press: &Press, db: &Db, now: Timestamp) -> Result<Look, Failure> {
    let address = press.keys.feed.to_string();
    let entries = match fetch_feed(press, &Validators::default()).await {
        Ok(Fetched::Feed(_, entries)) => entries,
        Ok(Fetched::Unchanged(_)) => Vec::new(),
        Ok(Fetched::Gone) => return Ok(Look::failed(address, fetch::Error::Gone.told())),
        Err(why) => return Ok(Look::failed(address, why)),
    };
    let read = read_entries(&entries, press.keys.future, now);
    let (job, feed, items) = (press.name.clone(), press.keys.feed.url().to_string(), read.items);
    let (first_run, hold_above) = (press.first_run, press.hold_above);
    let found = db.read(move |tx| find_new(tx, &job, &feed, &items, first_run, hold_above)).await?;
    let (is_first, is_held) = (found.first_success_at.is_none(), found.is_held);
    let new: Vec<_> = found.items.into_iter().filter(|item| !item.is_baseline).collect();
    let mut found = format!("{}, {} to be screened", text::counted(entries.len(), "entry"), new.len());
    if is_first {
        found += ", the others recorded as known: it would be the first run";
    } else if is_held {
        found += ", held: more than `hold_above` at once";
    }
    for (count, what) in [(read.future, "dated in the future"), (read.unusable, "without a usable link")] {
        if count > 0 {
            found += &format!(", {count} {what}");
        }
    }
    let titles = new.iter().map(|item| item.title.clone());
    let any = entries.iter().filter_map(|entry| entry.title.as_deref().map(text::one_line));
    let first = if new.is_empty() { any.take(NAMED).collect() } else { titles.take(NAMED).collect() };
    let told: Vec<_> = new
        .iter()
        .map(|item| json!({ "url": item.url, "title": item.title, "published_at": item.published_at }))
        .collect();
    let detail = json!({
        "entries": entries.len(),
        "new": told,
        "is_first_run": is_first,
        "future": read.future,
        "unusable": read.unusable,
    });
    Ok(Look { first, detail, ..Look::fine(address, found) })
}
