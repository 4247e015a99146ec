//! The one place that lists kinds, channels and providers, and wires them together.

pub mod daemon;
pub mod new_table;
mod pass;
mod prune;
pub mod survey;

pub use pass::{PassReport, Sent};
pub use prune::prune;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use url::Url;

use crate::channel::outbox::{Sender, Topics};
use crate::channel::{self, ChannelEnv, ChannelSet};
use crate::config::value::Span;
use crate::config::{self, Config, Kind, MissingAt, MissingSecret, Problem, Problems, Section, TableKind};
use crate::db::Db;
use crate::engine::alert::Announcer;
use crate::engine::ping::Ping;
use crate::engine::pipeline::{ExportDocument, Thing, WithoutChannel};
use crate::engine::{Finder, Job, JobEnv, Page, Pipeline, Schedule, Table, pages, things};
use crate::fetch::{self, AllowPrivate, ClientConfig, FetchConfig, Fetcher};
use crate::ledger::Subject;
use crate::ledger::quota::Quota;
use crate::llm::{self, LlmSet};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Clock;

/// The pipelines: each is a folder that `lib.rs` names, a migration, and a line here.
pub const PIPELINES: &[&Pipeline] = &[
    &crate::press::pipeline::PIPELINE,
    &crate::books::pipeline::PIPELINE,
    &crate::blogs::pipeline::PIPELINE,
    &crate::commits::pipeline::PIPELINE,
];

/// The pipeline of that kind.
pub fn find_pipeline(kind: &str) -> Option<&'static Pipeline> {
    PIPELINES.iter().copied().find(|pipeline| pipeline.kind.name == kind)
}

/// Every table that can be exported: those of the pipelines, and the messages.
pub fn tables() -> impl Iterator<Item = &'static Table> {
    let of_pipelines = PIPELINES.iter().flat_map(|pipeline| pipeline.tables.iter().copied());
    of_pipelines.chain([&things::delivery::MESSAGES])
}

/// Every document that can be exported.
pub fn documents() -> impl Iterator<Item = &'static ExportDocument> {
    PIPELINES.iter().flat_map(|pipeline| pipeline.documents)
}

/// Every kind of thing that has names, in the order in which a bare name is tried.
pub fn things() -> impl Iterator<Item = &'static Thing> {
    let of_pipelines = PIPELINES.iter().flat_map(|pipeline| pipeline.things.iter().copied());
    of_pipelines.chain(things::THINGS.iter().copied())
}

/// Pages of the dashboard, in the order of the navigation.
fn list_pages() -> impl Iterator<Item = &'static Page> {
    let of_pipelines = PIPELINES.iter().flat_map(|pipeline| pipeline.pages.iter().copied());
    of_pipelines.chain(pages::PAGES.iter().copied())
}

/// The default interval of a kind of job.
pub fn default_every(kind: &str) -> Option<Span> {
    let pipeline = find_pipeline(kind)?;
    Span::from_secs(pipeline.every.as_secs())
}

/// The kinds of jobs, by name.
pub fn job_kinds() -> impl Iterator<Item = &'static str> {
    PIPELINES.iter().map(|pipeline| pipeline.kind.name)
}

/// Possible improvements to a valid config file.
pub fn list_warnings(config: &Config) -> Problems {
    let mut warnings = Problems::default();
    warnings.extend(list_unused(config));
    for job in &config.jobs {
        warnings.extend(
            find_pipeline(&job.kind)
                .map(|pipeline| (pipeline.list_warnings)(job, config))
                .unwrap_or_default(),
        );
    }
    warnings.extend(config.jobs.iter().filter_map(warn_without_channel));
    warnings
}

/// The warning about a job without a channel: its owner may wait for messages in vain.
pub fn warn_without_channel(job: &config::Job) -> Option<Problem> {
    let WithoutChannel { instead, listing } = &find_pipeline(&job.kind)?.without_channel;
    let message = phrase!(
        "job `{name}` sends nowhere: {instead}results are kept and shown by `status` and `{listing}`",
        "ジョブ `{name}` の送信先がありません：{instead}結果は保存され、`status` と `{listing}` で見られます",
        name = &job.name,
        instead = instead()
    );
    let hint = phrase!("add `deliver` to be notified", "通知を受け取るには `deliver` を追加してください");
    let warning = || job.section.header_problem(message).as_warning().with_hint(hint);
    job.deliver.is_empty().then(warning)
}

/// The `missing` secrets that a job needs: its own, those of its channels and its model, and the proxy's.
fn list_missing_of(job: &Job, config: &Config, missing: &[MissingAt]) -> Vec<Phrase> {
    let relied_on = job.collector.relies_on();
    let deliver = config.find_job(job.name.as_str()).map_or(&[][..], |job| job.deliver.as_slice());
    let is_needed = |missing: &&MissingAt| match missing.place {
        TableKind::App => true,
        TableKind::Job => missing.owner == job.name.as_str(),
        TableKind::Channel => deliver.contains(&missing.owner),
        TableKind::Llm => relied_on.contains(&Subject::provider(&missing.owner)),
        TableKind::Store | TableKind::Web | TableKind::Quota | TableKind::Defaults => false,
    };
    missing.iter().filter(is_needed).map(|missing| missing.why.clone()).collect()
}

/// Tables that nothing in the file uses.
fn list_unused(config: &Config) -> Vec<Problem> {
    if !config.has_all_jobs {
        return Vec::new();
    }
    let unused = |section: &Section, why: Phrase| section.header_problem(why).as_warning();
    let is_announced = |name: &str| {
        let jobs = config.jobs.iter().map(|job| &job.deliver);
        jobs.chain([&config.app.alert]).any(|channels| channels.iter().any(|channel| channel == name))
    };
    let asks = |job: &config::Job| find_pipeline(&job.kind).is_some_and(|pipeline| pipeline.uses.llm);
    let is_asked = config.jobs.iter().any(asks);
    let channels = config.channels.iter().filter(|channel| !is_announced(&channel.name));
    let llms = config.llms.iter().filter(|_| !is_asked);
    channels
        .map(|channel| {
            let why = phrase!(
                "neither a `deliver` nor `alert` names it, so nothing is sent there",
                "`deliver` にも `alert` にも指定がないため、ここには何も送られません"
            );
            unused(channel, why)
        })
        .chain(
            llms.map(|llm| {
                unused(llm, phrase!("no job uses a model", "モデルに問い合わせるジョブがありません"))
            }),
        )
        .collect()
}

/// Every kind of job, channel and LLM; `config` checks files against them.
pub fn kinds() -> &'static [Kind] {
    static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
        let pipelines = PIPELINES.iter().map(|pipeline| pipeline.kind);
        let channels = channel::KINDS.iter().map(|kind| kind.keys);
        let providers = llm::KINDS.iter().map(|kind| kind.keys);
        pipelines.chain(channels).chain(providers).chain([config::Web::KIND]).collect()
    });
    &KINDS
}

/// Why the program cannot start with a config.
#[derive(Debug)]
pub enum Error {
    Config(Problems),
    /// The HTTP client cannot be created.
    Fetch(fetch::Error),
    /// The secret of the proxy is not set.
    MissingProxy(MissingSecret),
    /// The address of the proxy is invalid.
    BadProxy,
}

impl Error {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            Self::Config(problems) => Phrase::verbatim(problems.to_string()),
            Self::Fetch(error) => error.phrase(),
            Self::MissingProxy(missing) => {
                phrase!("`proxy` in [app]: {why}", "[app] の `proxy`：{why}", why = missing.phrase())
            }
            Self::BadProxy => phrase!(
                "`proxy` in [app] is not an address like http://HOST:PORT",
                "[app] の `proxy` は http://HOST:PORT の形のアドレスではありません"
            ),
        }
    }
}

crate::error_in_english!(Error);

impl From<Problems> for Error {
    fn from(problems: Problems) -> Self {
        Self::Config(problems)
    }
}

impl From<fetch::Error> for Error {
    fn from(error: fetch::Error) -> Self {
        Self::Fetch(error)
    }
}

/// The parts of a process, made from one config file.
pub struct App {
    pub env: JobEnv,
    /// In the order of the file.
    pub jobs: Vec<Job>,
    keep_history: Option<Span>,
}

impl App {
    /// Creates the tools and every job; reports all problems of the file together.
    pub fn new(config: &Config, db: Db) -> Result<Self, Error> {
        let clock = db.clock().clone();
        let fetcher = fetcher(config, clock.clone())?;
        let mut problems = Problems::default();
        PIPELINES.iter().for_each(|pipeline| problems.extend((pipeline.check_jobs)(&config.jobs)));
        let channels = problems.note(ChannelSet::read(&config.channels, &config.app.timezone));
        let quotas = quotas(config);
        let zone = &config.app.timezone;
        let llms = LlmSet::read(&config.llms, &quotas, zone, &db, fetcher.clients(), &mut problems);
        let web = problems.note(config.web.keys().cloned());
        let env = JobEnv {
            jobs: config.jobs.as_slice().into(),
            app: config.app.clone(),
            channel_env: ChannelEnv { clients: fetcher.clients().clone(), clock: clock.clone() },
            clock,
            db,
            fetcher,
            llms: Arc::new(llms),
            quotas,
            channels: Arc::new(channels.unwrap_or_default()),
            web: web.unwrap_or_default(),
        };
        let jobs = config.jobs.iter().filter_map(|job| problems.note(make_job(job, &env))).collect();
        Ok(problems.unless_any(Self { env, jobs, keep_history: config.store.keep_history })?)
    }

    /// Finds things by name, for `why` and the pages.
    pub fn finder(&self, config: &Config, limit: usize) -> Finder {
        let of_pipelines = PIPELINES.iter().flat_map(|pipeline| pipeline.words.iter().copied());
        let missing = config.list_missing_secrets();
        let missing_of = |job: &Job| (job.name.to_string(), list_missing_of(job, config, &missing));
        Finder {
            config: Arc::new(config.clone()),
            jobs: self.jobs.clone(),
            things: things().collect(),
            pipelines: PIPELINES,
            topics: topics(),
            pages: list_pages().collect(),
            words: of_pipelines.chain(things::WORDS.iter().copied()).collect(),
            needs: PIPELINES.iter().map(|pipeline| pipeline.list_needs).collect(),
            channels: Arc::clone(&self.env.channels),
            quotas: self.env.quotas.clone(),
            missing: self.jobs.iter().map(missing_of).collect(),
            limit,
            now: self.env.clock.now(),
        }
    }

    /// Sends the messages in the outbox and notifies the jobs of the outcome.
    pub fn sender(&self) -> Sender {
        let JobEnv { db, channels, channel_env, .. } = &self.env;
        Sender::new(
            db.clone(),
            Arc::clone(channels),
            channel_env.clients.clone(),
            channel_env.clock.clone(),
            topics(),
        )
    }

    /// Announces alerts to the operator.
    pub fn announcer(&self) -> Announcer {
        Announcer::new(&self.env)
    }
}

/// What every pipeline does when its messages are final.
pub fn topics() -> Topics {
    PIPELINES.iter().fold(Topics::new(), |topics, pipeline| (pipeline.topics)(topics))
}

/// Creates the fetcher of this process.
pub fn fetcher(config: &Config, clock: Clock) -> Result<Fetcher, Error> {
    let app = &config.app;
    let client = ClientConfig {
        user_agent: user_agent(app),
        extra_ca: app.extra_ca.as_ref().map(|path| config.store.directory.join(path)),
        proxy: app.proxy.as_ref().map(read_proxy).transpose()?,
        ..ClientConfig::default()
    };
    Ok(Fetcher::new(FetchConfig { client, ..FetchConfig::default() }, clock)?)
}

/// The proxy's address. It may contain a password, so errors do not show it.
fn read_proxy(proxy: &config::Secret) -> Result<Url, Error> {
    let revealed = proxy.reveal().map_err(Error::MissingProxy)?;
    match Url::parse(revealed.expose()) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        _ => Err(Error::BadProxy),
    }
}

fn make_job(job: &config::Job, env: &JobEnv) -> Result<Job, Problems> {
    if !job.section.is_whole() {
        let error = AllowPrivate::parse(&job.allow_private).err();
        return Err(error
            .map(|error| job.section.problem("allow_private", error.phrase()))
            .into_iter()
            .collect());
    }
    let Some(pipeline) = find_pipeline(&job.kind) else {
        let known = PIPELINES.iter().map(|pipeline| pipeline.kind.name);
        return Err(job.section.unknown_name("kind", phrase!("kind", "種類"), &job.kind, known).into());
    };
    Ok(Job {
        name: job.name.clone(),
        kind: pipeline.kind.name,
        enabled: job.enabled,
        schedule: Schedule::new(&job.schedule, pipeline.every, job.timezone.time_zone().clone()),
        collector: (pipeline.make)(job, env)?,
        ping: job.ping.as_ref().map(|address| {
            let allowed = AllowPrivate::parse(&job.allow_private).unwrap_or_else(|_| AllowPrivate::none());
            Ping::new(address.clone().into(), env.fetcher.clone(), allowed)
        }),
    })
}

/// The daily limits: those of the file, and the defaults of pipelines.
pub fn quotas(config: &Config) -> BTreeMap<String, Quota> {
    let quota =
        |name: &str, rule: config::Quota| (name.to_owned(), Quota { provider: name.to_owned(), rule });
    let mut quotas: BTreeMap<String, Quota> =
        config.quotas.iter().map(|(name, rule)| quota(name, rule.clone())).collect();
    for pipeline in PIPELINES.iter().filter(|of| config.jobs.iter().any(|job| job.kind == of.kind.name)) {
        for (name, per_day) in
            pipeline.quotas.iter().filter(|(name, _)| !quotas.contains_key(*name)).collect::<Vec<_>>()
        {
            let rule = config::Quota::from_midnight(*per_day, config.app.quota_zone.clone());
            quotas.extend([quota(name, rule)]);
        }
    }
    quotas
}

fn user_agent(app: &config::App) -> String {
    let name = app.user_agent.clone().unwrap_or_else(|| format!("tsuzuki/{}", env!("CARGO_PKG_VERSION")));
    match &app.contact {
        Some(contact) => format!("{name} (+{contact})"),
        None => name,
    }
}
