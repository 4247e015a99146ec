//! Marks left by `db move`: a target that is incomplete cannot be opened, and a source that was moved away cannot be
//! written.

use super::{Db, Error, Open, Result, Tx};
use crate::{params, sql};

/// Where the data was moved to.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MovedAway {
    /// The address of the new database, without its password.
    pub to: String,
    pub at: String,
}

/// Where the data of this database was moved to, if it was.
///
/// A process that had it open during the move still has: so every write transaction checks this first, and no work is
/// done both here and in the new database.
pub fn find_moved_away(tx: &mut Tx<'_>) -> Result<Option<MovedAway>> {
    tx.find(sql!("SELECT place, at FROM db_move WHERE role = 'left'"), params![], |row| {
        Ok(MovedAway { to: row.get(0)?, at: row.get(1)? })
    })
}

/// The source of an unfinished move into this database.
pub(super) fn find_arriving(tx: &mut Tx<'_>) -> Result<Option<String>> {
    tx.find(sql!("SELECT place FROM db_move WHERE role = 'arriving'"), params![], |row| row.get(0))
}

/// Marks this database as being filled from `place`.
pub(super) fn put_arriving(tx: &mut Tx<'_>, place: &str) -> Result<()> {
    put(tx, "arriving", place)
}

/// Marks this database as moved to `place`.
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

/// Removes the mark: the move into this database is complete.
pub(super) fn reset(tx: &mut Tx<'_>) -> Result<()> {
    tx.execute(sql!("DELETE FROM db_move"), params![])?;
    Ok(())
}

/// Fails if the database is incomplete, or if it was moved away and is not opened read-only.
pub(super) fn refuse(tx: &mut Tx<'_>, how: Open) -> Result<()> {
    if let Some(from) = find_arriving(tx)? {
        return Err(Error::Arriving { from });
    }
    if matches!(how, Open::ReadOnly | Open::Left) { Ok(()) } else { refuse_left(tx) }
}

/// Fails if the database was moved away while this process had it open or waited for it.
pub(super) fn refuse_left(tx: &mut Tx<'_>) -> Result<()> {
    match find_moved_away(tx)? {
        Some(left) => Err(Error::MovedAway { to: left.to, at: left.at }),
        None => Ok(()),
    }
}

/// Makes a database usable again that was moved away; returns where to.
pub async fn reopen(db: &Db) -> Result<Option<MovedAway>> {
    db.write(|tx| {
        let left = find_moved_away(tx)?;
        tx.execute(sql!("DELETE FROM db_move WHERE role = 'left'"), params![])?;
        Ok(left)
    })
    .await
}
