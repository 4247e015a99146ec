//! The append-only story that `why` tells: every decision that changed something, with its reason code.

use serde_json::Value as Json;

use super::Subject;
use crate::db::{self, Row, Sql, Tx, Value};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

/// A decision, as it was made.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// In which job, if in one.
    pub job_name: Option<String>,
    /// About what.
    pub subject: Subject,
    /// The reason code: a short stable word such as `baseline` or `not_valuable`.
    pub code: String,
    /// What else there is to say, as JSON.
    pub detail: Json,
}

/// Adds an event; call it in the transaction that makes the change.
pub fn add(
    tx: &mut Tx<'_>,
    job_name: Option<&JobName>,
    subject: &Subject,
    code: &str,
    detail: &Json,
    now: Timestamp,
) -> db::Result<()> {
    let detail = (!detail.is_null()).then(|| detail.to_string());
    tx.execute(
        sql!("INSERT INTO events (at, job_name, subject, code, detail) VALUES (?1, ?2, ?3, ?4, ?5)"),
        params![now, job_name, subject, code, detail],
    )?;
    Ok(())
}

fn read(row: &Row<'_>) -> db::Result<Event> {
    let detail: Option<String> = row.get(4)?;
    Ok(Event {
        at: row.get(0)?,
        job_name: row.get(1)?,
        subject: row.get(2)?,
        code: row.get(3)?,
        detail: detail.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Json::Null),
    })
}

/// The newest events about `subject`, oldest first.
pub fn list_about(tx: &mut Tx<'_>, subject: &Subject, limit: usize) -> db::Result<Vec<Event>> {
    list(
        tx,
        sql!(
            "SELECT at, job_name, subject, code, detail FROM events
             WHERE subject = ?1 ORDER BY id DESC LIMIT ?2"
        ),
        params![subject, limit],
    )
}

/// The newest events of a job that are about what it works on and not about the job itself, oldest first.
pub fn list_work_of_job(tx: &mut Tx<'_>, job_name: &str, limit: usize) -> db::Result<Vec<Event>> {
    list(
        tx,
        sql!(
            "SELECT at, job_name, subject, code, detail FROM events
             WHERE job_name = ?1 AND subject <> ?2 ORDER BY id DESC LIMIT ?3"
        ),
        params![job_name, Subject::job(job_name), limit],
    )
}

/// The newest events of a job, oldest first.
pub fn list_of_job(tx: &mut Tx<'_>, job_name: &str, limit: usize) -> db::Result<Vec<Event>> {
    list(
        tx,
        sql!(
            "SELECT at, job_name, subject, code, detail FROM events
             WHERE job_name = ?1 ORDER BY id DESC LIMIT ?2"
        ),
        params![job_name, limit],
    )
}

/// Oldest first, what a statement answers newest first.
fn list(tx: &mut Tx<'_>, newest_first: &'static Sql, params: &[Value<'_>]) -> db::Result<Vec<Event>> {
    let mut events = tx.list(newest_first, params, read)?;
    events.reverse();
    Ok(events)
}

/// Deletes at most `limit` events older than `before`; answers how many went.
pub fn prune(tx: &mut Tx<'_>, before: Timestamp, limit: usize) -> db::Result<u64> {
    tx.execute(
        sql!("DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at < ?1 ORDER BY at LIMIT ?2)"),
        params![before, limit],
    )
}
