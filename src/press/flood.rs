//! Holds posts for approval when more items than `hold_above` are ready at once.
//!
//! Items accumulate while a job had no channel, ran with `--no-deliver`, or when they were imported. The first run that
//! may post would send them all, one after the other.

use serde_json::json;

use super::events::ItemCode;
use super::{Failure, Press, RunContext, store};
use crate::channel::outbox;
use crate::phrase;
use crate::phrase::Phrase;

/// Holds the ready items if there are too many; returns the line for the report.
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
