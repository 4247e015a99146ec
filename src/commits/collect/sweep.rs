//! After a rewind or a force push: finds commits that the branch no longer contains and marks them, in steps that let
//! other processes write.

use serde_json::json;

use super::super::history;
use super::super::model::{BranchState, Walk};
use super::super::reach::{Graph, Reached};
use super::super::store::pages::{self, BranchRef};
use super::super::store::unreachable;
use super::{Halt, TargetCollector};
use crate::commits::events::BranchCode;
use crate::db::{self, Tx};
use crate::ledger::{Subject, event};
use crate::time::Timestamp;

/// Rows read at once; a reader blocks no writer, but shutting down waits for it.
const READ_AT_ONCE: usize = 20_000;
/// Rows written in one transaction: few, so that other writers can go in between.
pub(super) const WRITTEN_AT_ONCE: usize = 1_000;

impl TargetCollector {
    /// Marks the stored commits that are not reachable from the head of `walk`, then ends the walk; returns how many
    /// were marked.
    ///
    /// Only the marks are stored: after a crash the next run finds the remaining ones.
    pub(super) async fn sweep(&self, walk: &Walk, state: &BranchState) -> Result<i64, Halt> {
        let (reached, now) = (self.find_reached(&walk.head).await?, self.clock.now());
        self.db.write(unreachable::prepare_marking).await?;
        let mut after = String::new();
        loop {
            self.check_stop()?;
            let (claimed, from) = (self.claimed.clone(), after.clone());
            let stored = self.db.read(move |tx| {
                let place = BranchRef { project_id: claimed.project_id, branch_name: &claimed.branch_name };
                unreachable::list_stored(tx, place, &from, READ_AT_ONCE)
            });
            let stored = stored.await?;
            let Some(last) = stored.last() else { break };
            after.clone_from(last);
            let lost: Vec<String> = stored.into_iter().filter(|sha| !reached.contains(sha)).collect();
            for step in lost.chunks(WRITTEN_AT_ONCE) {
                self.check_stop()?;
                let step = step.to_vec();
                self.write(move |tx, place| unreachable::mark(tx, place, &step, now)).await?;
                crate::fail::point("commits.marked");
            }
        }
        let (walk, state, subject) = (walk.clone(), state.clone(), self.subject());
        self.write(move |tx, place| finish(tx, place, &walk, &state, &subject, now)).await
    }

    async fn find_reached(&self, head: &str) -> Result<Reached, Halt> {
        let (mut graph, mut after) = (Graph::default(), String::new());
        loop {
            self.check_stop()?;
            let (claimed, from) = (self.claimed.clone(), after.clone());
            let read = self.db.read(move |tx| {
                let place = BranchRef { project_id: claimed.project_id, branch_name: &claimed.branch_name };
                unreachable::list_edges(tx, place, &from, READ_AT_ONCE)
            });
            let read = read.await?;
            graph.add(&read.edges);
            match read.last {
                Some(last) => after = last,
                None => break,
            }
        }
        let head = head.to_owned();
        // The work grows with the history, so it must not block an async thread.
        let reached = tokio::task::spawn_blocking(move || graph.reached_from(&head)).await;
        reached.map_err(|error| Halt::Db(db::Error::Statement(error.to_string())))
    }

    pub(super) fn check_stop(&self) -> Result<(), Halt> {
        if self.stop.is_cancelled() { Err(Halt::Stopped) } else { Ok(()) }
    }
}

/// Ends a walk whose commits are all stored and whose unreachable commits are marked; returns how many those were.
pub(super) fn finish(
    tx: &mut Tx<'_>,
    place: BranchRef<'_>,
    walk: &Walk,
    state: &BranchState,
    subject: &Subject,
    now: Timestamp,
) -> db::Result<i64> {
    let lost = unreachable::count_lost(tx, place)?;
    pages::mark_complete(tx, place, &walk.head, history::complete_since(state, walk), now)?;
    if lost > 0 {
        let from = walk.base.as_ref().or(state.complete_head.as_ref());
        let detail = json!({ "from": from, "to": walk.head, "unreachable": lost });
        event::add(tx, None, subject, BranchCode::HistoryRewritten, &detail, now)?;
    }
    Ok(lost)
}
