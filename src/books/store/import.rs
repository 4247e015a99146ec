//! Books and deliveries of another program: added unchanged; existing rows stay.

use crate::books::token::Token;
use crate::db::{self, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// A book of another program; the JSON columns as it wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedBook {
    pub isbn13: String,
    pub title: String,
    /// Its authors, as a JSON array.
    pub authors_json: Option<String>,
    pub publisher: Option<String>,
    pub published_date: Option<String>,
    pub description: Option<String>,
    pub cover_url: Option<String>,
    /// Links about it, as a JSON array.
    pub links_json: Option<String>,
    pub source: String,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub last_delivered_at: Option<Timestamp>,
}

/// Adds a book unless it is known; of a known one, only a later delivery time is taken.
pub fn add_book(tx: &mut Tx<'_>, book: &ImportedBook) -> db::Result<bool> {
    let added = tx.execute(
        sql!(
            "INSERT INTO books (isbn13, title, authors_json, publisher, published_date, description, cover_url,
               links_json, source, first_seen_at, last_seen_at, last_delivered_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (isbn13) DO NOTHING"
        ),
        params![
            book.isbn13,
            book.title,
            book.authors_json,
            book.publisher,
            book.published_date,
            book.description,
            book.cover_url,
            book.links_json,
            book.source,
            book.first_seen_at,
            book.last_seen_at,
            book.last_delivered_at
        ],
    )?;
    if added == 0
        && let Some(at) = book.last_delivered_at
    {
        tx.execute(
            sql!(
                "UPDATE books SET last_delivered_at = ?2
                 WHERE isbn13 = ?1 AND (last_delivered_at IS NULL OR last_delivered_at < ?2)"
            ),
            params![book.isbn13, at],
        )?;
    }
    Ok(added == 1)
}

/// Adds a delivery unless it exists; returns its number and whether it was new.
pub fn add_delivery(
    tx: &mut Tx<'_>,
    job: &str,
    delivered_at: Timestamp,
    isbn13_list_json: &str,
) -> db::Result<(i64, bool)> {
    let known = tx.find(
        sql!(
            "SELECT id FROM deliveries WHERE job_name = ?1 AND delivered_at = ?2 AND isbn13_list_json = ?3
             ORDER BY id LIMIT 1"
        ),
        params![job, delivered_at, isbn13_list_json],
        |row| row.get(0),
    )?;
    if let Some(id) = known {
        return Ok((id, false));
    }
    let id = tx.count(
        sql!("INSERT INTO deliveries (job_name, delivered_at, isbn13_list_json) VALUES (?1, ?2, ?3) RETURNING id"),
        params![job, delivered_at, isbn13_list_json],
    )?;
    Ok((id, true))
}

/// Records that a job delivered a book, unless that is known.
pub fn add_delivery_item(
    tx: &mut Tx<'_>,
    delivery_id: i64,
    job: &str,
    isbn13: &str,
    delivered_at: Timestamp,
) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO delivery_items (delivery_id, job_name, isbn13, delivered_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (job_name, isbn13) DO NOTHING"
        ),
        params![delivery_id, job, isbn13, delivered_at],
    )
}

/// Records that a job has found a book and sent it at `sent_at`, so that it is not sent as new.
pub fn mark_sent(
    tx: &mut Tx<'_>,
    job: &str,
    isbn13: &str,
    sent_at: Option<Timestamp>,
    now: Timestamp,
) -> db::Result<()> {
    tx.run(
        sql!(
            "INSERT INTO job_books (job_name, isbn13, first_seen_at, is_waiting, last_sent_at)
             VALUES (?1, ?2, COALESCE((SELECT first_seen_at FROM books WHERE isbn13 = ?2), ?4), 0, ?3)
             ON CONFLICT (job_name, isbn13) DO UPDATE SET is_waiting = 0, last_sent_at =
               CASE WHEN job_books.last_sent_at IS NULL OR job_books.last_sent_at < excluded.last_sent_at
                 THEN COALESCE(excluded.last_sent_at, job_books.last_sent_at) ELSE job_books.last_sent_at END"
        ),
        params![job, isbn13, sent_at, now],
    )
}

/// Records that a job has found a book and not sent it; an existing row stays.
pub fn add_waiting(tx: &mut Tx<'_>, job: &str, isbn13: &str, first_seen_at: Timestamp) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO job_books (job_name, isbn13, first_seen_at, is_waiting) VALUES (?1, ?2, ?3, 1)
             ON CONFLICT (job_name, isbn13) DO NOTHING"
        ),
        params![job, isbn13, first_seen_at],
    )
}

/// Whether a job has sent the book.
pub fn is_delivered(tx: &mut Tx<'_>, job: &str, isbn13: &str) -> db::Result<bool> {
    let known = sql!("SELECT COUNT(*) FROM delivery_items WHERE job_name = ?1 AND isbn13 = ?2");
    Ok(tx.count(known, params![job, isbn13])? > 0)
}

/// Adds a prompt unless it exists; returns its number and whether it was new.
pub fn add_prompt(
    tx: &mut Tx<'_>,
    isbn13: &str,
    prompt_text: &str,
    created_at: Timestamp,
) -> db::Result<(i64, bool)> {
    let known = tx.find(
        sql!(
            "SELECT id FROM prompts WHERE isbn13 = ?1 AND prompt_text = ?2 AND created_at = ?3
             ORDER BY id LIMIT 1"
        ),
        params![isbn13, prompt_text, created_at],
        |row| row.get(0),
    )?;
    if let Some(id) = known {
        return Ok((id, false));
    }
    let id = tx.count(
        sql!("INSERT INTO prompts (isbn13, prompt_text, created_at) VALUES (?1, ?2, ?3) RETURNING id"),
        params![isbn13, prompt_text, created_at],
    )?;
    Ok((id, true))
}

/// Adds a token of another program, unless it is known.
pub fn add_known_token(
    tx: &mut Tx<'_>,
    token: &Token,
    prompt_id: i64,
    expires_at: Timestamp,
    created_at: Timestamp,
) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO prompt_tokens (token, prompt_id, expires_at, created_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (token) DO NOTHING"
        ),
        params![token.as_str(), prompt_id, expires_at, created_at],
    )
}
