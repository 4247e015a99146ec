//! Recognises a database that was replaced by an earlier copy of itself without `db restore`.
//!
//! Messages that wait in such a copy may have been sent since. SQLite counts its claims inside the file and in a second
//! file beside it: if the counter beside it is ahead, the database is an old copy. PostgreSQL reports where the rows
//! are stored: another cluster, timeline or table means that they were restored there.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::session::Session;
use super::{Error, Result, Tx};
use crate::{params, sql};
use stdx::time::Timestamp;

/// The counter beside a SQLite file. Its name begins with a dot, so that copying `NAME*` does not include it.
pub(super) fn counter_of(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".claims");
    path.with_file_name(name)
}

/// Compares a SQLite file with the counter beside it.
pub(super) fn check_file(tx: &mut Tx<'_>, path: &Path) -> Result<()> {
    let Some((identity, claims)) = find(tx)? else {
        return add(tx, &Uuid::new_v4().simple().to_string());
    };
    let beside = std::fs::read_to_string(counter_of(path)).ok();
    // An unreadable counter proves nothing, and neither does that of another database.
    let ahead = beside
        .as_deref()
        .and_then(|text| text.trim_end().split_once(' '))
        .filter(|(of, _)| *of == identity)
        .and_then(|(_, count)| count.parse::<i64>().ok())
        .filter(|count| *count > claims);
    if let Some(count) = ahead {
        mark_copied(tx)?;
        tx.execute(sql!("UPDATE db_copy SET claims = ?1 WHERE role = 'self'"), params![count])?;
    }
    Ok(())
}

/// Counts a claim that is about to be committed; returns the text for [`put_beside`] after the commit.
pub(super) fn count_claim(tx: &mut Tx<'_>) -> Result<Option<String>> {
    tx.find(
        sql!("UPDATE db_copy SET claims = claims + 1 WHERE role = 'self' RETURNING identity, claims"),
        params![],
        |row| Ok(format!("{} {}\n", row.get::<String>(0)?, row.get::<i64>(1)?)),
    )
}

/// Writes the counter beside the file. If that fails, copies are not recognised, but everything else works.
pub(super) fn put_beside(path: &Path, count: &str) {
    if let Err(error) = std::fs::write(counter_of(path), count) {
        tracing::debug!("The counter beside {} cannot be written: {error}", path.display());
    }
}

/// Compares a PostgreSQL database with where it was stored last.
pub(super) fn check_server(session: &mut Session, now: Timestamp) -> Result<()> {
    let mut parts = Vec::new();
    for text in [
        "SELECT system_identifier::text FROM pg_control_system()",
        "SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END",
        "SELECT to_regclass('db_copy')::oid::text",
    ] {
        parts.push(match session.first_text(text) {
            Ok(part) => part.unwrap_or_default(),
            // Without permission for the query, this part stays unknown.
            Err(Error::Statement(_) | Error::ReadOnly(_)) => String::new(),
            Err(error) => return Err(error),
        });
    }
    let here = parts.join("/");
    let known = find(&mut Tx::on_postgres(session, now))?;
    if known.as_ref().is_some_and(|(known, _)| *known == here) {
        return Ok(());
    }
    session.execute_text("BEGIN")?;
    let tx = &mut Tx::on_postgres(session, now);
    let noted = match known {
        None => add(tx, &here),
        Some((known, _)) => {
            let moved = tx.execute(
                sql!("UPDATE db_copy SET identity = ?2 WHERE role = 'self' AND identity = ?1"),
                params![known, here],
            );
            // Only the first process that notices changes a row.
            moved.and_then(
                |moved| if moved == 1 && !is_same(&known, &here) { mark_copied(tx) } else { Ok(()) },
            )
        }
    };
    match noted {
        Ok(()) => session.execute_text("COMMIT"),
        Err(error) => {
            session.rollback();
            // A process without write permission sends nothing.
            if matches!(error, Error::ReadOnly(_)) { Ok(()) } else { Err(error) }
        }
    }
}

/// Whether two identities may be the same database; unknown parts are ignored.
fn is_same(known: &str, here: &str) -> bool {
    let pairs = known.split('/').zip(here.split('/'));
    pairs.into_iter().all(|(known, here)| known.is_empty() || here.is_empty() || known == here)
}

fn find(tx: &mut Tx<'_>) -> Result<Option<(String, i64)>> {
    tx.find(sql!("SELECT identity, claims FROM db_copy WHERE role = 'self'"), params![], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

fn add(tx: &mut Tx<'_>, identity: &str) -> Result<()> {
    tx.execute(
        sql!("INSERT INTO db_copy (role, identity) VALUES ('self', ?1) ON CONFLICT (role) DO NOTHING"),
        params![identity],
    )?;
    Ok(())
}

/// Marks the database as `db restore` does: as a copy made after its last event, and not in use yet.
fn mark_copied(tx: &mut Tx<'_>) -> Result<()> {
    let last = tx.find(sql!("SELECT MAX(at) FROM events"), params![], |row| row.get::<Option<String>>(0))?;
    let made_at = last.flatten().unwrap_or_else(|| Timestamp::MIN.to_text());
    tracing::warn!("This database is an earlier copy of itself: what waits in it may have been sent since");
    tx.execute(
        sql!(
            "INSERT INTO restores (made_at, restored_at)
             SELECT CAST(?1 AS TEXT), NULL WHERE NOT EXISTS (SELECT 1 FROM restores WHERE restored_at IS NULL)
             ON CONFLICT (made_at) DO UPDATE SET restored_at = NULL"
        ),
        params![made_at],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_cluster_timeline_or_table_is_another_place() {
        for (known, here, same) in [
            ("7/00000001/16", "7/00000001/16", true),
            ("7/00000001/16", "8/00000001/16", false),
            ("7/00000001/16", "7/00000002/16", false),
            ("7/00000001/16", "7/00000001/17", false),
            ("/00000001/16", "8/00000001/16", true),
            ("7/00000001/16", "//16", true),
        ] {
            assert_eq!(is_same(known, here), same, "{known} {here}");
        }
    }
}
