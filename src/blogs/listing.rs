//! The listing of blogs: state, last check and next check of each.

use serde::Serialize;

use super::config::Blog;
use super::decide;
use super::events::{BlogEvent, subject};
use super::view::silent_since;
use super::{model, store};
use crate::config::value::Span;
use crate::db::{self, Tx};
use crate::engine::view::State;
use crate::id::JobName;
use crate::ledger::event::EventDetail as _;
use crate::ledger::pause;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// A blog of the config with its state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlogRow {
    pub blog_id: String,
    pub job_name: String,
    pub title: String,
    pub url: String,
    pub state: State,
    /// The reason of the state, if there is one.
    pub why: Option<Phrase>,
    /// The detector of the last successful check.
    pub decided_by: Option<model::Detector>,
    pub last_check_at: Option<Timestamp>,
    /// The last check that found something new.
    pub last_change_at: Option<Timestamp>,
    /// Failures since the last success.
    pub failures_in_a_row: u32,
    /// The next check; `None` while it is paused, or its job does not run by itself.
    pub next_check_at: Option<Timestamp>,
}

/// The row of a blog; `next_run_at` is when its job runs.
pub fn find_row(
    tx: &mut Tx<'_>,
    job: &JobName,
    blog: &Blog,
    next_run_at: Option<Timestamp>,
    now: Timestamp,
) -> db::Result<BlogRow> {
    let found = store::find_state(tx, &blog.id)?;
    let paused = pause::find(tx, &subject(&blog.id), now)?;
    let is_new = found.is_none();
    let state = found.unwrap_or_default();
    // A pause ends when the settings change.
    let paused = paused.filter(|_| decide::same_settings(blog, &state));
    let waits_until = decide::waits_until(&state, now);
    let own = blog.every.map(Span::duration).zip(state.last_check_at).map(|(every, at)| at.plus(every));
    let silent = silent_since(&state.silence)
        .map(|(last, usual_gap_secs)| BlogEvent::Silent { last, usual_gap_secs }.phrase());
    let standing = if paused.is_some() {
        State::Paused
    } else if is_new {
        State::New
    } else if waits_until.is_some() {
        State::Waiting
    } else if state.failures_in_a_row > 0 {
        State::Failing
    } else {
        State::Ok
    };
    let failed = match standing {
        State::Waiting | State::Failing => store::list_checks(tx, &blog.id, 1)?.pop(),
        _ => None,
    };
    let failure = failed.and_then(|check| check.error_message);
    Ok(BlogRow {
        blog_id: blog.id.clone(),
        job_name: job.to_string(),
        title: blog.name().to_owned(),
        url: blog.url.to_string(),
        state: standing,
        why: paused.as_ref().map(|pause| pause.reason.clone()).or(failure).or(silent),
        decided_by: state.decided_by,
        last_check_at: state.last_check_at,
        last_change_at: state.last_change_at,
        failures_in_a_row: state.failures_in_a_row,
        next_check_at: next_run_at
            .filter(|_| paused.is_none())
            .map(|at| at.max(waits_until.unwrap_or(at)).max(own.unwrap_or(at))),
    })
}
