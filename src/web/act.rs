//! Runs a requested action on a thing, given by word and name.

use super::Pages;
use crate::db;
use crate::engine::{ActionOutcome, Deed};
use crate::phrase;

/// Runs `deed` on the thing `about`; the daemon of this process starts a job that is to be run.
pub(super) async fn perform(pages: &Pages, about: &str, deed: Deed) -> db::Result<ActionOutcome> {
    let Some(finder) = pages.finder() else { return Ok(ActionOutcome::Unknown) };
    let target = about.to_owned();
    let outcome = pages.db.write(move |tx| finder.act(tx, &target, deed)).await?;
    let ActionOutcome::Start(job) = outcome else { return Ok(outcome) };
    let name = job.to_string();
    Ok(match pages.starter.start(job).await {
        Ok(None) => ActionOutcome::Done(phrase!("{name} was started", "{name} を開始しました")),
        Ok(Some(skipped)) => ActionOutcome::Refused(phrase!(
            "{name} was not started: {why}",
            "{name} を開始できません：{why}",
            why = skipped.phrase()
        )),
        Err(_) => ActionOutcome::Refused(phrase!(
            "{name} was not started: no daemon runs in this process",
            "{name} を開始できません：このプロセスではジョブを実行していません"
        )),
    })
}
