//! Views of blogs and changes: their state and history.

use std::collections::HashSet;

use serde::Serialize;

use super::config::Blog;
use super::decide::{self, Code};
use super::events::{BLOG, BlogEvent, subject};
use super::listing::{BlogRow, find_row};
use super::model::{Detector, FoundEntry};
use super::store::{self, ChangeDelivery, ChangeRow, CheckRow};
use super::{TOPIC, config};
use crate::db::{self, Tx};
use crate::engine::cut;
use crate::engine::finder::read_address;
use crate::engine::pipeline::Left;
use crate::engine::silence::Silence;
use crate::engine::view::{Fact, Line, State, View};
use crate::engine::{Finder, Standing, Verb, obstacle};
use crate::id::JobName;
use crate::ledger::event::EventDetail as _;
use crate::ledger::{event, pause};
use crate::parse::Cut;
use crate::parse::url::{Url, comparison_key};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::text::shell_word;
use crate::time::Timestamp;

/// The most waiting blogs that a job lists.
const MAX_NAMED: usize = 10;
/// With this many failing blogs the job counts as failing, even if their servers only asked us to wait.
const MANY: usize = 100;

/// Everything that is known about a blog.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlogDetails {
    pub blog_id: String,
    /// The detector of the last successful check.
    pub decided_by: Option<Detector>,
    /// Its feed; `None` when none was found.
    pub feed_url: Option<String>,
    /// Feeds that its page names and that are not used.
    pub other_feeds: Vec<String>,
    /// Its sitemap; `None` when none was found.
    pub sitemap_url: Option<String>,
    /// When a feed is searched for again.
    pub next_feed_discovery_at: Option<Timestamp>,
    /// When a sitemap is searched for again.
    pub next_sitemap_discovery_at: Option<Timestamp>,
    pub last_check_at: Option<Timestamp>,
    /// The last check that found something new.
    pub last_change_at: Option<Timestamp>,
    /// Failures since the last success.
    pub failures_in_a_row: u32,
    /// The end of the wait that its server asked for.
    pub not_before: Option<Timestamp>,
    /// Why it is paused.
    pub paused: Option<Phrase>,
    /// If it is silent: when it had its last new entry, and its usual gap.
    pub silent: Option<(Timestamp, u64)>,
    /// Since when its feed is not used, because it has stopped while the site continues.
    pub feed_stopped_at: Option<Timestamp>,
    /// The part that exceeds a limit.
    pub cut: Option<Cut>,
    /// Links that need a second sighting.
    pub unconfirmed: usize,
    /// The newest checks, newest first.
    pub checks: Vec<CheckRow>,
    /// The newest changes, newest first.
    pub changes: Vec<ChangeRow>,
    /// The newest events, oldest first.
    pub events: Vec<event::Event>,
}

/// Everything known about a blog; `None` when it was never checked.
pub fn find_details(
    tx: &mut Tx<'_>,
    blog_id: &str,
    limit: usize,
    now: Timestamp,
) -> db::Result<Option<BlogDetails>> {
    let Some(state) = store::find_state(tx, blog_id)? else { return Ok(None) };
    let filter = store::ChangeFilter { blog: Some(blog_id.to_owned()), ..store::ChangeFilter::default() };
    Ok(Some(BlogDetails {
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
        paused: pause::find(tx, &subject(blog_id), now)?.map(|pause| pause.reason),
        silent: silent_since(&state.silence),
        feed_stopped_at: state.feed_stopped_at,
        cut: state.cut,
        unconfirmed: match state.unconfirmed {
            Some(super::model::Unconfirmed::Links(keys)) => keys.len(),
            _ => 0,
        },
        checks: store::list_checks(tx, blog_id, limit)?,
        changes: store::list_changes(tx, &filter, limit)?,
        events: event::list_about(tx, &subject(blog_id), limit)?,
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

/// When a silent source had its last new entry, and its usual gap in seconds.
pub(super) fn silent_since(silence: &Silence) -> Option<(Timestamp, u64)> {
    silence.noted_at?;
    Some((silence.last()?, silence.usual_gap()?.as_secs()))
}

/// A change with the states of its messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedChange {
    #[serde(flatten)]
    pub change: ChangeRow,
    pub deliveries: Vec<ChangeDelivery>,
}

/// The newest changes first, with the states of their messages.
pub fn list_changes(
    tx: &mut Tx<'_>,
    filter: &store::ChangeFilter,
    limit: usize,
) -> db::Result<Vec<ListedChange>> {
    let changes = store::list_changes(tx, filter, limit)?;
    changes.into_iter().map(|change| with_deliveries(tx, change)).collect()
}

/// One change, with the states of its messages.
pub fn find_change(tx: &mut Tx<'_>, id: i64) -> db::Result<Option<ListedChange>> {
    match store::find_change(tx, id)? {
        Some(change) => with_deliveries(tx, change).map(Some),
        None => Ok(None),
    }
}

pub(super) fn with_deliveries(tx: &mut Tx<'_>, change: ChangeRow) -> db::Result<ListedChange> {
    let deliveries = match &change.digest {
        Some(digest) => store::list_deliveries_of(tx, TOPIC, digest)?
            .into_iter()
            .filter(|delivery| delivery.job_name == change.job_name)
            .collect(),
        None => Vec::new(),
    };
    Ok(ListedChange { change, deliveries })
}

/// Blogs that have a state but are in no job any more: their rows are kept, and `status --all` lists them.
pub fn list_left(tx: &mut Tx<'_>, configured: &HashSet<String>) -> db::Result<Vec<Left>> {
    let known = store::list_known_blogs(tx)?.into_iter().filter(|(id, ..)| !configured.contains(id));
    Ok(known.map(|(name, job, last_at)| Left { job, word: BLOG, name, last_at }).collect())
}

/// The blogs of a job whose servers asked us to wait.
pub(super) fn list_waiting_facts(
    tx: &mut Tx<'_>,
    job: &JobName,
    blogs: &[Blog],
    now: Timestamp,
) -> db::Result<Vec<Fact>> {
    let mut waiting = list_waiting(tx, now)?;
    // Ignore blogs that have left the config.
    waiting.retain(|(id, of_job, _)| of_job == job.as_str() && blogs.iter().any(|blog| blog.id == *id));
    let fact = |value: Phrase| Fact { label: phrase!("waiting", "待機中"), value: value.into() };
    let mut facts: Vec<Fact> = waiting
        .iter()
        .take(MAX_NAMED)
        .map(|(blog, _, until)| {
            fact(phrase!(
                "blog {blog} until {until}, as its server asked",
                "ブログ {blog}：サーバーの指示により {until} まで"
            ))
        })
        .collect();
    if let Some(count) = waiting.len().checked_sub(MAX_NAMED).filter(|count| *count > 0) {
        facts.push(fact(phrase!("{count more blog}", "ほか {count} 件")));
    }
    Ok(facts)
}

/// The state of a job whose only failures are blogs whose servers asked us to wait: nobody has to act.
pub(super) fn find_standing(
    tx: &mut Tx<'_>,
    job: &JobName,
    blogs: &[Blog],
    now: Timestamp,
) -> db::Result<Option<Standing>> {
    let mut failing = store::list_failing(tx, job, MANY)?;
    if failing.len() == MANY {
        return Ok(None);
    }
    failing.retain(|(id, _)| blogs.iter().any(|blog| blog.id == *id));
    let mut waiting = Vec::new();
    for (id, until) in failing {
        match until {
            Some(until) => waiting.push((until, id)),
            None if pause::find(tx, &subject(&id), now)?.is_some() => {}
            None => return Ok(None),
        }
    }
    let (count, Some((until, blog))) = (waiting.len(), waiting.into_iter().max()) else { return Ok(None) };
    let standing = Standing::new(State::Waiting);
    Ok(Some(match count {
        // The next run checks it.
        _ if until <= now => standing,
        1 => standing.because(phrase!("{blog} until {until}", "{blog}：{until} まで")),
        _ => standing.because(phrase!(
            "{count} of {blogs blog}, until {until} at the latest",
            "{blogs} 件中 {count} 件（遅くとも {until} まで）",
            blogs = blogs.len()
        )),
    }))
}

/// Finds by id, or by an address from the config.
pub(super) fn find(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let ids = match read_address(name) {
        Some(url) => list_blogs_at(finder, &url),
        None => vec![name.to_owned()],
    };
    let mut views = Vec::new();
    for id in ids {
        let Some(details) = find_details(tx, &id, finder.limit, finder.now)? else { continue };
        let row = match config::list_blogs(&finder.config).find(|(_, blog)| blog.id == id) {
            Some((job, blog)) => {
                let job_of_it = finder.jobs.iter().find(|one| one.name == *job);
                let next = job_of_it.map(|job| obstacle::find_next_run(tx, job, finder.now)).transpose()?;
                Some(find_row(tx, job, &blog, next.flatten(), finder.now)?)
            }
            None => None,
        };
        views.push(view(finder, &details, row.as_ref()));
    }
    Ok(views)
}

fn list_blogs_at(finder: &Finder, url: &Url) -> Vec<String> {
    let key = comparison_key(url);
    let is_there = |blog: &Blog| {
        let addresses = [Some(&blog.url), blog.feed.as_ref(), blog.sitemap.as_ref()];
        addresses.into_iter().flatten().any(|address| comparison_key(address) == key)
    };
    config::list_blogs(&finder.config)
        .filter(|(_, blog)| is_there(blog))
        .map(|(_, blog)| blog.id.clone())
        .collect()
}

/// `row` is its row in the listing, if it is in the config.
fn view(finder: &Finder, blog: &BlogDetails, row: Option<&BlogRow>) -> View {
    let (id, next_check_at) = (&blog.blog_id, row.and_then(|row| row.next_check_at));
    let mut data = serde_json::to_value(blog).unwrap_or_default();
    data["next_check_at"] = serde_json::json!(next_check_at);
    let mut view = View::new(BLOG, subject(id), phrase!("blog {id}", "ブログ {id}"), data);
    view.state = Some(match blog {
        BlogDetails { paused: Some(_), .. } => State::Paused,
        BlogDetails { not_before: Some(_), .. } => State::Waiting,
        BlogDetails { failures_in_a_row: 1.., .. } => State::Failing,
        _ => State::Ok,
    });
    view.fact(phrase!("address", "アドレス"), row.map(|row| Value::link(&row.url)));
    view.fact(phrase!("read by", "確認方法"), blog.decided_by.map(Detector::phrase));
    let searched = |found: &Option<String>, again: Option<Timestamp>| match (found, again) {
        (Some(url), _) => Some(Value::link(url)),
        (None, Some(again)) => {
            Some(phrase!("none found; searched for again {again}", "なし（次の探索：{again}）").into())
        }
        (None, None) => None,
    };
    view.fact(phrase!("feed", "フィード"), searched(&blog.feed_url, blog.next_feed_discovery_at));
    if !blog.other_feeds.is_empty() {
        let feeds: Vec<Value> = blog.other_feeds.iter().map(Value::link).collect();
        view.fact(
            phrase!("other feeds", "ほかのフィード"),
            phrase!(
                "{feeds} (named by its page, not read; `feed` in the config chooses one)",
                "{feeds}（ページに記載あり、未使用。設定の `feed` で選べます）"
            ),
        );
    }
    view.fact(
        phrase!("sitemap", "サイトマップ"),
        searched(&blog.sitemap_url, blog.next_sitemap_discovery_at),
    );
    view.fact(phrase!("last check", "最終確認"), blog.last_check_at);
    let forbidden = blog
        .not_before
        .map(|at| phrase!("not before {at}: its server asked for it", "{at} 以降（サーバーの指示）").into());
    view.fact(phrase!("next check", "次の確認"), forbidden.or(next_check_at.map(Value::from)));
    view.fact(phrase!("last change", "最終更新"), blog.last_change_at);
    if let Some((last, gap)) = blog.silent {
        let event = BlogEvent::Silent { last, usual_gap_secs: gap };
        view.fact(phrase!("silent", "沈黙中"), event.phrase());
    }
    view.fact(
        phrase!("stopped feed", "止まったフィード"),
        blog.feed_stopped_at.map(|at| {
            phrase!(
                "not read since {at}: the site is updated without it",
                "{at} から不使用（サイトは更新中）"
            )
        }),
    );
    view.fact(phrase!("read in part", "一部のみ読み込み"), blog.cut.map(cut::phrase));
    if blog.failures_in_a_row > 0 {
        view.fact(phrase!("failures in a row", "連続失敗"), blog.failures_in_a_row);
    }
    if let Some(why) = &blog.paused {
        view.fact(phrase!("paused", "一時停止"), why);
        let label = phrase!("check it again", "確認を再開する");
        view.act(Verb::Resume, &subject(id), label, format!("blog resume {}", shell_word(id)));
    } else {
        view.act(
            Verb::Pause,
            &subject(id),
            phrase!("Pause", "一時停止"),
            format!("blog pause {}", shell_word(id)),
        );
    }
    if blog.unconfirmed > 0 {
        let count = blog.unconfirmed;
        view.fact(
            phrase!("unconfirmed", "未確定"),
            phrase!(
                "{count link} seen once; sent if they stay",
                "1 回だけ見えたリンク {count} 件（残れば通知）"
            ),
        );
    }
    let check = |check: &CheckRow| Line::at(check.checked_at, check_phrase(check));
    view.section(phrase!("checks", "確認履歴"), blog.checks.iter().rev().map(check));
    view.section(phrase!("changes", "変更"), blog.changes.iter().rev().map(change_line));
    finder.add_events(&mut view, &blog.events);
    view
}

/// A check in a few words.
pub(super) fn check_phrase(check: &CheckRow) -> Phrase {
    let says = match (&check.error_message, check.changed, check.skipped) {
        (Some(error), ..) => phrase!("failed: {error}", "失敗：{error}"),
        (None, true, _) => phrase!("something new", "新着あり"),
        (None, _, true) => phrase!("unchanged, nothing had to be read", "変化なし（読み込み不要）"),
        (None, ..) => phrase!("nothing new", "新着なし"),
    };
    let says = match check.cut.map(cut::phrase) {
        Some(why) => phrase!("{says}, read in part: {why}", "{says}、一部のみ読み込み：{why}"),
        None => says,
    };
    // Most failures name it themselves.
    let is_said = |status: &i64| says.to_string().contains(&format!("HTTP {status}"));
    match check.http_status.filter(|status| !is_said(status)) {
        Some(status) => phrase!("{says} (HTTP {status})", "{says}（HTTP {status}）"),
        None => says,
    }
}

/// A change in one line.
pub(super) fn change_line(change: &ChangeRow) -> Line {
    let (id, detail) = (change.id, &change.detail);
    let what = match change.code {
        Code::New => phrase!("{count} new", "新着 {count} 件", count = detail.count()),
        code => code.phrase(),
    };
    let what = match (&detail.held_because, change.held) {
        (Some(why), _) => {
            phrase!("{what}, needs approval ({why})", "{what}、確認待ち（{why}）", why = why.phrase())
        }
        (None, true) => phrase!("{what}, needs approval", "{what}、確認待ち"),
        _ => what,
    };
    let first = detail.entries.first().and_then(FoundEntry::name);
    let said = detail.error.clone().or_else(|| first.map(Phrase::from));
    Line::at(
        change.found_at,
        match said {
            Some(said) => phrase!("change {id}: {what}: {said}", "変更 {id}：{what}：{said}"),
            None => phrase!("change {id}: {what}", "変更 {id}：{what}"),
        },
    )
}
