//! What `db move` leaves behind: a database that is being filled is closed to all, one that was left is closed to work.

use super::{Db, Error, Open, Result, Tx};
use crate::{params, sql};

/// Where everything in a database went.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MovedAway {
    /// The new place, without its password.
    pub to: String,
    /// When the move ended.
    pub at: String,
}

/// Where everything in this database went, if it was moved away.
///
/// A process that was running then still has it open: every transaction that writes asks first, so that nothing is done
/// both here and in the new place.
pub fn find_moved_away(tx: &mut Tx<'_>) -> Result<Option<MovedAway>> {
    tx.find(sql!("SELECT place, at FROM db_move WHERE role = 'left'"), params![], |row| {
        Ok(MovedAway { to: row.get(0)?, at: row.get(1)? })
    })
}

/// Where the rows of this database come from, while a move into it has not ended.
pub(super) fn find_arriving(tx: &mut Tx<'_>) -> Result<Option<String>> {
    tx.find(sql!("SELECT place FROM db_move WHERE role = 'arriving'"), params![], |row| row.get(0))
}

/// Marks this database as being filled from `place`.
pub(super) fn put_arriving(tx: &mut Tx<'_>, place: &str) -> Result<()> {
    put(tx, "arriving", place)
}

/// Marks this database as left for `place`.
pub(super) fn put_left(tx: &mut Tx<'_>, place: &str) -> Result<()> {
    put(tx, "left", place)
}

fn put(tx: &mut Tx<'_>, role: &str, place: &str) -> Result<()> {
    let now = tx.now();
    tx.execute(
        sql!(
            "INSERT INTO db_move (role, place, at) VALUES (?1, ?2, ?3)
             ON CONFLICT (role) DO UPDATE SET place = excluded.place, at = excluded.at"
        ),
        params![role, place, now],
    )?;
    Ok(())
}

/// The move into this database has ended: it is like any other.
pub(super) fn reset(tx: &mut Tx<'_>) -> Result<()> {
    tx.execute(sql!("DELETE FROM db_move"), params![])?;
    Ok(())
}

/// Refuses a database that is not whole, and one that was left unless it is only looked at.
pub(super) fn refuse(tx: &mut Tx<'_>, how: Open) -> Result<()> {
    if let Some(from) = find_arriving(tx)? {
        return Err(Error::Arriving { from });
    }
    if matches!(how, Open::ReadOnly | Open::Left) { Ok(()) } else { refuse_left(tx) }
}

/// Refuses a database that was left: who waited for the move to end, or had the database open before, hears of it.
pub(super) fn refuse_left(tx: &mut Tx<'_>) -> Result<()> {
    match find_moved_away(tx)? {
        Some(left) => Err(Error::MovedAway { to: left.to, at: left.at }),
        None => Ok(()),
    }
}

/// Makes a database usable again that was left; answers where everything had gone.
pub async fn reopen(db: &Db) -> Result<Option<MovedAway>> {
    db.write(|tx| {
        let left = find_moved_away(tx)?;
        tx.execute(sql!("DELETE FROM db_move WHERE role = 'left'"), params![])?;
        Ok(left)
    })
    .await
}
