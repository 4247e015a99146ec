//! Items for listings: along their keys, and how many of the newest stand where.

use crate::db::{self, FromRow, Tx};
use crate::press::model::{Item, Reason, Status};
use crate::time::Timestamp;
use crate::{params, sql};

/// Which items to list; what is not given does not matter.
#[derive(Clone, Debug, Default)]
pub struct ItemFilter {
    /// Only those of this job.
    pub job: Option<String>,
    /// Only those in this status.
    pub status: Option<Status>,
    /// Only those with this reason.
    pub reason: Option<Reason>,
    /// Only those behind the one that was last checked then and has this number.
    pub before: Option<(Timestamp, i64)>,
}

/// The newest items first; those of one status by when they were last checked.
///
/// One statement for each way to ask, so that each walks along an index of its own.
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

/// Items that stand at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Where.
    pub status: Status,
    /// Why.
    pub reason: Option<Reason>,
    /// Whether there is something to post, or was.
    pub has_post: bool,
    /// How many.
    pub count: i64,
}

/// Where the newest `limit` items stand, of one job or of all.
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
