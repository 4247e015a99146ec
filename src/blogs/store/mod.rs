//! The SQL of blogs: state, history, seen entries and changes.

mod changes;
pub mod chunks;
mod entries;
mod export;
mod history;
mod import;
mod state;

use std::collections::{HashMap, HashSet};

pub use changes::{
    ChangeDelivery, ChangeFilter, ChangeRow, are_unannounced, count_unannounced, find_change,
    find_found_since, list_changes, list_deliveries_of, list_unannounced, mark_digest, prune_changes,
};
use entries::add_entries;
pub use entries::{EntryRow, find_seen, list_entries_at, list_titles};
pub use export::{list_changes_after, list_feeds};
pub use history::{CheckRow, list_checks, prune_history, prune_stray_history};
pub use import::{ImportedCheck, ImportedState, add_check as add_imported_check, add_state};
pub use state::{find_recent_keys, find_state, list_states};
use state::{mark_checked, put_state};

use super::decide::{Check, Decision, Record};
use super::events::{BLOG, BlogEvent, subject};
use super::model::{DetectorResult, Sighting};
use crate::db::{self, Tx};
use crate::engine::alert::{self, AlertKind};
use crate::id::JobName;
use crate::ledger::event::EventDetail as _;
use crate::ledger::{Subject, event, pause};
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql};

crate::migration!(3, "blogs", "../../../migrations/0003_blogs.sql");
crate::migration!(13, "failing blogs", "../../../migrations/0013_failing_blogs.sql");

/// Paused blogs, with the reason.
pub fn list_paused(tx: &mut Tx<'_>, now: Timestamp) -> db::Result<HashMap<String, Phrase>> {
    let pauses = pause::list(tx, now)?;
    Ok(pauses
        .into_iter()
        .filter_map(|pause| Some((pause.name.name_of(BLOG)?.to_owned(), pause.reason)))
        .collect())
}

/// Writes a decision: its history row, the state, the seen entries and the changes.
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
        pause::put(tx, &subject(blog_id), None, reason, now)?;
    }
    Ok(())
}

/// Updates the alert of a blog that fails or is silent. One that is gone is paused, which is an alert by itself.
fn note_alert(tx: &mut Tx<'_>, blog: &Subject, event: &BlogEvent, now: Timestamp) -> db::Result<()> {
    match event {
        BlogEvent::Failing(_) => alert::raise(tx, AlertKind::Failing, blog, &event.phrase(), now),
        BlogEvent::Recovered { .. } | BlogEvent::Gone(_) => alert::clear(tx, AlertKind::Failing, blog, now),
        BlogEvent::Silent { .. } => alert::raise(tx, AlertKind::Silent, blog, &event.phrase(), now),
        BlogEvent::SilenceOver => alert::clear(tx, AlertKind::Silent, blog, now),
        _ => Ok(()),
    }
}

/// The blogs of the job with an alert or a pause that are no longer in the config (`is_configured`).
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
    tx.run(
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
            check.error_message.as_ref().map(Phrase::to_stored),
            check.cut.as_ref().map(text)
        ],
    )
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

/// Blogs whose `not_before` is in the future: id, job, that moment, and the last check.
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

/// Blogs of a job whose last check failed, at most `limit`: their ids, and until when their servers asked us to wait.
pub fn list_failing(
    tx: &mut Tx<'_>,
    job: &JobName,
    limit: usize,
) -> db::Result<Vec<(String, Option<Timestamp>)>> {
    tx.list(
        sql!(
            "SELECT blog_id, not_before FROM blog_state WHERE job_name = ?1 AND failures_in_a_row > 0
             ORDER BY blog_id LIMIT ?2"
        ),
        params![job, limit],
        |row| Ok((row.get(0)?, row.get(1)?)),
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
