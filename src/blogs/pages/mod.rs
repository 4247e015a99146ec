//! The page of blogs: new entries by day, changes that need approval, and the last checks of each blog.

mod blogs;

use std::time::Duration;

use super::change;
use super::decide::Code;
use super::events::{BLOG, change_subject, subject};
use super::model::Detector;
use super::store::{self, ChangeFilter, ChangeRow};
use super::view::{self, ListedChange};
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::page::{Block, Choice, Page, PageFilter, PageQuery, PageView, Timeline, TimelineEntry};
use crate::engine::things::delivery::phrase_of;
use crate::engine::view::State;
use crate::engine::walk::{Fit, Walk};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

pub(super) use blogs::list_failing;

const WALK: Walk = Walk { shown: 30, searched: 2_000 };
/// The most entries of a change that are listed.
const MAX_LINKS: usize = 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) static PAGE: Page =
    Page { slug: "changes", title: || phrase!("Changes", "更新"), load, sheet: None };

fn load(finder: &Finder, tx: &mut Tx<'_>, query: &PageQuery) -> db::Result<PageView> {
    let mut view = PageView::new(phrase!("Changes", "更新"));
    let filter = ChangeQuery::of(finder, query);
    view.filters = filter.filters(finder);
    let timeline = filter.find(tx, query)?;
    let is_nothing = timeline.entries.is_empty() && timeline.next.is_none();
    view.blocks.push(if is_nothing { filter.nothing() } else { Block::Timeline(timeline) });
    if filter.before.is_none() {
        view.blocks.extend(blogs::find(finder, tx, query, filter.job.as_deref(), filter.blog.as_deref())?);
    }
    Ok(view)
}

/// The filters of the page.
struct ChangeQuery {
    job: Option<String>,
    blog: Option<String>,
    days: Option<u32>,
    text: String,
    before: Option<i64>,
    since: Timestamp,
}

impl ChangeQuery {
    fn of(finder: &Finder, query: &PageQuery) -> Self {
        let days = match query.find("days") {
            Some("all") => None,
            _ => Some(query.parse("days").unwrap_or(30)),
        };
        Self {
            job: query.find("job").map(str::to_owned),
            blog: query.find(BLOG).map(str::to_owned),
            days,
            text: query.find("text").unwrap_or_default().to_lowercase(),
            before: query.parse("before"),
            since: days.map_or(Timestamp::MIN, |days| finder.now.minus(DAY.saturating_mul(days))),
        }
    }

    fn filters(&self, finder: &Finder) -> Vec<PageFilter> {
        let days = [7, 30, 90, 365];
        let days = days.map(|count| Choice::new(count.to_string(), phrase!("{count day}", "{count} 日")));
        let ever = Choice::new("all", phrase!("all", "全期間"));
        let chosen = self.days.map_or_else(|| "all".to_owned(), |days| days.to_string());
        vec![
            PageFilter::job(finder, Some(super::KIND), self.job.as_deref()),
            PageFilter::one("days", phrase!("Last", "期間"), days.into_iter().chain([ever]), chosen),
            PageFilter::text(BLOG, phrase!("Blog", "ブログ"), self.blog.clone().unwrap_or_default()),
            PageFilter::text("text", phrase!("Text", "キーワード"), &self.text),
        ]
    }

    /// The matching changes, by their numbers.
    fn find(&self, tx: &mut Tx<'_>, query: &PageQuery) -> db::Result<Timeline> {
        let (rows, next) = WALK.list(
            self.before,
            |before, limit| {
                let (job, blog) = (self.job.clone(), self.blog.clone());
                let filter = ChangeFilter { job, blog, before: before.copied(), ..ChangeFilter::default() };
                store::list_changes(tx, &filter, limit)
            },
            |row| row.id,
            |row| self.fit(row),
        )?;
        let mut entries = Vec::new();
        for row in rows {
            entries.push(entry(&view::with_deliveries(tx, row)?));
        }
        let next = next.map(|before| query.with("before", before));
        Ok(Timeline { title: phrase!("What was new", "新着"), entries, next })
    }

    fn fit(&self, row: &ChangeRow) -> Fit {
        // Numbers are in the order of time.
        if row.found_at < self.since {
            return Fit::End;
        }
        let has = |text: &Option<String>| {
            text.as_ref().is_some_and(|text| text.to_lowercase().contains(&self.text))
        };
        let detail = &row.detail;
        Fit::from(
            self.text.is_empty()
                || row.blog_id.to_lowercase().contains(&self.text)
                || has(&detail.error.as_ref().map(ToString::to_string))
                || detail.entries.iter().any(|entry| has(&entry.title) || has(&entry.url)),
        )
    }

    fn nothing(&self) -> Block {
        let is_narrowed = !self.text.is_empty() || self.blog.is_some() || self.job.is_some();
        let text = if is_narrowed {
            phrase!("Nothing of the sort was found.", "該当する更新はありません。")
        } else {
            phrase!(
                "Nothing new in this time. The first check of a blog records what is there and sends nothing.",
                "この期間の新着はありません。ブログの初回の確認では、既存の記事を記録するだけで通知しません。"
            )
        };
        Block::Empty { text, command: (!is_narrowed).then(|| "run-due".to_owned()) }
    }
}

fn entry(listed: &ListedChange) -> TimelineEntry {
    let waits = change::needs_approval(listed);
    let row = &listed.change;
    let detail = &row.detail;
    let text = match (row.code, &detail.error) {
        (Code::New, _) => phrase!("{count} new", "新着 {count} 件", count = detail.count()),
        (code, Some(error)) => phrase!("{what}: {error}", "{what}：{error}", what = code.phrase()),
        (code, None) => code.phrase(),
    };
    let mut links: Vec<Value> = detail.entries.iter().take(MAX_LINKS).map(change::link).collect();
    if let Some(count) = detail.count().checked_sub(MAX_LINKS).filter(|count| *count > 0) {
        links.push(phrase!("and {count} more", "ほか {count} 件").into());
    }
    TimelineEntry {
        at: row.found_at,
        state: Some(match row.code {
            _ if waits => State::Approval,
            Code::New | Code::Recovered => State::Ok,
            Code::Failing => State::Failing,
            Code::Gone => State::Paused,
        }),
        subject: row.blog_id.as_str().into(),
        text,
        links,
        notes: notes(listed),
        about: Some(match row.code {
            Code::New => change_subject(row.id).to_string(),
            _ => subject(&row.blog_id).to_string(),
        }),
        actions: if waits { change::actions(row.id) } else { Vec::new() },
    }
}

/// How it was found, and the states of its messages.
fn notes(listed: &ListedChange) -> Vec<Phrase> {
    let change = &listed.change;
    let mut notes = Vec::new();
    if let Some(detector) = change.detail.detector {
        notes.push(phrase!("found in {how}", "{how}で検出", how = Detector::phrase(detector)));
    }
    if let Some(why) = &change.detail.held_because {
        notes.push(phrase!("held: {why}", "保留：{why}", why = why.phrase()));
    }
    for sent in &listed.deliveries {
        let state = phrase_of(sent.state);
        notes.push(phrase!("{channel}: {state}", "{channel}：{state}", channel = &sent.channel));
    }
    if listed.deliveries.is_empty() {
        notes.push(phrase!("not sent", "通知なし"));
    }
    notes
}
