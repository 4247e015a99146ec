//! Commands: approve or skip a held change, pause a blog.

use super::events::{BlogEvent, subject};
use super::{config, store, view};
use crate::channel::outbox::{self, Answer, Topics};
use crate::db::{self, Tx};
use crate::engine::{ActionOutcome, Deed, Finder, Verb};
use crate::ledger::{event, pause};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// Approves the held messages of a change; `None` when there is no such change.
pub fn approve(tx: &mut Tx<'_>, id: i64, now: Timestamp) -> db::Result<Option<Vec<Answer>>> {
    each_delivery(tx, id, |tx, delivery| outbox::approve(tx, delivery, now))
}

/// Skips the held messages of a change; `None` when there is no such change.
pub fn skip(tx: &mut Tx<'_>, id: i64, topics: &Topics, now: Timestamp) -> db::Result<Option<Vec<Answer>>> {
    each_delivery(tx, id, |tx, delivery| outbox::skip(tx, delivery, topics, now))
}

/// Pauses a blog until a user resumes it, or its settings change.
pub fn pause(
    tx: &mut Tx<'_>,
    blog_id: &str,
    until: Option<Timestamp>,
    why: &Phrase,
    now: Timestamp,
) -> db::Result<()> {
    pause::put(tx, &subject(blog_id), until, why, now)?;
    event::record(tx, None, &subject(blog_id), &BlogEvent::Paused, now)
}

/// Runs an action of the pages or the API on a blog.
pub(super) fn act(finder: &Finder, tx: &mut Tx<'_>, id: &str, deed: Deed) -> db::Result<ActionOutcome> {
    if !config::list_blogs(&finder.config).any(|(_, blog)| blog.id == id) {
        return Ok(ActionOutcome::Unknown);
    }
    Ok(match deed.verb {
        Verb::Pause => {
            pause(tx, id, None, &phrase!("by hand", "手動"), finder.now)?;
            ActionOutcome::Done(phrase!(
                "{id} is paused until it is resumed",
                "{id} を再開まで一時停止しました"
            ))
        }
        Verb::Resume if store::resume(tx, id, finder.now)? => ActionOutcome::Done(phrase!(
            "`{id}` is checked again with the next run",
            "`{id}` は次の実行から再び確認されます"
        )),
        Verb::Resume => ActionOutcome::Refused(phrase!(
            "the blog `{id}` is not paused",
            "ブログ `{id}` は一時停止していません"
        )),
        _ => ActionOutcome::Unknown,
    })
}

/// Only messages of a held change: those of a digest contain other changes, too.
fn each_delivery(
    tx: &mut Tx<'_>,
    id: i64,
    act: impl Fn(&mut Tx<'_>, i64) -> db::Result<Answer>,
) -> db::Result<Option<Vec<Answer>>> {
    let Some(listed) = view::find_change(tx, id)? else { return Ok(None) };
    if !listed.change.held {
        return Ok(Some(Vec::new()));
    }
    listed.deliveries.iter().map(|delivery| act(tx, delivery.id)).collect::<db::Result<_>>().map(Some)
}
