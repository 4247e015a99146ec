//! A message in the outbox: its content, its state, and what a person can do with it.

use crate::channel;
use crate::channel::outbox::{self, Answer, Row, State};
use crate::db::{self, Tx};
use crate::engine::pipeline::Thing;
use crate::engine::things::external::add_pause;
use crate::engine::view::{self, Line, View};
use crate::engine::{Action, ActionOutcome, Deed, Finder, Verb, table};
use crate::ledger::Subject;
use crate::ledger::pause::{self, Pause};
use crate::phrase;
use crate::phrase::Phrase;

/// A message, by its number.
pub const DELIVERY: Thing = Thing { act, ..Thing::new("delivery", find, "delivery ls") };

fn find(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let Ok(id) = name.parse::<i64>() else { return Ok(Vec::new()) };
    let Some(row) = outbox::find(tx, id)? else { return Ok(Vec::new()) };
    let subject = Subject::delivery(id);
    let events = finder.list_events(tx, &subject)?;
    let data = view::with_events(&row, &events);
    let headline = headline(&row);
    let title = phrase!("delivery {id}: {what}", "配信 {id}：{what}", what = &headline);
    let mut view = View::new("delivery", &subject, title, data);
    view.state = state_of(row.state);
    view.headline = Some(headline);
    let here = match row.state {
        State::Ready | State::Held => 0,
        State::Sending | State::Unknown | State::Failed => 1,
        State::Sent | State::Skipped => 2,
    };
    if row.state != State::Skipped {
        view.stages(
            [phrase!("queued", "登録"), phrase!("handed over", "送信"), phrase!("sent", "送信済み")],
            here,
        );
    }
    let channel = Subject::channel(&row.channel);
    let pause = if row.state.is_open() { pause::find(tx, &channel, finder.now)? } else { None };
    add_facts(&mut view, &row, pause.as_ref());
    if let Some(pause) = &pause {
        add_pause(&mut view, pause, finder);
    }
    view.text = Some((phrase!("as sent", "送信内容"), channel::as_text(&row.payload)));
    finder.add_events(&mut view, &events);
    add_actions(&mut view, row.id, row.state);
    Ok(vec![view])
}

fn act(finder: &Finder, tx: &mut Tx<'_>, name: &str, deed: Deed) -> db::Result<ActionOutcome> {
    let Ok(id) = name.parse::<i64>() else { return Ok(ActionOutcome::Unknown) };
    let (topics, now) = (&finder.topics, finder.now);
    let answer = match deed.verb {
        Verb::Retry => outbox::retry(tx, id, false, now)?,
        Verb::Approve => outbox::approve(tx, id, now)?,
        Verb::Confirm => outbox::confirm(tx, id, topics, now)?,
        Verb::Skip => outbox::skip(tx, id, topics, now)?,
        _ => return Ok(ActionOutcome::Unknown),
    };
    Ok(match answer {
        Answer::Missing => ActionOutcome::Unknown,
        Answer::Done { id, state } => ActionOutcome::Done(phrase!(
            "Delivery {id}: {state}",
            "配信 {id}：{state}",
            state = phrase_of(state)
        )),
        Answer::NotNow { state, why } => ActionOutcome::Refused(phrase!(
            "delivery {id} stays as it is ({state}): {why}",
            "配信 {id} はそのままです（{state}）：{why}",
            state = phrase_of(state)
        )),
    })
}

fn add_facts(view: &mut View, row: &Row, pause: Option<&Pause>) {
    view.fact(phrase!("state", "状態"), phrase_of(row.state));
    view.fact(phrase!("job", "ジョブ"), row.job_name.as_str());
    let (channel, recipient) = (row.channel.as_str(), row.recipient.as_str());
    view.fact(
        phrase!("channel", "チャンネル"),
        phrase!("{channel} to {recipient}", "{channel}（宛先 {recipient}）"),
    );
    view.fact(phrase!("queued", "登録"), row.created_at);
    let attempts = match (row.attempts, row.last_attempt_at) {
        (0, _) | (_, None) => phrase!("none yet", "まだなし"),
        (count, Some(last)) => phrase!("{count}, last {last}", "{count} 回（最終 {last}）"),
    };
    view.fact(phrase!("attempts", "送信回数"), attempts);
    if matches!(row.state, State::Ready | State::Unknown) {
        // It is unknown when the credentials will change.
        let next = match pause {
            Some(pause) => pause.paused_until.map(|until| until.max(row.not_before)),
            None => Some(row.not_before),
        };
        view.fact(phrase!("next attempt", "次の送信"), next);
    }
    view.fact(phrase!("server reply", "サーバーの応答"), row.remote_id.as_deref());
    view.fact(phrase!("last error", "最後のエラー"), row.last_error.clone());
}

/// The first line of a message, or its subject if it has no lines.
pub fn headline(row: &Row) -> String {
    let text = channel::as_text(&row.payload);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match first.strip_prefix("Subject: ").unwrap_or(first) {
        "" | "{" | "{}" => row.subject.clone(),
        line => line.to_owned(),
    }
}

/// One line about a message among others.
pub fn line(id: i64, channel: &str, state: State, why: Option<&Phrase>) -> Line {
    let state = phrase_of(state);
    let text = match why {
        Some(why) => {
            phrase!("delivery {id} to {channel}: {state} ({why})", "配信 {id}（{channel}）：{state}（{why}）")
        }
        None => phrase!("delivery {id} to {channel}: {state}", "配信 {id}（{channel}）：{state}"),
    };
    Line::from(text).about(&Subject::delivery(id))
}

/// Adds what a person can do with a message.
pub fn add_actions(view: &mut View, id: i64, state: State) {
    view.actions.extend(list_actions(id, state));
}

/// What a person can do with a message.
pub fn list_actions(id: i64, state: State) -> Vec<Action> {
    let act =
        |verb: Verb, label| Action::new(verb, &Subject::delivery(id), label, format!("delivery {verb} {id}"));
    match state {
        State::Held => vec![
            act(Verb::Approve, phrase!("send it", "送信する")),
            act(Verb::Confirm, phrase!("it has arrived", "届いている")),
            act(Verb::Skip, phrase!("discard it", "送信しない")),
        ],
        State::Unknown => vec![act(Verb::Confirm, phrase!("it has arrived", "届いている"))],
        State::Failed => vec![act(Verb::Retry, phrase!("try again", "再送する"))],
        State::Ready | State::Sending | State::Sent | State::Skipped => Vec::new(),
    }
}

/// A state of a message in words.
pub fn phrase_of(state: State) -> Phrase {
    match state {
        State::Ready => phrase!("queued", "送信待ち"),
        State::Sending => phrase!("being sent", "送信中"),
        State::Unknown => phrase!(
            "may or may not have arrived; checked automatically",
            "送信済みか不明（自動で確認します）"
        ),
        State::Sent => phrase!("sent", "送信済み"),
        State::Failed => phrase!("failed", "失敗"),
        State::Held => phrase!("needs approval", "確認待ち"),
        State::Skipped => phrase!("discarded", "送信しない"),
    }
}

/// The common state that it corresponds to.
pub fn state_of(state: State) -> Option<view::State> {
    Some(match state {
        State::Sent | State::Skipped => view::State::Ok,
        State::Sending => view::State::Running,
        State::Ready | State::Unknown => view::State::Waiting,
        State::Failed => view::State::Failing,
        State::Held => view::State::Approval,
    })
}

/// Messages to all channels, in all states.
pub static MESSAGES: table::Table = table::Table {
    name: "messages",
    about: "Messages to all channels, whatever became of them; times are when they were added",
    columns: &[
        "id",
        "job_name",
        "topic",
        "subject",
        "generation",
        "channel",
        "recipient",
        "state",
        "created_at",
        "not_before",
        "attempts",
        "first_attempt_at",
        "last_attempt_at",
        "settled_at",
        "remote_id",
        "last_error",
    ],
    page: |tx, filter, after| {
        let span = (filter.since, filter.until);
        let rows = outbox::list_after(tx, after.number(), filter.owner.as_deref(), span, filter.limit)?;
        Ok(table::TablePage::of(&rows, |row| row.id, fields))
    },
    owner: |_, job| Some(job.to_owned()),
};

fn fields(row: &Row) -> Vec<table::Cell> {
    use table::Cell;
    vec![
        Cell::Int(row.id),
        Cell::text(row.job_name.as_str()),
        Cell::word(&row.topic),
        Cell::text(&row.subject),
        Cell::Int(row.generation.into()),
        Cell::text(&row.channel),
        Cell::text(&row.recipient),
        Cell::word(row.state.word()),
        row.created_at.into(),
        row.not_before.into(),
        Cell::Int(row.attempts.into()),
        row.first_attempt_at.into(),
        row.last_attempt_at.into(),
        row.settled_at.into(),
        row.remote_id.as_ref().into(),
        row.last_error.as_ref().map_or(Cell::Null, |error| Cell::Text(error.to_string())),
    ]
}
