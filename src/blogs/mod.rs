//! Blogs: detect new entries on sites and send them.
//!
//! ```text
//!            ┌─ 304, equal strong ETag ──────────────────▶ skipped ─┐
//! due blog ──┼─ feed ─▶ entries ─┐                                  ├─▶ check_history, blog_state
//!            ├─ sitemap ─▶ URLs ─┼─ seen before? ─ no ─▶ new ───────┤      └─ same transaction ─┐
//!            ├─ page ─▶ links ───┘      (blog_entries)              │                           ▼
//!            └─ error, empty, shrunken ─▶ failure, told if it lasts ┘   blog_changes ──digest──▶ outbox
//! ```
//!
//! A check is `probe` (requests and parses, writes nothing), `decide` (pure), `store` (writes everything at once).
//! `round` runs it for every blog of the job concurrently, shared by all idle processes; `digest` makes messages of the
//! changes.

mod access;
pub mod change;
pub mod commands;
pub mod config;
pub mod decide;
pub mod detect;
mod digest;
pub mod entry;
pub mod events;
mod findings;
pub mod home;
mod lane;
pub mod listing;
pub mod message;
pub mod model;
mod opml;
mod pages;
pub mod pipeline;
pub mod preview;
pub mod probe;
pub mod report;
pub mod round;
pub mod store;
pub mod view;

use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

use self::config::{Blog, Rules};
use self::probe::Prober;
use self::report::RoundCounts;
use self::store::chunks::{self, BlogList};

use crate::channel::outbox::Topics;
use crate::channel::{ChannelEnv, ChannelSet};
use crate::config::{self as file, Problems};
use crate::db::{self, Db, Tx};
use crate::engine::view::Fact;
use crate::engine::{
    Block, Collector, DeliveryMode, Failure, JobEnv, Plan, Preview, Report, RunContext, RunStart,
    ShareContext, SharedRun, Standing,
};
use crate::fetch::{Check, Request, Wanted};
use crate::id::JobName;
use crate::ledger::Subject;
use crate::phrase;
use crate::phrase::Phrase;
use crate::text::Language;
use crate::time::{Clock, Timestamp};

/// The kind of job, as the config file names it.
pub const KIND: &str = "blogs";
/// The topic of our messages in the outbox.
pub const TOPIC: &str = "blogs";
/// How many blogs of one job `doctor` requests.
const CHECKED_BY_DOCTOR: usize = 20;
/// How often a job runs by default.
pub const EVERY: Duration = Duration::from_secs(60 * 60);

/// A `blogs` job, ready to run.
pub struct Blogs {
    blogs: Arc<[Blog]>,
    list: BlogList,
    rules: Rules,
    prober: Prober,
    channels: Arc<ChannelSet>,
    deliver: Vec<String>,
    channel_env: ChannelEnv,
    language: Language,
    clock: Clock,
}

/// Makes a job from its table.
pub fn make(job: &file::Job, env: &JobEnv) -> Result<Arc<dyn Collector>, Problems> {
    Ok(Arc::new(Blogs::new(job, env)?))
}

/// Registers nothing: a change stays announced whatever happens to its message, and `change show` reads the outbox.
pub fn topics(topics: Topics) -> Topics {
    topics.on(TOPIC, |_, _, _| Ok(()))
}

impl Blogs {
    /// Reads the table of a job.
    pub fn new(job: &file::Job, env: &JobEnv) -> Result<Self, Problems> {
        let (blogs, rules) = config::read(job)?;
        config::check_channels(job, &env.channels)?;
        let agent = env.app.user_agent.clone().unwrap_or_else(|| env!("CARGO_PKG_NAME").to_owned());
        Ok(Self {
            prober: Prober {
                fetcher: env.fetcher.clone(),
                probe: rules.probe,
                agent,
                zone: env.app.timezone.time_zone().clone(),
            },
            list: round::list_of(&blogs),
            blogs: blogs.into(),
            rules,
            channels: Arc::clone(&env.channels),
            deliver: job.deliver.clone(),
            channel_env: env.channel_env.clone(),
            language: env.app.message_language(),
            clock: env.clock.clone(),
        })
    }

    /// The blog with that id.
    pub fn find(&self, id: &str) -> Option<&Blog> {
        self.blogs.iter().find(|blog| blog.id == id)
    }

    /// The channels of a blog.
    fn deliver_of(&self, id: &str) -> &[String] {
        self.find(id).and_then(|blog| blog.deliver.as_deref()).unwrap_or(&self.deliver)
    }

    /// In the order of the file.
    pub fn list(&self) -> &[Blog] {
        &self.blogs
    }

    /// Ends pauses and alerts of blogs that have left the config.
    async fn reset_left(&self, ctx: &RunContext) -> Result<(), Failure> {
        let (job, blogs, now) = (ctx.job.clone(), Arc::clone(&self.blogs), ctx.now());
        let is_configured = move |id: &str| blogs.iter().any(|blog| blog.id == id);
        let left = ctx.db.read(move |tx| store::list_left_behind(tx, &job, &is_configured, now)).await?;
        if left.is_empty() {
            return Ok(());
        }
        ctx.write(move |tx| left.iter().try_for_each(|blog| store::reset_left(tx, blog, now))).await
    }

    /// One round: queues changes of an earlier run, checks every due blog, then queues the new changes.
    async fn turn(&self, ctx: &RunContext) -> Result<Report, Failure> {
        self.reset_left(ctx).await?;
        let mut problems = digest::queue(ctx, self).await?;
        ctx.check_stop()?;
        let tally = round::lead(&ctx.share(), self).await?;
        problems.extend(digest::queue(ctx, self).await?);
        let summary = tally.summary(self.blogs.len());
        let summary = match ctx.delivery {
            DeliveryMode::Queue => summary,
            DeliveryMode::NoDeliver => {
                let job = ctx.job.clone();
                let count = ctx.db.read(move |tx| store::count_unannounced(tx, job.as_str())).await?;
                phrase!(
                    "{summary}; {count change} not sent (--no-deliver)",
                    "{summary}。未通知の変更 {count} 件（--no-deliver）"
                )
            }
        };
        let (all_failed, is_incomplete) = (tally.all_failed(), tally.waiting > 0);
        let needs_config = all_failed && tally.blocked == tally.failed;
        let unnamed = tally.failed - tally.problems.len();
        let new_count = tally.entries as u64;
        problems.extend(tally.list_problems());
        if unnamed > 0 {
            problems.push(phrase!(
                "and {count more blog} failed too",
                "ほか {count} 件のブログも失敗",
                count = unnamed
            ));
        }
        Ok(Report { problems, new_count, all_failed, is_incomplete, needs_config, ..Report::new(summary) })
    }
}

#[async_trait]
impl Collector for Blogs {
    async fn check(&self) -> Vec<Check> {
        let fetcher = &self.prober.fetcher;
        let requests = self.blogs.iter().take(CHECKED_BY_DOCTOR).map(|blog| async move {
            // A blog whose document the config names may have a page that nobody reads.
            let named = blog.feed.as_ref().or(blog.sitemap.as_ref());
            let url = named.unwrap_or(&blog.url);
            match blog.authorized(Request::get(url.clone().into()).allow_private(&blog.reachable), url) {
                Ok(request) => fetcher.reach_with(&blog.id, request, Wanted::Document).await,
                Err(missing) => Check::locked(&blog.id, missing.phrase()),
            }
        });
        let mut checks = futures_util::future::join_all(requests).await;
        if let Some(left) = self.blogs.len().checked_sub(CHECKED_BY_DOCTOR).filter(|left| *left > 0) {
            checks.push(Check::fine(
                phrase!("more", "ほか"),
                phrase!("{left} more blogs were not checked", "ほか {left} 件のブログは確認していません"),
            ));
        }
        checks
    }

    fn relies_on(&self) -> Vec<Subject> {
        self.blogs.iter().map(|blog| events::subject(&blog.id)).collect()
    }

    fn list_facts(&self, tx: &mut Tx<'_>, name: &JobName, now: Timestamp) -> db::Result<Vec<Fact>> {
        view::list_waiting_facts(tx, name, &self.blogs, now)
    }

    fn list_blocks(&self, tx: &mut Tx<'_>, name: &JobName, now: Timestamp) -> db::Result<Vec<Block>> {
        pages::list_failing(tx, name, &self.blogs, now)
    }

    fn find_standing(&self, tx: &mut Tx<'_>, name: &JobName, now: Timestamp) -> db::Result<Option<Standing>> {
        view::find_standing(tx, name, &self.blogs, now)
    }

    async fn test(&self, db: &Db) -> Result<Preview, Failure> {
        let items =
            self.preview(db, None).await?.into_iter().map(preview::BlogPreview::into_preview_item).collect();
        Ok(Preview { items, notes: Vec::new() })
    }

    async fn run(&self, ctx: &RunContext) -> Result<Report, Failure> {
        self.turn(ctx).await
    }

    fn shared(&self) -> Option<&dyn SharedRun> {
        Some(self)
    }

    async fn plan(&self, db: &Db, now: Timestamp) -> db::Result<Plan> {
        let blogs = Arc::clone(&self.blogs);
        db.read(move |tx| preview::plan(tx, &blogs, now)).await
    }
}

#[async_trait]
impl SharedRun for Blogs {
    fn open(&self, tx: &mut Tx<'_>, job: &JobName, fence: i64, start: RunStart) -> db::Result<()> {
        if start == RunStart::Resumed && chunks::is_same_list(tx, job, &self.list)? {
            return chunks::release_gone(tx, job);
        }
        chunks::open(tx, job, fence, &self.list)
    }

    fn has_free_parts(&self, tx: &mut Tx<'_>, job: &JobName) -> db::Result<bool> {
        chunks::has_free(tx, job, &self.list)
    }

    async fn join(&self, ctx: &ShareContext) -> Result<Option<Phrase>, Failure> {
        let counts = round::run(ctx, self).await?;
        Ok((counts != RoundCounts::default()).then(|| counts.summary(self.blogs.len())))
    }
}
