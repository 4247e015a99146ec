//! Blogs of another program: added unchanged; a blog that was checked before is skipped.

use crate::blogs::model::{FoundEntry, bounded_key, url_key};
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::parse::url::resolve_web;
use crate::time::Timestamp;
use crate::{params, sql};

/// The state of a blog in another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedState {
    pub blog_id: String,
    /// The `ETag` of its page.
    pub etag: Option<String>,
    /// The `Last-Modified` of its page.
    pub last_modified: Option<String>,
    /// The hash of its addresses, by the other program's rules.
    pub url_fingerprint: Option<String>,
    pub feed_url: Option<String>,
    pub sitemap_url: Option<String>,
    /// The keys of its newest entries.
    pub recent_entry_keys: Vec<String>,
    pub last_check_at: Timestamp,
    /// The last check that found something new.
    pub last_change_at: Option<Timestamp>,
    /// The last successful check.
    pub last_success_at: Timestamp,
}

/// Adds a state and its seen entries, unless the blog has a state; `true` if it was new.
///
/// No detector counts as read yet, so our first check is careful: it announces only entries of a feed that are dated
/// after the last check and whose key or address is not among the seen ones. Validators are stored but not used,
/// because they belong to the page and not to the document that we read.
pub fn add_state(tx: &mut Tx<'_>, job: &JobName, state: &ImportedState) -> db::Result<bool> {
    let recent = (!state.recent_entry_keys.is_empty()).then(|| super::text(&state.recent_entry_keys));
    let added = tx.execute(
        sql!(
            "INSERT INTO blog_state (blog_id, etag, last_modified, url_fingerprint, feed_url, sitemap_url,
               recent_entry_keys, last_check_at, last_change_at, last_success_at, job_name)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (blog_id) DO NOTHING"
        ),
        params![
            state.blog_id,
            state.etag,
            state.last_modified,
            state.url_fingerprint,
            state.feed_url,
            state.sitemap_url,
            recent,
            state.last_check_at,
            state.last_change_at,
            state.last_success_at,
            job
        ],
    )?;
    if added == 0 {
        return Ok(false);
    }
    let remembered: Vec<FoundEntry> = state.recent_entry_keys.iter().map(|key| remembered(key)).collect();
    super::add_entries(tx, &state.blog_id, &remembered, state.last_check_at)?;
    Ok(true)
}

/// Converts a key of another program: an id, and an address if it is one.
fn remembered(key: &str) -> FoundEntry {
    let url = resolve_web(None, key).filter(|_| key.contains("://"));
    let ours =
        if key.starts_with("id:") || key.starts_with("link:") { key.to_owned() } else { format!("id:{key}") };
    FoundEntry {
        key: bounded_key(ours),
        url_key: url.as_ref().map(url_key),
        url: url.map(String::from),
        title: None,
        published_at: None,
        text: None,
    }
}

/// A check of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedCheck {
    pub blog_id: String,
    pub checked_at: Timestamp,
    pub http_status: Option<i64>,
    /// Whether nothing was parsed.
    pub skipped: bool,
    /// Whether something new was found.
    pub changed: bool,
    /// Hash of the addresses that were listed.
    pub url_fingerprint: Option<String>,
    pub error_message: Option<String>,
}

/// Adds a check unless it exists; `true` if it was new.
pub fn add_check(tx: &mut Tx<'_>, check: &ImportedCheck) -> db::Result<bool> {
    tx.execute_one(
        sql!(
            "INSERT INTO check_history
               (blog_id, checked_at, http_status, skipped, changed, url_fingerprint, error_message)
             SELECT CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS BIGINT), CAST(?4 AS BIGINT),
               CAST(?5 AS BIGINT), CAST(?6 AS TEXT), CAST(?7 AS TEXT)
             WHERE NOT EXISTS (SELECT 1 FROM check_history
               WHERE blog_id = ?1 AND checked_at = ?2 AND http_status IS NOT DISTINCT FROM ?3 AND skipped = ?4
                 AND changed = ?5 AND url_fingerprint IS NOT DISTINCT FROM ?6
                 AND error_message IS NOT DISTINCT FROM ?7)"
        ),
        params![
            check.blog_id,
            check.checked_at,
            check.http_status,
            check.skipped,
            check.changed,
            check.url_fingerprint,
            check.error_message
        ],
    )
}
