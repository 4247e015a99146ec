//! Commits that are walked but not stored, because they are old or unreadable.

use serde_json::json;

use super::super::model::Commit;
use super::super::store::pages::{self, BranchRef};
use super::sweep::WRITTEN_AT_ONCE;
use super::{Halt, TargetCollector};
use crate::commits::events::BranchCode;
use crate::db::{self, Tx};
use crate::id::RunId;
use crate::ledger::{Subject, event};
use crate::phrase;
use crate::time::Timestamp;

impl TargetCollector {
    /// The end of a target that is up to date: unreadable commits make it fail, once.
    pub(super) async fn check_left_out(&self) -> Result<(), Halt> {
        let claimed = self.claimed.clone();
        let unreadable = self.db.read(move |tx| {
            let place = BranchRef { project_id: claimed.project_id, branch_name: &claimed.branch_name };
            pages::list_unreadable(tx, place, &claimed.run_id)
        });
        let unreadable = unreadable.await?;
        match unreadable.first() {
            None => Ok(()),
            Some(first) => Err(Halt::Failed(phrase!(
                "not stored, for want of a readable date: {count commit}, e.g. {first}; everything else is saved",
                "日付を読めないコミット {count} 件（{first} など）は保存していません。ほかはすべて保存しました",
                count = unreadable.len()
            ))),
        }
    }

    /// Resets the commits that were not stored: the whole history is walked again.
    pub(super) async fn reset_left_out(&self) -> Result<(), Halt> {
        while self.write(|tx, place| pages::reset_left_out(tx, place, WRITTEN_AT_ONCE)).await? > 0 {
            self.check_stop()?;
        }
        Ok(())
    }
}

/// Records as events which of `commits` cannot be stored because their date is unreadable.
pub(super) fn note(
    tx: &mut Tx<'_>,
    branch: &Subject,
    run_id: &RunId,
    commits: &[Commit],
    now: Timestamp,
) -> db::Result<()> {
    for commit in commits {
        if let Err(date) = &commit.committed_at {
            let detail =
                json!({ "sha": commit.sha, "committed_date": date, "why": date, "run": run_id.to_string() });
            event::add(tx, None, branch, BranchCode::UnreadableCommit, &detail, now)?;
        }
    }
    Ok(())
}
