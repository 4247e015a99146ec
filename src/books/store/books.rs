//! Books and the jobs that found them.

use crate::books::model::{Book, BookLink, GOOGLE_BOOKS, Isbn13};
use crate::db::{self, Row, Tx};
use crate::id::JobName;
use crate::time::Timestamp;
use crate::{params, sql};

/// The beginning of every query for books: the columns of `books b` that [`read`] needs.
macro_rules! select_books {
    () => {
        "SELECT b.isbn13, b.title, b.authors_json, b.publisher, b.published_date, b.description, b.cover_url,
           b.links_json"
    };
}
pub(super) use select_books;

pub(super) fn read(row: &Row<'_>) -> db::Result<Book> {
    // An invalid value of another program counts as unknown.
    let list =
        |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let links = |text: Option<String>| -> Vec<BookLink> {
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    };
    Ok(Book {
        isbn13: row.get("isbn13")?,
        title: row.get("title")?,
        authors: list(row.get("authors_json")?),
        publisher: row.get("publisher")?,
        published_date: row.get("published_date")?,
        description: row.get("description")?,
        cover_url: row.get("cover_url")?,
        links: links(row.get("links_json")?),
    })
}

/// Upserts a book: `first_seen_at` stays, `last_seen_at` is updated, and no known value is lost.
pub fn put_book(tx: &mut Tx<'_>, book: &Book, now: Timestamp) -> db::Result<()> {
    let authors = (!book.authors.is_empty()).then(|| serde_json::json!(book.authors).to_string());
    let links = (!book.links.is_empty()).then(|| serde_json::json!(book.links).to_string());
    tx.run(
        sql!(
            "INSERT INTO books (isbn13, title, authors_json, publisher, published_date, description, cover_url,
               links_json, source, first_seen_at, last_seen_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)
             ON CONFLICT (isbn13) DO UPDATE SET
               title = CASE WHEN excluded.title = excluded.isbn13 THEN books.title ELSE excluded.title END,
               authors_json = COALESCE(excluded.authors_json, books.authors_json),
               publisher = COALESCE(excluded.publisher, books.publisher),
               published_date = COALESCE(excluded.published_date, books.published_date),
               description = COALESCE(excluded.description, books.description),
               cover_url = COALESCE(excluded.cover_url, books.cover_url),
               links_json = COALESCE(excluded.links_json, books.links_json),
               last_seen_at = {greatest}(books.last_seen_at, excluded.last_seen_at)"
        ),
        params![
            book.isbn13,
            book.title,
            authors,
            book.publisher,
            book.published_date,
            book.description,
            book.cover_url,
            links,
            GOOGLE_BOOKS,
            now
        ],
    )
}

/// Records that a job found a book; `true` if it had not found it before.
pub fn add_job_book(
    tx: &mut Tx<'_>,
    job: &JobName,
    isbn13: &Isbn13,
    is_waiting: bool,
    now: Timestamp,
) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO job_books (job_name, isbn13, first_seen_at, is_waiting) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (job_name, isbn13) DO NOTHING"
        ),
        params![job, isbn13, now, is_waiting],
    )
}

/// Marks whether the filters of a job exclude a book that it found.
pub fn mark_unwanted(tx: &mut Tx<'_>, job: &JobName, isbn13: &Isbn13, is_unwanted: bool) -> db::Result<bool> {
    let marked = if is_unwanted {
        tx.execute(
            sql!(
                "UPDATE job_books SET is_waiting = 0, is_unwanted = 1
             WHERE job_name = ?1 AND isbn13 = ?2 AND is_waiting = 1"
            ),
            params![job, isbn13],
        )?
    } else {
        tx.execute(
            sql!(
                "UPDATE job_books SET is_waiting = 1, is_unwanted = 0
             WHERE job_name = ?1 AND isbn13 = ?2 AND is_unwanted = 1"
            ),
            params![job, isbn13],
        )?
    };
    Ok(marked == 1)
}

/// Whether a job has ever found a book.
pub fn has_books(tx: &mut Tx<'_>, job: &JobName) -> db::Result<bool> {
    tx.exists(sql!("SELECT 1 FROM job_books WHERE job_name = ?1 LIMIT 1"), params![job])
}

/// Whether a job has found that book.
pub fn has_book(tx: &mut Tx<'_>, job: &JobName, isbn13: &Isbn13) -> db::Result<bool> {
    let known = sql!("SELECT count(*) FROM job_books WHERE job_name = ?1 AND isbn13 = ?2");
    Ok(tx.count(known, params![job, isbn13])? > 0)
}

/// A book by its key.
pub fn find_book(tx: &mut Tx<'_>, isbn13: &Isbn13) -> db::Result<Option<Book>> {
    tx.find(sql!(concat!(select_books!(), " FROM books b WHERE b.isbn13 = ?1")), params![isbn13], read)
}
