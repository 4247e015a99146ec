//! The history of checks: reading it, and letting go of what is old.

use crate::db::{self, Tx};
use crate::parse::Cut;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql};

/// One check, as it was written down.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CheckRow {
    pub checked_at: Timestamp,
    /// The HTTP status that decided.
    pub http_status: Option<i64>,
    /// Whether nothing had to be read.
    pub skipped: bool,
    /// Whether something new was found.
    pub changed: bool,
    /// Hash of the addresses that were listed.
    pub url_fingerprint: Option<String>,
    pub error_message: Option<Phrase>,
    /// What was left out at a limit.
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

/// Deletes checks older than `before` among the `limit` oldest rows; answers how many went. Call it until it answers 0.
///
/// Rows are written in the order of time, so the oldest have the lowest numbers and no index on the time is needed. What
/// an import wrote later is left to [`prune_stray_history`].
pub fn prune_history(tx: &mut Tx<'_>, before: Timestamp, limit: usize) -> db::Result<u64> {
    tx.execute(
        sql!(
            "DELETE FROM check_history
             WHERE checked_at < ?1 AND id < (SELECT MIN(id) FROM check_history) + ?2"
        ),
        params![before, limit],
    )
}

/// Deletes at most `limit` checks older than `before` that stand behind newer ones, as an import leaves them, blog by blog.
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
