//! Commits with a date that cannot be read: noted in the story of their branch, and asked for when its target ends.
//!
//! The story remembers them, and not the worker: what one process stored, another may end.

use serde_json::json;

use super::model::Commit;
use crate::db::{self, Tx};
use crate::id::RunId;
use crate::ledger::{Subject, event};
use crate::time::Timestamp;

const CODE: &str = "unreadable_commit";
/// Events among which they are looked for.
const SEARCHED: usize = 100;

/// Notes those of `commits` that cannot be stored for want of a date.
pub(super) fn note(
    tx: &mut Tx<'_>,
    branch: &Subject,
    run_id: &RunId,
    commits: &[Commit],
    now: Timestamp,
) -> db::Result<()> {
    for commit in commits {
        if let Err(date) = &commit.committed_at {
            let detail = json!({ "sha": commit.sha, "committed_date": date, "run": run_id.to_string() });
            event::add(tx, None, branch, CODE, &detail, now)?;
        }
    }
    Ok(())
}

/// The SHAs of those that a run has met on a branch.
pub(super) fn list(tx: &mut Tx<'_>, branch: &Subject, run_id: &RunId) -> db::Result<Vec<String>> {
    let run = run_id.to_string();
    let met = event::list_about(tx, branch, SEARCHED)?
        .into_iter()
        .filter(|event| event.code == CODE && event.detail["run"] == run.as_str());
    Ok(met.map(|event| event.detail["sha"].as_str().unwrap_or_default().to_owned()).collect())
}
