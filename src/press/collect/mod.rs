//! Reads the feed and records what is new; the first successful look only sets the baseline.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::json;

use super::config::Future;
use super::events::{self, ItemCode};
use super::model::{NewItem, Recorded};
use super::store::{self, FeedState};
use super::{Failure, Press, RunContext, gone};
use crate::channel::outbox;
use crate::config::value::FirstRun;
use crate::db::{self, Tx};
use crate::fail;
use crate::fetch::error::Why;
use crate::fetch::{Error, Request, Response, Validators};
use crate::hash::bounded_key;
use crate::id::JobName;
use crate::ledger::event;
use crate::parse::feed::{self, Entry};
use crate::parse::url::{Url, comparison_key, resolve_web};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::text;
use crate::time::Timestamp;

/// An entry dated further ahead than this is one of the future; less is a clock that differs.
const AHEAD: Duration = Duration::from_secs(3600);
/// The whole feed is read at least this often, whatever its validators say.
const WHOLE_EVERY: Duration = Duration::from_secs(7 * 24 * 3600);
/// No server is left alone for longer, whatever it asks for.
const LONGEST_REST: Duration = Duration::from_secs(24 * 3600);
/// A longer address cannot be indexed and is no address that anybody meant.
const MAX_URL_BYTES: usize = 2000;
/// The longest title that is kept, in columns.
const MAX_TITLE: usize = 500;
/// What we like to get.
const ACCEPT: &str = "application/rss+xml, application/rdf+xml, application/atom+xml, application/feed+json, \
                      application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5";

/// What reading the feed brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Whether the server said that nothing has changed.
    pub is_unchanged: bool,
    /// Items that are new.
    pub added: usize,
    /// Items that were recorded as known already.
    pub baseline: usize,
    /// Items that were recorded because the feed tells its old entries under new addresses.
    pub rewritten: usize,
    /// Entries left alone because their date lies ahead.
    pub future: usize,
    /// Entries without an address that can be used.
    pub unusable: usize,
    /// Why the posts of the new items wait for a person, if they do.
    pub held: Option<Held>,
}

/// Why the posts of new items wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// They are more than `hold_above`.
    TooMany,
    /// They are most of the feed.
    MostOfTheFeed,
}

impl Held {
    /// Why, for people.
    pub(super) fn phrase(self) -> Phrase {
        match self {
            Held::TooMany => phrase!(
                "their posts need approval: more than `hold_above` at once",
                "確認待ち：一度に `hold_above` を超えました"
            ),
            Held::MostOfTheFeed => phrase!(
                "their posts need approval: more than half of the feed at once",
                "確認待ち：一度にフィードの半分を超えました"
            ),
        }
    }
}

impl Collected {
    /// In words.
    pub(super) fn phrase(&self) -> Phrase {
        if self.is_unchanged {
            return phrase!("feed unchanged", "フィードに変化なし");
        }
        let (baseline, rewritten) = (self.baseline, self.rewritten);
        let mut parts: Vec<Value> =
            vec![phrase!("{count} new", "新着 {count} 件", count = self.added).into()];
        if baseline > 0 {
            parts.push(
                phrase!("{baseline} recorded as known", "既知として記録 {baseline} 件", baseline).into(),
            );
        }
        if rewritten > 0 {
            parts.push(
                phrase!("{rewritten} at a new address", "アドレス変更 {rewritten} 件", rewritten).into(),
            );
        }
        parts.extend(left_out(self.future, self.unusable));
        parts.extend(self.held.map(|held| Value::from(held.phrase())));
        phrase!("{parts}", "{parts}", parts)
    }
}

/// Entries that are no items, and why.
pub(super) fn left_out(future: usize, unusable: usize) -> impl Iterator<Item = Value> {
    let future =
        (future > 0).then(|| phrase!("{future} dated in the future", "日付が未来のもの {future} 件", future));
    let unusable = (unusable > 0).then(|| {
        phrase!("{unusable} without a usable link", "有効なリンクのないもの {unusable} 件", unusable)
    });
    [future, unusable].into_iter().flatten().map(Value::from)
}

/// Reads the feed once. The outer error ends the run, the inner one is the feed's, as a sentence.
pub(super) async fn collect(press: &Press, ctx: &RunContext) -> Result<Result<Collected, Phrase>, Failure> {
    let feed_url = press.keys.feed.url().clone();
    let (job, address) = (press.name.clone(), feed_url.to_string());
    let known = ctx.db.read(move |tx| store::find_feed(tx, &job, &address)).await?;
    if let Some(until) = left_alone_until(&known, ctx.now()) {
        return Ok(Err(unread(phrase!(
            "its server asked us to wait until {until}",
            "サーバーから {until} まで待つよう指示がありました",
            until
        ))));
    }
    let validators = usable_validators(&known, ctx.now());
    let (validators, entries) = match fetch_feed(press, &validators).await {
        Ok(Fetched::Unchanged(validators)) => {
            let (job, address, now) = (press.name.clone(), feed_url.to_string(), ctx.now());
            let state = FeedState { validators, ..known };
            ctx.write(move |tx| store::put_feed(tx, &job, &address, &state, now)).await?;
            return Ok(Ok(Collected { is_unchanged: true, ..Collected::default() }));
        }
        Ok(Fetched::Feed(validators, entries)) => (validators, entries),
        Ok(Fetched::Gone) => {
            gone::rest(press, ctx).await?;
            return Ok(Err(unread(gone::words(&press.name))));
        }
        Ok(Fetched::Later(after, why)) => {
            let (job, address) = (press.name.clone(), feed_url.to_string());
            let until = ctx.now().plus(after.min(LONGEST_REST));
            ctx.write(move |tx| store::put_not_before(tx, &job, &address, until)).await?;
            return Ok(Err(unread(why)));
        }
        Err(why) => return Ok(Err(unread(why))),
    };
    if let Some(had) = known.entry_count.filter(|had| *had > 0 && entries.is_empty()) {
        // Nothing is remembered of it: it is read whole until it has entries again.
        return Ok(Err(phrase!(
            "the feed is empty; it had {had entry}",
            "フィードが空です（以前は {had} 件）",
            had
        )));
    }
    let read = read_entries(&entries, press.keys.future, ctx.now());
    let collected = write(press, ctx, feed_url.to_string(), validators, read).await?;
    fail::point("press.collected");
    Ok(Ok(collected))
}

fn unread(why: Phrase) -> Phrase {
    phrase!("the feed could not be read: {why}", "フィードを読めません：{why}", why)
}

/// What asking for a feed brought.
pub(super) enum Fetched {
    Unchanged(Validators),
    Gone,
    /// The server asks us to come back after a while, in these words.
    Later(Duration, Phrase),
    Feed(Validators, Vec<Entry>),
}

/// Asks for the feed.
pub(super) async fn fetch_feed(press: &Press, validators: &Validators) -> Result<Fetched, Phrase> {
    let request = Request::get(press.keys.feed.url().clone())
        .accept(ACCEPT)
        .validators(validators)
        .allow_private(&press.allow_private);
    let (head, body) = match press.env.fetcher.fetch(&request).await {
        Ok(Response::Unchanged(head)) => return Ok(Fetched::Unchanged(head.validators)),
        Ok(Response::Fetched(head, body)) => (head, body),
        Err(Error::Gone) => return Ok(Fetched::Gone),
        Err(error @ Error::Later { after, why: Why::Asked(_), .. }) => {
            return Ok(Fetched::Later(after, error.told().into()));
        }
        Err(error) => return Err(error.told().into()),
    };
    fail::point("press.feed_fetched");
    let context = feed::Context {
        url: Some(head.final_url.clone()),
        content_type: head.content_type().map(str::to_owned),
        zone: Some(press.env.app.timezone.time_zone().clone()),
        ..feed::Context::default()
    };
    let feed = feed::parse(&body, &context).map_err(|refused| refused.to_string())?;
    Ok(Fetched::Feed(head.validators, feed.entries))
}

/// Until when the server wants to be left alone, if that is not over; a clock that was ahead does not count.
fn left_alone_until(known: &FeedState, now: Timestamp) -> Option<Timestamp> {
    known.not_before.filter(|until| now < *until && *until <= now.plus(LONGEST_REST))
}

/// What to ask by; nothing, when the whole feed is due.
fn usable_validators(known: &FeedState, now: Timestamp) -> Validators {
    let is_due = known.last_read_at.is_none_or(|read| read > now || now.since(read) >= WHOLE_EVERY)
        || known.read_again_at.is_some_and(|again| again <= now);
    if is_due { Validators::default() } else { known.validators.clone() }
}

/// The address by which an item is known; `None` when it is none that can be used.
pub fn item_url(link: &str) -> Option<String> {
    resolve_web(None, link).map(String::from).filter(|url| url.len() <= MAX_URL_BYTES)
}

/// The address of an item for comparisons: without scheme, fragment and tracking parameters.
pub(super) fn url_key(url: &str) -> Option<String> {
    Url::parse(url).ok().map(|url| bounded_key(comparison_key(&url)))
}

/// The title that is kept of an item: on one line, not too long, never empty.
pub fn item_title(title: &str, url: &str) -> String {
    match text::one_line(title) {
        title if title.is_empty() => url.to_owned(),
        title => text::shorten(&title, MAX_TITLE),
    }
}

/// The entries of a feed as items, in its order.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    pub(super) items: Vec<NewItem>,
    pub(super) future: usize,
    pub(super) unusable: usize,
    entry_count: u32,
    read_again_at: Option<Timestamp>,
}

pub(super) fn read_entries(entries: &[Entry], future: Future, now: Timestamp) -> Read {
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
        let title = item_title(entry.title.as_deref().unwrap_or_default(), &url);
        read.items.push(NewItem {
            url_key: url_key(&url),
            url,
            title,
            published_at,
            entry_key: bounded_key(entry.key().to_owned()),
            has_id: entry.key().starts_with("id:"),
            not_before,
            recorded: None,
        });
    }
    drop_shared_keys(&mut read.items);
    read
}

/// Entries that one document tells apart are not one, however alike their addresses are.
fn drop_shared_keys(items: &mut [NewItem]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for key in items.iter().filter_map(|item| item.url_key.clone()) {
        *counts.entry(key).or_default() += 1;
    }
    for item in items {
        item.url_key = item.url_key.take().filter(|key| counts.get(key) == Some(&1));
    }
}

/// Marks what the first look only records.
fn mark_baseline(items: &mut [NewItem], first_run: FirstRun) {
    let announced = match first_run {
        FirstRun::All => return,
        FirstRun::Baseline => 0,
        FirstRun::Latest(number) => usize::try_from(number).unwrap_or(usize::MAX),
    };
    let mut newest: Vec<usize> = (0..items.len()).collect();
    newest.sort_by_key(|index| std::cmp::Reverse(items[*index].published_at));
    for index in newest.into_iter().skip(announced) {
        items[index].recorded = Some(Recorded::Baseline);
    }
}

/// What of a feed is new to a job.
pub(super) struct New {
    /// Entries that it does not know, also those that it only records.
    pub(super) items: Vec<NewItem>,
    /// When it first read the feed; `None` on the first look.
    pub(super) first_success_at: Option<Timestamp>,
    /// Why the posts wait for a person, if they do.
    pub(super) held: Option<Held>,
}

/// Looks what of `items` is new.
pub(super) fn find_new(
    tx: &mut Tx<'_>,
    job: &JobName,
    feed_url: &str,
    items: &[NewItem],
    first_run: FirstRun,
    hold_above: u32,
) -> db::Result<New> {
    let known = store::find_feed(tx, job, feed_url)?;
    let first_success_at = known.first_success_at;
    let whole = items.len();
    let mut items = items.to_vec();
    if first_success_at.is_none() {
        mark_baseline(&mut items, first_run);
    }
    let mut unknown = Vec::new();
    for item in items {
        if !store::is_known(tx, job, &item)? {
            unknown.push(item);
        }
    }
    if let Some(last) = known.last_success_at
        && unknown.len() == whole
        && is_any_told(tx, job, &unknown)?
    {
        for item in unknown.iter_mut().filter(|item| item.published_at < last) {
            item.recorded = Some(Recorded::Rewritten);
        }
    }
    let new_count = unknown.iter().filter(|item| item.recorded.is_none()).count();
    let hold_above = usize::try_from(hold_above).unwrap_or(usize::MAX);
    let past_first_run = first_success_at.is_some();
    let held = if outbox::should_hold(new_count, hold_above, past_first_run) {
        Some(Held::TooMany)
    } else {
        outbox::is_most_of(new_count, whole, past_first_run).then_some(Held::MostOfTheFeed)
    };
    Ok(New { items: unknown, first_success_at, held })
}

/// Whether the job knows title and date of one of the entries: then a feed of strangers has rewritten its addresses. A short
/// feed whose entries were all replaced is full of strangers, too, but tells other things.
fn is_any_told(tx: &mut Tx<'_>, job: &JobName, items: &[NewItem]) -> db::Result<bool> {
    for item in items {
        if store::is_announced(tx, job, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn write(
    press: &Press,
    ctx: &RunContext,
    feed_url: String,
    validators: Validators,
    read: Read,
) -> Result<Collected, Failure> {
    let (job, first_run, hold_above, now) =
        (press.name.clone(), press.first_run, press.hold_above, ctx.now());
    ctx.write(move |tx| {
        let new = find_new(tx, &job, &feed_url, &read.items, first_run, hold_above)?;
        let (held, found_since) = (new.held, store::find_last_success(tx, &job, &feed_url)?);
        let is_held = held.is_some();
        let mut collected =
            Collected { future: read.future, unusable: read.unusable, held, ..Collected::default() };
        for item in &new.items {
            if !store::add(tx, &job, item, is_held, found_since, now)? {
                continue;
            }
            let (count, code) = match item.recorded {
                Some(Recorded::Baseline) => (&mut collected.baseline, ItemCode::Baseline),
                Some(Recorded::Rewritten) => (&mut collected.rewritten, ItemCode::Rewritten),
                None => (&mut collected.added, ItemCode::Found),
            };
            *count += 1;
            let detail = json!({ "title": item.title, "published_at": item.published_at, "held": is_held });
            event::add(tx, Some(&job), &events::item(&item.url), code, &detail, now)?;
        }
        let state = FeedState {
            validators: validators.clone(),
            first_success_at: new.first_success_at.or(Some(now)),
            last_read_at: Some(now),
            read_again_at: read.read_again_at,
            entry_count: Some(read.entry_count),
            ..FeedState::default()
        };
        store::put_feed(tx, &job, &feed_url, &state, now)?;
        Ok(collected)
    })
    .await
}

#[cfg(test)]
mod tests;
