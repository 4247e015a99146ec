//! Looking at blogs without changing anything: what would be detected, why something was told, what is held.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::config::Blog;
use super::decide::{self, Code, Due, Rest};
use super::model::{Detector, Found, Reading, State};
use super::store::{self, ChangeRow, CheckRow, Delivery};
use super::{Blogs, TOPIC, round};
use crate::db::{self, Db, Tx};
use crate::engine::{Plan, PreviewItem, preview};
use crate::ledger::{Subject, event, pause};
use crate::parse::url::Url;
use crate::text::counted;
use crate::time::Timestamp;

/// Blogs that a plan names.
const MAX_NAMED: usize = 20;

/// What a run would do now.
pub(super) fn plan(tx: &mut Tx<'_>, blogs: &[Blog], now: Timestamp) -> db::Result<Plan> {
    let paused = store::list_paused(tx, now)?;
    let mut due = Vec::new();
    let mut waiting = 0;
    let mut sent_away = Vec::new();
    for blog in blogs {
        let state = store::find_state(tx, &blog.id)?;
        let rest = if paused.contains_key(&blog.id) { Rest::Paused } else { Rest::None };
        match decide::due(blog, state.as_ref(), rest, now) {
            Due::Now => due.push(blog),
            Due::NotNow => waiting += 1,
            Due::NotBefore(until) => sent_away.push((&blog.id, until)),
        }
    }
    let mut steps: Vec<String> =
        due.iter().take(MAX_NAMED).map(|blog| format!("check {} ({})", blog.id, blog.url)).collect();
    if due.len() > MAX_NAMED {
        steps.push(format!("check {}", counted(due.len() - MAX_NAMED, "more blog")));
    }
    for (id, until) in sent_away.iter().take(MAX_NAMED) {
        steps.push(format!("leave {id} alone until {until}: its server asked for it"));
    }
    if sent_away.len() > MAX_NAMED {
        let more = counted(sent_away.len() - MAX_NAMED, "more blog");
        steps.push(format!("leave {more} alone: their servers asked for it"));
    }
    if waiting > 0 {
        steps.push(format!("leave {} alone: paused, or not due", counted(waiting, "blog")));
    }
    Ok(Plan { steps })
}

/// What one look at a blog would mean; nothing is written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// The blog.
    pub blog_id: String,
    /// Its page.
    pub url: String,
    /// What would decide.
    pub detector: Option<Detector>,
    /// Its feed, if one is known or was found.
    pub feed_url: Option<String>,
    /// Its sitemap, if one is known or was found.
    pub sitemap_url: Option<String>,
    /// The HTTP status that decided.
    pub http_status: Option<u16>,
    /// Whether the server said that nothing changed.
    pub unchanged: bool,
    /// How many entries count.
    pub entries: usize,
    /// The first of them.
    pub first: Vec<Found>,
    /// What would be told.
    pub new: Vec<Found>,
    /// Why it would be held.
    pub held_because: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

impl Seen {
    /// The same in the words of `job test`.
    pub(super) fn into_preview_item(self) -> PreviewItem {
        let detail = serde_json::json!(self);
        if let Some(error) = self.error {
            return PreviewItem { detail, ..PreviewItem::failed(self.blog_id, error) };
        }
        let by = self.detector.map_or("-", Detector::word);
        let mut found = match self.unchanged {
            true => format!("by {by}: unchanged"),
            false => format!("by {by}: {}, {} to be sent", counted(self.entries, "entry"), self.new.len()),
        };
        if let Some(why) = &self.held_because {
            found += &format!(", held: {why}");
        }
        let shown = if self.new.is_empty() { &self.first } else { &self.new };
        let name = |entry: &Found| {
            entry.title.clone().or_else(|| entry.url.clone()).unwrap_or_else(|| entry.key.clone())
        };
        let first = shown.iter().take(preview::MAX_NAMED).map(name).collect();
        PreviewItem { first, detail, ..PreviewItem::fine(self.blog_id, found) }
    }
}

impl Blogs {
    /// Looks at one blog, or at all of the job, as if it were read in full, and says what would be detected.
    pub async fn preview(&self, db: &Db, only: Option<&str>) -> db::Result<Vec<Seen>> {
        let mut trials = Vec::new();
        for blog in self.list().iter().filter(|blog| only.is_none_or(|id| blog.id == id)) {
            trials.push(self.preview_one(db, blog).await?);
        }
        Ok(trials)
    }

    async fn preview_one(&self, db: &Db, blog: &Blog) -> db::Result<Seen> {
        let id = blog.id.clone();
        let known = db.read(move |tx| store::find_state(tx, &id)).await?.unwrap_or_default();
        let now = self.clock.now();
        // Without the moment of the last full read, nothing is skipped.
        let state = State { last_full_read_at: None, ..known };
        let sighting = self.prober.check(blog, &state, now).await;
        let (blog_of, rules) = (blog.clone(), self.rules.clone());
        let (known, seen) = (state.clone(), sighting.clone());
        let decision = db.read(move |tx| round::decide_check(tx, &blog_of, &rules, &known, &seen)).await?;
        let after = decision.state.map_or(state, |state| *state);
        let (detector, first, entries) = match &sighting.outcome {
            Ok(Reading::Entries { detector, entries, .. }) => {
                (Some(*detector), entries.iter().take(5).cloned().collect(), entries.len())
            }
            Ok(Reading::Unchanged { detector, .. }) => (Some(*detector), Vec::new(), 0),
            Err(_) => (None, Vec::new(), 0),
        };
        let new =
            decision.changes.into_iter().find(|change| change.code == Code::New).map(|change| change.detail);
        let new = new.unwrap_or_default();
        let text = |url: Option<Url>| url.map(String::from);
        Ok(Seen {
            blog_id: blog.id.clone(),
            url: blog.url.to_string(),
            detector,
            feed_url: text(blog.feed.clone().or(after.feed_url)),
            sitemap_url: text(blog.sitemap.clone().or(after.sitemap_url)),
            http_status: sighting.http_status,
            unchanged: decision.check.skipped,
            entries,
            first,
            new: new.entries,
            held_because: new.held_because,
            error: decision.check.error_message,
        })
    }
}

/// Everything that is known about a blog, for `why`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlogView {
    /// The blog.
    pub blog_id: String,
    /// Who decided at the last success.
    pub decided_by: Option<Detector>,
    /// Its feed; `None` when none was found.
    pub feed_url: Option<String>,
    /// Feeds that its page names and that are not read.
    pub other_feeds: Vec<String>,
    /// Its sitemap; `None` when none was found.
    pub sitemap_url: Option<String>,
    /// When a feed is searched for again.
    pub next_feed_discovery_at: Option<Timestamp>,
    /// When a sitemap is searched for again.
    pub next_sitemap_discovery_at: Option<Timestamp>,
    /// The last check.
    pub last_check_at: Option<Timestamp>,
    /// The last check that found something new.
    pub last_change_at: Option<Timestamp>,
    /// Failures since the last success.
    pub failures_in_a_row: u32,
    /// Until when it is not checked because its server asked for it.
    pub not_before: Option<Timestamp>,
    /// Why it is left alone.
    pub paused: Option<String>,
    /// Links that were seen once and wait to be seen again.
    pub unconfirmed: usize,
    /// The newest checks, newest first.
    pub checks: Vec<CheckRow>,
    /// The newest changes, newest first.
    pub changes: Vec<ChangeRow>,
    /// The newest decisions, oldest first.
    pub events: Vec<event::Event>,
}

/// The story of a blog; `None` when it was never checked.
pub fn find_view(
    tx: &mut Tx<'_>,
    blog_id: &str,
    limit: usize,
    now: Timestamp,
) -> db::Result<Option<BlogView>> {
    let Some(state) = store::find_state(tx, blog_id)? else { return Ok(None) };
    let filter = store::Filter { blog: Some(blog_id.to_owned()), ..store::Filter::default() };
    Ok(Some(BlogView {
        blog_id: blog_id.to_owned(),
        decided_by: state.decided_by,
        not_before: decide::waits_until(&state, now),
        feed_url: state.feed_url.map(String::from),
        other_feeds: state.other_feeds,
        sitemap_url: state.sitemap_url.map(String::from),
        next_feed_discovery_at: state.next_feed_discovery_at,
        next_sitemap_discovery_at: state.next_sitemap_discovery_at,
        last_check_at: state.last_check_at,
        last_change_at: state.last_change_at,
        failures_in_a_row: state.failures_in_a_row,
        paused: pause::find(tx, &Subject::blog(blog_id), now)?.map(|rest| rest.reason),
        unconfirmed: match state.unconfirmed {
            Some(super::model::Unconfirmed::Links(keys)) => keys.len(),
            _ => 0,
        },
        checks: store::list_checks(tx, blog_id, limit)?,
        changes: store::list_changes(tx, &filter, limit)?,
        events: event::list_about(tx, &Subject::blog(blog_id), limit)?,
    }))
}

/// Blogs whose servers asked us to wait, with their job and until when, the first to be checked first.
pub fn list_waiting(tx: &mut Tx<'_>, now: Timestamp) -> db::Result<Vec<(String, String, Timestamp)>> {
    let waiting = store::list_not_before(tx, now)?;
    let is_past = |checked_at: Timestamp| checked_at <= now;
    Ok(waiting
        .into_iter()
        .filter(|(.., checked_at)| is_past(*checked_at))
        .map(|(id, job, until, _)| (id, job, until))
        .collect())
}

/// A change with what became of its messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// The change.
    #[serde(flatten)]
    pub change: ChangeRow,
    /// Its messages.
    pub deliveries: Vec<Delivery>,
}

/// The newest changes first, with what became of them.
pub fn list_changes(tx: &mut Tx<'_>, filter: &store::Filter, limit: usize) -> db::Result<Vec<Listed>> {
    let changes = store::list_changes(tx, filter, limit)?;
    changes.into_iter().map(|change| with_deliveries(tx, change)).collect()
}

/// One change, with what became of it.
pub fn find_change(tx: &mut Tx<'_>, id: i64) -> db::Result<Option<Listed>> {
    match store::find_change(tx, id)? {
        Some(change) => with_deliveries(tx, change).map(Some),
        None => Ok(None),
    }
}

fn with_deliveries(tx: &mut Tx<'_>, change: ChangeRow) -> db::Result<Listed> {
    let deliveries = match &change.digest {
        Some(digest) => store::list_deliveries_of(tx, TOPIC, digest)?
            .into_iter()
            .filter(|delivery| delivery.job_name == change.job_name)
            .collect(),
        None => Vec::new(),
    };
    Ok(Listed { change, deliveries })
}

/// Blogs that have a state but stand in no job any more: their rows are kept, `status --all` says so.
pub fn list_left(
    tx: &mut Tx<'_>,
    configured: &HashSet<String>,
) -> db::Result<BTreeMap<String, (String, Timestamp)>> {
    let known = store::list_known_blogs(tx)?;
    Ok(known
        .into_iter()
        .filter(|(id, ..)| !configured.contains(id))
        .map(|(id, job, checked_at)| (id, (job, checked_at)))
        .collect())
}
