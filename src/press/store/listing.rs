//! Items for the page: along their keys, and how many of the newest stand where.

use super::read;
use crate::db::{self, Tx};
use crate::press::model::{Item, Reason, Status};
use crate::time::Timestamp;
use crate::{params, sql};

/// The newest items before a number, of one job or of all.
pub fn list_before(tx: &mut Tx<'_>, before: i64, job: Option<&str>, limit: usize) -> db::Result<Vec<Item>> {
    match job {
        Some(job) => tx.list(
            sql!(concat!(
                "SELECT ",
                columns!(),
                " FROM items WHERE job_name = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3"
            )),
            params![job, before, limit],
            read,
        ),
        None => tx.list(
            sql!(concat!("SELECT ", columns!(), " FROM items WHERE id < ?1 ORDER BY id DESC LIMIT ?2")),
            params![before, limit],
            read,
        ),
    }
}

/// The items of a status that were checked last before a position, of one job or of all.
pub fn list_of_status_before(
    tx: &mut Tx<'_>,
    status: Status,
    (checked_at, id): (Timestamp, i64),
    job: Option<&str>,
    limit: usize,
) -> db::Result<Vec<Item>> {
    match job {
        Some(job) => tx.list(
            sql!(concat!(
                "SELECT ",
                columns!(),
                " FROM items WHERE job_name = ?1 AND status = ?2 AND last_checked_at <= ?3
                   AND (last_checked_at, id) < (?3, ?4) ORDER BY last_checked_at DESC, id DESC LIMIT ?5"
            )),
            params![job, status.code(), checked_at, id, limit],
            read,
        ),
        None => tx.list(
            sql!(concat!(
                "SELECT ",
                columns!(),
                " FROM items WHERE status = ?1 AND last_checked_at <= ?2 AND (last_checked_at, id) < (?2, ?3)
                  ORDER BY last_checked_at DESC, id DESC LIMIT ?4"
            )),
            params![status.code(), checked_at, id, limit],
            read,
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
