//! What a restored database records about itself: when the copy was made, and since when it is in use.

use super::{Result, Tx};
use crate::{params, sql};
use stdx::time::Timestamp;

/// One restore: what happened between the copy and the restore is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restore {
    pub made_at: Timestamp,
    pub restored_at: Timestamp,
}

/// Records that this database is a restored copy that is in use from now on; `false` if it is not, or if that was
/// recorded.
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
