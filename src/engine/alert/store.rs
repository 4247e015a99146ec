//! The SQL of alerts.

use super::AlertKind;
use crate::db::{self, FromRow, Tx};
use crate::ledger::Subject;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql};

/// Something that the operator has to know.
#[derive(Clone, Debug, PartialEq, serde::Serialize, FromRow)]
pub struct Alert {
    /// What tells it from all others: its kind and what it is about.
    pub cause: String,
    /// Since when.
    pub since: Timestamp,
    /// What is wrong, in words.
    pub message: Phrase,
    /// When it was over, if the channels have still to be told.
    pub over_at: Option<Timestamp>,
}

impl Alert {
    /// What is wrong.
    pub fn kind(&self) -> Option<AlertKind> {
        self.cause.split_once(' ').and_then(|(kind, _)| kind.parse().ok())
    }

    /// What it is about.
    pub fn subject(&self) -> Subject {
        Subject::verbatim(self.cause.split_once(' ').map_or("", |(_, subject)| subject))
    }
}

/// Notes that something is wrong; what is known already keeps its beginning and is not told again.
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

/// Notes that it is over; of what nobody was told nobody has to be told the end.
pub fn clear(tx: &mut Tx<'_>, kind: AlertKind, subject: &Subject, now: Timestamp) -> db::Result<()> {
    clear_cause(tx, &kind.cause(subject), now)
}

pub(super) fn clear_cause(tx: &mut Tx<'_>, cause: &str, now: Timestamp) -> db::Result<()> {
    tx.execute(sql!("DELETE FROM alerts WHERE cause = ?1 AND announced_at IS NULL"), params![cause])?;
    tx.run(sql!("UPDATE alerts SET over_at = ?2 WHERE cause = ?1 AND over_at IS NULL"), params![cause, now])
}

/// Everything that is wrong now, oldest first.
pub fn list_open(tx: &mut Tx<'_>) -> db::Result<Vec<Alert>> {
    tx.list(
        sql!("SELECT cause, since, message, over_at FROM alerts WHERE over_at IS NULL ORDER BY since, cause"),
        params![],
        FromRow::from_row,
    )
}

/// What the channels have not been told: beginnings and ends.
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

/// Notes that the channels are told; `false` when another process was first, or when it has changed.
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
