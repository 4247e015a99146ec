//! Entries by their address, whichever blog they were seen on.

use crate::db::{self, Tx};
use crate::time::Timestamp;
use crate::{params, sql};

/// An entry that was seen on a blog.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct EntryRow {
    /// The blog.
    pub blog_id: String,
    /// What it is recognised by.
    #[serde(skip)]
    pub key: String,
    /// Its address as found.
    pub url: Option<String>,
    /// Its title or link text.
    pub title: Option<String>,
    /// When it was published, as far as that is said.
    pub published_at: Option<Timestamp>,
    /// When it was seen first.
    pub first_seen_at: Timestamp,
}

/// Every entry whose address compares as `url_key`, by blog. The indexes begin with the blog, so each is asked.
pub fn list_entries_at(tx: &mut Tx<'_>, url_key: &str) -> db::Result<Vec<EntryRow>> {
    tx.list(
        sql!(
            "SELECT e.blog_id, e.entry_key, e.url, e.title, e.published_at, e.first_seen_at
             FROM blog_state s JOIN blog_entries e ON e.blog_id = s.blog_id AND e.url_key = ?1
             UNION
             SELECT e.blog_id, e.entry_key, e.url, e.title, e.published_at, e.first_seen_at
             FROM blog_state s JOIN blog_entries e ON e.blog_id = s.blog_id AND e.entry_key = ?1
             ORDER BY 1, 6, 2"
        ),
        params![url_key],
        |row| {
            Ok(EntryRow {
                blog_id: row.get(0)?,
                key: row.get(1)?,
                url: row.get(2)?,
                title: row.get(3)?,
                published_at: row.get(4)?,
                first_seen_at: row.get(5)?,
            })
        },
    )
}
