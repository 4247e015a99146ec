//! Converts the entries of a feed into items. Pure.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::super::config::Future;
use super::super::model::{NewItem, Recorded};
use crate::config::value::{FirstRun, Patterns};
use crate::hash::bounded_key;
use crate::parse::feed::Entry;
use crate::parse::url::{Url, comparison_key, resolve_web};
use crate::text;
use crate::time::Timestamp;

/// An entry counts as future if it is dated further ahead than this; less is a clock difference.
pub(super) const AHEAD: Duration = Duration::from_secs(3600);
/// A longer address cannot be indexed, and is not a real one.
const MAX_URL_BYTES: usize = 2000;
/// The longest title that is kept, in columns.
const MAX_TITLE: usize = 500;
/// The longest description of an entry that is kept, in characters.
const MAX_EXCERPT: usize = 2000;

/// The normalised address of an item; `None` if it is unusable.
pub fn item_url(link: &str) -> Option<String> {
    resolve_web(None, link).map(String::from).filter(|url| url.len() <= MAX_URL_BYTES)
}

/// The address of an item for comparisons: without scheme, fragment and tracking parameters.
pub(in crate::press) fn url_key(url: &str) -> Option<String> {
    Url::parse(url).ok().map(|url| bounded_key(comparison_key(&url)))
}

/// The stored title of an item: one line, limited, never empty.
pub fn item_title(title: &str, url: &str) -> String {
    match text::one_line(title) {
        title if title.is_empty() => url.to_owned(),
        title => text::shorten(&title, MAX_TITLE),
    }
}

/// The entries of a feed as items, in its order.
#[derive(Clone, Debug, Default)]
pub(in crate::press) struct Read {
    pub(in crate::press) items: Vec<NewItem>,
    pub(in crate::press) future: usize,
    pub(in crate::press) unusable: usize,
    pub(super) entry_count: u32,
    pub(super) read_again_at: Option<Timestamp>,
}

pub(in crate::press) fn read_entries(
    entries: &[Entry],
    future: Future,
    patterns: Patterns<'_>,
    now: Timestamp,
) -> Read {
    let entry_count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let mut read = Read { entry_count, ..Read::default() };
    let mut seen = HashSet::new();
    for entry in entries {
        let Some(url) = entry.link.as_deref().and_then(item_url) else {
            read.unusable += 1;
            continue;
        };
        if !seen.insert(url.clone()) {
            continue;
        }
        let date = entry.date();
        let ahead = date.filter(|date| *date > now.plus(AHEAD));
        let (published_at, not_before) = match (ahead, future) {
            (Some(date), Future::Ignore) => {
                read.future += 1;
                read.read_again_at = Some(read.read_again_at.map_or(date, |at| at.min(date)));
                continue;
            }
            (Some(date), Future::Wait) => (date, Some(date)),
            (Some(_), Future::Now) => (now, None),
            (None, _) => (date.unwrap_or(now), None),
        };
        let excerpt = entry.summary_or_content().map(|text| text.text().chars().take(MAX_EXCERPT).collect());
        let excerpt: Option<String> = excerpt.filter(|text: &String| !text.is_empty());
        let title = item_title(entry.title.as_deref().unwrap_or_default(), &url);
        read.items.push(NewItem {
            url_key: url_key(&url),
            published_at,
            entry_key: bounded_key(entry.key().to_owned()),
            has_id: entry.key().starts_with("id:"),
            not_before,
            recorded: is_left_out(patterns, &title, excerpt.as_deref(), &url).then_some(Recorded::Filtered),
            url,
            title,
            excerpt,
        });
    }
    drop_shared_keys(&mut read.items);
    read
}

fn is_left_out(patterns: Patterns<'_>, title: &str, excerpt: Option<&str>, url: &str) -> bool {
    !patterns.is_empty()
        && !patterns.admit(&[title, excerpt.unwrap_or_default()], Url::parse(url).ok().as_ref())
}

/// Entries of one document are distinct, even if their comparison keys are equal.
fn drop_shared_keys(items: &mut [NewItem]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for key in items.iter().filter_map(|item| item.url_key.clone()) {
        *counts.entry(key).or_default() += 1;
    }
    for item in items {
        item.url_key = item.url_key.take().filter(|key| counts.get(key) == Some(&1));
    }
}

/// Marks the items that the first fetch only records.
pub(super) fn mark_baseline(items: &mut [NewItem], first_run: FirstRun) {
    let announced = match first_run {
        FirstRun::All => return,
        FirstRun::Baseline => 0,
        FirstRun::Latest(number) => usize::try_from(number).unwrap_or(usize::MAX),
    };
    let mut newest: Vec<usize> = (0..items.len()).filter(|at| items[*at].recorded.is_none()).collect();
    newest.sort_by_key(|index| std::cmp::Reverse(items[*index].published_at));
    for index in newest.into_iter().skip(announced) {
        items[index].recorded = Some(Recorded::Baseline);
    }
}
