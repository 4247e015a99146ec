//! The events of the demo world: its beginning, and the steps of its story.

use std::time::Duration;

use jiff::ToSpan as _;
use jiff::civil::{self, Weekday};
use jiff::tz::TimeZone;
use serde_json::Value as Json;

use super::gitlab::{Change, History};
use super::google_books;
use super::ministry::Shape;
use super::site::{Article, Content};
use super::world::World;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Volumes of the search; some have no ISBN.
const VOLUMES: u32 = 400;
/// Every so many volumes, one has no ISBN.
const WITHOUT_ISBN: u32 = 13;
/// Commits on `main` of `team/app` and `team/site` at the beginning.
const COMMITS: (u32, u32) = (240, 120);

const AUTHORS: [&str; 5] = ["Aoki Haruka", "Elena Marsh", "Ishida Rei", "Tomas Lind", "Ueno Chihaya"];
const WORK: [&str; 7] =
    ["Fix", "Simplify", "Test", "Document", "Speed up", "Rename parts of", "Handle errors in"];
const PLACES: [&str; 11] = [
    "the search",
    "the settings page",
    "the import",
    "the weekly report",
    "paging",
    "the log-in form",
    "time zones",
    "the mail templates",
    "the release script",
    "the empty list",
    "the API client",
];
/// Releases of the past, which are not announced.
const OLD_RELEASES: [&str; 8] = [
    "家計調査（月報）の公表",
    "地方公共団体における統計の整備状況",
    "電波利用に関する意見募集の結果",
    "消防防災に関する年次報告",
    "郵便事業の見通し",
    "地域おこしに関する調査の結果",
    "情報通信白書の公表",
    "選挙に関する統計の公表",
];
const NEW_RELEASES: [&str; 5] = [
    "消費者物価指数の公表",
    "通信品質に関する調査の結果",
    "地域の見守りに関する実証の結果",
    "サイバーセキュリティに関する注意喚起",
    "労働力調査の公表",
];
const NEW_ARTICLES: [&str; 6] = [
    "A bridge in the fog",
    "What the almanac got wrong",
    "Repairing the small kiln",
    "Notes on slow roads",
    "Three ways to fold a map",
    "The year of the late plums",
];

/// The volumes of the search.
pub(super) fn volumes() -> Vec<Json> {
    let one = |number: u32| match number % WITHOUT_ISBN {
        0 => google_books::volume_without_isbn(number),
        _ => google_books::volume(number),
    };
    (1..=VOLUMES).map(one).collect()
}

/// A blog with a feed, one with only a sitemap, one with only its page.
pub(super) fn blogs(began_at: Timestamp) -> [Content; 3] {
    let past = |topic: &str, count: u32| {
        let mut content = Content::with_articles(0, began_at);
        let articles = (0..count).map(|age| {
            let number = count - age;
            let title = format!("{topic}, part {number}");
            let slug = format!("{}-{number}", topic.to_lowercase().replace(' ', "-"));
            Article::new(&slug, &title, at_work(began_at, 3 * age + 2, number))
        });
        content.articles = articles.collect();
        content
    };
    let feed = Content { sitemap: None, links: false, ..past("Letters from the coast", 12) };
    let sitemap = Content { feed: None, links: false, ..past("Hillside notes", 9) };
    let page = Content { feed: None, sitemap: None, ..past("From the workshop", 7) };
    [feed, sitemap, page]
}

/// Two projects: one with a release branch and merges, one with a straight history.
pub(super) fn histories(began_at: Timestamp) -> (History, History) {
    let (app, site) = (History::new(1), History::new(2));
    for number in 0..COMMITS.0 {
        let at = commit_time(began_at, number, COMMITS.0);
        if number % 24 == 8 {
            app.branch("side", "main");
            for back in 1..=3 {
                // Work merged after a month: its dates are older than those of `main` by then.
                app.commit("side", change(number + back, at.minus(DAY * (30 - back))));
            }
        }
        if number % 24 == 14 {
            app.merge("side", "main", Change { title: "Merge branch 'side'".into(), ..change(number, at) });
        } else {
            app.commit("main", change(number, at));
        }
        if number == 200 {
            app.branch("release/1.0", "main");
            app.commit("release/1.0", Change { title: "Release 1.0".into(), ..change(number, at) });
        }
    }
    for number in 0..COMMITS.1 {
        site.commit("main", change(number, commit_time(began_at, number, COMMITS.1)));
    }
    (app, site)
}

/// Three commits a week, on one working day or on two.
fn commit_time(began_at: Timestamp, number: u32, count: u32) -> Timestamp {
    let (weeks, left) = ((count - 1 - number) / 3, (count - 1 - number) % 3);
    let day = 1 + 6 * weeks + if scatter(weeks).is_multiple_of(2) { 0 } else { left / 2 };
    at_work(began_at, day, 12 * weeks + 3 - left)
}

/// A time in the reader's working hours, so many days ago; on one day, turns 0 to 3 follow each other.
fn at_work(began_at: Timestamp, days_ago: u32, turn: u32) -> Timestamp {
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    let day = began_at.minus(DAY * days_ago).to_jiff().to_zoned(zone.clone()).date();
    let weekend = match day.weekday() {
        Weekday::Saturday => 1.days(),
        Weekday::Sunday => 2.days(),
        _ => 0.days(),
    };
    let minute = 9 * 60 + 30 + (turn % 4) * 115 + scatter(turn) % 110;
    let time = civil::time(
        i8::try_from(minute / 60 % 24).unwrap_or(12),
        i8::try_from(minute % 60).unwrap_or(0),
        0,
        0,
    );
    let at = day.saturating_sub(weekend).to_datetime(time).to_zoned(zone);
    at.map_or(began_at, |at| Timestamp::from_millis(at.timestamp().as_millisecond()))
}

/// A pseudo-random number that is always the same.
fn scatter(number: u32) -> u32 {
    number.wrapping_add(1).wrapping_mul(2_654_435_761) >> 16
}

fn change(number: u32, at: Timestamp) -> Change {
    Change {
        author: pick(&AUTHORS, number * 3 / 2),
        title: format!("{} {}", pick(&WORK, number), pick(&PLACES, number)),
        at,
        lines: (number % 41 + 1, number % 17),
    }
}

fn pick(list: &[&'static str], number: u32) -> &'static str {
    list[number as usize % list.len()]
}

/// Publishes the ministry's releases of the past.
pub(super) fn begin(world: &World, began_at: Timestamp) {
    for (number, title) in (1..).zip(OLD_RELEASES) {
        let date = Some(at_work(began_at, 20 - 2 * number, number));
        world.ministry.publish(&format!("old-{number}"), title, date, with_file(&format!("old{number}.pdf")));
    }
}

fn with_file(name: &str) -> Shape {
    Shape::WithFiles(vec![(name.to_owned(), 4000)])
}

/// Performs step `number` and describes it. The first step is a busy day; later ones add one thing at a time.
pub(super) fn step(world: &World, number: usize, at: Timestamp) -> Phrase {
    let count = u32::try_from(number).unwrap_or(u32::MAX);
    match number {
        1 => busy_day(world, at),
        _ => match number % 6 {
            2 => {
                let (release, commits) = (release(world, count, at), commits(world, count, at));
                phrase!("{release} and {commits}", "{release}と{commits}")
            }
            3 => article(&world.feed_blog, "example", count, at),
            4 => commits(world, count, at),
            5 => article(&world.sitemap_blog, "hillside", count, at),
            0 => release(world, count, at),
            _ => article(&world.page_blog, "workshop", count, at),
        },
    }
}

fn busy_day(world: &World, at: Timestamp) -> Phrase {
    let releases = [
        // Titles come from outside: this one must not be taken for markup anywhere.
        ("areas", "「R&D <重点分野>」に関する意見募集の結果", with_file("areas.pdf")),
        ("survey", "家計消費状況調査の結果", Shape::AmongLinks),
        ("panel", "デジタル基盤研究会（第３回）", Shape::Later),
        ("minister", "大臣閣議後記者会見", Shape::Bare),
    ];
    for (number, (slug, title, shape)) in (1..).zip(releases) {
        world.ministry.publish(slug, title, Some(at.minus(HOUR * number)), shape);
    }
    world.feed_blog.edit(|blog| {
        blog.publish("a-harbour-in-winter", "A harbour in winter", at.minus(2 * HOUR));
        blog.publish("tea-with-the-pilot", "Tea with the pilot", at.minus(HOUR));
    });
    world.sitemap_blog.edit(|blog| blog.publish("the-first-frost", "The first frost", at.minus(HOUR)));
    world.page_blog.edit(|blog| blog.publish("a-drawer-that-closes", "A drawer that closes", at.minus(HOUR)));
    phrase!("4 press releases and 4 blog entries", "報道発表 4 件とブログの記事 4 件")
}

fn release(world: &World, number: u32, at: Timestamp) -> Phrase {
    let title = format!("{}（第{number}報）", pick(&NEW_RELEASES, number));
    let shape =
        if number.is_multiple_of(4) { Shape::Bare } else { with_file(&format!("shiryo{number}.pdf")) };
    world.ministry.publish(&format!("news-{number}"), &title, Some(at), shape);
    phrase!("a press release", "報道発表 1 件")
}

fn article(site: &super::site::Site, id: &str, number: u32, at: Timestamp) -> Phrase {
    let title = match number / NEW_ARTICLES.len() as u32 {
        0 => pick(&NEW_ARTICLES, number).to_owned(),
        before => format!("{}, part {}", pick(&NEW_ARTICLES, number), before + 1),
    };
    site.edit(|blog| blog.publish(&format!("entry-{number}"), &title, at));
    phrase!("an entry of the blog `{id}`", "ブログ `{id}` の記事 1 件")
}

fn commits(world: &World, number: u32, at: Timestamp) -> Phrase {
    for minute in [20, 10, 0] {
        world.app.commit("main", change(number * 3 + minute, at.minus(Duration::from_secs(60) * minute)));
    }
    world.site.commit("main", change(number, at));
    phrase!("4 commits", "コミット 4 件")
}
