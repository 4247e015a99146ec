//! The stored states of blogs.

use std::collections::HashMap;

use super::chunks::CHUNK;
use super::text;
use crate::blogs::model::{Detector, KnownDocument, RecentKeys, State};
use crate::db::{self, Row, ToValue as _, Tx, Value};
use crate::engine::silence::Silence;
use crate::fetch::Moved;
use crate::id::JobName;
use crate::parse::url::Url;
use crate::time::Timestamp;
use crate::{params, sql};

/// The columns of a state in the order in which [`read_state`] reads them, but for the recent keys.
macro_rules! columns {
    () => {
        "decided_by, validators_url, etag, last_modified, other_validators, url_fingerprint, feed_url,
         sitemap_url, last_check_at, last_change_at, settings_hash, next_feed_discovery_at,
         next_sitemap_discovery_at, feed_first_read_at, sitemap_first_read_at, html_first_read_at,
         last_success_at, last_full_read_at, url_count, unconfirmed, moved_to, moved_count,
         failures_in_a_row, failing_since, warned_at, not_before, other_feeds, news_days, silent_at,
         feed_newest_at, looked_beside_at, feed_stopped_at, cut"
    };
}

/// The stored state of a blog.
pub fn find_state(tx: &mut Tx<'_>, blog_id: &str) -> db::Result<Option<State>> {
    let text = sql!(concat!("SELECT ", columns!(), ", recent_entry_keys FROM blog_state WHERE blog_id = ?1"));
    tx.find(text, params![blog_id], |row| {
        let recent_entry_keys = RecentKeys::from_stored(row.get("recent_entry_keys")?);
        Ok(State { recent_entry_keys, ..read_state(row)? })
    })
}

/// The first keys of a blog's feed when it was last read.
pub fn find_recent_keys(tx: &mut Tx<'_>, blog_id: &str) -> db::Result<RecentKeys> {
    let text = sql!("SELECT recent_entry_keys FROM blog_state WHERE blog_id = ?1");
    let keys = tx.find(text, params![blog_id], |row| row.get::<Option<String>>(0))?;
    Ok(RecentKeys::from_stored(keys.flatten()))
}

/// What is remembered about several blogs, by id: at most as many as a chunk has, in one round trip. The recent keys, most of a
/// state's bytes, are left out: only a check that reads entries needs them.
pub fn list_states(tx: &mut Tx<'_>, blog_ids: &[&str]) -> db::Result<HashMap<String, State>> {
    let Some(first) = blog_ids.first() else { return Ok(HashMap::new()) };
    // Fill the remaining parameters with the first id.
    let padded = blog_ids.iter().chain(std::iter::repeat(first)).take(CHUNK);
    let params: Vec<Value<'_>> = padded.map(|id| id.to_value()).collect();
    let text =
        sql!(concat!("SELECT blog_id, ", columns!(), " FROM blog_state WHERE blog_id IN ({values 64x1})"));
    let rows = tx.list(text, &params, |row| Ok((row.get("blog_id")?, read_state(row)?)))?;
    Ok(rows.into_iter().collect())
}

fn read_state(row: &Row<'_>) -> db::Result<State> {
    let decided_by = row.get::<Option<String>>("decided_by")?.and_then(|word| word.parse().ok());
    let mut known = Vec::new();
    if let (Some(detector), Some(url)) = (decided_by, url(row, "validators_url")?) {
        known.push(KnownDocument {
            detector,
            url,
            etag: row.get("etag")?,
            last_modified: row.get("last_modified")?,
            lastmod: None,
        });
    }
    known.extend(json::<Vec<KnownDocument>>(row, "other_validators")?.unwrap_or_default());
    Ok(State {
        known,
        url_fingerprint: row.get("url_fingerprint")?,
        feed_url: url(row, "feed_url")?,
        sitemap_url: url(row, "sitemap_url")?,
        recent_entry_keys: RecentKeys::default(),
        last_check_at: row.get("last_check_at")?,
        last_change_at: row.get("last_change_at")?,
        decided_by,
        settings_hash: row.get("settings_hash")?,
        next_feed_discovery_at: row.get("next_feed_discovery_at")?,
        next_sitemap_discovery_at: row.get("next_sitemap_discovery_at")?,
        feed_first_read_at: row.get("feed_first_read_at")?,
        sitemap_first_read_at: row.get("sitemap_first_read_at")?,
        html_first_read_at: row.get("html_first_read_at")?,
        last_success_at: row.get("last_success_at")?,
        last_full_read_at: row.get("last_full_read_at")?,
        url_count: usize::try_from(row.get::<i64>("url_count")?).unwrap_or(0),
        unconfirmed: json(row, "unconfirmed")?,
        moved: Moved { to: url(row, "moved_to")?, count: row.get("moved_count")? },
        failures_in_a_row: row.get("failures_in_a_row")?,
        failing_since: row.get("failing_since")?,
        warned_at: row.get("warned_at")?,
        not_before: row.get("not_before")?,
        other_feeds: json(row, "other_feeds")?.unwrap_or_default(),
        silence: Silence::from_stored(
            row.get::<Option<String>>("news_days")?.as_deref(),
            row.get("silent_at")?,
        ),
        feed_newest_at: row.get("feed_newest_at")?,
        looked_beside_at: row.get("looked_beside_at")?,
        feed_stopped_at: row.get("feed_stopped_at")?,
        cut: json(row, "cut")?,
    })
}

fn url(row: &Row<'_>, column: &str) -> db::Result<Option<Url>> {
    Ok(row.get::<Option<String>>(column)?.and_then(|text| text.parse().ok()))
}

/// A JSON column; `None` if it cannot be parsed, because it is only an optimisation.
pub(super) fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: &str) -> db::Result<Option<T>> {
    Ok(row.get::<Option<String>>(column)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Writes only the time of the check.
pub(super) fn mark_checked(tx: &mut Tx<'_>, blog_id: &str, now: Timestamp) -> db::Result<()> {
    tx.run(
        sql!("UPDATE blog_state SET last_check_at = ?2, last_success_at = ?2 WHERE blog_id = ?1"),
        params![blog_id, now],
    )
}

/// Remembers what a check has changed; recent keys that were not read stay.
pub(super) fn put_state(
    tx: &mut Tx<'_>,
    job: &JobName,
    blog_id: &str,
    state: &State,
    now: Timestamp,
) -> db::Result<()> {
    let decider = state.known.first().filter(|known| Some(known.detector) == state.decided_by);
    let others = &state.known[usize::from(decider.is_some())..];
    let others = (!others.is_empty()).then(|| text(others));
    tx.run(
        sql!(
            "INSERT INTO blog_state
               (blog_id, etag, last_modified, url_fingerprint, feed_url, sitemap_url, recent_entry_keys,
                last_check_at, last_change_at, job_name, decided_by, validators_url, other_validators,
                settings_hash, next_feed_discovery_at, next_sitemap_discovery_at, feed_first_read_at,
                sitemap_first_read_at, html_first_read_at, last_success_at, last_full_read_at, url_count,
                unconfirmed, moved_to, moved_count, failures_in_a_row, failing_since, warned_at, not_before,
                other_feeds, news_days, silent_at, feed_newest_at, looked_beside_at, feed_stopped_at, cut)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
                ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36)
             ON CONFLICT (blog_id) DO UPDATE SET
               etag = excluded.etag, last_modified = excluded.last_modified,
               url_fingerprint = excluded.url_fingerprint, feed_url = excluded.feed_url,
               sitemap_url = excluded.sitemap_url,
               recent_entry_keys = COALESCE(excluded.recent_entry_keys, blog_state.recent_entry_keys),
               last_check_at = excluded.last_check_at, last_change_at = excluded.last_change_at,
               job_name = excluded.job_name, decided_by = excluded.decided_by,
               validators_url = excluded.validators_url, other_validators = excluded.other_validators,
               settings_hash = excluded.settings_hash,
               next_feed_discovery_at = excluded.next_feed_discovery_at,
               next_sitemap_discovery_at = excluded.next_sitemap_discovery_at,
               feed_first_read_at = excluded.feed_first_read_at,
               sitemap_first_read_at = excluded.sitemap_first_read_at,
               html_first_read_at = excluded.html_first_read_at,
               last_success_at = excluded.last_success_at, last_full_read_at = excluded.last_full_read_at,
               url_count = excluded.url_count, unconfirmed = excluded.unconfirmed,
               moved_to = excluded.moved_to, moved_count = excluded.moved_count,
               failures_in_a_row = excluded.failures_in_a_row, failing_since = excluded.failing_since,
               warned_at = excluded.warned_at, not_before = excluded.not_before,
               other_feeds = excluded.other_feeds, news_days = excluded.news_days,
               silent_at = excluded.silent_at, feed_newest_at = excluded.feed_newest_at,
               looked_beside_at = excluded.looked_beside_at, feed_stopped_at = excluded.feed_stopped_at,
               cut = excluded.cut"
        ),
        params![
            blog_id,
            decider.and_then(|known| known.etag.as_deref()),
            decider.and_then(|known| known.last_modified.as_deref()),
            state.url_fingerprint,
            state.feed_url.as_ref().map(Url::as_str),
            state.sitemap_url.as_ref().map(Url::as_str),
            state.recent_entry_keys.stored(),
            state.last_check_at.unwrap_or(now),
            state.last_change_at,
            job,
            state.decided_by.map(Detector::word),
            decider.map(|known| known.url.as_str()),
            others,
            state.settings_hash,
            state.next_feed_discovery_at,
            state.next_sitemap_discovery_at,
            state.feed_first_read_at,
            state.sitemap_first_read_at,
            state.html_first_read_at,
            state.last_success_at,
            state.last_full_read_at,
            state.url_count,
            state.unconfirmed.as_ref().map(text),
            state.moved.to.as_ref().map(Url::as_str),
            state.moved.count,
            state.failures_in_a_row,
            state.failing_since,
            state.warned_at,
            state.not_before,
            (!state.other_feeds.is_empty()).then(|| text(&state.other_feeds)),
            state.silence.stored(),
            state.silence.noted_at,
            state.feed_newest_at,
            state.looked_beside_at,
            state.feed_stopped_at,
            state.cut.as_ref().map(text)
        ],
    )
}
