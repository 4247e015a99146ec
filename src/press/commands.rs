//! Commands on an item: retry or skip it.

use serde_json::json;

use super::decide::{self, Event};
use super::model::{Item, Status};
use super::{TOPIC, store, view};
use crate::channel::outbox;
use crate::db::{self, Tx};
use crate::engine::{ActionOutcome, Deed, Finder, Verb};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum ItemAnswer {
    /// Done; the new status of the item.
    Done { status: Status },
    /// Not possible in the current state.
    NotNow {
        why: Phrase,
        /// What is possible instead.
        hint: Phrase,
    },
}

/// Restarts an item from the beginning: its tries are reset, and the model is asked again once, past the cache. A
/// posted item is not changed.
pub fn retry(tx: &mut Tx<'_>, item: &Item, now: Timestamp) -> db::Result<ItemAnswer> {
    if let Some(busy) = find_message(tx, item)? {
        return Ok(busy);
    }
    if store::find_messages(tx, &item.job_name, &item.url, 0)?.any_sent {
        return Ok(ItemAnswer::NotNow {
            why: phrase!("it was posted", "投稿済みです"),
            hint: phrase!(
                "`tsuzuki delivery ls` shows the post; `tsuzuki delivery retry ID --again` sends a second one",
                "`tsuzuki delivery ls` に投稿があります。`tsuzuki delivery retry ID --again` でもう一度送信できます"
            ),
        });
    }
    let answer = apply(tx, item, Event::Retried, now)?;
    if matches!(answer, ItemAnswer::Done { .. }) {
        store::mark_bypass_cache(tx, item.id)?;
    }
    Ok(answer)
}

/// Closes an item without a post; it is not processed again.
pub fn skip(tx: &mut Tx<'_>, item: &Item, now: Timestamp) -> db::Result<ItemAnswer> {
    if let Some(busy) = find_message(tx, item)? {
        return Ok(busy);
    }
    if item.status == Status::Processed {
        return Ok(ItemAnswer::NotNow {
            why: phrase!("it is over", "すでに終わっています"),
            hint: phrase!("`tsuzuki why URL` says how it ended", "`tsuzuki why URL` で経緯を確認できます"),
        });
    }
    apply(tx, item, Event::Skipped, now)
}

/// Runs an action of the pages or the API on an item.
pub(super) fn act(finder: &Finder, tx: &mut Tx<'_>, name: &str, deed: Deed) -> db::Result<ActionOutcome> {
    let found = match name.parse::<i64>() {
        Ok(id) => store::find(tx, id)?,
        Err(_) => None,
    };
    let Some(item) = found else { return Ok(ActionOutcome::Unknown) };
    let answer = match deed.verb {
        Verb::Retry => retry(tx, &item, finder.now)?,
        Verb::Skip => skip(tx, &item, finder.now)?,
        _ => return Ok(ActionOutcome::Unknown),
    };
    let (id, title) = (item.id, &item.title);
    Ok(match answer {
        ItemAnswer::Done { status } => ActionOutcome::Done(phrase!(
            "item {id} is now {status}: {title}",
            "記事 {id} を {status} にしました：{title}",
            status = view::standing(&Item { status, reason: None, ..item.clone() })
        )),
        ItemAnswer::NotNow { why, hint } => ActionOutcome::Refused(phrase!(
            "item {id} stays as it is: {why}. {hint}",
            "項目 {id} は変わりません：{why}。{hint}"
        )),
    })
}

fn find_message(tx: &mut Tx<'_>, item: &Item) -> db::Result<Option<ItemAnswer>> {
    let open = outbox::find_open(tx, TOPIC, &item.url)?;
    let open = open.filter(|row| row.job_name.as_str() == item.job_name);
    Ok(open.map(|row| ItemAnswer::NotNow {
        why: phrase!(
            "its post is {state} (delivery {id})",
            "投稿は {state} です（配信 {id}）",
            state = row.state.word(),
            id = row.id
        ),
        hint: phrase!(
            "`tsuzuki delivery skip {id}` stops the post",
            "`tsuzuki delivery skip {id}` で投稿を止められます",
            id = row.id
        ),
    }))
}

fn apply(tx: &mut Tx<'_>, item: &Item, event: Event, now: Timestamp) -> db::Result<ItemAnswer> {
    let changed = || ItemAnswer::NotNow {
        why: phrase!("it changed at this very moment", "ちょうど変化しました"),
        hint: phrase!("look again", "もう一度確認してください"),
    };
    let Some(to) = decide::after(item, event, None, now) else { return Ok(changed()) };
    Ok(if store::apply(tx, item, &to, event.code(), &json!({ "by": "hand" }))? {
        ItemAnswer::Done { status: to.status }
    } else {
        changed()
    })
}
