//! What a person may do with a job.

use super::Pipeline;
use super::events::JobEvent;
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::ledger::{Subject, event, pause};
use crate::phrase::Phrase;
use crate::time::Timestamp;

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

/// Resumes a job, and what of it the pipelines had paused; `false` if nothing was paused.
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
