//! Press releases: feed → screen → summarise → post.
//!
//! ```text
//! collect ──▶ unprocessed ──screen──▶ pending ──summarise──▶ outbox ──sent──▶ processed
//!                  ▲   │                  │                    │
//!                  └── deferred ◀─────────┴──────failed────────┘   until the retry limit
//! ```
//!
//! A run reads the feed and takes `items_per_run` steps. A step is one screening or one summary, in the order of the
//! seed: a pending item first, else the one that was checked longest ago. A paused provider ends the run and costs no
//! item a try. A run without delivery, by option or for lack of a channel, screens but makes no summaries, which are
//! the text of posts: valuable items stay pending.

mod collect;
pub mod commands;
pub mod config;
pub mod decide;
pub mod events;
mod files;
mod findings;
mod flood;
pub mod gone;
pub mod model;
mod page;
mod pages;
pub mod pipeline;
mod post;
mod preview;
mod report;
mod screen;
mod step;
pub mod store;
mod summarize;
pub mod view;
mod workspace;

use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub use collect::{Collected, item_title, item_url};
pub use config::Keys;
pub use model::{Item, Reason, Status};
pub use workspace::Workspace;

use crate::channel::outbox::Topics;
use crate::config::value::FirstRun;
use crate::config::{Job, Problems};
use crate::db::{self, Db, Tx};
use crate::engine::preview::Asking;
use crate::engine::view::{Fact, View};
use crate::engine::{
    Block, Collector, DeliveryMode, Failure, JobEnv, Plan, Preview, Report, RunContext, Update,
};
use crate::fetch::{AllowPrivate, Check, Wanted};
use crate::id::JobName;
use crate::ledger::Subject;
use crate::llm::{AskOptions, Llm};
use crate::parse::url::Url;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;
use crate::word_enum;
use decide::RetryLimits;
use report::ReportBuilder;
use step::{SeenPage, Step, no_answer, overtaken, until_stopped};

/// The kind, as in the config file.
pub const KIND: &str = "press";
/// How often a job runs by default.
pub const EVERY: Duration = Duration::from_secs(5 * 60);
/// The topic of our messages in the outbox.
pub const TOPIC: &str = "press.post";

/// A press job, ready to run.
#[derive(Clone)]
pub struct Press {
    name: JobName,
    keys: Keys,
    /// The model; `None` when titles and excerpts are posted.
    llm: Option<String>,
    deliver: Vec<String>,
    first_run: FirstRun,
    hold_above: u32,
    allow_private: AllowPrivate,
    env: JobEnv,
    /// The only part of a run to do, if restricted.
    only: Option<Only>,
    /// Hosts of feeds that could not be reached in this run.
    out_of_reach: BTreeSet<String>,
}

word_enum! {
    /// A part of a run that can be run alone.
    pub enum Only {
        /// Read the feed.
        Collect = "collect",
        /// Screen `items_per_run` items.
        Screen = "screen",
        /// Summarise and queue `items_per_run` items.
        Post = "post",
    }
}

pub fn make(job: &Job, env: &JobEnv) -> Result<Arc<dyn Collector>, Problems> {
    Ok(Arc::new(Press::new(job, env)?))
}

/// Registers the handler for finished posts.
pub fn topics(topics: Topics) -> Topics {
    topics.on(TOPIC, post::on_delivered)
}

impl Press {
    pub fn new(job: &Job, env: &JobEnv) -> Result<Self, Problems> {
        let allow_private = AllowPrivate::parse(&job.allow_private)
            .map_err(|error| job.section.problem("allow_private", error.phrase()));
        let ((keys, llm), allow_private) = Problems::both(Keys::read(job, &env.llms), allow_private)?;
        Ok(Self {
            name: job.name.clone(),
            keys,
            llm,
            deliver: job.deliver.clone(),
            first_run: job.first_run.unwrap_or(FirstRun::Baseline),
            hold_above: job.hold_above,
            allow_private,
            env: env.clone(),
            only: None,
            out_of_reach: BTreeSet::new(),
        })
    }

    /// Runs only one part.
    pub async fn run_only(&self, ctx: &RunContext, only: Only) -> Result<Report, Failure> {
        let mut report = ReportBuilder::default();
        match only {
            Only::Collect => self.collect_into(ctx, &mut report).await?,
            Only::Screen | Only::Post => self.step_into(ctx, Some(only), &mut report).await?,
        }
        Ok(report.finish())
    }

    async fn run_whole(&self, ctx: &RunContext) -> Result<Report, Failure> {
        let mut report = ReportBuilder::default();
        self.collect_into(ctx, &mut report).await?;
        let press = Self { out_of_reach: std::mem::take(&mut report.out_of_reach), ..self.clone() };
        match press.step_into(ctx, None, &mut report).await {
            Ok(()) => Ok(report.finish()),
            Err(failure) => Err(report.before(failure)),
        }
    }

    async fn collect_into(&self, ctx: &RunContext, report: &mut ReportBuilder) -> Result<(), Failure> {
        gone::resume_if_moved(self, ctx).await?;
        let mut blocked = 0;
        for feed in self.feeds() {
            ctx.check_stop()?;
            if gone::is_paused(self, ctx, feed).await? {
                report.lines.push(self.of_feed(
                    feed,
                    phrase!(
                        "the feed is not read: {why}",
                        "フィードは読み込みません：{why}",
                        why = gone::words(&self.name)
                    ),
                ));
            } else {
                ctx.progress.report(&ctx.job, Update::Now(format!("reading {feed}")));
                match until_stopped(ctx, collect::collect(self, ctx, feed)).await {
                    Ok(Ok(collected)) => {
                        report.new_count += collected.added as u64;
                        report.well(self.of_feed(feed, collected.phrase()));
                    }
                    // Known items continue without the feed.
                    Ok(Err(unread)) => {
                        if unread.is_out_of_reach {
                            report.out_of_reach.extend(feed.host_str().map(str::to_owned));
                        }
                        report.problems.push(self.of_feed(feed, unread.why));
                    }
                    Err(Failure::Config(why)) => {
                        blocked += 1;
                        report.problems.push(self.of_feed(feed, why));
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
        report.needs_config = blocked == self.feeds().count();
        Ok(())
    }

    /// The configured feeds, in order.
    fn feeds(&self) -> impl Iterator<Item = &Url> {
        self.keys.feed.iter().map(|feed| &**feed)
    }

    /// Whether an item cannot be reached now: because the host of its feed cannot, or because no feed at all can.
    fn is_out_of_reach(&self, item: &Item) -> bool {
        let is = |url: &Url| url.host_str().is_some_and(|host| self.out_of_reach.contains(host));
        self.feeds().all(is) || Url::parse(&item.url).is_ok_and(|url| is(&url))
    }

    /// A phrase about a feed, which names it if there are several.
    fn of_feed(&self, feed: &Url, said: Phrase) -> Phrase {
        match self.feeds().count() {
            1 => said,
            _ => phrase!("{feed}: {said}", "{feed}：{said}", feed = Value::link(feed.as_str())),
        }
    }

    async fn step_into(
        &self,
        ctx: &RunContext,
        only: Option<Only>,
        report: &mut ReportBuilder,
    ) -> Result<(), Failure> {
        let Some(why) = self.no_deliver(ctx) else {
            if let Some(line) = flood::hold(self, ctx).await? {
                report.lines.push(line);
            }
            return self.take_steps(ctx, only, report).await;
        };
        if only != Some(Only::Post) {
            self.take_steps(ctx, Some(Only::Screen), report).await?;
        }
        let name = self.name.clone();
        let pending = ctx.db.read(move |tx| store::count(tx, &name, Status::Pending)).await?;
        if pending > 0 {
            report.lines.push(phrase!(
                "{pending} pending, not posted ({why})",
                "投稿待ち {pending} 件（未投稿：{why}）"
            ));
        }
        Ok(())
    }

    /// Why a run does not post, if it does not.
    fn no_deliver(&self, ctx: &RunContext) -> Option<Phrase> {
        match ctx.delivery {
            DeliveryMode::NoDeliver => Some(Phrase::verbatim("--no-deliver")),
            DeliveryMode::Queue if self.deliver.is_empty() => {
                Some(phrase!("`deliver` names no channel", "`deliver` にチャンネルがありません"))
            }
            DeliveryMode::Queue => None,
        }
    }

    /// The warning that `content` matches nothing on a page.
    fn block_warning(&self, page: &str) -> Phrase {
        let content = self.keys.content.as_deref().unwrap_or_default();
        phrase!(
            "warning: `content = \"{content}\"` matches nothing on {page}; the main text is detected instead",
            "警告：`content = \"{content}\"` に一致する部分が {page} にないため、本文を自動判定しました"
        )
    }

    fn limits(&self) -> RetryLimits {
        self.keys.limits()
    }

    fn llm(&self) -> Result<&Llm, Failure> {
        let name = self.llm_name();
        let missing = || Failure::Config(phrase!("there is no [llm.{name}]", "[llm.{name}] がありません"));
        self.env.llms.find(name).ok_or_else(missing)
    }

    fn llm_name(&self) -> &str {
        self.llm.as_deref().unwrap_or_default()
    }

    /// The failure for a refused key; names the config table that has it.
    fn locked(&self, why: &Phrase) -> Failure {
        Failure::Credentials(phrase!("[llm.{name}]: {why}", "[llm.{name}]：{why}", name = self.llm_name()))
    }

    /// The failure for a request that the provider refuses as configured.
    fn refused(&self, why: &Phrase) -> Failure {
        Failure::Config(phrase!(
            "[llm.{name}]: {why}; hint: `tsuzuki doctor` says which models there are; every other parameter is set in that table",
            "[llm.{name}]：{why}。使えるモデルは `tsuzuki doctor` で確認できます",
            name = self.llm_name()
        ))
    }

    fn options(&self, item: &Item, instructions: Option<&String>) -> AskOptions {
        AskOptions {
            about: item.url.clone(),
            language: self.env.app.message_language(),
            instructions: instructions.cloned(),
            max_chars: usize::try_from(self.keys.summary_chars).unwrap_or(usize::MAX),
            bypass_cache: item.bypass_cache,
        }
    }
}

#[async_trait]
impl Collector for Press {
    async fn run(&self, ctx: &RunContext) -> Result<Report, Failure> {
        match self.only {
            Some(only) => self.run_only(ctx, only).await,
            None => self.run_whole(ctx).await,
        }
    }

    async fn check(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for feed in self.feeds() {
            let fetcher = &self.env.fetcher;
            let reached =
                fetcher.reach(phrase!("feed", "フィード"), feed, &self.allow_private, Wanted::Document).await;
            let page = if reached.is_fine { preview::check_page(self, feed).await } else { None };
            checks.extend([Some(reached), page].into_iter().flatten());
        }
        checks
    }

    fn relies_on(&self) -> Vec<Subject> {
        let subjects =
            |name| self.env.llms.find(name).map_or_else(|| vec![Subject::provider(name)], Llm::subjects);
        self.llm
            .as_deref()
            .map(subjects)
            .unwrap_or_default()
            .into_iter()
            .chain([events::feed(&self.name)])
            .collect()
    }

    fn list_blocks(&self, tx: &mut Tx<'_>, name: &JobName, _: Timestamp) -> db::Result<Vec<Block>> {
        pages::list_blocks(tx, name)
    }

    fn list_facts(&self, tx: &mut Tx<'_>, name: &JobName, _: Timestamp) -> db::Result<Vec<Fact>> {
        let silent = store::list_silent(tx, name)?.into_iter();
        let of_today = silent.filter(|(url, _)| self.feeds().any(|feed| feed.as_str() == url));
        let mut facts: Vec<Fact> =
            of_today.filter_map(|(url, silence)| view::silent_fact(&url, &silence)).collect();
        let cut = store::list_cut(tx, name)?.into_iter();
        let of_today = cut.filter(|(url, _)| self.feeds().any(|feed| feed.as_str() == url));
        facts.extend(of_today.filter_map(|(url, cut)| Some(view::cut_fact(&url, cut?))));
        Ok(facts)
    }

    async fn test(&self, db: &Db) -> Result<Preview, Failure> {
        let mut shown = Preview::default();
        shown.notes.push(phrase!(
                "only the newest page is read, and no model request is made; `--item URL --ask` shows all of one item",
                "最新のページだけを読み、モデルには問い合わせません。`--item URL --ask` で記事ひとつをすべて確認できます"
            ));
        for feed in self.feeds() {
            let (item, page) = preview::preview(self, db, feed, self.env.clock.now()).await?;
            shown.items.push(item);
            shown.notes.extend(page);
        }
        Ok(shown)
    }

    async fn test_item(&self, db: &Db, url: &str, asking: Asking) -> Result<Option<View>, Failure> {
        preview::preview_item(self, db, url, asking).await.map(Some)
    }

    fn only(&self, step: &str) -> Option<Arc<dyn Collector>> {
        let only = step.parse().ok()?;
        Some(Arc::new(Press { only: Some(only), ..self.clone() }))
    }

    async fn plan(&self, db: &Db, now: Timestamp) -> db::Result<Plan> {
        preview::plan(self, db, now).await
    }
}
