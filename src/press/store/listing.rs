//! Items for listings, by their keys, and counts of the newest ones by state.

use crate::db::{self, FromRow, Tx};
use crate::press::model::{Item, Reason, Status};
use crate::time::Timestamp;
use crate::{params, sql};

/// Which items to list; `None` matches all.
#[derive(Clone, Debug, Default)]
pub struct ItemFilter {
    pub job: Option<String>,
    pub status: Option<Status>,
    pub reason: Option<Reason>,
    /// Only those after the item with this last check and number.
    pub before: Option<(Timestamp, i64)>,
}

/// The newest items first; those of one status by when they were last checked.
///
/// One statement for each filter, so that each uses its own index.
pub fn list(tx: &mut Tx<'_>, filter: &ItemFilter, limit: usize) -> db::Result<Vec<Item>> {
    let reason = filter.reason.map_or(-1, Reason::code);
    let (checked_at, id) = filter.before.unwrap_or((Timestamp::MAX, i64::MAX));
    match (filter.job.as_deref(), filter.status.map(Status::code)) {
        (None, None) => tx.list(
            sql!(concat!(items!(), "WHERE id < ?1 AND (?2 = -1 OR reason = ?2) ORDER BY id DESC LIMIT ?3")),
            params![id, reason, limit],
            FromRow::from_row,
        ),
        (Some(job), None) => tx.list(
            sql!(concat!(
                items!(),
                "WHERE job_name = ?4 AND id < ?1 AND (?2 = -1 OR reason = ?2) ORDER BY id DESC LIMIT ?3"
            )),
            params![id, reason, limit, job],
            FromRow::from_row,
        ),
        (None, Some(status)) => tx.list(
            sql!(concat!(
                items!(),
                "WHERE status = ?4 AND last_checked_at <= ?5 AND (last_checked_at, id) < (?5, ?1)
                   AND (?2 = -1 OR reason = ?2) ORDER BY last_checked_at DESC, id DESC LIMIT ?3"
            )),
            params![id, reason, limit, status, checked_at],
            FromRow::from_row,
        ),
        (Some(job), Some(status)) => tx.list(
            sql!(concat!(
                items!(),
                "WHERE job_name = ?6 AND status = ?4 AND last_checked_at <= ?5 AND (last_checked_at, id) < (?5, ?1)
                   AND (?2 = -1 OR reason = ?2) ORDER BY last_checked_at DESC, id DESC LIMIT ?3"
            )),
            params![id, reason, limit, status, checked_at, job],
            FromRow::from_row,
        ),
    }
}

/// The number of items in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub status: Status,
    pub reason: Option<Reason>,
    /// Whether there is something to post, or was.
    pub has_post: bool,
    pub count: i64,
}

/// Counts the newest `limit` items by state, of one job or of all.
pub fn count_newest(tx: &mut Tx<'_>, job: Option<&str>, limit: usize) -> db::Result<Vec<Standing>> {
    macro_rules! counted {
        ($newest:literal) => {
            concat!(
                "SELECT status, reason, has_post, COUNT(*) FROM (SELECT status, reason,
                   CASE WHEN summary IS NOT NULL OR is_short = 1 THEN 1 ELSE 0 END AS has_post FROM items ",
                $newest,
                ") newest GROUP BY status, reason, has_post ORDER BY status, reason, has_post"
            )
        };
    }
    let standing = |row: &db::Row<'_>| {
        Ok(Standing { status: row.get(0)?, reason: row.get(1)?, has_post: row.get(2)?, count: row.get(3)? })
    };
    match job {
        Some(job) => tx.list(
            sql!(counted!("WHERE job_name = ?1 ORDER BY id DESC LIMIT ?2")),
            params![job, limit],
            standing,
        ),
        None => tx.list(sql!(counted!("ORDER BY id DESC LIMIT ?1")), params![limit], standing),
    }
}
