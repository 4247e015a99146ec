//! Previews: what a run would do (`--dry-run`), and the result of one check of each blog (`job test`); nothing is
//! written.

use serde::Serialize;

use super::config::Blog;
use super::decide::{self, Code, Due, HoldReason, PauseFlag};
use super::model::{Detector, DetectorResult, FoundEntry, State};
use super::{Blogs, round, store};
use crate::db::{self, Db, Tx};
use crate::engine::{Plan, PreviewItem, preview};
use crate::parse::url::Url;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// The most blogs that a plan lists.
const MAX_NAMED: usize = 20;

pub(super) fn plan(tx: &mut Tx<'_>, blogs: &[Blog], now: Timestamp) -> db::Result<Plan> {
    let paused = store::list_paused(tx, now)?;
    let mut due = Vec::new();
    let mut waiting = 0;
    let mut sent_away = Vec::new();
    for blog in blogs {
        let state = store::find_state(tx, &blog.id)?;
        let pause = if paused.contains_key(&blog.id) { PauseFlag::Paused } else { PauseFlag::None };
        match decide::due(blog, state.as_ref(), pause, now) {
            Due::Now => due.push(blog),
            Due::NotNow => waiting += 1,
            Due::NotBefore(until) => sent_away.push((&blog.id, until)),
        }
    }
    let check = |blog: &&Blog| {
        let url = Value::link(blog.url.as_str());
        phrase!("check {blog} ({url})", "{blog}（{url}）を確認", blog = &blog.id)
    };
    let mut steps: Vec<Phrase> = due.iter().take(MAX_NAMED).map(check).collect();
    if let Some(count) = due.len().checked_sub(MAX_NAMED).filter(|count| *count > 0) {
        steps.push(phrase!("check {count more blog}", "ほか {count} 件を確認"));
    }
    for (blog, until) in sent_away.iter().take(MAX_NAMED) {
        steps.push(phrase!(
            "skip {blog} until {until}, as its server asked",
            "{blog} はサーバーの指示により {until} まで確認しない"
        ));
    }
    if let Some(count) = sent_away.len().checked_sub(MAX_NAMED).filter(|count| *count > 0) {
        steps.push(phrase!(
            "skip {count more blog}, as their servers asked",
            "ほか {count} 件もサーバーの指示により確認しない"
        ));
    }
    if waiting > 0 {
        steps.push(phrase!(
            "skip {count blog}: paused, or not due",
            "{count} 件は一時停止中または時刻前のため確認しない",
            count = waiting
        ));
    }
    Ok(Plan { steps })
}

/// The result of checking a blog now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlogPreview {
    pub blog_id: String,
    pub url: String,
    /// The detector that would be used.
    pub detector: Option<Detector>,
    /// Its feed, if one is known or was found.
    pub feed_url: Option<String>,
    /// Its sitemap, if one is known or was found.
    pub sitemap_url: Option<String>,
    /// The HTTP status that decided.
    pub http_status: Option<u16>,
    /// Whether the server answered 304.
    pub unchanged: bool,
    pub entries: usize,
    /// The first of them.
    pub first: Vec<FoundEntry>,
    /// What would be announced.
    pub new: Vec<FoundEntry>,
    /// Why it would be held.
    pub held_because: Option<HoldReason>,
    pub error: Option<Phrase>,
}

impl BlogPreview {
    /// Converts it for `job test`.
    pub(super) fn into_preview_item(self) -> PreviewItem {
        let detail = serde_json::json!(self);
        if let Some(error) = self.error {
            return PreviewItem { detail, ..PreviewItem::failed(self.blog_id, error) };
        }
        let by = self.detector.map_or_else(|| Phrase::verbatim("-"), Detector::phrase);
        let (entries, new) = (self.entries, self.new.len());
        let found = match (self.unchanged, &self.held_because) {
            (true, _) => phrase!("by {by}: unchanged", "{by}：変化なし"),
            (false, None) => phrase!(
                "by {by}: {entries entry}, {new} to be sent",
                "{by}：{entries} 件、うち {new} 件を通知"
            ),
            (false, Some(why)) => phrase!(
                "by {by}: {entries entry}, {new} to be sent after approval ({why})",
                "{by}：{entries} 件、うち {new} 件は確認待ち（{why}）",
                why = why.phrase()
            ),
        };
        let shown = if self.new.is_empty() { &self.first } else { &self.new };
        let name = |entry: &FoundEntry| {
            entry.title.clone().or_else(|| entry.url.clone()).unwrap_or_else(|| entry.key.clone())
        };
        let first = shown.iter().take(preview::MAX_NAMED).map(name).collect();
        PreviewItem { first, detail, ..PreviewItem::fine(self.blog_id, found) }
    }
}

impl Blogs {
    /// Reads one blog, or all of the job, in full, and returns what would be detected.
    pub async fn preview(&self, db: &Db, only: Option<&str>) -> db::Result<Vec<BlogPreview>> {
        let mut seen = Vec::new();
        for blog in self.list().iter().filter(|blog| only.is_none_or(|id| blog.id == id)) {
            seen.push(self.preview_one(db, blog).await?);
        }
        Ok(seen)
    }

    async fn preview_one(&self, db: &Db, blog: &Blog) -> db::Result<BlogPreview> {
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
            Ok(DetectorResult::Entries { detector, entries, .. }) => {
                (Some(*detector), entries.iter().take(5).cloned().collect(), entries.len())
            }
            Ok(DetectorResult::Unchanged { detector, .. }) => (Some(*detector), Vec::new(), 0),
            Err(_) => (None, Vec::new(), 0),
        };
        let new = decision.changes.into_iter().filter(|change| change.code == Code::New);
        let (mut news, mut held_because) = (Vec::new(), None);
        for change in new {
            news.extend(change.detail.entries);
            held_because = held_because.or(change.detail.held_because);
        }
        let text = |url: Option<Url>| url.map(String::from);
        Ok(BlogPreview {
            blog_id: blog.id.clone(),
            url: blog.url.to_string(),
            detector,
            feed_url: text(blog.feed.clone().map(Url::from).or(after.feed_url)),
            sitemap_url: text(blog.sitemap.clone().map(Url::from).or(after.sitemap_url)),
            http_status: sighting.http_status,
            unchanged: decision.check.skipped,
            entries,
            first,
            new: news,
            held_because,
            error: decision.check.error_message,
        })
    }
}
