//! Reads a feed and records new entries; the first successful fetch only sets the baseline.

mod collected;
mod entries;
mod fetch;

use serde_json::json;

pub use collected::Collected;
pub(super) use collected::{HoldReason, left_out};
pub(super) use entries::{Read, read_entries, url_key};
pub use entries::{item_title, item_url};
pub(super) use fetch::{Fetched, asked_wait, fetch_feed};

use self::entries::mark_baseline;
use self::fetch::{FeedAnswer, MAX_PAUSE, left_alone_until, usable_validators};
use super::events::{self, FeedCode, ItemCode};
use super::model::{NewItem, Recorded};
use super::store::{self, FeedState};
use super::{Failure, Press, RunContext, gone, view};
use crate::channel::outbox;
use crate::config::value::FirstRun;
use crate::db::{self, Tx};
use crate::engine::alert::{self, AlertKind};
use crate::engine::cut;
use crate::engine::silence::SilenceNotice;
use crate::fail;
use crate::fetch::Moved;
use crate::id::JobName;
use crate::ledger::{Subject, event};
use crate::parse::Cut;
use crate::parse::url::Url;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// Why a feed could not be read.
pub(super) struct Unread {
    pub(super) why: Phrase,
    /// Whether its server cannot be reached now, nor anything else on it.
    pub(super) is_out_of_reach: bool,
}

/// Reads one feed once. The outer error ends the run unless other feeds can be read; the inner one is that of the feed.
pub(super) async fn collect(
    press: &Press,
    ctx: &RunContext,
    feed: &Url,
) -> Result<Result<Collected, Unread>, Failure> {
    let failed = |why: Phrase| Ok(Err(Unread { why, is_out_of_reach: false }));
    let out_of_reach = |why: Phrase| Ok(Err(Unread { why: unread(why), is_out_of_reach: true }));
    let (job, address) = (press.name.clone(), feed.to_string());
    let known = ctx.db.read(move |tx| store::find_feed(tx, &job, &address)).await?;
    if let Some(until) = left_alone_until(&known, ctx.now()) {
        return out_of_reach(phrase!(
            "its server asked us to wait until {until}",
            "サーバーから {until} まで待つよう指示がありました"
        ));
    }
    let validators = usable_validators(&known, ctx.now());
    let url = known.adopted_url.as_ref().unwrap_or(feed);
    let (answer, entries) = match fetch_feed(press, url, &validators).await {
        Ok(Fetched::Unchanged(answer)) => {
            note_unchanged(press, ctx, feed, known, answer).await?;
            return Ok(Ok(Collected { is_unchanged: true, ..Collected::default() }));
        }
        Ok(Fetched::Feed(answer, entries)) => (answer, entries),
        Ok(Fetched::Gone | Fetched::NotFound(_)) if known.adopted_url.is_some() => {
            return failed(move_back(press, ctx, feed, url).await?);
        }
        Ok(Fetched::Gone) => {
            gone::pause(press, ctx, feed).await?;
            return failed(unread(gone::words(&press.name)));
        }
        Ok(Fetched::Later(wait, why)) => {
            if let Some(after) = wait {
                let (job, address) = (press.name.clone(), feed.to_string());
                let until = ctx.now().plus(after.min(MAX_PAUSE));
                ctx.write(move |tx| store::put_not_before(tx, &job, &address, until)).await?;
            }
            return out_of_reach(why);
        }
        Ok(Fetched::Blocked(why)) => return Err(Failure::Config(unread(why))),
        Ok(Fetched::NotFound(why)) | Err(why) => return failed(unread(why)),
    };
    if let Some(had) = known.entry_count.filter(|had| *had > 0 && entries.is_empty()) {
        // Store no validators: it is fetched in full until it has entries again.
        return failed(phrase!(
            "the feed is empty; it had {had entry}",
            "フィードが空です（以前は {had} 件）"
        ));
    }
    let read = read_entries(&entries, press.keys.future, press.keys.patterns(), ctx.now());
    let collected = write(press, ctx, feed, answer, read).await?;
    fail::point("press.collected");
    Ok(Ok(collected))
}

/// Handles an unchanged feed, which may have moved or become silent.
async fn note_unchanged(
    press: &Press,
    ctx: &RunContext,
    feed: &Url,
    known: FeedState,
    answer: FeedAnswer,
) -> Result<(), Failure> {
    let (job, feed, now) = (press.name.clone(), feed.clone(), ctx.now());
    let feeds: Vec<String> = press.feeds().map(Url::to_string).collect();
    ctx.write(move |tx| {
        let mut state = FeedState { validators: answer.validators.clone(), ..known.clone() };
        note_redirect(tx, &job, &feed, &mut state, answer.moved_to.as_ref(), now)?;
        let notice = state.silence.check(false, now);
        store::put_feed(tx, &job, feed.as_str(), &state, now)?;
        note_silence(tx, &job, &feed, &feeds, notice, now)
    })
    .await
}

/// Adopts a new address of the feed once it is confirmed.
fn note_redirect(
    tx: &mut Tx<'_>,
    job: &JobName,
    feed: &Url,
    state: &mut FeedState,
    moved_to: Option<&Url>,
    now: Timestamp,
) -> db::Result<()> {
    let Some(to) = state.moved.sight(moved_to) else { return Ok(()) };
    let why = phrase!(
        "{feed} → {to}; write the new address into the config",
        "{feed} → {to}。設定のアドレスも変更してください",
        feed = Value::link(feed.as_str()),
        to = Value::link(to.as_str())
    );
    (state.moved, state.adopted_url) = (Moved::default(), Some(to));
    let detail = json!({ "feed": feed.as_str(), "why": why.to_stored() });
    event::add(tx, Some(job), &Subject::job(job), FeedCode::Moved, &detail, now)
}

/// Returns to the address of the config, because the adopted one is lost.
async fn move_back(press: &Press, ctx: &RunContext, feed: &Url, lost: &Url) -> Result<Phrase, Failure> {
    let (job, address, at, now) = (press.name.clone(), feed.to_string(), lost.to_string(), ctx.now());
    ctx.write(move |tx| {
        store::reset_adopted(tx, &job, &address)?;
        let detail = json!({ "feed": address, "why": at });
        event::add(tx, Some(&job), &Subject::job(&job), FeedCode::MovedBack, &detail, now)
    })
    .await?;
    Ok(unread(phrase!(
        "nothing is left at {lost}, where it had moved to; the address of the config is read next",
        "移転先の {lost} には何もありません。次回は設定のアドレスを読み込みます",
        lost = Value::link(lost.as_str())
    )))
}

/// Records when a feed begins or ceases to exceed a limit.
fn note_cut(tx: &mut Tx<'_>, job: &JobName, feed: &Url, cut: Option<Cut>, now: Timestamp) -> db::Result<()> {
    let address = Value::link(feed.as_str());
    let (code, why) = match cut.map(cut::phrase) {
        Some(why) => (FeedCode::ReadInPart, phrase!("{feed}: {why}", "{feed}：{why}", feed = address)),
        None => (FeedCode::ReadWhole, Phrase::verbatim(feed.as_str())),
    };
    let detail = json!({ "feed": feed.as_str(), "why": why.to_stored() });
    event::add(tx, Some(job), &Subject::job(job), code, &detail, now)
}

/// Records when a feed becomes silent or has entries again, and updates the alert of the job, whose `feeds` these are.
fn note_silence(
    tx: &mut Tx<'_>,
    job: &JobName,
    feed: &Url,
    feeds: &[String],
    notice: Option<SilenceNotice>,
    now: Timestamp,
) -> db::Result<()> {
    let (code, why) = match notice {
        None => return Ok(()),
        Some(SilenceNotice::Over) => (FeedCode::SilenceOver, Phrase::verbatim(feed.as_str())),
        Some(SilenceNotice::Silent { last, usual_gap }) => {
            let since = view::silent_since(last, usual_gap);
            (
                FeedCode::Silent,
                phrase!("{feed}: {since}", "{feed}：{since}", feed = Value::link(feed.as_str())),
            )
        }
    };
    let about = Subject::job(job);
    let is_any_silent = store::list_silent(tx, job)?.iter().any(|(url, _)| feeds.contains(url));
    match code {
        FeedCode::Silent => alert::raise(tx, AlertKind::Silent, &about, &why, now)?,
        _ if is_any_silent => {}
        _ => alert::clear(tx, AlertKind::Silent, &about, now)?,
    }
    let detail = json!({ "feed": feed.as_str(), "why": why.to_stored() });
    event::add(tx, Some(job), &about, code, &detail, now)
}

fn unread(why: Phrase) -> Phrase {
    phrase!("the feed could not be read: {why}", "フィードを読めません：{why}")
}

/// The entries of a feed that a job does not know.
pub(super) struct New {
    /// All unknown entries, including those that are only recorded.
    pub(super) items: Vec<NewItem>,
    /// When the job first read the feed; `None` at the first fetch.
    pub(super) first_success_at: Option<Timestamp>,
    /// Why the posts wait for approval, if they do.
    pub(super) held: Option<HoldReason>,
}

/// Finds the unknown ones among `items`.
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
    let (mut unknown, mut oldest_known, mut before_last_known) = (Vec::new(), None, 0);
    for item in items {
        if store::is_known(tx, job, &item)? {
            oldest_known = Some(oldest_known.map_or(item.published_at, |at| item.published_at.min(at)));
            before_last_known = unknown.len();
        } else {
            unknown.push(item);
        }
    }
    if let (Some(first), Some(oldest)) = (first_success_at, oldest_known)
        && first_run != FirstRun::All
    {
        // Entries after all known ones that are older than these and than the first fetch existed before: an entry in
        // front of them was removed, or the feed lists more now.
        let behind = unknown[before_last_known..].iter_mut();
        for item in behind.filter(|item| item.published_at < first.min(oldest)) {
            item.recorded.get_or_insert(Recorded::MovedUp);
        }
    }
    if let Some(last) = known.last_success_at
        && unknown.len() == whole
        && is_any_announced(tx, job, &unknown)?
    {
        for item in unknown.iter_mut().filter(|item| item.published_at < last) {
            item.recorded = Some(Recorded::Rewritten);
        }
    }
    let new_count = unknown.iter().filter(|item| item.recorded.is_none()).count();
    let hold_above = usize::try_from(hold_above).unwrap_or(usize::MAX);
    let past_first_run = first_success_at.is_some();
    let held = if outbox::should_hold(new_count, hold_above, past_first_run) {
        Some(HoldReason::TooMany)
    } else {
        outbox::is_most_of(new_count, whole, past_first_run).then_some(HoldReason::MostOfTheFeed)
    };
    Ok(New { items: unknown, first_success_at, held })
}

/// Whether the job knows title and date of one of the entries: then a feed of unknown entries has rewritten its
/// addresses. A short feed whose entries were all replaced is unknown, too, but has other titles.
fn is_any_announced(tx: &mut Tx<'_>, job: &JobName, items: &[NewItem]) -> db::Result<bool> {
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
    feed: &Url,
    answer: FeedAnswer,
    read: Read,
) -> Result<Collected, Failure> {
    let (job, feed, first_run, hold_above, now) =
        (press.name.clone(), feed.clone(), press.first_run, press.hold_above, ctx.now());
    let feeds: Vec<String> = press.feeds().map(Url::to_string).collect();
    ctx.write(move |tx| {
        let new = find_new(tx, &job, feed.as_str(), &read.items, first_run, hold_above)?;
        let known = store::find_feed(tx, &job, feed.as_str())?;
        let (is_held, cut_before) = (new.held.is_some(), known.cut);
        let mut collected = Collected {
            future: read.future,
            unusable: read.unusable,
            held: new.held,
            cut: answer.cut,
            ..Collected::default()
        };
        for item in &new.items {
            if !store::add(tx, &job, item, is_held, known.last_success_at, now)? {
                continue;
            }
            let (count, code) = match item.recorded {
                Some(Recorded::Baseline) => (&mut collected.baseline, ItemCode::Baseline),
                Some(Recorded::Rewritten) => (&mut collected.rewritten, ItemCode::Rewritten),
                Some(Recorded::MovedUp) => (&mut collected.moved_up, ItemCode::MovedUp),
                Some(Recorded::Filtered) => (&mut collected.filtered, ItemCode::Filtered),
                None => (&mut collected.added, ItemCode::Found),
            };
            *count += 1;
            let detail = json!({ "title": item.title, "published_at": item.published_at, "held": is_held });
            event::add(tx, Some(&job), &events::item(&item.url), code, &detail, now)?;
        }
        let mut state = FeedState {
            validators: answer.validators.clone(),
            first_success_at: new.first_success_at.or(Some(now)),
            last_read_at: Some(now),
            read_again_at: read.read_again_at,
            entry_count: Some(read.entry_count),
            cut: answer.cut,
            ..known
        };
        if cut_before != answer.cut {
            note_cut(tx, &job, &feed, answer.cut, now)?;
        }
        note_redirect(tx, &job, &feed, &mut state, answer.moved_to.as_ref(), now)?;
        let notice = if new.first_success_at.is_none() {
            state.silence.begin(read.items.iter().map(|item| item.published_at), now);
            None
        } else {
            state.silence.check(collected.added + collected.filtered > 0, now)
        };
        store::put_feed(tx, &job, feed.as_str(), &state, now)?;
        note_silence(tx, &job, &feed, &feeds, notice, now)?;
        Ok(collected)
    })
    .await
}

#[cfg(test)]
mod tests;
