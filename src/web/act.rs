//! Does what a person or a program asks for, to a thing by its word and name.

use super::Pages;
use crate::db;
use crate::engine::{ActionOutcome, Deed};
use crate::phrase;

/// Does `deed` to the thing that `about` stands for; a job that is to be started is started by the daemon of this process.
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
