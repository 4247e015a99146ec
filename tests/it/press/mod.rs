//! Press releases against the loopback world, on both databases.

mod answers;
mod commands;
mod crash;
mod feeds;
mod held_back;
mod ministry;
mod month;
mod moved;
mod pages;
mod providers;
mod reasons;
mod refusals;
mod see_before;
mod silence;
mod story;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::app::{self, App};
use tsuzuki::channel::outbox::Sender;
use tsuzuki::config::Config;
use tsuzuki::db::Db;
use tsuzuki::demo::gemini::{self, Gemini};
use tsuzuki::demo::mastodon::{MastodonServer, TOKEN};
use tsuzuki::demo::ministry::{Ministry, Shape};
use tsuzuki::engine::{Failure, Finished, Job, JobEnv, Progress, Report, Runner, Schedule, Selection};
use tsuzuki::fetch::{FetchConfig, Fetcher, Manners};
use tsuzuki::ledger::{Subject, event};
use tsuzuki::press::store::{self, ItemFilter};
use tsuzuki::press::{Item, Press};
use tsuzuki::time::{Clock, Timestamp};

use crate::databases::Fixture;
use crate::test_env::{TestEnv, read_config};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// A ministry, a model and an account, with a job that connects them.
pub(crate) struct World {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ministry: Ministry,
    pub(crate) gemini: Gemini,
    pub(crate) mastodon: MastodonServer,
    config: Config,
    env: JobEnv,
}

/// The config of a world besides its addresses.
#[derive(Default)]
pub(crate) struct More<'a> {
    pub(crate) tables: &'a str,
    pub(crate) llm: &'a str,
    pub(crate) job: &'a str,
}

/// The config of a job `mic` over the three servers.
pub(crate) fn config_text(
    ministry: &Ministry,
    gemini: &Gemini,
    mastodon: &MastodonServer,
    more: &More<'_>,
) -> String {
    let deliver = if more.job.contains("deliver =") { "" } else { "deliver = [\"toots\"]" };
    format!(
        "{}\n[llm.gemini]\nkind = \"gemini\"\napi_key = \"{}\"\nbase_url = \"{}\"\nallow_private = [\"127.0.0.1\"]\n{}\n\
         [channel.toots]\nkind = \"mastodon\"\ninstance = \"{}\"\ntoken = \"{TOKEN}\"\nallow_private = [\"127.0.0.1\"]\n\
         [[job]]\nname = \"mic\"\nkind = \"press\"\nfeed = \"{}\"\ncontent = \".contentsBody\"\n{deliver}\n\
         allow_private = [\"127.0.0.1\"]\n{}\n",
        more.tables,
        gemini::KEY,
        gemini.url,
        more.llm,
        mastodon.url,
        ministry.feed(),
        more.job
    )
}

impl World {
    /// A world whose first run has found an empty feed: everything published later is news.
    pub(crate) async fn new(fixture: &Fixture, more: &More<'_>) -> Self {
        let world = Self::untouched(fixture, more).await;
        world.run().await;
        world.clock.advance(MINUTE);
        world
    }

    /// A world in which nothing has happened.
    pub(crate) async fn untouched(fixture: &Fixture, more: &More<'_>) -> Self {
        let ministry = Ministry::start().await.unwrap();
        let gemini = Gemini::start().await.unwrap();
        let mastodon = MastodonServer::start(fixture.clock.clone()).await.unwrap();
        let config = read_config(&config_text(&ministry, &gemini, &mastodon, more));
        let env = fast_parts(&config, fixture);
        let (db, clock) = (fixture.db.clone(), fixture.clock.clone());
        Self { db, clock, ministry, gemini, mastodon, config, env }
    }

    /// The same world with another config.
    pub(crate) fn reconfigure(&mut self, more: &More<'_>, fixture: &Fixture) {
        self.config = read_config(&config_text(&self.ministry, &self.gemini, &self.mastodon, more));
        self.env = fast_parts(&self.config, fixture);
    }

    pub(crate) fn press(&self) -> Press {
        Press::new(&self.config.jobs[0], &self.env).unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// The program under this config, over the database of the test.
    pub(crate) fn test_env(&self, fixture: &Fixture, more: &More<'_>) -> TestEnv {
        TestEnv::on(fixture, &config_text(&self.ministry, &self.gemini, &self.mastodon, more))
    }

    /// Runs the job once, now.
    pub(crate) async fn finish(&self) -> Finished {
        self.finish_unless(&CancellationToken::new()).await
    }

    /// The same until it is stopped.
    pub(crate) async fn finish_unless(&self, stop: &CancellationToken) -> Finished {
        let job = &self.config.jobs[0];
        let job = Job {
            name: job.name.clone(),
            kind: "press",
            enabled: true,
            schedule: Schedule::new(&job.schedule, 5 * MINUTE, job.timezone.time_zone().clone()),
            collector: Arc::new(self.press()),
            ping: None,
        };
        let runner = Runner::new(self.db.clone(), Progress::default());
        runner.run(vec![job], Selection::Forced, stop).await.remove(0).1
    }

    pub(crate) async fn run(&self) -> Report {
        match self.finish().await {
            Finished::Ran(report) => report,
            other => panic!("{other:?}"),
        }
    }

    /// Runs the job and sends due messages, `times` times, five minutes apart.
    pub(crate) async fn live(&self, times: usize) -> Vec<Report> {
        let mut reports = Vec::new();
        for _ in 0..times {
            reports.push(self.run().await);
            self.send().await;
            self.clock.advance(5 * MINUTE);
        }
        reports
    }

    pub(crate) async fn send(&self) {
        let JobEnv { db, channels, channel_env, .. } = &self.env;
        let sender = Sender::new(
            db.clone(),
            Arc::clone(channels),
            channel_env.clients.clone(),
            channel_env.clock.clone(),
            app::topics(),
        );
        sender.send_due(&CancellationToken::new()).await.unwrap();
    }

    pub(crate) fn publish(&self, slug: &str, shape: Shape) {
        let date = Some(self.clock.now().minus(HOUR));
        self.ministry.publish(slug, &format!("報道資料 {slug}"), date, shape);
    }

    pub(crate) async fn item(&self, slug: &str) -> Item {
        let url = self.ministry.page(slug);
        let found = self.db.read(move |tx| store::find_by_url(tx, "mic", &url)).await.unwrap();
        found.unwrap_or_else(|| panic!("there is no item {slug}"))
    }

    pub(crate) async fn items(&self) -> Vec<Item> {
        self.db.read(|tx| store::list(tx, &ItemFilter::default(), 1000)).await.unwrap()
    }

    /// `status/reason/tries` of an item, as the seed's numbers.
    pub(crate) async fn standing(&self, slug: &str) -> String {
        state_of(&self.item(slug).await)
    }

    /// The codes of an item's story, oldest first.
    pub(crate) async fn story(&self, slug: &str) -> Vec<String> {
        let about = Subject::new("item", self.ministry.page(slug));
        let events = self.db.read(move |tx| event::list_about(tx, &about, 100)).await.unwrap();
        events.into_iter().map(|event| event.code).collect()
    }

    /// The texts of all posts.
    pub(crate) fn posts(&self) -> Vec<String> {
        let text = |toot: tsuzuki::demo::mastodon::Toot| toot.request["status"].as_str().unwrap().to_owned();
        self.mastodon.toots().into_iter().map(text).collect()
    }

    /// Everything recorded that people can see, as one text.
    pub(crate) async fn everything_recorded(&self) -> String {
        let events = self.db.read(|tx| event::list_of_job(tx, "mic", 1000)).await.unwrap();
        let about =
            self.db.read(|tx| event::list_about(tx, &Subject::provider("gemini"), 1000)).await.unwrap();
        let now = self.clock.now();
        let pauses = self.db.read(move |tx| tsuzuki::ledger::pause::list(tx, now)).await.unwrap();
        let state = self.db.read(|tx| tsuzuki::engine::store::find_state(tx, "mic")).await.unwrap();
        format!("{events:?}\n{about:?}\n{pauses:?}\n{state:?}\n{:?}\n{:?}", self.items().await, self.posts())
    }
}

pub(crate) fn state_of(item: &Item) -> String {
    let reason = item.reason.map_or("-".to_owned(), |reason| reason.code().to_string());
    format!("{}/{reason}/{}", item.status.code(), item.retry_count)
}

fn fast_parts(config: &Config, fixture: &Fixture) -> JobEnv {
    let mut env = App::new(config, fixture.db.clone()).expect("the config is good").env;
    // Request spacing has its own tests; here it would only cost time.
    let manners = Manners { at_once: 8, spacing: Duration::ZERO };
    let fast = FetchConfig { manners, ..FetchConfig::default() };
    env.fetcher = Fetcher::new(fast, fixture.clock.clone()).unwrap();
    env
}

pub(crate) fn files(sizes: &[usize]) -> Shape {
    Shape::WithFiles(
        sizes.iter().enumerate().map(|(number, size)| (format!("bessi{number}.pdf"), *size)).collect(),
    )
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The failure of a run that is to fail.
pub(crate) fn failed(finished: Finished) -> Failure {
    match finished {
        Finished::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}
