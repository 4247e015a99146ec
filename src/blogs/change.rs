//! A change of a blog for people: what was new, what became of its messages, and what can be decided about them.

use super::store::ChangeRow;
use super::view::{ListedChange, find_change, message_state};
use crate::channel::outbox::State;
use crate::db::{self, Tx};
use crate::engine::things::delivery;
use crate::engine::view::{self, Line};
use crate::engine::{Finder, View};
use crate::ledger::Subject;
use crate::phrase;
use crate::phrase::{Phrase, Value};

/// The word before the number of a change.
pub(super) const CHANGE: &str = "change";

/// A change by its number, for `show` commands.
pub fn subject(id: i64) -> Subject {
    Subject::new(CHANGE, id.to_string())
}

/// By number.
pub(super) fn find(_: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let Ok(id) = name.parse() else { return Ok(Vec::new()) };
    Ok(find_change(tx, id)?.iter().map(view).collect())
}

fn view(listed: &ListedChange) -> View {
    let ChangeRow { id, blog_id, job_name, found_at, code, detail, .. } = &listed.change;
    let title = phrase!(
        "change {id} of blog {blog}: {what}",
        "ブログ {blog} の変更 {id}：{what}",
        id = *id,
        blog = blog_id,
        what = code.phrase()
    );
    let data = serde_json::to_value(listed).unwrap_or_default();
    let mut view = View::new(CHANGE, subject(*id), title, data);
    view.state = Some(if is_held(listed) { view::State::Approval } else { view::State::Ok });
    view.fact(phrase!("state", "状態"), standing(listed));
    view.fact(phrase!("found", "発見"), *found_at);
    view.fact(phrase!("job", "ジョブ"), job_name);
    view.fact(phrase!("held because", "保留の理由"), detail.held_because.as_deref());
    view.fact(phrase!("last error", "最後のエラー"), detail.error.as_deref());
    let lines = detail.entries.iter().map(|entry| Line {
        at: entry.published_at,
        text: phrase!(
            "{title} {url}",
            "{title} {url}",
            title = entry.title.as_deref().unwrap_or("-"),
            url = entry.url.as_deref().map_or(Value::Nothing, Value::link)
        ),
    });
    let more = detail.more;
    let more = (more > 0).then(|| phrase!("and {more} more", "ほか {more} 件", more).into());
    view.section(phrase!("entries", "記事"), lines.chain(more));
    view.section(
        phrase!("messages", "メッセージ"),
        listed
            .deliveries
            .iter()
            .map(|sent| delivery::line(sent.id, &sent.channel, message_state(sent), None)),
    );
    if is_held(listed) {
        view.command(phrase!("send it", "送信する"), format!("change approve {id}"));
        view.command(phrase!("discard it", "送信しない"), format!("change skip {id}"));
    }
    view
}

/// What became of the messages of a change: one word if they agree.
pub fn standing(listed: &ListedChange) -> Phrase {
    let mut states: Vec<State> = Vec::new();
    for delivery in &listed.deliveries {
        let state = message_state(delivery);
        if !states.contains(&state) {
            states.push(state);
        }
    }
    match (&listed.change.digest, states.as_slice()) {
        (None, _) => phrase!("not queued yet", "送信待ちに未登録"),
        (Some(_), []) => phrase!("no channel", "通知先なし"),
        (Some(_), [only]) => delivery::phrase_of(*only),
        (Some(_), states) => {
            let states = Value::List(states.iter().map(|state| delivery::phrase_of(*state).into()).collect());
            phrase!("{states}", "{states}", states)
        }
    }
}

/// Whether it has a message that waits for a decision.
pub fn is_held(listed: &ListedChange) -> bool {
    listed.change.held && listed.deliveries.iter().any(|delivery| message_state(delivery) == State::Held)
}
