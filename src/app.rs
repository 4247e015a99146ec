//! The one place that lists kinds, channels and providers, and wires them together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::books;
use crate::channel::outbox::Topics;
use crate::channel::{self, ChannelSet};
use crate::config::{self, Config, Kind, Problems};
use crate::db::Db;
use crate::engine::{Job, Parts, Schedule};
use crate::fetch::{self, ClientConfig, FetchConfig, Fetcher};
use crate::ledger::quota::Quota;

/// Every kind of job, channel and LLM, with the struct its table is read into. `config` checks files against it.
pub const KINDS: &[Kind] = &join::<{ OWN_KINDS.len() + channel::KINDS.len() }>(OWN_KINDS, channel::KINDS);

const OWN_KINDS: &[Kind] = &[Kind::web::<config::Web>(), Kind::job::<books::config::Keys>("books")];

const fn join<const N: usize>(first: &[Kind], second: &[Kind]) -> [Kind; N] {
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

/// Who owns the messages of which topic.
pub fn topics() -> Topics {
    Topics::new().on(books::deliver::TOPIC, books::deliver::settled)
}

/// One line per pipeline: its name, how often it runs by default, and how a job is made of its table.
struct Pipeline {
    kind: &'static str,
    every: Duration,
    make: fn(&config::Job, &Parts) -> Result<Arc<dyn crate::engine::Work>, Problems>,
}

const HOUR: Duration = Duration::from_secs(60 * 60);

const PIPELINES: &[Pipeline] = &[Pipeline { kind: "books", every: HOUR, make: books::Books::work }];

/// Why the program cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A table of the config file is wrong.
    #[error(transparent)]
    Config(#[from] Problems),
    /// The HTTP client cannot be made.
    #[error(transparent)]
    Fetch(#[from] fetch::Error),
}

/// Everything that a process needs, made from one config file.
pub struct App {
    /// The tools.
    pub parts: Parts,
    /// The jobs, in the order of the file.
    pub jobs: Vec<Job>,
}

impl App {
    /// Builds the tools and every job; all problems of the file are reported at once.
    pub fn new(config: &Config, db: Db) -> Result<Self, Error> {
        let clock = db.clock().clone();
        let client = ClientConfig { user_agent: user_agent(&config.app), ..ClientConfig::default() };
        let fetcher = Fetcher::new(FetchConfig { client, ..FetchConfig::default() }, clock.clone())?;
        let mut problems = Problems::default();
        let channels = problems.note(ChannelSet::read(&config.channels, &config.app.timezone)).unwrap_or_default();
        let web = problems.note(config.web.read()).unwrap_or_default();
        let parts = Parts {
            app: config.app.clone(),
            clock,
            db,
            fetcher,
            channels: Arc::new(channels),
            web,
            quotas: quotas(config),
        };
        let jobs = config.jobs.iter().filter_map(|job| problems.note(make_job(job, &parts))).collect();
        match problems.is_empty() {
            true => Ok(Self { parts, jobs }),
            false => Err(problems.into()),
        }
    }
}

fn make_job(job: &config::Job, parts: &Parts) -> Result<Job, Problems> {
    let Some(pipeline) = PIPELINES.iter().find(|pipeline| pipeline.kind == job.kind) else {
        let known = PIPELINES.iter().map(|pipeline| pipeline.kind);
        return Err(job.section.unknown_name("kind", "kind", &job.kind, known).into());
    };
    Ok(Job {
        name: job.name.clone(),
        kind: pipeline.kind,
        enabled: job.enabled,
        schedule: Schedule::new(&job.schedule, pipeline.every, job.timezone.time_zone().clone()),
        work: (pipeline.make)(job, parts)?,
    })
}

fn quotas(config: &Config) -> BTreeMap<String, Quota> {
    config
        .quotas
        .iter()
        .map(|(name, rule)| (name.clone(), Quota { provider: name.clone(), rule: rule.clone() }))
        .collect()
}

fn user_agent(app: &config::App) -> String {
    let name = app.user_agent.clone().unwrap_or_else(|| format!("tsuzuki/{}", env!("CARGO_PKG_VERSION")));
    match &app.contact {
        Some(contact) => format!("{name} (+{contact})"),
        None => name,
    }
}
