//! The view of an item: its state, its posts and its history.

use std::time::Duration;

use super::events::{self, ITEM, ItemCode, numbered};
use super::model::{Item, Reason, Status};
use super::store::{self, ItemDelivery};
use crate::channel::outbox::State as MessageState;
use crate::db::{self, Tx};
use crate::engine::cut;
use crate::engine::silence::Silence;
use crate::engine::things::delivery;
use crate::engine::things::external::add_pause;
use crate::engine::view::{Action, Fact, State, View};
use crate::engine::{Finder, Verb};
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};
use crate::ledger::pause::{self, Pause};
use crate::parse::Cut;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ItemDetails {
    #[serde(flatten)]
    pub item: Item,
    pub deliveries: Vec<ItemDelivery>,
    /// Oldest first.
    pub events: Vec<Event>,
}

/// Everything known about an item, with at most `limit` events.
pub fn find_details(tx: &mut Tx<'_>, item: Item, limit: usize) -> db::Result<ItemDetails> {
    let deliveries = store::list_deliveries(tx, &item.job_name, &item.url)?;
    let events = list_events(tx, &item, limit)?;
    Ok(ItemDetails { item, deliveries, events })
}

/// Finds by number after its word, or by address: a bare number is that of a delivery.
pub(super) fn find(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let items = store::list_by_url(tx, name)?;
    items.into_iter().map(|item| view(finder, tx, item)).collect()
}

pub(super) fn find_by_number(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let found = match name.parse() {
        Ok(number) => store::find(tx, number)?,
        Err(_) => None,
    };
    found.into_iter().map(|item| view(finder, tx, item)).collect()
}

fn view(finder: &Finder, tx: &mut Tx<'_>, item: Item) -> db::Result<View> {
    let details = &find_details(tx, item, finder.limit)?;
    let item = &details.item;
    let title = phrase!(
        "item {id} of job {job}: {title}",
        "ジョブ {job} の記事 {id}：{title}",
        id = item.id,
        job = &item.job_name,
        title = &item.title
    );
    let name = format!("{ITEM}:{}", item.id);
    let mut view = View::new(ITEM, name, title, serde_json::to_value(details).unwrap_or_default());
    view.state = Some(state_of(item, &details.deliveries));
    view.headline = Some(item.title.clone());
    add_stages(&mut view, details);
    view.fact(phrase!("address", "アドレス"), Value::link(&item.url));
    view.fact(phrase!("state", "状態"), standing_after(item, &details.events));
    if item.retry_count > 0 {
        view.fact(phrase!("failed attempts", "失敗回数"), item.retry_count);
    }
    view.fact(phrase!("published", "公開"), item.published_at);
    view.fact(phrase!("found", "発見"), item.created_at);
    view.fact(phrase!("last checked", "最終確認"), item.last_checked_at);
    view.fact(phrase!("not before", "次の確認は"), item.not_before);
    for pause in list_pauses(finder, tx, details)? {
        add_pause(&mut view, &pause, finder);
    }
    view.fact(phrase!("verdict", "判定"), item.verdict.as_deref());
    view.fact(phrase!("summary", "要約"), item.summary.as_deref());
    view.section(
        phrase!("messages", "メッセージ"),
        details
            .deliveries
            .iter()
            .map(|sent| delivery::line(sent.id, &sent.channel, sent.state, sent.last_error.as_ref())),
    );
    finder.add_events(&mut view, &details.events);
    for sent in &details.deliveries {
        delivery::add_actions(&mut view, sent.id, sent.state);
    }
    view.actions.extend(actions(item, &details.deliveries));
    Ok(view)
}

/// The pauses that block the next step of an item: of its job, of the channels of its post or, before that, of the
/// model.
fn list_pauses(finder: &Finder, tx: &mut Tx<'_>, details: &ItemDetails) -> db::Result<Vec<Pause>> {
    let item = &details.item;
    if item.status == Status::Processed {
        return Ok(Vec::new());
    }
    let open: Vec<_> = details.deliveries.iter().filter(|sent| sent.state.is_open()).collect();
    let mut needed = vec![Subject::job(&item.job_name)];
    if open.is_empty() {
        let job = finder.jobs.iter().find(|job| job.name.as_str() == item.job_name);
        let relied_on = job.map(|job| job.collector.relies_on()).unwrap_or_default();
        needed.extend(relied_on.into_iter().filter(|subject| subject.name_of("provider").is_some()));
    } else {
        needed.extend(open.iter().map(|sent| Subject::channel(&sent.channel)));
    }
    let mut pauses = pause::list(tx, finder.now)?;
    pauses.retain(|pause| needed.contains(&pause.name));
    Ok(pauses)
}

/// Adds the progress towards the post; a recorded item has none.
fn add_stages(view: &mut View, details: &ItemDetails) {
    let item = &details.item;
    let here = match item.status {
        Status::Unprocessed => 0,
        Status::Deferred => 1,
        Status::Pending if item.summary.is_none() => 1,
        Status::Pending => 2,
        Status::Processed if is_sent(&details.deliveries) => 3,
        Status::Processed if is_over(item) => return,
        Status::Processed => 1,
    };
    let names = [
        phrase!("found", "発見"),
        phrase!("screened", "判定"),
        phrase!("summarised", "要約"),
        phrase!("posted", "投稿"),
    ];
    view.stages(names, here);
}

/// Its state, in the common vocabulary.
pub(super) fn state_of(item: &Item, sent: &[ItemDelivery]) -> State {
    match item.status {
        _ if item.is_held => State::Approval,
        Status::Unprocessed => State::New,
        Status::Deferred => State::Waiting,
        Status::Pending => State::Due,
        Status::Processed if is_sent(sent) => State::Ok,
        // Finished, successfully or not.
        Status::Processed => State::Disabled,
    }
}

/// The possible actions: none while its post is queued or after it was sent.
pub(super) fn actions(item: &Item, sent: &[ItemDelivery]) -> Vec<Action> {
    let (id, about) = (item.id, numbered(item.id));
    let mut actions = Vec::new();
    if sent.iter().any(|sent| sent.state.is_open() || sent.state == MessageState::Sent) {
        return actions;
    }
    if item.status != Status::Pending {
        let label = phrase!("look at it again", "もう一度確認する");
        actions.push(Action::new(Verb::Retry, &about, label, format!("item retry {id}")));
    }
    if item.status != Status::Processed {
        let label = phrase!("skip it", "対象外にする");
        actions.push(Action::new(Verb::Skip, &about, label, format!("item skip {id}")));
    }
    actions
}

pub(super) fn status_phrase(status: Status) -> Phrase {
    match status {
        Status::Unprocessed => phrase!("not screened yet", "未判定"),
        Status::Deferred => phrase!("put off", "延期"),
        Status::Pending => phrase!("waiting to be posted", "投稿待ち"),
        Status::Processed => phrase!("done", "完了"),
    }
}

pub(super) fn silent_since(last: Timestamp, usual_gap: Duration) -> Phrase {
    phrase!(
        "nothing new since {last}; usually something comes every {usual_gap}",
        "{last} 以降の新着なし（通常は {usual_gap} ごと）"
    )
}

/// The fact that a feed is silent.
pub(super) fn silent_fact(feed: &str, silence: &Silence) -> Option<Fact> {
    let since = silent_since(silence.last()?, silence.usual_gap()?);
    let value = phrase!("{feed}: {since}", "{feed}：{since}", feed = Value::link(feed));
    Some(Fact { label: phrase!("silent", "沈黙中"), value: value.into() })
}

/// The fact that a part of a feed is not read.
pub(super) fn cut_fact(feed: &str, cut: Cut) -> Fact {
    let (feed, why) = (Value::link(feed), cut::phrase(cut));
    let value = phrase!("{feed}: {why}", "{feed}：{why}");
    Fact { label: phrase!("read in part", "一部のみ読み込み"), value: value.into() }
}

/// Whether it ended without a problem.
pub(super) fn is_over(item: &Item) -> bool {
    item.status == Status::Processed && item.reason.is_none_or(|reason| reason == Reason::None)
}

/// Whether a post of it was sent.
pub(super) fn is_sent(sent: &[ItemDelivery]) -> bool {
    sent.iter().any(|sent| sent.state == MessageState::Sent)
}

/// Enough events of an item to see how it ended.
const MAX_EVENTS: usize = 5;

/// The state of an item in words; of a processed one also how it ended, if its events are still there.
pub fn standing_in(tx: &mut Tx<'_>, item: &Item) -> db::Result<Phrase> {
    Ok(standing_after(item, &list_events(tx, item, MAX_EVENTS)?))
}

fn list_events(tx: &mut Tx<'_>, item: &Item, limit: usize) -> db::Result<Vec<Event>> {
    let mut events = event::list_about(tx, &events::item(&item.url), limit)?;
    events.retain(|event| event.job_name.as_ref().is_none_or(|job| *job == item.job_name));
    Ok(events)
}

/// The state of an item after these events, oldest first.
fn standing_after(item: &Item, events: &[Event]) -> Phrase {
    let mut codes = events.iter().rev().filter_map(|event| event.code.parse::<ItemCode>().ok());
    let ended = if is_over(item) {
        codes.find_map(|code| match code {
            ItemCode::Posted | ItemCode::AlreadyPosted => Some(phrase!("posted", "投稿済み")),
            ItemCode::Baseline => Some(phrase!("recorded at the first run", "初回に記録")),
            ItemCode::Rewritten => {
                Some(phrase!("recorded: an old entry at a new address", "記録のみ（アドレスの変更）"))
            }
            ItemCode::MovedUp => {
                Some(phrase!("recorded: an older entry of the feed", "記録のみ（以前の記事）"))
            }
            ItemCode::Filtered => Some(phrase!("left out by a filter", "条件により対象外")),
            ItemCode::Skipped | ItemCode::AlreadySkipped => Some(phrase!("skipped", "対象外に決定")),
            _ => None,
        })
    } else if item.reason == Some(Reason::RetryLimitExceeded) {
        codes.find_map(|code| match code {
            ItemCode::Closed | ItemCode::RetryLimitExceeded => None,
            ItemCode::WaitOver => Some(code.phrase()),
            _ => Some(phrase!(
                "closed: too many failed attempts, the last: {what}",
                "失敗が多いため終了（最後：{what}）",
                what = code.phrase()
            )),
        })
    } else {
        None
    };
    ended.unwrap_or_else(|| standing(item))
}

/// The state of an item in words.
pub fn standing(item: &Item) -> Phrase {
    match (item.status, item.reason.unwrap_or(Reason::None)) {
        (Status::Unprocessed, _) => phrase!("not screened yet", "未判定"),
        (Status::Pending, _) => phrase!("waiting to be posted", "投稿待ち"),
        (Status::Processed, Reason::None) => phrase!(
            "done: posted, skipped or recorded at the first run",
            "完了（投稿済み・対象外・初回の記録のいずれか）"
        ),
        (Status::Processed, reason) => phrase!("closed: {why}", "終了：{why}", why = reason.phrase()),
        (Status::Deferred, reason) => phrase!("put off: {why}", "延期：{why}", why = reason.phrase()),
    }
}
