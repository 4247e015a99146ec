//! Deletes history that is older than the config keeps.

use super::{App, PIPELINES};
use crate::db::{self, Db};
use crate::engine::pipeline::Prune;
use crate::ledger::event;
use crate::time::Timestamp;

/// Rows deleted in one transaction, so that other writers do not wait long.
const PRUNED_AT_ONCE: usize = 1_000;

impl App {
    /// Deletes what is older than `keep_history`; nothing without that key.
    pub async fn prune(&self) -> db::Result<u64> {
        match self.keep_history {
            Some(keep) => prune(&self.env.db, self.env.clock.now().minus(keep.into())).await,
            None => Ok(0),
        }
    }
}

/// Deletes history older than `before` in small transactions; returns how many rows were deleted.
pub async fn prune(db: &Db, before: Timestamp) -> db::Result<u64> {
    let mut pruned = 0;
    let of_pipelines = PIPELINES.iter().flat_map(|pipeline| pipeline.prune.iter().copied());
    for prune in of_pipelines.chain([event::prune as Prune]) {
        loop {
            let went = db.write(move |tx| prune(tx, before, PRUNED_AT_ONCE)).await?;
            pruned += went;
            if went == 0 {
                break;
            }
        }
    }
    Ok(pruned)
}
