//! A month in the life of a press job: outages, a day of many releases, days on which the provider says that its quota is used up,
//! a feed that rewrites its addresses, a model that is withdrawn. Every release that should be posted is posted once, in order, within the quota; nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::*;
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::gemini::Reply;

/// Questions to the model that a day allows.
const PER_DAY: usize = 8;
const EVERY: Duration = Duration::from_secs(4 * 3600);
const DAYS: u32 = 30;

const TABLES: &str = "[quota.gemini]\nper_day = 8\ntimezone = \"America/Los_Angeles\"";
const JOB: &str = "items_per_run = 3";

struct Month {
    world: World,
    /// Slug, title and date of everything in the feed, oldest first.
    releases: Vec<(String, String, Timestamp)>,
    /// Expected posts, in the order of publication.
    expected: Vec<String>,
    /// Expected posts once their page is complete, whenever that is noticed.
    completed: Vec<String>,
    /// Pages that are completed on a day.
    complete_on: BTreeMap<u32, String>,
    /// Entries before this one have other addresses.
    rewritten: usize,
    /// Questions by the day of the provider.
    asked: BTreeMap<String, usize>,
}

impl Month {
    fn publish(&mut self, day: u32, number: usize, shape: Shape) -> String {
        let slug = format!("d{day:02}n{number}");
        let (title, date) = (format!("報道資料 {slug}"), self.world.clock.now());
        self.world.ministry.publish(&slug, &title, Some(date), shape);
        self.releases.push((slug.clone(), title, date));
        slug
    }

    /// The feed has the newest twelve, newest first.
    fn serve(&self) {
        let mut feed = "<rss version=\"2.0\"><channel><title>t</title>".to_owned();
        for (number, (slug, title, date)) in self.releases.iter().enumerate().rev().take(12) {
            let folder = if number < self.rewritten { "archive" } else { "menu_news/s-news" };
            let _ = write!(
                feed,
                "<item><link>{}{folder}/{slug}.html</link><title>{title}</title><dc:date \
                 xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{date}</dc:date></item>",
                self.world.ministry.url
            );
        }
        self.world.ministry.instead("/news.rdf", "application/rss+xml", feed + "</channel></rss>");
    }

    /// The events of a day before its first run.
    fn begin_day(&mut self, day: u32) {
        if let Some(slug) = self.complete_on.remove(&day) {
            self.world.ministry.change(&slug, files(&[4000]));
            self.completed.push(slug);
        }
        match day {
            // A day of many releases: more than the quota allows.
            9 => {
                for number in 0..7 {
                    let slug = self.publish(day, number, files(&[2000]));
                    self.expected.push(slug);
                    self.world.clock.advance(MINUTE);
                }
            }
            // Holidays, and the days around the rewrite.
            14..=16 | 24 | 25 | 28.. => {}
            day => {
                let slug = self.publish(day, 0, files(&[2000]));
                self.expected.push(slug);
                self.world.clock.advance(MINUTE);
                match day % 5 {
                    0 => {
                        let slug = self.publish(day, 1, Shape::Later);
                        self.complete_on.insert(day + 2, slug);
                    }
                    1 => drop(self.publish(day, 1, Shape::Bare)),
                    2 => {
                        let slug = self.publish(day, 1, Shape::AmongLinks);
                        self.expected.push(slug);
                    }
                    _ => {}
                }
            }
        }
        if day == 15 {
            self.rewritten = self.releases.len();
        }
        self.serve();
        let down = |is_down: bool| is_down.then(|| Fault::Status(503, vec![]));
        self.world.ministry.script("/news.rdf").always(down(day == 4));
        self.world.mastodon.posts.always(down(day == 8 || day == 9));
        self.world.gemini.always(match day {
            11 => Some(Reply::Status(503)),
            // Others have used the same key.
            17 | 18 => Some(Reply::PerDay),
            // Withdrawn; the config names another model the day after.
            20 => Some(Reply::Status(404)),
            _ => None,
        });
    }

    /// The events of the job, its items and its provider.
    async fn codes(&self) -> BTreeSet<String> {
        let events = self.world.db.read(|tx| event::list_of_job(tx, "mic", 100_000)).await.unwrap();
        events.into_iter().map(|event| event.code).collect()
    }

    async fn run(&mut self) {
        let before = self.world.gemini.questions().len();
        // Runs fail while the model is withdrawn, and report it.
        drop(self.world.finish().await);
        self.world.send().await;
        let zone = TimeZone::get("America/Los_Angeles").unwrap();
        let day = self.world.clock.now().date_in(&zone).to_string();
        *self.asked.entry(day).or_default() += self.world.gemini.questions().len() - before;
        self.world.clock.advance(EVERY);
    }
}

on_both_databases! {
    async fn a_month_posts_every_release_once_in_order_and_within_the_quota(fixture) {
        let world = World::untouched(&fixture, &More { tables: TABLES, llm: "", job: JOB }).await;
        let mut month = Month {
            world,
            releases: Vec::new(),
            expected: Vec::new(),
            completed: Vec::new(),
            complete_on: BTreeMap::new(),
            rewritten: 0,
            asked: BTreeMap::new(),
        };
        for number in 0..3 {
            month.publish(0, number, files(&[2000]));
        }
        month.serve();
        month.run().await;
        for day in 1..=DAYS + 3 {
            if day == 21 {
                let more = More { tables: TABLES, llm: "summary_model = \"gemini-3.5-flash\"", job: JOB };
                month.world.reconfigure(&more, &fixture);
            }
            month.begin_day(day);
            for run in 0..6 {
                if run == 2 {
                    month.world.mastodon.posts.always(None);
                }
                month.run().await;
            }
        }
        let codes = month.codes().await;
        for code in ["provider_down", "provider_used_up", "provider_refused", "rewritten", "posted"] {
            assert!(codes.contains(code), "{code} never happened: {codes:?}");
        }
        let posts = month.world.posts();
        let slug = |post: &String| post.lines().next().unwrap().replace("報道資料 ", "");
        let posted: Vec<String> = posts.iter().map(slug).collect();
        let mut once = posted.clone();
        once.sort();
        let mut wanted = [month.expected.clone(), month.completed.clone()].concat();
        wanted.sort();
        assert_eq!(once, wanted, "every release that should be posted is posted once, and nothing else");
        let in_order: Vec<&String> = posted.iter().filter(|slug| !month.completed.contains(slug)).collect();
        assert_eq!(in_order, month.expected.iter().collect::<Vec<_>>(), "in the order of publication");
        assert!(month.completed.len() == 3 && posted.len() > 30, "{posted:?}");
        let most = month.asked.values().max().copied().unwrap_or_default();
        assert!(most <= PER_DAY, "{:?}", month.asked);
        assert_eq!(most, PER_DAY, "the quota was felt: {:?}", month.asked);
    }
}
