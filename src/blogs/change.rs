//! The view of a change of a blog: new entries, messages and actions.

use super::commands;
use super::decide::{Code, HoldReason};
use super::events::{CHANGE, change_subject, subject};
use super::model::{Detector, FoundEntry};
use super::view::{self, ListedChange};
use crate::channel::outbox::{Answer, State as MessageState};
use crate::db::{self, Tx};
use crate::engine::things::delivery::{self, phrase_of};
use crate::engine::view::{Action, Line, State, View};
use crate::engine::{ActionOutcome, Deed, Finder, Verb};
use crate::phrase;
use crate::phrase::{Phrase, Value};

pub(super) fn find(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let Ok(id) = name.parse() else { return Ok(Vec::new()) };
    let Some(listed) = view::find_change(tx, id)? else { return Ok(Vec::new()) };
    let mut view = view_of(&listed);
    let events = finder.list_events(tx, &subject(&listed.change.blog_id))?;
    finder.add_events(&mut view, &events);
    Ok(vec![view])
}

fn view_of(listed: &ListedChange) -> View {
    let change = &listed.change;
    let (id, blog) = (change.id, change.blog_id.as_str());
    let title = phrase!("change {id} of blog {blog}", "ブログ {blog} の変更 {id}");
    let data = serde_json::to_value(listed).unwrap_or_default();
    let mut view = View::new(CHANGE, change_subject(id), title, data);
    view.state = Some(match change.code {
        _ if needs_approval(listed) => State::Approval,
        Code::New | Code::Recovered => State::Ok,
        Code::Failing => State::Failing,
        Code::Gone => State::Paused,
    });
    view.fact(phrase!("messages", "送信状況"), standing(listed));
    view.fact(phrase!("found", "発見"), change.found_at);
    view.fact(phrase!("job", "ジョブ"), change.job_name.as_str());
    view.fact(phrase!("what", "内容"), change.code.phrase());
    view.fact(phrase!("entries", "件数"), change.detail.count());
    view.fact(phrase!("read by", "確認方法"), change.detail.detector.map(Detector::phrase));
    view.fact(
        phrase!("held because", "保留の理由"),
        change.detail.held_because.as_ref().map(HoldReason::phrase),
    );
    view.fact(phrase!("because", "理由"), change.detail.error.clone());
    let entry = |entry: &FoundEntry| Line {
        at: entry.published_at,
        ..phrase!("{entry}", "{entry}", entry = link(entry)).into()
    };
    let more = change.detail.more;
    let more = (more > 0).then(|| phrase!("and {more} more", "ほか {more} 件").into());
    view.section(phrase!("new entries", "新着"), change.detail.entries.iter().map(entry).chain(more));
    view.section(
        phrase!("messages", "メッセージ"),
        listed.deliveries.iter().map(|sent| delivery::line(sent.id, &sent.channel, sent.state, None)),
    );
    if needs_approval(listed) {
        view.actions = actions(id);
    }
    view
}

/// An entry as a link with its title.
pub(super) fn link(entry: &FoundEntry) -> Value {
    match (&entry.url, entry.name()) {
        (Some(href), _) => Value::Link { href: href.clone(), text: entry.title.clone() },
        (None, Some(name)) => name.into(),
        (None, None) => phrase!("(untitled)", "（無題）").into(),
    }
}

/// Whether messages of the change wait for approval.
pub fn needs_approval(listed: &ListedChange) -> bool {
    listed.change.held && listed.deliveries.iter().any(|sent| sent.state == MessageState::Held)
}

/// The actions on a held change.
pub(super) fn actions(id: i64) -> Vec<Action> {
    let about = change_subject(id);
    vec![
        Action::new(
            Verb::Approve,
            &about,
            phrase!("approve", "承認して送信"),
            format!("change approve {id}"),
        ),
        Action::new(Verb::Skip, &about, phrase!("skip", "送信しない"), format!("change skip {id}")),
    ]
}

/// Runs an action of the pages or the API on a change.
pub(super) fn act(finder: &Finder, tx: &mut Tx<'_>, name: &str, deed: Deed) -> db::Result<ActionOutcome> {
    let Ok(id) = name.parse::<i64>() else { return Ok(ActionOutcome::Unknown) };
    let answers = match deed.verb {
        Verb::Approve => commands::approve(tx, id, finder.now)?,
        Verb::Skip => commands::skip(tx, id, &finder.topics, finder.now)?,
        _ => None,
    };
    let Some(answers) = answers else { return Ok(ActionOutcome::Unknown) };
    let done = answers.iter().find_map(|answer| match answer {
        Answer::Done { state, .. } => Some(*state),
        Answer::Missing | Answer::NotNow { .. } => None,
    });
    Ok(match done {
        Some(state) => ActionOutcome::Done(phrase!(
            "Change {id}: {state}",
            "変更 {id}：{state}",
            state = phrase_of(state)
        )),
        None => ActionOutcome::Refused(phrase!(
            "no message of change {id} needs approval",
            "変更 {id} に確認待ちのメッセージはありません"
        )),
    })
}

/// The state of the messages of a change: one word if they agree.
pub fn standing(listed: &ListedChange) -> Phrase {
    let mut states: Vec<MessageState> = Vec::new();
    for delivery in &listed.deliveries {
        let state = delivery.state;
        if !states.contains(&state) {
            states.push(state);
        }
    }
    match (&listed.change.digest, states.as_slice()) {
        (None, _) => phrase!("not queued yet", "送信待ちに未登録"),
        (Some(_), []) if listed.change.code != Code::New => phrase!("alert", "運用者への通知"),
        (Some(_), []) => phrase!("no channel", "通知先なし"),
        (Some(_), [only]) => phrase_of(*only),
        (Some(_), states) => {
            let states = Value::List(states.iter().map(|state| phrase_of(*state).into()).collect());
            phrase!("{states}", "{states}")
        }
    }
}
