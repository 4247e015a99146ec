//! What a copy of a database knows about itself: when it was made, and since when it is in use in place of the original.

use super::{Result, Tx};
use crate::{params, sql};
use stdx::time::Timestamp;

/// One return to an earlier state: what happened in between is not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restore {
    /// When the copy was made.
    pub made_at: Timestamp,
    /// Since when it is in use.
    pub restored_at: Timestamp,
}

/// Notes that this database is a copy that is in use from now on; `false` if it is none, or if that is known.
pub fn notice_restore(tx: &mut Tx<'_>, now: Timestamp) -> Result<bool> {
    let noticed =
        tx.execute(sql!("UPDATE restores SET restored_at = ?1 WHERE restored_at IS NULL"), params![now])?;
    Ok(noticed > 0)
}

/// The restores since `since`.
pub fn list_restores(tx: &mut Tx<'_>, since: Timestamp) -> Result<Vec<Restore>> {
    tx.list(
        sql!("SELECT made_at, restored_at FROM restores WHERE restored_at >= ?1 ORDER BY restored_at"),
        params![since],
        |row| Ok(Restore { made_at: row.get(0)?, restored_at: row.get(1)? }),
    )
}
