//! What a person can do with a job.

use super::action::{Action, ActionOutcome, Deed, Verb};
use super::events::JobEvent;
use super::{Finder, Pipeline};
use crate::channel::outbox::{self, Answer, DeliveryFilter, State};
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::ledger::cursor::{self, Cursor};
use crate::ledger::{Subject, event, pause};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// Failed messages that are retried in one go.
const MAX_RETRIED: usize = 1_000;

/// Pauses a job until a moment, or until it is resumed.
pub fn pause(
    tx: &mut Tx<'_>,
    job: &JobName,
    until: Option<Timestamp>,
    why: &Phrase,
    now: Timestamp,
) -> db::Result<()> {
    let subject = Subject::job(job);
    pause::put(tx, &subject, until, why, now)?;
    event::record(tx, Some(job), &subject, &JobEvent::Paused { until, why: why.clone() }, now)
}

/// Resumes a job, and what its pipeline had paused for it; `false` if nothing was paused.
pub fn resume(tx: &mut Tx<'_>, job: &JobName, pipelines: &[&Pipeline], now: Timestamp) -> db::Result<bool> {
    let mut was_paused = pause::reset(tx, &Subject::job(job))?;
    for pipeline in pipelines {
        was_paused |= (pipeline.resume)(tx, job)?;
    }
    if was_paused {
        event::record(tx, Some(job), &Subject::job(job), &JobEvent::Resumed, now)?;
    }
    Ok(was_paused)
}

/// Runs a job now, whatever its schedule says.
pub fn run_action(job: &str) -> Action {
    let label = phrase!("Run now", "今すぐ実行");
    Action::new(Verb::Run, &Subject::job(job), label, format!("run {job}"))
}

/// Pauses a job until it is resumed.
pub fn pause_action(job: &str) -> Action {
    let label = phrase!("Pause", "一時停止");
    Action::new(Verb::Pause, &Subject::job(job), label, format!("job pause {job}"))
}

/// Ends a pause.
pub fn resume_action(job: &str) -> Action {
    let label = phrase!("Resume", "再開");
    Action::new(Verb::Resume, &Subject::job(job), label, format!("job resume {job}"))
}

/// Resets the cursors of a job.
pub fn reset_action(job: &str) -> Action {
    let label = phrase!("Reset position…", "位置をリセット…");
    Action::new(Verb::Reset, &Subject::job(job), label, format!("job cursor reset {job} --yes"))
}

/// Releases or discards the held messages of a job.
pub fn held_actions(job: &str) -> [Action; 2] {
    let subject = Subject::job(job);
    [
        Action::new(
            Verb::Approve,
            &subject,
            phrase!("send what needs approval", "確認待ちを送信する"),
            format!("delivery approve --job {job}"),
        ),
        Action::new(
            Verb::Skip,
            &subject,
            phrase!("discard what needs approval", "確認待ちを送信しない"),
            format!("delivery skip --job {job}"),
        ),
    ]
}

/// Applies an action of the pages or the API to a job.
pub(super) fn act(finder: &Finder, tx: &mut Tx<'_>, name: &str, deed: Deed) -> db::Result<ActionOutcome> {
    let now = finder.now;
    let Some(job) = finder.jobs.iter().find(|job| job.name.as_str() == name).map(|job| &job.name) else {
        return Ok(ActionOutcome::Unknown);
    };
    Ok(ActionOutcome::Done(match deed.verb {
        Verb::Run => return Ok(ActionOutcome::Start(job.clone())),
        Verb::Pause => {
            pause(tx, job, None, &phrase!("by hand", "手動"), now)?;
            phrase!("{job} is paused until it is resumed", "{job} を再開まで一時停止しました")
        }
        Verb::Resume => {
            if resume(tx, job, finder.pipelines, now)? {
                phrase!("{job} runs again", "{job} を再開しました")
            } else {
                phrase!("{job} was not paused", "{job} は一時停止していません")
            }
        }
        Verb::Approve => {
            let count = outbox::approve_job(tx, name, now)?;
            phrase!("Approved {count held message} of job {job}", "{job} の確認待ち {count} 件を承認しました")
        }
        Verb::Skip => {
            let count = outbox::skip_job(tx, name, &finder.topics, now)?;
            phrase!(
                "Skipped {count held message} of job {job}",
                "{job} の確認待ち {count} 件を送信しないことにしました"
            )
        }
        Verb::Retry => {
            let count = retry_failed(tx, name, now)?;
            phrase!(
                "{count failed message} of job {job} will be sent again",
                "{job} の失敗したメッセージ {count} 件を再送します"
            )
        }
        Verb::Reset => {
            let cursors = cursor::list(tx, Some(name))?;
            if !deed.is_confirmed {
                return Ok(ActionOutcome::Unconfirmed(forgets(name, &cursors)));
            }
            let count = cursor::reset_by_job(tx, name)?;
            phrase!("Reset {count} cursor(s) for job: {job}", "{job} の位置を {count} 件リセットしました")
        }
        Verb::Confirm | Verb::Cancel => return Ok(ActionOutcome::Unknown),
    }))
}

fn retry_failed(tx: &mut Tx<'_>, job: &str, now: Timestamp) -> db::Result<usize> {
    let failed =
        DeliveryFilter { state: Some(State::Failed), job: Some(job.to_owned()), ..DeliveryFilter::default() };
    let mut count = 0;
    for row in outbox::list(tx, &failed, MAX_RETRIED)? {
        count += usize::from(matches!(outbox::retry(tx, row.id, false, now)?, Answer::Done { .. }));
    }
    Ok(count)
}

/// What a reset would lose.
pub fn forgets(job: &str, cursors: &[Cursor]) -> Phrase {
    if cursors.is_empty() {
        return phrase!(
            "resetting the cursor of `{job}` forgets nothing: it has none",
            "`{job}` には記録された位置がありません"
        );
    }
    let position = |cursor: &Cursor| {
        let state = if cursor.is_exhausted {
            phrase!("all collected", "全件取得済み")
        } else {
            phrase!("not finished", "途中")
        };
        let at = cursor.start_index;
        Value::from(phrase!("position {at} ({state})", "位置 {at}（{state}）"))
    };
    let positions: Vec<Value> = cursors.iter().map(position).collect();
    phrase!(
        "resetting the cursor of `{job}` forgets {positions}",
        "`{job}` の位置をリセットすると{positions}の記録が消え、最初から読み直します"
    )
}
