//! A look at the feed as a run would read it; nothing is written, and no model is asked.

use serde_json::json;

use super::collect::{Fetched, fetch_feed, find_new, read_entries};
use super::model::NewItem;
use super::{Failure, Press, page};
use crate::db::Db;
use crate::engine::PreviewItem;
use crate::engine::preview::MAX_NAMED;
use crate::fetch::{self, Check, Validators};
use crate::text;
use crate::time::Timestamp;

/// What a run would do with the feed, and how its newest page is read.
pub(super) async fn preview(
    press: &Press,
    db: &Db,
    now: Timestamp,
) -> Result<(PreviewItem, Option<String>), Failure> {
    let failed = |why: String| Ok((PreviewItem::failed(press.keys.feed.to_string(), why), None));
    let address = press.keys.feed.to_string();
    let entries = match fetch_feed(press, &Validators::default()).await {
        Ok(Fetched::Feed(_, entries)) => entries,
        Ok(Fetched::Unchanged(_)) => Vec::new(),
        Ok(Fetched::Gone) => return failed(fetch::Error::Gone.told()),
        Ok(Fetched::Later(_, why)) | Err(why) => return failed(why),
    };
    let read = read_entries(&entries, press.keys.future, now);
    let page = match newest_page(&read.items) {
        Some(url) => Some(tell_page(press, url).await),
        None => None,
    };
    let (job, feed, items) = (press.name.clone(), press.keys.feed.url().to_string(), read.items);
    let (first_run, hold_above) = (press.first_run, press.hold_above);
    let found = db.read(move |tx| find_new(tx, &job, &feed, &items, first_run, hold_above)).await?;
    let (is_first, held) = (found.first_success_at.is_none(), found.held);
    let new: Vec<_> = found.items.into_iter().filter(|item| item.recorded.is_none()).collect();
    let mut found = format!("{}, {} to be screened", text::counted(entries.len(), "entry"), new.len());
    if is_first {
        found += ", the others recorded as known: it would be the first run";
    } else if let Some(held) = held {
        found += &format!(", {held}");
    }
    for (count, what) in [(read.future, "dated in the future"), (read.unusable, "without a usable link")] {
        if count > 0 {
            found += &format!(", {count} {what}");
        }
    }
    let titles = new.iter().map(|item| item.title.clone());
    let any = entries.iter().filter_map(|entry| entry.title.as_deref().map(text::one_line));
    let first = if new.is_empty() { any.take(MAX_NAMED).collect() } else { titles.take(MAX_NAMED).collect() };
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
    Ok((PreviewItem { first, detail, ..PreviewItem::fine(address, found) }, page.map(|told| told.words)))
}

/// Whether `content` names a block that the newest page has; nothing, if the config has no `content`.
pub(super) async fn check_page(press: &Press) -> Option<Check> {
    press.keys.content.as_ref()?;
    let entries = match fetch_feed(press, &Validators::default()).await {
        Ok(Fetched::Feed(_, entries)) => entries,
        Ok(Fetched::Unchanged(_) | Fetched::Gone | Fetched::Later(..)) | Err(_) => return None,
    };
    let read = read_entries(&entries, press.keys.future, press.env.clock.now());
    let told = tell_page(press, newest_page(&read.items)?).await;
    Some(if told.is_fine { Check::fine("page", told.words) } else { Check::warning("page", told.words) })
}

struct ToldPage {
    is_fine: bool,
    words: String,
}

async fn tell_page(press: &Press, url: &str) -> ToldPage {
    match page::preview(press, url).await {
        Ok(None) => ToldPage { is_fine: true, words: format!("{url} is a file itself") },
        Ok(Some(page)) if page.lacks_block => ToldPage { is_fine: false, words: press.block_warning(url) },
        Ok(Some(page)) => {
            let characters = text::counted(page.text.chars().count(), "character");
            let files = text::counted(page.files.len(), "file");
            ToldPage { is_fine: true, words: format!("{url} has {characters} and {files}") }
        }
        Err(error) => {
            ToldPage { is_fine: false, words: format!("{url} could not be read: {}", error.told()) }
        }
    }
}

fn newest_page(items: &[NewItem]) -> Option<&str> {
    items.iter().max_by_key(|item| item.published_at).map(|item| item.url.as_str())
}
