//! Prompts, and the tokens of their links.

use crate::books::model::Isbn13;
use crate::books::token::Token;
use crate::db::{self, FromRow, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// What a token leads to.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct TokenTarget {
    pub prompt_text: String,
    /// The book that it is about; `None` if the book is gone.
    pub title: Option<String>,
    /// The first moment at which it is invalid.
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// A token in a listing.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct TokenRow {
    pub token: Token,
    /// The book that its prompt is about.
    pub isbn13: Isbn13,
    /// The title of the book.
    pub title: Option<String>,
    pub created_at: Timestamp,
    /// The first moment at which it is invalid.
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// The number of the prompt with this text; adds it if there is none.
pub fn put_prompt(tx: &mut Tx<'_>, isbn13: &Isbn13, prompt_text: &str, now: Timestamp) -> db::Result<i64> {
    let known = tx.find(
        sql!("SELECT id FROM prompts WHERE isbn13 = ?1 AND prompt_text = ?2 ORDER BY id LIMIT 1"),
        params![isbn13, prompt_text],
        |row| row.get(0),
    )?;
    match known {
        Some(id) => Ok(id),
        None => tx.count(
            sql!("INSERT INTO prompts (isbn13, prompt_text, created_at) VALUES (?1, ?2, ?3) RETURNING id"),
            params![isbn13, prompt_text, now],
        ),
    }
}

/// The newest prompt of a book.
pub fn find_prompt(tx: &mut Tx<'_>, isbn13: &Isbn13) -> db::Result<Option<String>> {
    tx.find(
        sql!("SELECT prompt_text FROM prompts WHERE isbn13 = ?1 ORDER BY id DESC LIMIT 1"),
        params![isbn13],
        |row| row.get(0),
    )
}

/// Adds a token for a prompt.
pub fn add_token(
    tx: &mut Tx<'_>,
    token: &Token,
    prompt_id: i64,
    expires_at: Timestamp,
    now: Timestamp,
) -> db::Result<()> {
    tx.run(
        sql!("INSERT INTO prompt_tokens (token, prompt_id, expires_at, created_at) VALUES (?1, ?2, ?3, ?4)"),
        params![token.as_str(), prompt_id, expires_at, now],
    )
}

/// The target of a token, valid or not.
pub fn find_by_token(tx: &mut Tx<'_>, token: &Token) -> db::Result<Option<TokenTarget>> {
    tx.find(
        sql!(
            "SELECT p.prompt_text, b.title, t.expires_at, t.revoked_at
             FROM prompt_tokens t JOIN prompts p ON p.id = t.prompt_id LEFT JOIN books b ON b.isbn13 = p.isbn13
             WHERE t.token = ?1"
        ),
        params![token.as_str()],
        FromRow::from_row,
    )
}

/// The tokens by expiry, latest first; with `working_at` only those valid at that moment.
pub fn list_tokens(
    tx: &mut Tx<'_>,
    working_at: Option<Timestamp>,
    limit: usize,
) -> db::Result<Vec<TokenRow>> {
    tx.list(
        sql!(
            "SELECT t.token, p.isbn13, b.title, t.created_at, t.expires_at, t.revoked_at
             FROM prompt_tokens t JOIN prompts p ON p.id = t.prompt_id LEFT JOIN books b ON b.isbn13 = p.isbn13
             WHERE t.expires_at > COALESCE(?1, '') AND (CAST(?1 AS TEXT) IS NULL OR t.revoked_at IS NULL)
             ORDER BY t.expires_at DESC, t.token LIMIT ?2"
        ),
        params![working_at, limit],
        FromRow::from_row,
    )
}

/// The tokens with the prefix `prefix`, at most two: enough to see whether it is unique.
pub fn list_tokens_by_prefix(tx: &mut Tx<'_>, prefix: &str) -> db::Result<Vec<TokenRow>> {
    let above = format!("{prefix}g");
    tx.list(
        sql!(
            "SELECT t.token, p.isbn13, b.title, t.created_at, t.expires_at, t.revoked_at
             FROM prompt_tokens t JOIN prompts p ON p.id = t.prompt_id LEFT JOIN books b ON b.isbn13 = p.isbn13
             WHERE t.token >= ?1 AND t.token < ?2 ORDER BY t.token LIMIT 2"
        ),
        params![prefix, above],
        FromRow::from_row,
    )
}

/// Revokes a token; `false` if it was revoked before, or there is none.
pub fn revoke_token(tx: &mut Tx<'_>, token: &Token, now: Timestamp) -> db::Result<bool> {
    tx.execute_one(
        sql!("UPDATE prompt_tokens SET revoked_at = ?2 WHERE token = ?1 AND revoked_at IS NULL"),
        params![token.as_str(), now],
    )
}

/// Deletes at most `limit` tokens that ended before `before`; returns how many.
pub fn prune_tokens(tx: &mut Tx<'_>, before: Timestamp, limit: usize) -> db::Result<u64> {
    tx.execute(
        sql!(
            "DELETE FROM prompt_tokens WHERE token IN
               (SELECT token FROM prompt_tokens WHERE expires_at < ?1 ORDER BY expires_at LIMIT ?2)"
        ),
        params![before, limit],
    )
}
