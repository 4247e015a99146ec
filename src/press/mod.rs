//! Press releases: feed → screen → summarise → post.
//!
//! ```text
//! collect ──▶ unprocessed ──screen──▶ pending ──summarise──▶ outbox ──sent──▶ processed
//!                  ▲   │                  │                    │
//!                  └── deferred ◀─────────┴──────failed────────┘   until the retry limit
//! ```
//!
//! A run reads the feed and takes `items_per_run` steps; a step is one screening or one summary, in the order of the
//! seed: a pending item first, else the one that was looked at longest ago. A provider that rests ends the run and
//! costs no item a try. A run that posts nothing, because it may not or has nobody to post to, screens and leaves what
//! is worth it pending: the summary is the text of a post.

mod collect;
pub mod commands;
pub mod config;
pub mod decide;
pub mod events;
mod files;
mod flood;
pub mod gone;
pub mod model;
mod page;
pub mod pipeline;
mod post;
mod preview;
mod report;
mod screen;
pub mod store;
mod summarize;
pub mod view;
mod workspace;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};

pub use collect::{Collected, item_title, item_url};
pub use config::Keys;
pub use model::{Item, Reason, Status};
pub use workspace::Workspace;

use crate::channel::outbox::Topics;
use crate::config::value::FirstRun;
use crate::config::{Job, Problems};
use crate::db::{self, Db};
use crate::engine::job::Boxed;
use crate::engine::{Collector, Delivery, Failure, JobEnv, Plan, Preview, Report, RunContext, Update};
use crate::fetch::{AllowPrivate, Check, Wanted};
use crate::id::JobName;
use crate::ledger::Subject;
use crate::llm::{AskError, AskOptions, Llm, PauseReason, Purpose, Unavailable};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use decide::{Event, Limits};
use report::ReportBuilder;

/// The kind, as in the config file.
pub const KIND: &str = "press";
/// How often a job runs by default.
pub const EVERY: Duration = Duration::from_secs(5 * 60);
/// How many pages that turn out unchanged a run looks at beside its steps.
const FREE_VISITS: u32 = 20;
/// Whose messages ours are.
pub const TOPIC: &str = "press.post";

/// A press job, ready to run.
#[derive(Clone)]
pub struct Press {
    name: JobName,
    keys: Keys,
    llm: String,
    deliver: Vec<String>,
    first_run: FirstRun,
    hold_above: u32,
    allow_private: AllowPrivate,
    env: JobEnv,
    /// The one thing that it does, if it was narrowed.
    only: Option<Only>,
}

/// One of the things that a run does, for running it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Only {
    /// Read the feed.
    Collect,
    /// Screen `items_per_run` items.
    Screen,
    /// Summarise and queue `items_per_run` items.
    Post,
}

/// What a step came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A page, a file or an answer could not be had, as the line says; the item is tried again.
    Failed(Phrase),
    /// The page of an item that waits for it is as it was.
    Unchanged,
    /// An item has moved on, as the line says.
    Moved(Phrase),
    /// Channels could not make a message of an item.
    NotRendered {
        /// What became of the item.
        line: Phrase,
        /// Which channels, and why.
        problems: Vec<Phrase>,
        /// Whether others have a message of it.
        is_queued: bool,
    },
    /// The provider is paused; no item was touched.
    Waiting {
        /// Until when.
        until: Timestamp,
        /// Why.
        why: Phrase,
    },
    /// There is nothing to do now.
    Nothing,
}

/// Makes a job of its table.
pub fn make(job: &Job, env: &JobEnv) -> Result<Arc<dyn Collector>, Problems> {
    Ok(Arc::new(Press::new(job, env)?))
}

/// Registers what becomes of an item when its post has ended.
pub fn topics(topics: Topics) -> Topics {
    topics.on(TOPIC, post::settled)
}

impl Press {
    /// Reads a job's table.
    pub fn new(job: &Job, env: &JobEnv) -> Result<Self, Problems> {
        let allow_private = AllowPrivate::parse(&job.allow_private)
            .map_err(|error| job.section.problem("allow_private", error.to_string()));
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
        })
    }

    /// Does only one of the things that a run does.
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
        match self.step_into(ctx, None, &mut report).await {
            Ok(()) => Ok(report.finish()),
            Err(failure) => Err(report.before(failure)),
        }
    }

    async fn collect_into(&self, ctx: &RunContext, report: &mut ReportBuilder) -> Result<(), Failure> {
        if gone::rests(self, ctx).await? {
            report.lines.push(phrase!(
                "the feed is not read: {why}",
                "フィードは読み込みません：{why}",
                why = gone::words(&self.name)
            ));
        } else {
            ctx.progress.report(&ctx.job, Update::Now(format!("reading {}", self.keys.feed)));
            match until_stopped(ctx, collect::collect(self, ctx)).await? {
                Ok(collected) => report.well(collected.phrase()),
                // The items that we have do not depend on the feed being there.
                Err(why) => report.problems.push(why),
            }
        }
        report.problems.extend(until_stopped(ctx, gone::tell(self, ctx)).await?);
        Ok(())
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
                "投稿待ち {pending} 件（未投稿：{why}）",
                pending,
                why
            ));
        }
        Ok(())
    }

    /// Why a run posts nothing, if so.
    fn no_deliver(&self, ctx: &RunContext) -> Option<Phrase> {
        match ctx.delivery {
            Delivery::NoDeliver => Some(Phrase::verbatim("--no-deliver")),
            Delivery::Queue if self.deliver.is_empty() => {
                Some(phrase!("`deliver` names no channel", "`deliver` にチャンネルがありません"))
            }
            Delivery::Queue => None,
        }
    }

    async fn take_steps(
        &self,
        ctx: &RunContext,
        only: Option<Only>,
        report: &mut ReportBuilder,
    ) -> Result<(), Failure> {
        let (mut steps, mut unchanged) = (0, 0);
        while steps < self.keys.items_per_run {
            ctx.check_stop()?;
            steps += 1;
            match self.step(ctx, only).await? {
                Step::Moved(line) => report.step_well(line),
                Step::Failed(line) => report.failed_steps.push(line),
                Step::Unchanged => {
                    unchanged += 1;
                    // It cost one page; those that wait are not to keep new ones waiting.
                    if unchanged <= FREE_VISITS {
                        steps -= 1;
                    }
                }
                Step::NotRendered { line, problems, is_queued } => {
                    report.lines.push(line);
                    report.problems.extend(problems);
                    report.any_step_well |= is_queued;
                }
                Step::Waiting { until, why } => {
                    report.lines.push(phrase!(
                        "waiting until {until}: {why}",
                        "{until} まで待機：{why}",
                        until,
                        why
                    ));
                    report.waiting_until = Some(until);
                    break;
                }
                Step::Nothing => break,
            }
        }
        if unchanged > 0 {
            report.well(phrase!("{unchanged page} unchanged", "変化のないページ {unchanged} 件", unchanged));
        }
        Ok(())
    }

    /// Takes one step: one summary if an item is pending, else one screening.
    async fn step(&self, ctx: &RunContext, only: Option<Only>) -> Result<Step, Failure> {
        loop {
            let (name, now) = (self.name.clone(), ctx.now());
            let picked = ctx
                .db
                .read(move |tx| {
                    if only != Some(Only::Screen)
                        && let Some(item) = store::find_pending(tx, &name)?
                    {
                        return Ok(Some(item));
                    }
                    if only == Some(Only::Post) { Ok(None) } else { store::find_to_screen(tx, &name, now) }
                })
                .await?;
            let Some(item) = picked else { return Ok(Step::Nothing) };
            if decide::retries_exhausted(&item, &self.limits()) {
                let detail = json!({ "last": item.reason.map(Reason::word) });
                self.finish(ctx, &item, Event::LimitReached, detail, None).await?;
                continue;
            }
            ctx.progress.report(&ctx.job, Update::Now(item.title.clone()));
            let purpose = if item.status == Status::Pending { Purpose::Summary } else { Purpose::Screen };
            // Nothing is fetched for a provider that cannot be asked.
            if let Some(obstacle) = self.llm()?.find_obstacle(&self.name, purpose, &[]).await? {
                return summarize::without_model(self, ctx, &item, obstacle).await;
            }
            return match purpose {
                Purpose::Summary => until_stopped(ctx, summarize::one(self, ctx, item)).await,
                Purpose::Screen => until_stopped(ctx, screen::one(self, ctx, item)).await,
            };
        }
    }

    /// Decides what becomes of `item` by `event`, and writes it with its story.
    async fn finish(
        &self,
        ctx: &RunContext,
        item: &Item,
        event: Event,
        detail: Json,
        seen: Option<Seen>,
    ) -> Result<Step, Failure> {
        let Some(to) = decide::after(item, event, Some(&self.limits()), ctx.now()) else {
            return Ok(Step::Nothing);
        };
        let line = phrase!(
            "{event}: {title}",
            "{event}：{title}",
            event = event.code().phrase(),
            title = &item.title
        );
        let item = item.clone();
        let took = ctx
            .write(move |tx| {
                let took = match event {
                    Event::Unchanged => store::put(tx, &item, &to)?,
                    _ => store::apply(tx, &item, &to, event.code(), &detail)?,
                };
                if took && let Some(seen) = &seen {
                    store::put_verdict(tx, item.id, &seen.page_hash, seen.verdict.as_deref())?;
                }
                // One that is worth it is asked about once more, for its summary.
                if took && matches!(event, Event::NotWorth | Event::NotReady) {
                    store::mark_answered(tx, item.id)?;
                }
                Ok(took)
            })
            .await?;
        Ok(match event {
            _ if !took => Step::Moved(overtaken()),
            Event::DownloadFailed | Event::ModelFailed => Step::Failed(line),
            Event::Unchanged => Step::Unchanged,
            _ => Step::Moved(line),
        })
    }

    /// That `content` names a block that a page has not.
    fn block_warning(&self, page: &str) -> Phrase {
        let content = self.keys.content.as_deref().unwrap_or_default();
        phrase!(
            "warning: `content = \"{content}\"` matches nothing on {page}; the main text is detected instead",
            "警告：`content = \"{content}\"` に一致する部分が {page} にないため、本文を自動判定しました",
            content,
            page
        )
    }

    fn limits(&self) -> Limits {
        self.keys.limits()
    }

    fn llm(&self) -> Result<&Llm, Failure> {
        let missing = || {
            Failure::Config(phrase!(
                "there is no [llm.{name}]",
                "[llm.{name}] がありません",
                name = &self.llm
            ))
        };
        self.env.llms.find(&self.llm).ok_or_else(missing)
    }

    /// That the model cannot be asked because of its key, naming the table of the config that has it.
    fn locked(&self, why: &Phrase) -> Failure {
        Failure::Credentials(phrase!("[llm.{name}]: {why}", "[llm.{name}]：{why}", name = &self.llm, why))
    }

    /// That the model cannot be asked in the way that the config says.
    fn refused(&self, why: &Phrase) -> Failure {
        Failure::Config(phrase!(
            "[llm.{name}]: {why}; hint: `tsuzuki doctor` says which models there are; what else is sent stands in that table",
            "[llm.{name}]：{why}。使えるモデルは `tsuzuki doctor` で確認できます",
            name = &self.llm,
            why
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

/// What was seen of an item's page, to be remembered with what was decided.
#[derive(Clone, Debug)]
struct Seen {
    page_hash: String,
    verdict: Option<String>,
}

/// An answer that is none: the step waits, the run fails, or the item is to blame.
fn no_answer(press: &Press, error: AskError) -> Result<Result<Step, String>, Failure> {
    match error {
        AskError::Resting(Unavailable { why, because: PauseReason::Locked, .. }) => Err(press.locked(&why)),
        AskError::Resting(Unavailable { why, because: PauseReason::Refused, .. }) => Err(press.refused(&why)),
        AskError::Resting(Unavailable { until, why, .. }) => Ok(Ok(Step::Waiting { until, why })),
        AskError::Rejected { why } => Ok(Err(why)),
        AskError::Db(error) => Err(error.into()),
    }
}

/// That another process was faster.
fn overtaken() -> Phrase {
    phrase!("somebody else has changed the item meanwhile", "その間に別の処理が記事を更新しました")
}

/// Runs `work` until it is done or the run is to stop; what was not written is as if it had not happened.
async fn until_stopped<T>(
    ctx: &RunContext,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = ctx.stop.cancelled() => Err(Failure::Interrupted),
        done = work => done,
    }
}

impl Collector for Press {
    fn run<'a>(&'a self, ctx: &'a RunContext) -> Boxed<'a, Result<Report, Failure>> {
        match self.only {
            Some(only) => Box::pin(self.run_only(ctx, only)),
            None => Box::pin(self.run_whole(ctx)),
        }
    }

    fn check(&self) -> Boxed<'_, Vec<Check>> {
        Box::pin(async {
            let feed = self.keys.feed.url();
            let fetcher = &self.env.fetcher;
            let feed = fetcher.reach("feed", feed, &self.allow_private, Wanted::Document).await;
            let page = if feed.is_fine { preview::check_page(self).await } else { None };
            [Some(feed), page].into_iter().flatten().collect()
        })
    }

    fn relies_on(&self) -> Vec<Subject> {
        vec![Subject::provider(&self.llm), events::feed(&self.name)]
    }

    fn test<'a>(&'a self, db: &'a Db) -> Boxed<'a, Result<Preview, Failure>> {
        Box::pin(async {
            let (item, page) = preview::preview(self, db, self.env.clock.now()).await?;
            let mut notes = vec![phrase!(
                "only the newest page is read, and the model is not asked",
                "最新のページだけを読み、モデルには問い合わせません"
            )];
            notes.extend(page);
            Ok(Preview { items: vec![item], notes })
        })
    }

    fn only(&self, step: &str) -> Option<Arc<dyn Collector>> {
        let only = step.parse().ok()?;
        Some(Arc::new(Press { only: Some(only), ..self.clone() }))
    }

    fn plan<'a>(&'a self, db: &'a Db, now: Timestamp) -> Boxed<'a, db::Result<Plan>> {
        Box::pin(preview::plan(self, db, now))
    }
}
