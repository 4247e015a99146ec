//! More items that are ready to be posted at once than `hold_above` allows: their posts wait for a person.
//!
//! Items pile up where nobody posts them: the job had no channel for a while, ran with `--no-deliver`, or they were
//! imported. The first run that may post would send them all, one after the other.

use serde_json::json;

use super::events::ItemCode;
use super::{Failure, Press, RunContext, store};
use crate::channel::outbox;
use crate::phrase;
use crate::phrase::Phrase;

/// Holds what has piled up, if it is too much; answers what to say about it.
pub(super) async fn hold(press: &Press, ctx: &RunContext) -> Result<Option<Phrase>, Failure> {
    let name = press.name.clone();
    let ready = ctx.db.read(move |tx| store::list_ready(tx, &name)).await?;
    let hold_above = usize::try_from(press.hold_above).unwrap_or(usize::MAX);
    if !outbox::should_hold(ready.len(), hold_above, true) {
        return Ok(None);
    }
    let (count, now) = (ready.len(), ctx.now());
    ctx.write(move |tx| {
        for item in &ready {
            if store::mark_held(tx, item.id)? {
                store::note(tx, item, ItemCode::Held, &json!({ "pending": count }), now)?;
            }
        }
        Ok(())
    })
    .await?;
    Ok(Some(phrase!(
        "{count} pending need approval: more than `hold_above` at once",
        "投稿待ち {count} 件は確認待ち：一度に `hold_above` を超えました"
    )))
}
