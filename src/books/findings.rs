//! Books in feeds and search results.

use super::events;
use super::model::Book;
use super::store;
use crate::db::{self, Tx};
use crate::engine::finding::FoundThing;
use crate::id::JobName;
use crate::time::Timestamp;

pub(super) fn list(tx: &mut Tx<'_>, job: Option<&JobName>, limit: usize) -> db::Result<Vec<FoundThing>> {
    let books = store::list_books_behind(tx, None, job, false, limit)?;
    Ok(books.into_iter().map(|seen| finding(seen.row.book, seen.seen_at)).collect())
}

fn finding(book: Book, seen_at: Timestamp) -> FoundThing {
    FoundThing {
        about: events::book(&book.isbn13).to_string(),
        title: book.title,
        link: book.links.into_iter().next().map(|link| link.url),
        at: Some(seen_at),
        summary: book.description,
        names: book.authors.into_iter().chain(book.publisher).chain([book.isbn13.to_string()]).collect(),
    }
}
