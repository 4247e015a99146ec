//! The SQL of blogs: their state, their history, everything seen on them, and what is to be told.

mod changes;
mod entries;
mod export;
mod history;
mod import;

use std::collections::{HashMap, HashSet};

pub use changes::{
    ChangeDelivery, ChangeFilter, ChangeRow, are_unannounced, count_unannounced, find_change,
    find_found_since, list_changes, list_changes_before, list_deliveries_of, list_unannounced, mark_digest,
    prune_changes,
};
use entries::add_entries;
pub use entries::{EntryRow, find_seen, list_entries_at};
pub use export::{list_changes_after, list_feeds};
pub use history::{CheckRow, list_checks, prune_history, prune_stray_history};
pub use import::{ImportedCheck, ImportedState, add_check as add_imported_check, add_state};

use super::decide::{Check, Decision, Record};
use super::events::{BLOG, BlogEvent, subject};
use super::model::{Detector, DetectorResult, KnownDocument, RecentKeys, Sighting, State};
use crate::db::{self, Row, Tx};
use crate::engine::alert::{self, AlertKind};
use crate::engine::silence::Silence;
use crate::fetch::Moved;
use crate::id::JobName;
use crate::ledger::event::EventDetail as _;
use crate::ledger::{Subject, event, pause};
use crate::parse::url::Url;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql};

crate::migration!(3, "blogs", "../../../migrations/0003_blogs.sql");

/// What is remembered about a blog.
pub fn find_state(tx: &mut Tx<'_>, blog_id: &str) -> db::Result<Option<State>> {
    tx.find(
        sql!(
            "SELECT etag, last_modified, url_fingerprint, feed_url, sitemap_url, recent_entry_keys, last_check_at,
               last_change_at, decided_by, validators_url, other_validators, settings_hash,
               next_feed_discovery_at, next_sitemap_discovery_at, feed_first_read_at, sitemap_first_read_at,
               html_first_read_at, last_success_at, last_full_read_at, url_count, unconfirmed, moved_to,
               moved_count, failures_in_a_row, failing_since, warned_at, not_before, other_feeds, news_days,
               silent_at, feed_newest_at, looked_beside_at, feed_stopped_at, cut
             FROM blog_state WHERE blog_id = ?1"
        ),
        params![blog_id],
        read_state,
    )
}

fn read_state(row: &Row<'_>) -> db::Result<State> {
    let decided_by = row.get::<Option<String>>("decided_by")?.and_then(|word| Detector::from_word(&word));
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
        recent_entry_keys: RecentKeys::from_stored(row.get("recent_entry_keys")?),
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

/// A column of JSON; what cannot be read is as good as nothing: it is only a memory aid.
fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: &str) -> db::Result<Option<T>> {
    Ok(row.get::<Option<String>>(column)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Blogs that are left alone, with the reason.
pub fn list_paused(tx: &mut Tx<'_>, now: Timestamp) -> db::Result<HashMap<String, Phrase>> {
    let pauses = pause::list(tx, now)?;
    Ok(pauses
        .into_iter()
        .filter_map(|pause| Some((pause.name.name_of(BLOG)?.to_owned(), pause.reason)))
        .collect())
}

/// Writes down what a check means: its history row, the state, the memory, and what is to be told.
pub fn apply(
    tx: &mut Tx<'_>,
    job: &JobName,
    blog_id: &str,
    decision: &Decision,
    sighting: &Sighting,
    known_at: Option<Timestamp>,
) -> db::Result<()> {
    let now = sighting.checked_at;
    add_check(tx, blog_id, &decision.check, now)?;
    match &decision.state {
        None => mark_checked(tx, blog_id, now)?,
        Some(state) => put_state(tx, job, blog_id, state, now)?,
    }
    let record = match (&decision.record, &sighting.outcome) {
        (Record::These(entries), _) | (Record::All, Ok(DetectorResult::Entries { entries, .. })) => {
            entries.as_slice()
        }
        (Record::All, _) => &[],
    };
    add_entries(tx, blog_id, record, now)?;
    for change in &decision.changes {
        changes::add(tx, job, blog_id, change, known_at, now)?;
    }
    if !decision.events.is_empty() {
        let subject = subject(blog_id);
        for event in &decision.events {
            event::record(tx, Some(job), &subject, event, now)?;
            note_alert(tx, &subject, event, now)?;
        }
    }
    if let Some(reason) = &decision.pause {
        pause::put(tx, &subject(blog_id), None, &Phrase::verbatim(reason), now)?;
    }
    Ok(())
}

/// The operator hears of a blog that fails or has fallen silent; one that is gone is paused, which is an alert by itself.
fn note_alert(tx: &mut Tx<'_>, blog: &Subject, event: &BlogEvent, now: Timestamp) -> db::Result<()> {
    match event {
        BlogEvent::Failing(_) => alert::raise(tx, AlertKind::Failing, blog, &event.phrase(), now),
        BlogEvent::Recovered { .. } | BlogEvent::Gone(_) => alert::clear(tx, AlertKind::Failing, blog, now),
        BlogEvent::Silent { .. } => alert::raise(tx, AlertKind::Silent, blog, &event.phrase(), now),
        BlogEvent::SilenceOver => alert::clear(tx, AlertKind::Silent, blog, now),
        _ => Ok(()),
    }
}

/// The blogs with an alert or a pause that the job has had and `is_configured` does not know any more.
pub fn list_left_behind(
    tx: &mut Tx<'_>,
    job: &JobName,
    is_configured: impl Fn(&str) -> bool,
    now: Timestamp,
) -> db::Result<Vec<Subject>> {
    let alerts = alert::list_open(tx)?.into_iter().map(|alert| alert.subject());
    let pauses = pause::list(tx, now)?.into_iter().map(|pause| pause.name);
    let mut left = Vec::new();
    for about in alerts.chain(pauses).collect::<HashSet<Subject>>() {
        let Some(blog) = about.name_of(BLOG).filter(|blog| !is_configured(blog)) else { continue };
        let text = sql!("SELECT COUNT(*) FROM blog_state WHERE blog_id = ?1 AND job_name = ?2");
        if tx.count(text, params![blog, job])? > 0 {
            left.push(about);
        }
    }
    Ok(left)
}

/// Ends the pause and the alerts of a blog that has left the config.
pub fn reset_left(tx: &mut Tx<'_>, blog: &Subject, now: Timestamp) -> db::Result<()> {
    pause::reset(tx, blog)?;
    alert::clear(tx, AlertKind::Failing, blog, now)?;
    alert::clear(tx, AlertKind::Silent, blog, now)
}

fn add_check(tx: &mut Tx<'_>, blog_id: &str, check: &Check, now: Timestamp) -> db::Result<()> {
    tx.execute(
        sql!(
            "INSERT INTO check_history
               (blog_id, checked_at, http_status, skipped, changed, url_fingerprint, error_message, cut)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        ),
        params![
            blog_id,
            now,
            check.http_status.map(i64::from),
            check.skipped,
            check.changed,
            check.url_fingerprint,
            check.error_message,
            check.cut.as_ref().map(text)
        ],
    )?;
    Ok(())
}

/// Nothing changed: only the time of the check is new.
fn mark_checked(tx: &mut Tx<'_>, blog_id: &str, now: Timestamp) -> db::Result<()> {
    tx.execute(
        sql!("UPDATE blog_state SET last_check_at = ?2, last_success_at = ?2 WHERE blog_id = ?1"),
        params![blog_id, now],
    )?;
    Ok(())
}

fn put_state(tx: &mut Tx<'_>, job: &JobName, blog_id: &str, state: &State, now: Timestamp) -> db::Result<()> {
    let decider = state.known.first().filter(|known| Some(known.detector) == state.decided_by);
    let others = &state.known[usize::from(decider.is_some())..];
    let others = (!others.is_empty()).then(|| text(others));
    tx.execute(
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
               sitemap_url = excluded.sitemap_url, recent_entry_keys = excluded.recent_entry_keys,
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
    )?;
    Ok(())
}

fn text<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("our own plain types become JSON")
}

/// Blogs that have a state, with their job and last check, by id; for those that have left the config.
pub fn list_known_blogs(tx: &mut Tx<'_>) -> db::Result<Vec<(String, String, Timestamp)>> {
    tx.list(
        sql!("SELECT blog_id, job_name, last_check_at FROM blog_state ORDER BY blog_id"),
        params![],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )
}

/// Blogs that are not to be checked before a later moment: id, job, that moment, and the last check.
pub fn list_not_before(
    tx: &mut Tx<'_>,
    now: Timestamp,
) -> db::Result<Vec<(String, String, Timestamp, Timestamp)>> {
    tx.list(
        sql!(
            "SELECT blog_id, job_name, not_before, last_check_at FROM blog_state WHERE not_before > ?1
             ORDER BY not_before, blog_id"
        ),
        params![now],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )
}

/// Resumes a blog; `false` if it was not paused.
pub fn resume(tx: &mut Tx<'_>, blog_id: &str, now: Timestamp) -> db::Result<bool> {
    let was_paused = pause::reset(tx, &subject(blog_id))?;
    if was_paused {
        event::record(tx, None, &subject(blog_id), &BlogEvent::Resumed, now)?;
    }
    Ok(was_paused)
}
