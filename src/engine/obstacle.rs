//! Why a job cannot run now, and when it runs next.

use super::runner::lease_name;
use super::{Job, Selection, store};
use crate::db::{self, Tx};
use crate::id::Owner;
use crate::ledger::lease::{self, Holder};
use crate::ledger::{Subject, pause, presence};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// Why a job was not run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// It is disabled in the config.
    Disabled,
    /// It is not due before this moment.
    NotDue(Option<Timestamp>),
    /// It was paused, for this reason.
    Paused(Phrase),
    /// Another process is running it.
    Held(Holder),
    /// The data was moved to another database, which is used now.
    Moved(String),
}

impl Skipped {
    /// In words.
    pub fn phrase(&self) -> Phrase {
        match self {
            Skipped::Disabled => phrase!("it is disabled", "無効になっています"),
            Skipped::NotDue(Some(next)) => {
                phrase!("it is not due before {next}", "次回は {next} です")
            }
            Skipped::NotDue(None) => phrase!("its schedule has no further date", "今後の予定がありません"),
            Skipped::Paused(why) => phrase!("it is paused ({why})", "一時停止中です（{why}）"),
            Skipped::Held(holder) => phrase!(
                "already running ({who}, since {since})",
                "すでに実行中です（{who}、{since} から）",
                who = presence::shown_owner(&holder.owner),
                since = holder.taken_at
            ),
            Skipped::Moved(to) => phrase!("everything was moved to {to}", "すべて {to} に移行済みです"),
        }
    }
}

/// Why `me` cannot run `job` now, if so.
pub fn find_obstacle(
    tx: &mut Tx<'_>,
    job: &Job,
    me: &Owner,
    selection: Selection,
    now: Timestamp,
) -> db::Result<Option<Skipped>> {
    if let Some(skipped) = obstacle(tx, job, selection, now)? {
        return Ok(Some(skipped));
    }
    let holder = lease::find_holder(tx, &lease_name(&job.name))?;
    Ok(holder.filter(|holder| holder.owner != me.as_str()).map(Skipped::Held))
}

/// The same, leaving aside that another process may be running it.
pub(super) fn obstacle(
    tx: &mut Tx<'_>,
    job: &Job,
    selection: Selection,
    now: Timestamp,
) -> db::Result<Option<Skipped>> {
    // A process that had this database open when it was moved away must not continue beside the new one.
    if let Some(left) = db::find_moved_away(tx)? {
        return Ok(Some(Skipped::Moved(left.to)));
    }
    if selection == Selection::Forced {
        return Ok(None);
    }
    if !job.enabled {
        return Ok(Some(Skipped::Disabled));
    }
    if let Some(pause) = pause::find(tx, &Subject::job(&job.name), now)? {
        return Ok(Some(Skipped::Paused(pause.reason)));
    }
    let state = store::find_state(tx, job.name.as_str())?;
    if state.as_ref().is_some_and(store::JobState::is_unfinished) {
        return Ok(None);
    }
    match due_at(job, state.as_ref(), now) {
        Some(at) if at <= now => Ok(None),
        later => Ok(Some(Skipped::NotDue(later))),
    }
}

/// When `job` is due: `now` if it is, else the next point of its schedule, or earlier if its last run failed.
fn due_at(job: &Job, state: Option<&store::JobState>, now: Timestamp) -> Option<Timestamp> {
    let retry_at = state.and_then(|state| state.retry_at);
    if job.schedule.is_due(state.and_then(|state| state.last_run_at), now) {
        return Some(now);
    }
    [retry_at, job.schedule.next_after(now)].into_iter().flatten().min().map(|at| at.max(now))
}

/// When `job` starts next by its schedule, according to the database; `None` if it does not.
pub fn find_next_run(tx: &mut Tx<'_>, job: &Job, now: Timestamp) -> db::Result<Option<Timestamp>> {
    let state = store::find_state(tx, job.name.as_str())?;
    let holder = lease::find_holder(tx, &lease_name(&job.name))?;
    let pause = pause::find(tx, &Subject::job(&job.name), now)?;
    Ok(next_run_at(job, state.as_ref(), holder.as_ref(), pause.as_ref(), now))
}

/// When `job` starts next by its schedule, given its `state`, `holder` and `pause`; `None` if it does not.
///
/// An interrupted run is continued at once, whatever the schedule says (ADR 0007).
pub fn next_run_at(
    job: &Job,
    state: Option<&store::JobState>,
    holder: Option<&Holder>,
    pause: Option<&pause::Pause>,
    now: Timestamp,
) -> Option<Timestamp> {
    if !job.enabled || pause.is_some() {
        return None;
    }
    match state {
        Some(state) if holder.is_none() && state.is_unfinished() => Some(now),
        state => due_at(job, state, now),
    }
}
