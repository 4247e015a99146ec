//! What a person may do with a bulk run: cancel it.

use super::events::{self, RunCode};
use super::run::{self, Summary};
use crate::db::{self, Tx};
use crate::engine::{ActionOutcome, Deed, Finder, Verb};
use crate::id::RunId;
use crate::ledger::event;
use crate::phrase;

/// Ends a run early, or the one that is running; answers it, and whether it was running.
pub fn cancel(tx: &mut Tx<'_>, run_id: Option<RunId>) -> db::Result<Option<(Summary, bool)>> {
    let run = match run_id {
        Some(run_id) => run::find_run(tx, &run_id)?,
        None => run::find_running(tx)?,
    };
    let Some(run) = run else { return Ok(None) };
    let cancelled = run::cancel(tx, &run.run_id)?;
    if cancelled {
        let now = tx.now();
        let nothing = serde_json::json!({});
        event::add(tx, None, &events::run(&run.run_id), RunCode::Cancelled, &nothing, now)?;
    }
    Ok(run::find_summary(tx, &run.run_id)?.map(|summary| (summary, cancelled)))
}

/// What the pages and the API do to a run.
pub(super) fn act(_: &Finder, tx: &mut Tx<'_>, name: &str, deed: Deed) -> db::Result<ActionOutcome> {
    let (Verb::Cancel, Ok(run_id)) = (deed.verb, name.parse::<RunId>()) else {
        return Ok(ActionOutcome::Unknown);
    };
    if !deed.is_confirmed {
        return Ok(ActionOutcome::Unconfirmed(phrase!(
            "run {id} ends now; what is pending can be collected in a new run",
            "収集 {id} を中止します。残りは新しい収集で取得できます",
            id = run_id.to_string()
        )));
    }
    Ok(match cancel(tx, Some(run_id))? {
        None => ActionOutcome::Unknown,
        Some((summary, true)) => ActionOutcome::Done(phrase!(
            "run {id} is cancelled; {count branch} pending",
            "収集 {id} を中止しました（残り {count} 件）",
            id = run_id.to_string(),
            count = summary.pending_count
        )),
        Some((summary, false)) => ActionOutcome::Refused(phrase!(
            "run {id} is {status} already",
            "収集 {id} はすでに {status} です",
            id = run_id.to_string(),
            status = summary.run.status.word()
        )),
    })
}
