//! The history of checks: listing and pruning.

use crate::db::{self, Tx};
use crate::parse::Cut;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql};

/// A row of the history.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CheckRow {
    pub checked_at: Timestamp,
    /// The HTTP status that decided.
    pub http_status: Option<i64>,
    /// Whether nothing was parsed.
    pub skipped: bool,
    /// Whether something new was found.
    pub changed: bool,
    /// Hash of the addresses that were listed.
    pub url_fingerprint: Option<String>,
    pub error_message: Option<Phrase>,
    /// The part that exceeded a limit.
    pub cut: Option<Cut>,
}

/// The newest checks of a blog, newest first.
pub fn list_checks(tx: &mut Tx<'_>, blog_id: &str, limit: usize) -> db::Result<Vec<CheckRow>> {
    tx.list(
        sql!(
            "SELECT checked_at, http_status, skipped, changed, url_fingerprint, error_message, cut
             FROM check_history WHERE blog_id = ?1 ORDER BY checked_at DESC LIMIT ?2"
        ),
        params![blog_id, limit],
        |row| {
            Ok(CheckRow {
                checked_at: row.get(0)?,
                http_status: row.get(1)?,
                skipped: row.get(2)?,
                changed: row.get(3)?,
                url_fingerprint: row.get(4)?,
                error_message: row.get::<Option<String>>(5)?.as_deref().map(Phrase::from_stored),
                cut: super::state::json(row, "cut")?,
            })
        },
    )
}

/// Deletes checks older than `before` among the `limit` oldest rows; returns how many. Call it until it returns 0.
///
/// Rows are written in the order of time, so the oldest have the lowest numbers and no index on the time is needed.
/// [`prune_stray_history`] handles rows that an import added later.
pub fn prune_history(tx: &mut Tx<'_>, before: Timestamp, limit: usize) -> db::Result<u64> {
    tx.execute(
        sql!(
            "DELETE FROM check_history
             WHERE checked_at < ?1 AND id < (SELECT MIN(id) FROM check_history) + ?2"
        ),
        params![before, limit],
    )
}

/// Deletes at most `limit` checks older than `before` that come after newer ones, as after an import, blog by blog.
pub fn prune_stray_history(tx: &mut Tx<'_>, before: Timestamp, limit: usize) -> db::Result<u64> {
    tx.execute(
        sql!(
            "DELETE FROM check_history WHERE id IN (
               SELECT h.id FROM blog_state s CROSS JOIN check_history h
               WHERE h.blog_id = s.blog_id AND h.checked_at < ?1 LIMIT ?2)"
        ),
        params![before, limit],
    )
}
