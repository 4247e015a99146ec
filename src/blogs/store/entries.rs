//! All entries ever seen on blogs: queried by key and by address.

use std::collections::HashSet;

use crate::blogs::decide::SeenEntries;
use crate::blogs::model::{FoundEntry, RECENT_KEYS};
use crate::db::{self, FromRow, Sql, ToValue as _, Tx, Value};
use crate::time::Timestamp;
use crate::{params, sql, sql_rows};

/// An entry that was seen on a blog.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, FromRow)]
pub struct EntryRow {
    pub blog_id: String,
    #[serde(skip)]
    pub key: String,
    /// Its address as found.
    pub url: Option<String>,
    /// Its title or link text.
    pub title: Option<String>,
    /// When it was published, if known.
    pub published_at: Option<Timestamp>,
    pub first_seen_at: Timestamp,
}

/// Every entry with the comparison key `url_key`, by blog.
///
/// The indexes begin with the blog, so each blog is queried: `CROSS JOIN` forces SQLite to that order.
pub fn list_entries_at(tx: &mut Tx<'_>, url_key: &str) -> db::Result<Vec<EntryRow>> {
    tx.list(
        sql!(
            "SELECT e.blog_id, e.entry_key AS key, e.url, e.title, e.published_at, e.first_seen_at
             FROM blog_state s CROSS JOIN blog_entries e WHERE e.blog_id = s.blog_id AND e.url_key = ?1
             UNION
             SELECT e.blog_id, e.entry_key AS key, e.url, e.title, e.published_at, e.first_seen_at
             FROM blog_state s CROSS JOIN blog_entries e WHERE e.blog_id = s.blog_id AND e.entry_key = ?1
             ORDER BY 1, 6, 2"
        ),
        params![url_key],
        FromRow::from_row,
    )
}

/// Which of `entries` were seen: by key, by address, or by another of their keys.
pub fn find_seen(tx: &mut Tx<'_>, blog_id: &str, entries: &[FoundEntry]) -> db::Result<SeenEntries> {
    let by_key =
        sql!("SELECT entry_key FROM blog_entries WHERE blog_id = ?101 AND entry_key IN ({values 100x1})");
    let by_address =
        sql!("SELECT url_key FROM blog_entries WHERE blog_id = ?101 AND url_key IN ({values 100x1})");
    let addresses = || entries.iter().filter_map(|entry| entry.url_key.as_deref());
    let other_addresses =
        entries.iter().filter_map(|entry| entry.url_key.as_deref().filter(|address| **address != entry.key));
    let candidates = entries.iter().map(|entry| entry.key.as_str()).chain(other_addresses);
    let keys = find_known(tx, by_key, blog_id, candidates)?;
    // An address that is a key is in no other column.
    let candidates = addresses().filter(|address| !keys.contains(*address));
    let mut url_keys = find_known(tx, by_address, blog_id, candidates)?;
    url_keys.extend(addresses().filter(|address| keys.contains(*address)).map(str::to_owned));
    let mut seen = SeenEntries { keys, url_keys, ..SeenEntries::default() };
    let others: Vec<(String, &FoundEntry)> = entries
        .iter()
        .filter(|entry| !seen.knows(entry))
        .flat_map(|entry| entry.other_keys().into_iter().map(move |key| (key, entry)))
        .collect();
    let known = find_known(tx, by_key, blog_id, others.iter().map(|(key, _)| key.as_str()))?;
    seen.renamed =
        others.iter().filter(|(key, _)| known.contains(key)).map(|(_, entry)| entry.key.clone()).collect();
    Ok(seen)
}

/// Titles and dates of those of the entries that were seen.
pub fn list_titles(
    tx: &mut Tx<'_>,
    blog_id: &str,
    keys: &[String],
) -> db::Result<Vec<(Option<String>, Option<Timestamp>)>> {
    let Some(first) = keys.first() else { return Ok(Vec::new()) };
    // Fill the remaining parameters with the first key.
    let padded = keys.iter().chain(std::iter::repeat(first)).take(RECENT_KEYS);
    let params: Vec<Value<'_>> = padded.map(|key| key.to_value()).chain([blog_id.to_value()]).collect();
    let by_key = sql!(
        "SELECT title, published_at FROM blog_entries WHERE blog_id = ?51 AND entry_key IN ({values 50x1})"
    );
    tx.list(by_key, &params, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Which of `keys` the statement finds, queried a hundred at a time: a sitemap has tens of thousands.
fn find_known<'a>(
    tx: &mut Tx<'_>,
    sql: &'static Sql,
    blog_id: &'a str,
    mut keys: impl Iterator<Item = &'a str>,
) -> db::Result<HashSet<String>> {
    let mut known = HashSet::new();
    while let Some(first) = keys.next() {
        // Fill the remaining parameters with the first key.
        let padded = std::iter::once(first).chain(keys.by_ref()).chain(std::iter::repeat(first)).take(100);
        let params: Vec<Value<'_>> = padded.map(str::to_value).chain([blog_id.to_value()]).collect();
        known.extend(tx.list(sql, &params, |row| row.get::<String>(0))?);
    }
    Ok(known)
}

/// Adds unknown entries, many rows in one statement.
pub(super) fn add_entries(
    tx: &mut Tx<'_>,
    blog_id: &str,
    entries: &[FoundEntry],
    now: Timestamp,
) -> db::Result<()> {
    let now = now.to_string();
    let mut rows = Vec::with_capacity(entries.len() * ENTRY_COLUMNS);
    for entry in entries {
        rows.extend([
            blog_id.to_value(),
            entry.key.to_value(),
            entry.url.to_value(),
            match &entry.url_key {
                Some(address) if *address != entry.key => address.to_value(),
                _ => Value::Null,
            },
            entry.title.to_value(),
            entry.published_at.to_value(),
            now.to_value(),
        ]);
    }
    tx.execute_rows(
        sql_rows!(
            "INSERT INTO blog_entries (blog_id, entry_key, url, url_key, title, published_at, first_seen_at)
             {rows} ON CONFLICT (blog_id, entry_key) DO NOTHING"
        ),
        &rows,
    )?;
    Ok(())
}

const ENTRY_COLUMNS: usize = 7;
