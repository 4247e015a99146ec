//! Messages in the outbox, by state: their text, when they are sent next, and why not sooner.

use crate::channel;
use crate::channel::outbox::{self, ChannelWait, DeliveryCount, DeliveryFilter, Row, State, WaitCause};
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::page::{Block, Choice, Page, PageFilter, PageQuery, PageView, TableBlock, TableRow};
use crate::engine::things::delivery;
use crate::ledger::Subject;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::text::shorten;

/// Messages on one page.
const SHOWN: usize = 30;
/// Width of a message's text in its row.
const WIDTH: usize = 60;

pub(super) static PAGE: Page =
    Page { slug: "deliveries", title: || phrase!("Deliveries", "配信"), load, sheet: None };

fn load(finder: &Finder, tx: &mut Tx<'_>, query: &PageQuery) -> db::Result<PageView> {
    let filter = DeliveryFilter {
        state: query.find("state").and_then(|state| state.parse().ok()),
        job: query.find("job").map(str::to_owned),
        channel: query.find("channel").map(str::to_owned),
        before: query.parse("before"),
    };
    let mut page = PageView::new(phrase!("Deliveries", "配信"));
    page.filters = list_filters(finder, &filter, &outbox::tally(tx)?);
    let waits = outbox::list_waits(tx, &finder.channels, finder.now)?;
    if !waits.is_empty() {
        page.blocks.push(Block::Notes(waits.iter().map(ChannelWait::sentence).collect()));
    }
    let mut rows = outbox::list(tx, &filter, SHOWN + 1)?;
    let next = (rows.len() > SHOWN).then(|| query.with("before", rows[SHOWN - 1].id));
    rows.truncate(SHOWN);
    if rows.is_empty() {
        page.blocks.push(nothing(&filter));
        return Ok(page);
    }
    page.blocks.push(Block::Table(TableBlock {
        title: phrase!("Messages", "メッセージ"),
        columns: vec![
            phrase!("message", "メッセージ"),
            phrase!("job", "ジョブ"),
            phrase!("channel", "チャンネル"),
            phrase!("state", "状態"),
            phrase!("queued", "登録"),
            phrase!("next", "次の送信"),
            phrase!("why", "理由"),
        ],
        rows: rows.iter().map(|row| table_row(row, &waits)).collect(),
        next,
    }));
    Ok(page)
}

fn nothing(filter: &DeliveryFilter) -> Block {
    let DeliveryFilter { state, job, channel, before } = filter;
    if state.is_some() || job.is_some() || channel.is_some() || before.is_some() {
        let text = phrase!("No such message was found.", "該当するメッセージはありません。");
        return Block::Empty { text, command: None };
    }
    let text = phrase!(
        "No messages. What jobs find appears here when it is to be sent.",
        "メッセージはありません。ジョブの新着は、送信が決まるとここに表示されます。"
    );
    Block::Empty { text, command: Some("delivery ls".to_owned()) }
}

fn table_row(row: &Row, waits: &[ChannelWait]) -> TableRow {
    let wait = outbox::find_wait(row, waits);
    let missing = wait.filter(|wait| wait.cause == WaitCause::Missing).map(ChannelWait::phrase);
    let why = missing.or_else(|| row.last_error.clone()).or_else(|| wait.map(ChannelWait::phrase));
    let (channel, recipient) = (row.channel.as_str(), row.recipient.as_str());
    TableRow {
        state: delivery::state_of(row.state),
        cells: vec![
            Value::from(shorten(&delivery::headline(row), WIDTH)),
            Value::from(row.job_name.as_str()),
            phrase!("{channel} → {recipient}", "{channel} → {recipient}").into(),
            delivery::phrase_of(row.state).into(),
            row.created_at.into(),
            outbox::next_at(row, wait).into(),
            why.into(),
        ],
        about: Some(Subject::delivery(row.id).to_string()),
        detail: Some((phrase!("as sent", "送信内容"), channel::as_text(&row.payload))),
        actions: delivery::list_actions(row.id, row.state),
        ..TableRow::default()
    }
}

/// The states with the number of messages in each; sent messages are too many to count.
fn list_filters(finder: &Finder, filter: &DeliveryFilter, tallies: &[DeliveryCount]) -> Vec<PageFilter> {
    let count = |state: State| -> i64 {
        tallies.iter().filter(|tally| tally.state == state).map(|tally| tally.count).sum()
    };
    let state = |state: &State| {
        let words = short_phrase(*state);
        let label = match state {
            State::Sent | State::Skipped => words,
            state => phrase!("{words} ({count})", "{words}（{count}）", count = count(*state)),
        };
        Choice::new(state.word(), label)
    };
    let channels = finder.channels.iter().map(|channel| Choice::named(channel.name.as_str()));
    let channels = Choice::any(phrase!("all channels", "すべて")).chain(channels);
    let channel = filter.channel.as_deref().unwrap_or_default();
    let states = Choice::any(phrase!("all", "すべて")).chain(State::ALL.iter().map(state));
    let chosen = filter.state.map(State::word).unwrap_or_default();
    vec![
        PageFilter::one("state", phrase!("State", "状態"), states, chosen).as_tabs(),
        PageFilter::job(finder, None, filter.job.as_deref()),
        PageFilter::one("channel", phrase!("Channel", "チャンネル"), channels, channel),
    ]
}

/// A short name of a state, for the filter.
fn short_phrase(state: State) -> Phrase {
    match state {
        State::Unknown => phrase!("may have been sent", "送信済みか不明"),
        state => delivery::phrase_of(state),
    }
}
