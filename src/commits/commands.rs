//! Commands on a bulk run: cancel it, resume it, retry failed targets.

use super::events::{self, RunCode};
use super::list_host_jobs;
use super::run::decide::{self, Again, Begin};
use super::run::{self, RunStatus, Summary};
use crate::config::Config;
use crate::db::{self, Tx};
use crate::engine::view::Action;
use crate::engine::{ActionOutcome, Deed, Finder, Verb};
use crate::id::{JobName, RunId};
use crate::ledger::lease::Holder;
use crate::ledger::{event, presence};
use crate::phrase;

/// Cancels a run, or the running one; returns it, and whether it was running.
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

/// The possible actions on a run.
pub(super) fn list_actions(summary: &Summary) -> Vec<Action> {
    let (run, id) = (&summary.run, summary.run.run_id);
    let is_running = run.status == RunStatus::Running;
    let is_cut_off = is_running && summary.workers.is_empty();
    let action = |verb, label, command: &str| {
        Action::new(verb, &events::run(&id), label, format!("bulk {command} {id}"))
    };
    let mut actions = Vec::new();
    if is_cut_off || (run.status == RunStatus::Cancelled && run.pending_count() > 0) {
        actions.push(action(Verb::Resume, phrase!("resume", "再開する"), "resume"));
    }
    if !is_running && run.failed_count > 0 {
        let label = phrase!("retry what failed", "失敗分を再試行する");
        actions.push(action(Verb::Retry, label, "retry-failed"));
    }
    if is_running {
        actions.push(action(Verb::Cancel, phrase!("cancel…", "中止する…"), "cancel"));
    }
    actions
}

/// Runs an action of the pages or the API on a run.
pub(super) fn act(finder: &Finder, tx: &mut Tx<'_>, name: &str, deed: Deed) -> db::Result<ActionOutcome> {
    let Ok(run_id) = name.parse::<RunId>() else { return Ok(ActionOutcome::Unknown) };
    match deed.verb {
        Verb::Cancel => confirm_cancel(tx, run_id, deed.is_confirmed),
        Verb::Resume => take_up(&finder.config, tx, run_id, Again::Pending),
        Verb::Retry => take_up(&finder.config, tx, run_id, Again::Failed),
        _ => Ok(ActionOutcome::Unknown),
    }
}

fn confirm_cancel(tx: &mut Tx<'_>, run_id: RunId, is_confirmed: bool) -> db::Result<ActionOutcome> {
    let id = run_id.to_string();
    if !is_confirmed {
        return Ok(ActionOutcome::Unconfirmed(phrase!(
            "run {id} ends now; what is pending can be collected in a new run",
            "収集 {id} を中止します。残りは新しい収集で取得できます"
        )));
    }
    Ok(match cancel(tx, Some(run_id))? {
        None => ActionOutcome::Unknown,
        Some((summary, true)) => ActionOutcome::Done(phrase!(
            "run {id} is cancelled; {count branch} pending",
            "収集 {id} を中止しました（残り {count} 件）",
            count = summary.pending_count
        )),
        Some((summary, false)) => ActionOutcome::Refused(phrase!(
            "run {id} is {status} already",
            "収集 {id} はすでに {status} です",
            status = summary.run.status.word()
        )),
    })
}

/// What `bulk resume` and `bulk retry-failed` do: the remaining targets of an ended run go into a new run. The job that
/// is started next finds it running, and collects only its targets, for every job that has some in it.
fn take_up(config: &Config, tx: &mut Tx<'_>, run_id: RunId, again: Again) -> db::Result<ActionOutcome> {
    let id = run_id.to_string();
    let Some(wanted) = run::find_run(tx, &run_id)? else { return Ok(ActionOutcome::Unknown) };
    let running = run::find_running_worked(tx, None)?;
    let worker = running.as_ref().and_then(|running| running.worker.clone());
    let is_new = match decide::reopen(&wanted, again, running) {
        Begin::Nothing => {
            return Ok(ActionOutcome::Refused(phrase!(
                "nothing is left to do in run {id}",
                "収集 {id} に残りはありません"
            )));
        }
        Begin::Blocked(first) => {
            return Ok(ActionOutcome::Refused(phrase!(
                "run {first} was interrupted and comes first: resume it",
                "中断した収集 {first} が先です。再開してください",
                first = first.run_id.to_string()
            )));
        }
        Begin::Busy(run, worker) => return Ok(busy(&run.run_id, &worker)),
        Begin::Continue(run) => match worker {
            Some(worker) => return Ok(busy(&run.run_id, &worker)),
            None => false,
        },
        Begin::New => true,
    };
    let targets = run::list_targets(tx, &run_id, again.status())?;
    let jobs = list_host_jobs(&config.jobs);
    let collects = |target: &run::Target| {
        decide::find_fallback_job(&jobs, &target.host, target.job_name.as_deref()).map(|job| &job.job)
    };
    let Some(job) = targets.iter().find_map(collects) else {
        return Ok(ActionOutcome::Refused(phrase!(
            "no job of the config collects what is left of run {id}",
            "収集 {id} の残りを収集するジョブが設定にありません"
        )));
    };
    if is_new {
        // A run of several jobs belongs to none, like one that the command opens.
        let is_of_one: Option<&JobName> =
            targets.iter().all(|target| collects(target) == Some(job)).then_some(job);
        run::open(tx, RunId::random(), is_of_one, &targets)?;
    }
    Ok(ActionOutcome::Start(job.clone()))
}

fn busy(run_id: &RunId, worker: &Holder) -> ActionOutcome {
    ActionOutcome::Refused(phrase!(
        "run {run} is already running ({who}, since {since})",
        "収集 {run} は実行中です（{who}、{since} から）",
        run = run_id.to_string(),
        who = presence::shown_owner(&worker.owner),
        since = worker.taken_at
    ))
}
