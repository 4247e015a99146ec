//! The SQL of alerts.

use super::AlertKind;
use crate::db::{self, FromRow, Tx};
use crate::ledger::Subject;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql};

/// A problem that the operator has to know about.
#[derive(Clone, Debug, PartialEq, serde::Serialize, FromRow)]
pub struct Alert {
    /// Its key: kind and subject.
    pub cause: String,
    pub since: Timestamp,
    pub message: Phrase,
    /// When it ended; set only while the channels have not been notified of that.
    pub over_at: Option<Timestamp>,
}

impl Alert {
    /// The kind of problem; `None` if this version does not know it.
    pub fn kind(&self) -> Option<AlertKind> {
        self.cause.split_once(' ').and_then(|(kind, _)| kind.parse().ok())
    }

    /// The job, channel, provider or source with the problem.
    pub fn subject(&self) -> Subject {
        Subject::verbatim(self.cause.split_once(' ').map_or("", |(_, subject)| subject))
    }
}

/// Opens an alert, or updates the message of an open one, which keeps its beginning and is not announced again.
pub fn raise(
    tx: &mut Tx<'_>,
    kind: AlertKind,
    subject: &Subject,
    message: &Phrase,
    now: Timestamp,
) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO alerts (cause, since, message) VALUES (?1, ?2, ?3)
             ON CONFLICT (cause) DO UPDATE SET message = excluded.message, over_at = NULL"
        ),
        params![kind.cause(subject), now, message],
    )
}

/// Closes an alert. One that was never announced is deleted, so that its end is not announced either.
pub fn clear(tx: &mut Tx<'_>, kind: AlertKind, subject: &Subject, now: Timestamp) -> db::Result<()> {
    clear_cause(tx, &kind.cause(subject), now)
}

pub(super) fn clear_cause(tx: &mut Tx<'_>, cause: &str, now: Timestamp) -> db::Result<()> {
    tx.execute(sql!("DELETE FROM alerts WHERE cause = ?1 AND announced_at IS NULL"), params![cause])?;
    tx.run(sql!("UPDATE alerts SET over_at = ?2 WHERE cause = ?1 AND over_at IS NULL"), params![cause, now])
}

/// Open alerts, oldest first.
pub fn list_open(tx: &mut Tx<'_>) -> db::Result<Vec<Alert>> {
    tx.list(
        sql!("SELECT cause, since, message, over_at FROM alerts WHERE over_at IS NULL ORDER BY since, cause"),
        params![],
        FromRow::from_row,
    )
}

/// Beginnings and ends that the channels have not been notified of.
pub(super) fn list_unannounced(tx: &mut Tx<'_>) -> db::Result<Vec<Alert>> {
    tx.list(
        sql!(
            "SELECT cause, since, message, over_at FROM alerts
             WHERE announced_at IS NULL OR over_at IS NOT NULL ORDER BY since, cause"
        ),
        params![],
        FromRow::from_row,
    )
}

/// Records that an alert was announced; `false` if another process was first or the alert has changed.
pub(super) fn mark_announced(tx: &mut Tx<'_>, alert: &Alert, now: Timestamp) -> db::Result<bool> {
    let changed = match alert.over_at {
        None => tx.execute(
            sql!(
                "UPDATE alerts SET announced_at = ?3
                 WHERE cause = ?1 AND since = ?2 AND announced_at IS NULL AND over_at IS NULL"
            ),
            params![alert.cause, alert.since, now],
        )?,
        Some(over_at) => tx.execute(
            sql!("DELETE FROM alerts WHERE cause = ?1 AND since = ?2 AND over_at = ?3"),
            params![alert.cause, alert.since, over_at],
        )?,
    };
    Ok(changed == 1)
}
