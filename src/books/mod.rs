//! Books: page through a search, store every book once, and mail undelivered books with links to prompts.
//!
//! ```text
//! Google Books ──page──▶ books + position ──select──▶ digest + prompts + tokens ──▶ outbox ──accepted──▶ delivered
//!      ▲  (one request,    (one transaction)  │ not delivered first      (one transaction)     │ failed, skipped
//!      │   counted before)                    └ else a few of long ago          ▲              ▼
//!      └── until full, quota, error or exhausted ─ the next run goes on there   └── free to be told again
//! ```

mod ask;
pub mod collect;
mod complaint;
pub mod config;
pub mod decide;
pub mod deliver;
pub mod events;
pub mod filter;
mod findings;
pub mod funnel;
pub mod google;
pub mod lines;
pub mod mail;
pub mod model;
mod pages;
pub mod pipeline;
mod preview;
pub mod prompt;
pub mod select;
pub mod store;
pub mod token;
pub mod view;
pub mod volume;

use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use self::collect::Wrong;
use self::config::Keys;
use self::filter::BookFilter;
use self::funnel::{Funnel, HeldBack};
use self::google::Search;
use self::prompt::Prompt;
use self::select::DigestLimits;
use crate::channel::outbox::Topics;
use crate::config::value::FirstRun;
use crate::config::{Job, Problems};
use crate::db::Tx;
use crate::db::{self, Db};
use crate::engine::view::{Fact, State};
use crate::engine::{
    Block, Collector, DeliveryMode, Failure, JobEnv, Plan, Preview, Report, RunContext, Standing,
};
use crate::fetch::{AllowPrivate, Check, Fetcher, Wanted};
use crate::hash;
use crate::id::JobName;
use crate::ledger::quota::Quota;
use crate::ledger::{Subject, cursor};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// The name of this kind of job in the config file.
pub const KIND: &str = "books";
/// How often a job runs by default.
pub const EVERY: Duration = Duration::from_secs(60 * 60);
/// Requests a day when no quota is configured.
pub const REQUESTS_PER_DAY: u32 = 100;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub fn make(job: &Job, env: &JobEnv) -> Result<Arc<dyn Collector>, Problems> {
    Ok(Arc::new(Books::new(job, env)?))
}

/// Registers the handler for digests that were accepted, failed or were skipped.
pub fn topics(topics: Topics) -> Topics {
    topics.on(deliver::TOPIC, deliver::on_delivered)
}

/// A `books` job, ready to run.
pub struct Books {
    name: JobName,
    keys: Keys,
    allow_private: AllowPrivate,
    first_run: FirstRun,
    quota: Quota,
    fetcher: Fetcher,
    deliver: deliver::DeliverContext,
}

impl Books {
    pub fn new(job: &Job, env: &JobEnv) -> Result<Self, Problems> {
        let allow_private = AllowPrivate::parse(&job.allow_private)
            .map_err(|error| job.section.problem("allow_private", error.phrase()));
        let keys: Keys = job.section.keys().cloned()?;
        let mut problems = keys.list_problems(&job.section);
        let allow_private = problems.note(allow_private).unwrap_or_else(AllowPrivate::none);
        let zone = env.app.timezone.clone();
        let quota = match env.quotas.get(&keys.quota) {
            Some(quota) => quota.clone(),
            None => {
                let known = env.quotas.keys().map(String::as_str);
                problems.push(job.section.unknown_name(
                    "quota",
                    crate::config::TableKind::Quota.noun(),
                    &keys.quota,
                    known,
                ));
                return Err(problems);
            }
        };
        let deliver = deliver::DeliverContext {
            limits: DigestLimits {
                mail_limit: keys.mail_limit,
                fallback_limit: keys.fallback_limit,
                zone: zone.time_zone().clone(),
                wanted: BookFilter::of(&keys),
            },
            deliver: job.deliver.clone(),
            channels: Arc::clone(&env.channels),
            channel_env: env.channel_env.clone(),
            web: env.web.clone(),
            token_life: DAY * keys.token_days,
            language: env.app.message_language(),
            prompt: Prompt::of(&keys, &job.section, env.app.message_language()),
        };
        problems.unless_any(Self {
            name: job.name.clone(),
            keys,
            allow_private,
            first_run: job.first_run.unwrap_or(FirstRun::All),
            quota,
            fetcher: env.fetcher.clone(),
            deliver,
        })
    }

    pub fn deliver_plan(&self) -> &deliver::DeliverContext {
        &self.deliver
    }

    fn query_set_hash(&self) -> String {
        hash::query_set_hash(&self.keys.queries)
    }

    fn collect_plan(&self) -> Result<collect::CollectContext, Failure> {
        let key = match &self.keys.google_books.api_key {
            Some(secret) => {
                let revealed =
                    secret.reveal().map_err(|missing| Failure::Credentials(missing.to_string().into()))?;
                Some(SecretString::from(revealed.expose().trim()))
            }
            None => None,
        };
        let queries = hash::normalized_queries(&self.keys.queries);
        Ok(collect::CollectContext {
            search: Search::new(&queries, &self.keys.google_books, key, self.allow_private.clone()),
            query_set_hash: self.query_set_hash(),
            max_per_run: self.keys.max_per_run,
            recheck_after: self.keys.recheck_after.0,
            first_run: self.first_run,
            retries: self.keys.retries,
            quota: self.quota.clone(),
            also_newest: self.keys.also_newest,
            wanted: BookFilter::of(&self.keys),
        })
    }

    /// Collects, selects and delivers; a failure in one step does not stop the next. A run without delivery selects
    /// nothing: the books stay undelivered.
    async fn turn(&self, ctx: &RunContext) -> Result<Report, Failure> {
        let collected = collect::collect(&self.collect_plan()?, &self.fetcher, ctx).await?;
        ctx.check_stop()?;
        let job = ctx.job.clone();
        let undelivered = ctx.db.read(move |tx| store::count_undelivered(tx, &job)).await?;
        let undelivered = u64::try_from(undelivered).unwrap_or(0);
        let queued = match ctx.delivery {
            DeliveryMode::Queue => deliver::deliver(&self.deliver, ctx).await?,
            DeliveryMode::NoDeliver => deliver::Queued::default(),
        };
        let (job, deliver, now) = (ctx.job.clone(), self.deliver.deliver.clone(), ctx.now());
        let held_back = ctx.db.read(move |tx| HeldBack::find(tx, &job, &deliver, now)).await?;
        let has_channels = !self.deliver.deliver.is_empty();
        let funnel =
            Funnel { collected, undelivered, queued, held_back, has_channels, delivery: ctx.delivery };
        let summary = funnel.phrase();
        let all_failed = funnel.collected.returned == 0 && funnel.queued.new + funnel.queued.repeats == 0;
        let waiting_until =
            [funnel.collected.resumes_at, funnel.held_back.next_digest_at].into_iter().flatten().min();
        let mut problems: Vec<Phrase> = funnel.queued.problems.into_iter().map(Phrase::from).collect();
        let needs_config = matches!(funnel.collected.trouble, Some(Wrong::Config(_)));
        match funnel.collected.trouble {
            Some(Wrong::Credentials(why)) => {
                return Err(Failure::Credentials(google::refused_key(why)));
            }
            Some(Wrong::Config(why) | Wrong::Failed(why)) => {
                problems.insert(0, phrase!("Google Books: {why}", "Google Books：{why}"));
            }
            None => {}
        }
        let new_count = funnel.collected.new;
        Ok(Report { problems, new_count, waiting_until, all_failed, needs_config, ..Report::new(summary) })
    }

    async fn plan_steps(&self, db: &Db, now: Timestamp) -> db::Result<Plan> {
        let (name, key, limits) = (self.name.clone(), self.query_set_hash(), self.deliver.limits.clone());
        let (quota, deliver) = (self.quota.clone(), self.deliver.deliver.clone());
        let (cursor, used, choice, has_unsent_digest) = db
            .read(move |tx| {
                let cursor = cursor::find(tx, name.as_str(), &key)?;
                let choice = select::choose(tx, &name, &limits, now)?;
                Ok((cursor, quota.used(tx, now)?, choice, store::has_unsent_digest(tx, &name, &deliver)?))
            })
            .await?;
        let collect = match collect::start_index(cursor.as_ref(), self.keys.recheck_after.0, now) {
            None => phrase!("collect: nothing, the search is exhausted", "取得：なし（検索は枯渇）"),
            Some(start) => phrase!(
                "collect: up to {most} volumes from startIndex={start} ({used} of {per_day} requests used today)",
                "取得：startIndex={start} から最大 {most} 件（本日の要求 {used}/{per_day}）",
                most = self.keys.max_per_run,
                per_day = self.quota.rule.per_day
            ),
        };
        let newest = self
            .keys
            .also_newest
            .then(|| phrase!("collect: one page of the newest volumes", "取得：新しい順の 1 ページ"));
        let channels = match self.deliver.deliver.as_slice() {
            [] => Value::from(phrase!("nobody", "なし")),
            names => Value::List(names.iter().map(Value::from).collect()),
        };
        let deliver_step = match choice {
            _ if has_unsent_digest => phrase!(
                "notify {channels}: nothing before the last digest is sent",
                "通知（{channels}）：前のダイジェストが送信されるまでなし"
            ),
            select::Selection::New(books) => {
                let count = books.len();
                phrase!(
                    "notify {channels}: {count undelivered book}, and what is collected",
                    "通知（{channels}）：未送信の {count} 件と、今回取得した書籍"
                )
            }
            select::Selection::Repeats(books) => {
                let count = books.len();
                phrase!(
                    "notify {channels}: what is collected, else {count book} again",
                    "通知（{channels}）：今回取得した書籍、なければ {count} 件を再送"
                )
            }
            select::Selection::Nothing => {
                phrase!("notify {channels}: what is collected", "通知（{channels}）：今回取得した書籍")
            }
        };
        Ok(Plan { steps: newest.into_iter().chain([collect, deliver_step]).collect() })
    }
}

#[async_trait]
impl Collector for Books {
    async fn run(&self, ctx: &RunContext) -> Result<Report, Failure> {
        self.turn(ctx).await
    }

    async fn check(&self) -> Vec<Check> {
        // A search would count against the quota, so only the first run checks the key.
        let url = google::volumes_url(self.keys.google_books.api_url.as_deref());
        vec![self.fetcher.reach("Google Books", &url, &self.allow_private, Wanted::Anything).await]
    }

    fn relies_on(&self) -> Vec<Subject> {
        vec![Subject::provider(&self.quota.provider)]
    }

    fn list_facts(&self, tx: &mut Tx<'_>, name: &JobName, now: Timestamp) -> db::Result<Vec<Fact>> {
        let until = select::next_digest_at(tx, name, now)?;
        let fact = |until| Fact {
            label: phrase!("paused", "一時停止"),
            value: phrase!(
                "its digests until {until}: the last one was refused, see messages",
                "ダイジェストは {until} まで停止：直前の 1 通が拒否されました"
            )
            .into(),
        };
        Ok(until.map(fact).into_iter().collect())
    }

    fn list_blocks(&self, tx: &mut Tx<'_>, name: &JobName, _: Timestamp) -> db::Result<Vec<Block>> {
        let cursor = cursor::find(tx, name.as_str(), &self.query_set_hash())?;
        Ok(pages::list_blocks(&view::mail_status(tx, name)?, cursor.as_ref()))
    }

    fn find_standing(&self, tx: &mut Tx<'_>, name: &JobName, now: Timestamp) -> db::Result<Option<Standing>> {
        if self.quota.used(tx, now)? >= i64::from(self.quota.rule.per_day) {
            let until = self.quota.resets_at(now);
            let why = phrase!("resumes {until}", "{until} に再開");
            return Ok(Some(Standing::new(State::Quota).because(why)));
        }
        let cursor = cursor::find(tx, name.as_str(), &self.query_set_hash())?;
        let Some(end) = cursor.filter(|cursor| cursor.is_exhausted) else { return Ok(None) };
        let (count, done) = (end.start_index, Standing::new(State::Done));
        Ok(Some(match self.keys.recheck_after.0 {
            Some(after) => {
                let at = end.last_updated_at.plus(after);
                done.because(phrase!(
                    "{count} read, again from {at}",
                    "{count} 件を取得済み、{at} から再確認"
                ))
            }
            None => done.because(phrase!("{count} read", "{count} 件を取得済み")).needing_you(),
        }))
    }

    async fn test(&self, db: &Db) -> Result<Preview, Failure> {
        let now = self.deliver.channel_env.clock.now();
        preview::preview(&self.collect_plan()?, &self.name, &self.fetcher, db, now).await
    }

    async fn plan(&self, db: &Db, now: Timestamp) -> db::Result<Plan> {
        self.plan_steps(db, now).await
    }
}
