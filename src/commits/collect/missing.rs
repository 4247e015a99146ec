//! A branch that the host does not have: it was deleted, its project is gone, or it never existed.

use serde_json::json;

use super::super::host;
use super::super::store::{branches, projects};
use super::{Halt, TargetCollector};
use crate::commits::events::{self, BranchCode, ProjectCode};
use crate::ledger::event;
use crate::phrase;
use crate::text::shell_word;

impl TargetCollector {
    /// The branch is missing: checks whether the project is gone, too.
    pub(super) async fn without_branch(&self) -> Result<(), Halt> {
        let (path, branch) = (self.project.path.clone(), self.claimed.branch_name.clone());
        let state = self.find_state().await?;
        let was_read = state.complete_head.is_some() || state.walking.is_some();
        match self.client.fetch_project(&self.project.remote_id.to_string(), &self.stop).await {
            Err(host::Error::Missing { .. }) => {
                let (subject, now, job) = (events::project(&path), self.clock.now(), self.job.clone());
                self.write(move |tx, place| {
                    if projects::mark_removed(tx, place.project_id, &job, now)? {
                        event::add(tx, Some(&job), &subject, ProjectCode::Gone, &json!({}), now)?;
                    }
                    Ok(())
                })
                .await?;
                Err(Halt::Failed(phrase!(
                    "the project `{path}` is gone, or the token may no longer see it; its commits are kept. `tsuzuki project sync` looks again",
                    "プロジェクト `{path}` は削除されたか、トークンでは参照できません。コミットは残します。`tsuzuki project sync` で再確認できます"
                )))
            }
            Err(error) => Err(self.halt(error)),
            Ok(project) if project.is_empty && !was_read => Ok(()),
            Ok(_) if !was_read => Err(Halt::Failed(phrase!(
                "`{path}` has no branch `{branch}`: check `branches` of the job, or `tsuzuki branch rm {path} {word}`",
                "`{path}` にブランチ `{branch}` はありません。ジョブの `branches` を確認するか、`tsuzuki branch rm {path} {word}` で外してください",
                word = shell_word(&branch).into_owned()
            ))),
            Ok(_) => {
                let (subject, now) = (self.subject(), self.clock.now());
                let news = self
                    .write(move |tx, place| {
                        let news = branches::mark_deleted(tx, place.project_id, place.branch_name, now)?;
                        if news {
                            event::add(tx, None, &subject, BranchCode::Deleted, &json!({}), now)?;
                        }
                        Ok(news)
                    })
                    .await?;
                // Reported once: nobody has to act again about a branch that stays missing.
                if !news {
                    Ok(())
                } else {
                    Err(Halt::Failed(phrase!(
                        "the branch `{branch}` was deleted from `{path}`; its commits are kept, and it is picked up again if it comes back. `tsuzuki branch rm {path} {word}` stops asking",
                        "ブランチ `{branch}` は `{path}` から削除されました。コミットは残し、戻れば収集を再開します。`tsuzuki branch rm {path} {word}` で対象から外せます",
                        word = shell_word(&branch).into_owned()
                    )))
                }
            }
        }
    }
}
