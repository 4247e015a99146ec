//! Blogs against the loopback world, on both databases.

mod back_off;
mod crash;
mod crash_of_one;
mod crowd;
mod documents;
mod looking_after;
mod moods;
mod operator;
mod scenarios;
mod shared;
mod silence;
mod single;
mod whose_feed;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::app::App;
use tsuzuki::blogs::decide::Code;
use tsuzuki::blogs::store::{self, ChangeRow};
use tsuzuki::blogs::{self, Blogs};
use tsuzuki::channel::outbox;
use tsuzuki::config::Config;
use tsuzuki::db::Db;
use tsuzuki::demo::site::{Content, Site};
use tsuzuki::engine::{Finished, Job, JobEnv, Progress, Report, Runner, Schedule, Selection};
use tsuzuki::fetch::{FetchConfig, Fetcher, Manners};
use tsuzuki::time::{Clock, Timestamp};

use crate::databases::{Fixture, test_start};
use crate::test_env::read_config;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// A config with a `blogs` job over `blogs` (the text after `[[job.blog]]`), telling the channel `hook`.
pub(crate) fn config_text(job: &str, blogs: &[String]) -> String {
    let mut text = format!(
        "[app]\nlanguage = \"en\"\n[channel.hook]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/hook\"\n\
         allow_private = [\"127.0.0.1\"]\n\
         [[job]]\nname = \"blogs\"\nkind = \"blogs\"\ndeliver = [\"hook\"]\nallow_private = [\"127.0.0.0/8\"]\n{job}\n"
    );
    for blog in blogs {
        text.push_str("[[job.blog]]\n");
        text.push_str(blog);
        text.push('\n');
    }
    text
}

/// A job over sites of the loopback world.
pub(crate) struct World {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) env: JobEnv,
    pub(crate) config: Config,
}

impl World {
    pub(crate) fn new(fixture: &Fixture, text: &str) -> Self {
        let config = read_config(text);
        let mut env =
            App::new(&config, fixture.db.clone()).unwrap_or_else(|_| panic!("the config is good")).env;
        // Request spacing has its own tests; here it would only cost time.
        let manners = Manners { at_once: 8, spacing: Duration::ZERO };
        let fast = FetchConfig { manners, ..FetchConfig::default() };
        env.fetcher = Fetcher::new(fast, fixture.clock.clone()).unwrap();
        Self { db: fixture.db.clone(), clock: fixture.clock.clone(), env, config }
    }

    /// The same database with another config.
    pub(crate) fn reconfigure(&mut self, text: &str) {
        self.config = read_config(text);
    }

    pub(crate) fn blogs(&self) -> Blogs {
        Blogs::new(&self.config.jobs[0], &self.env).unwrap_or_else(|_| panic!("the job is good"))
    }

    pub(crate) fn job(&self) -> Job {
        let job = &self.config.jobs[0];
        Job {
            name: job.name.clone(),
            kind: blogs::KIND,
            enabled: true,
            schedule: Schedule::new(&job.schedule, blogs::EVERY, job.timezone.time_zone().clone()),
            collector: Arc::new(self.blogs()),
            ping: None,
        }
    }

    /// Runs the job once, now.
    pub(crate) async fn run(&self) -> Report {
        let runner = Runner::new(self.db.clone(), Progress::default());
        let mut ran = runner.run(vec![self.job()], Selection::Forced, &CancellationToken::new()).await;
        match ran.remove(0).1 {
            Finished::Ran(report) => report,
            other => panic!("{other:?}"),
        }
    }

    /// Runs the job `count` times, an hour apart.
    pub(crate) async fn run_times(&self, count: usize) {
        for _ in 0..count {
            self.run().await;
            self.clock.advance(HOUR);
        }
    }

    /// Every change that was found so far, oldest first.
    pub(crate) async fn changes(&self) -> Vec<ChangeRow> {
        let mut rows = self
            .db
            .read(|tx| store::list_changes(tx, &store::ChangeFilter::default(), 10_000))
            .await
            .unwrap();
        rows.reverse();
        rows
    }

    /// The announced titles of a blog, oldest first.
    pub(crate) async fn announced(&self, blog: &str) -> Vec<String> {
        let rows = self.changes().await;
        rows.iter()
            .filter(|row| row.blog_id == blog && row.code == Code::New)
            .flat_map(|row| row.detail.entries.iter())
            .map(name_of)
            .collect()
    }

    /// The codes of changes about the health of a blog.
    pub(crate) async fn alerts(&self, blog: &str) -> Vec<&'static str> {
        let rows = self.changes().await;
        rows.into_iter()
            .filter(|row| row.blog_id == blog && row.code != Code::New)
            .map(|row| row.code.word())
            .collect()
    }

    pub(crate) async fn state(&self, blog: &str) -> blogs::model::State {
        let blog = blog.to_owned();
        self.db.read(move |tx| store::find_state(tx, &blog)).await.unwrap().expect("it was checked")
    }

    /// The newest checks of a blog, newest first.
    pub(crate) async fn checks(&self, blog: &str, count: usize) -> Vec<store::CheckRow> {
        let blog = blog.to_owned();
        self.db.read(move |tx| store::list_checks(tx, &blog, count)).await.unwrap()
    }

    pub(crate) async fn messages(&self) -> Vec<outbox::Row> {
        let mut rows =
            self.db.read(|tx| outbox::list(tx, &outbox::DeliveryFilter::default(), 10_000)).await.unwrap();
        rows.reverse();
        rows
    }
}

/// The title, or the last part of the address where there is none.
pub(crate) fn name_of(entry: &blogs::model::FoundEntry) -> String {
    let from_url = || {
        let url = entry.url.as_deref().unwrap_or_default();
        let url = url.split('?').next().unwrap_or_default();
        url.rsplit('/').next().unwrap_or_default().to_owned()
    };
    entry.title.clone().unwrap_or_else(from_url)
}

/// The newest article of every site is one day older than the start of the tests.
pub(crate) fn newest() -> Timestamp {
    test_start().minus(DAY)
}

/// The table of a blog.
pub(crate) fn blog(id: &str, site: &Site, more: &str) -> String {
    format!("id = \"{id}\"\nurl = \"{}\"\n{more}", site.url)
}

/// A site, and a job that watches it as the blog `b`.
pub(crate) async fn watch(fixture: &Fixture, edit: impl FnOnce(&mut Content)) -> (Site, World) {
    let site = site(edit).await;
    let world = World::new(fixture, &config_text("", &[blog("b", &site, "")]));
    (site, world)
}

pub(crate) async fn site(edit: impl FnOnce(&mut Content)) -> Site {
    let mut content = Content::with_articles(6, newest());
    edit(&mut content);
    Site::start(content).await.unwrap()
}

pub(crate) fn feed_only(content: &mut Content) {
    (content.sitemap, content.links) = (None, false);
}

pub(crate) fn sitemap_only(content: &mut Content) {
    (content.feed, content.links) = (None, false);
}

pub(crate) fn html_only(content: &mut Content) {
    (content.feed, content.sitemap) = (None, None);
}
