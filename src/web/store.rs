//! Sessions of people and tokens of programs; only their hashes are stored.

use super::token::{AccessToken, Scope};
use crate::db::{self, FromRow, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

crate::migration!(8, "web", "../../migrations/0008_web.sql");

/// The most expired sessions that one login deletes.
const PRUNED_AT_ONCE: usize = 500;

/// Adds a session, and deletes some expired ones.
pub(super) fn add_session(
    tx: &mut Tx<'_>,
    hash: &str,
    user_name: &str,
    password_print: &str,
    expires_at: Timestamp,
    now: Timestamp,
) -> db::Result<()> {
    tx.execute(
        sql!(
            "DELETE FROM web_sessions WHERE hash IN
               (SELECT hash FROM web_sessions WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)"
        ),
        params![now, PRUNED_AT_ONCE],
    )?;
    tx.run(
        sql!(
            "INSERT INTO web_sessions (hash, user_name, password_print, created_at, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5)"
        ),
        params![hash, user_name, password_print, now, expires_at],
    )
}

/// Whether there is this session, it is not over, and its password still holds.
pub(super) fn has_session(
    tx: &mut Tx<'_>,
    hash: &str,
    password_print: &str,
    now: Timestamp,
) -> db::Result<bool> {
    let user_name: Option<String> = tx.find(
        sql!(
            "SELECT user_name FROM web_sessions
             WHERE hash = ?1 AND password_print = ?2 AND expires_at > ?3"
        ),
        params![hash, password_print, now],
        |row| row.get(0),
    )?;
    Ok(user_name.is_some())
}

/// Ends a session.
pub(super) fn delete_session(tx: &mut Tx<'_>, hash: &str) -> db::Result<()> {
    tx.run(sql!("DELETE FROM web_sessions WHERE hash = ?1"), params![hash])
}

/// Adds a token; `false` if the name is taken.
pub fn add_token(tx: &mut Tx<'_>, name: &str, hash: &str, scope: Scope, now: Timestamp) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO access_tokens (name, hash, scope, created_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (name) DO NOTHING"
        ),
        params![name, hash, scope.word(), now],
    )
}

/// The token that has this hash.
pub(super) fn find_token(tx: &mut Tx<'_>, hash: &str) -> db::Result<Option<AccessToken>> {
    tx.find(
        sql!("SELECT name, scope, created_at FROM access_tokens WHERE hash = ?1"),
        params![hash],
        FromRow::from_row,
    )
}

/// Every token, by name.
pub fn list_tokens(tx: &mut Tx<'_>) -> db::Result<Vec<AccessToken>> {
    tx.list(
        sql!("SELECT name, scope, created_at FROM access_tokens ORDER BY name"),
        params![],
        FromRow::from_row,
    )
}

/// Revokes a token; `None` if there is none of that name.
pub fn delete_token(tx: &mut Tx<'_>, name: &str) -> db::Result<Option<AccessToken>> {
    tx.find(
        sql!("DELETE FROM access_tokens WHERE name = ?1 RETURNING name, scope, created_at"),
        params![name],
        FromRow::from_row,
    )
}
