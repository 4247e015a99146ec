//! What a person may do with a change that is held: let it go, or decide against it.

use super::view;
use crate::channel::outbox::{self, Answer, Topics};
use crate::db::{self, Tx};
use crate::time::Timestamp;

/// Lets the held messages of a change go; `None` when there is no such change.
pub fn approve(tx: &mut Tx<'_>, id: i64, now: Timestamp) -> db::Result<Option<Vec<Answer>>> {
    each_delivery(tx, id, |tx, delivery| outbox::approve(tx, delivery, now))
}

/// Decides against the held messages of a change; `None` when there is no such change.
pub fn skip(tx: &mut Tx<'_>, id: i64, topics: &Topics, now: Timestamp) -> db::Result<Option<Vec<Answer>>> {
    each_delivery(tx, id, |tx, delivery| outbox::skip(tx, delivery, topics, now))
}

/// Only messages of a held change: those of a digest tell other changes, too.
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
