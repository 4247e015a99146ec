//! A preview of the feed as a run would read it; writes nothing and calls no model.

mod item;

use serde_json::json;

pub(super) use item::preview as preview_item;

use super::collect::{Fetched, fetch_feed, find_new, left_out, read_entries};
use super::model::{NewItem, Status};
use super::{Failure, Press, gone, page, store};
use crate::db::{self, Db};
use crate::engine::preview::MAX_NAMED;
use crate::engine::{Plan, PreviewItem};
use crate::fetch::{self, Check, Validators};
use crate::llm::Purpose;
use crate::parse::url::Url;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::text;
use crate::time::Timestamp;

/// What a run would do with the feed, and the parsed newest page.
pub(super) async fn preview(
    press: &Press,
    db: &Db,
    feed: &Url,
    now: Timestamp,
) -> Result<(PreviewItem, Option<Phrase>), Failure> {
    let address = feed.to_string();
    let failed = |why: Phrase| Ok((PreviewItem::failed(&address, why), None));
    let entries = match fetch_feed(press, feed, &Validators::default()).await {
        Ok(Fetched::Feed(_, entries)) => entries,
        Ok(Fetched::Unchanged(_)) => Vec::new(),
        Ok(Fetched::Gone) => return failed(fetch::Error::Gone.describe()),
        Ok(Fetched::Later(_, why) | Fetched::NotFound(why) | Fetched::Blocked(why)) | Err(why) => {
            return failed(why);
        }
    };
    let read = read_entries(&entries, press.keys.future, press.keys.patterns(), now);
    let page = match newest_page(&read.items) {
        Some(url) => Some(preview_page(press, url).await),
        None => None,
    };
    let (job, feed, items) = (press.name.clone(), address.clone(), read.items);
    let (first_run, hold_above) = (press.first_run, press.hold_above);
    let found = db.read(move |tx| find_new(tx, &job, &feed, &items, first_run, hold_above)).await?;
    let (is_first, held) = (found.first_success_at.is_none(), found.held);
    let new: Vec<_> = found.items.into_iter().filter(|item| item.recorded.is_none()).collect();
    let mut parts: Vec<Value> = vec![
        phrase!("{count entry}", "{count} 件", count = entries.len()).into(),
        phrase!("{count} to be screened", "判定対象 {count} 件", count = new.len()).into(),
    ];
    if is_first {
        parts.push(
            phrase!(
                "the others recorded as known: it would be the first run",
                "残りは既知として記録（初回のため）"
            )
            .into(),
        );
    } else if let Some(held) = held {
        parts.push(held.phrase().into());
    }
    parts.extend(left_out(read.future, read.unusable));
    let found = phrase!("{parts}", "{parts}");
    let titles = new.iter().map(|item| item.title.clone());
    let any = entries.iter().filter_map(|entry| entry.title.as_deref().map(text::one_line));
    let first = if new.is_empty() { any.take(MAX_NAMED).collect() } else { titles.take(MAX_NAMED).collect() };
    let listed: Vec<_> = new
        .iter()
        .map(|item| json!({ "url": item.url, "title": item.title, "published_at": item.published_at }))
        .collect();
    let detail = json!({
        "entries": entries.len(),
        "new": listed,
        "is_first_run": is_first,
        "future": read.future,
        "unusable": read.unusable,
    });
    Ok((PreviewItem { first, detail, ..PreviewItem::fine(address, found) }, page.map(|page| page.words)))
}

pub(super) async fn plan(press: &Press, db: &Db, now: Timestamp) -> db::Result<Plan> {
    let name = press.name.clone();
    let feeds: Vec<String> = press.feeds().map(Url::to_string).collect();
    let (feeds, pending, to_screen, waiting) = db
        .read(move |tx| {
            let find_gone = |feed: &String| Ok((feed.clone(), store::is_gone(tx, &name, feed)?));
            let feeds = feeds.iter().map(find_gone).collect::<db::Result<Vec<_>>>()?;
            let waiting =
                store::count(tx, &name, Status::Unprocessed)? + store::count(tx, &name, Status::Deferred)?;
            let pending = store::find_pending(tx, &name, now)?;
            Ok((feeds, pending, store::find_to_screen(tx, &name, now)?, waiting))
        })
        .await?;
    let read = |(feed, is_gone): (String, bool)| {
        if !is_gone {
            phrase!("read {feed}", "{feed} を読み込む")
        } else {
            phrase!("skip {feed}: {why}", "{feed} は読み込まない：{why}", why = gone::words(&press.name))
        }
    };
    let mut steps: Vec<Phrase> = feeds.into_iter().map(read).collect();
    match (pending, to_screen) {
        (Some(item), _) if !press.deliver.is_empty() => {
            steps.push(phrase!("summarise and post: {title}", "要約して投稿：{title}", title = &item.title));
        }
        (_, Some(item)) => {
            steps.push(phrase!(
                "screen: {title} ({waiting} waiting)",
                "判定：{title}（待ち {waiting} 件）",
                title = &item.title
            ));
        }
        (_, None) => {
            steps.push(phrase!("no item is due ({waiting} waiting)", "対象の記事なし（待ち {waiting} 件）"));
        }
    }
    if press.llm.is_some()
        && let Ok(llm) = press.llm()
        && let Some(obstacle) = llm.find_obstacle(&press.name, Purpose::Screen, &[]).await?
    {
        steps.push(phrase!(
            "wait until {until}: {why}",
            "{until} まで待機：{why}",
            until = obstacle.until,
            why = &obstacle.why
        ));
    }
    Ok(Plan { steps })
}

/// Whether `content` matches on the newest page; `None` if the config has no `content`.
pub(super) async fn check_page(press: &Press, feed: &Url) -> Option<Check> {
    press.keys.content.as_ref()?;
    let Ok(Fetched::Feed(_, entries)) = fetch_feed(press, feed, &Validators::default()).await else {
        return None;
    };
    let read = read_entries(&entries, press.keys.future, press.keys.patterns(), press.env.clock.now());
    let page = preview_page(press, newest_page(&read.items)?).await;
    let name = phrase!("page", "ページ");
    Some(if page.is_fine { Check::fine(name, page.words) } else { Check::warning(name, page.words) })
}

struct PagePreview {
    is_fine: bool,
    words: Phrase,
}

async fn preview_page(press: &Press, url: &str) -> PagePreview {
    match page::preview(press, url).await {
        Ok(None) => PagePreview {
            is_fine: true,
            words: phrase!("{url} is a file itself", "{url} はファイルです"),
        },
        Ok(Some(page)) if page.lacks_block => PagePreview { is_fine: false, words: press.block_warning(url) },
        Ok(Some(page)) => {
            let (characters, files) = (page.text.chars().count(), page.files.len());
            let words = phrase!(
                "{url} has {characters character} and {files file}",
                "{url}：本文 {characters} 文字、ファイル {files} 件"
            );
            PagePreview { is_fine: true, words }
        }
        Err(error) => {
            let why = error.describe();
            PagePreview {
                is_fine: false,
                words: phrase!("{url} could not be read: {why}", "{url} を読めません：{why}"),
            }
        }
    }
}

fn newest_page(items: &[NewItem]) -> Option<&str> {
    items.iter().max_by_key(|item| item.published_at).map(|item| item.url.as_str())
}
