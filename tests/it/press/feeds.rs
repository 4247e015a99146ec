//! Misbehaving feeds: they lose entries, list an entry under several addresses, rewrite all of them.

use std::fmt::Write as _;

use super::*;
use tsuzuki::channel::outbox;
use tsuzuki::demo::faults::Fault;
use tsuzuki::engine::RunOutcome;

const PLAIN: More<'static> = More { tables: "", llm: "", job: "items_per_run = 9" };

/// An entry as these tests write it: guid, address, title, date.
type Told<'a> = (Option<&'a str>, String, String, &'a str);

/// Has the ministry serve a feed of these entries.
fn serve(world: &World, entries: &[Told<'_>]) {
    let mut feed = "<rss version=\"2.0\"><channel><title>t</title>".to_owned();
    for (guid, link, title, date) in entries {
        let guid = guid.map_or(String::new(), |guid| format!("<guid isPermaLink=\"false\">{guid}</guid>"));
        let link = link.replace('&', "&amp;");
        let _ = write!(
            feed,
            "<item>{guid}<link>{link}</link><title>{title}</title><pubDate>{date}</pubDate></item>"
        );
    }
    feed += "</channel></rss>";
    world.ministry.instead("/news.rdf", "application/rss+xml", feed);
}

/// A few numbered entries below `folder`, dated days ago.
fn numbered(world: &World, folder: &str, numbers: std::ops::Range<usize>) -> Vec<Told<'static>> {
    let entry = |number| {
        let link = format!("{}{folder}/{number}.html", world.ministry.url);
        (None, link, format!("報道資料 {number}"), "Sat, 10 Jan 2026 00:00:00 GMT")
    };
    numbers.map(entry).collect()
}

async fn codes_about(world: &World, url: &str) -> Vec<String> {
    let about = Subject::new("item", url);
    let events = world.db.read(move |tx| event::list_about(tx, &about, 100)).await.unwrap();
    events.into_iter().map(|event| event.code).collect()
}

on_both_databases! {
    async fn a_run_in_which_every_step_failed_is_no_success(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        world.publish("broken", files(&[2000]));
        world.ministry.script("/menu_news/s-news/broken.html").always(Some(Fault::Status(404, vec![])));
        let report = world.live(1).await.remove(0);
        let why = "could not be fetched: 報道資料 broken (HTTP 404: the server does not know this address)";
        assert_eq!(report.problems, [why], "{report:?}");
        assert_eq!(report.outcome(), RunOutcome::Partly, "the feed was read: {report:?}");

        // Beside a step that went well a failure is part of the day: the item is tried again.
        world.clock.advance(HOUR);
        world.publish("fine", files(&[2000]));
        let report = world.live(1).await.remove(0);
        assert_eq!(report.outcome(), RunOutcome::Success, "{report:?}");
        assert!(report.summary.to_string().contains(why), "{report:?}");
    }

    async fn a_feed_that_has_lost_its_entries_is_a_problem_until_it_has_some_again(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        assert_eq!(world.run().await.outcome(), RunOutcome::Success, "it has always been empty");
        serve(&world, &numbered(&world, "a", 0..3));
        world.run().await;
        serve(&world, &[]);
        for _ in 0..2 {
            world.clock.advance(5 * MINUTE);
            let report = world.run().await;
            assert_eq!(report.problems, ["the feed is empty; it had 3 entries"], "{report:?}");
        }
        serve(&world, &numbered(&world, "a", 0..3));
        world.clock.advance(5 * MINUTE);
        let report = world.run().await;
        assert!(report.problems.iter().all(|problem| !problem.to_string().contains("feed")), "{report:?}");
        assert_eq!(world.items().await.len(), 3);
    }

    async fn what_is_cut_at_a_limit_is_said_by_the_run_and_in_why(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        serve(&world, &numbered(&world, "a", 0..10_001));
        let words = "more than 10000 entries";
        let line = world.run().await.summary.to_string();
        assert!(line.contains("read in part") && line.contains(words), "{line}");
        let printed = world.test_env(&fixture, &PLAIN).ends("why mic", 0);
        assert_eq!(printed.matches(words).count(), 3, "a fact, an event and what the run said: {printed}");
        serve(&world, &numbered(&world, "a", 0..3));
        world.clock.advance(5 * MINUTE);
        assert!(!world.run().await.summary.to_string().contains("read in part"));
    }

    async fn a_server_that_asks_to_wait_for_a_page_or_a_file_is_left_alone_as_long(fixture) {
        let wait = || Some(Fault::Status(503, vec![("retry-after", "7200".to_owned())]));
        for (slug, path) in [("page", "/menu_news/s-news/page.html"), ("file", "/main_content/bessi0.pdf")] {
            let world = World::new(&fixture, &PLAIN).await;
            world.publish(slug, files(&[2000]));
            world.ministry.script(path).always(wait());
            world.live(1).await;
            let asked = || world.ministry.log().iter().filter(|line| line.contains(path)).count();
            let before = asked();
            assert!(before > 0, "{path}: {:?}", world.ministry.log());
            world.ministry.script(path).always(None);
            for _ in 0..7 {
                world.clock.advance(16 * MINUTE);
                world.run().await;
            }
            assert_eq!(asked(), before, "{path}: another process would not know but by the database");
            world.clock.advance(16 * MINUTE);
            world.live(2).await;
            assert!(asked() > before, "{path}");
        }
    }

    async fn an_entry_is_known_by_its_address_its_guid_or_its_address_without_trimmings(fixture) {
        let world = World::untouched(&fixture, &PLAIN).await;
        let base = world.ministry.url.to_string();
        let date = "Sat, 10 Jan 2026 00:00:00 GMT";
        let row = |guid, path: &str| (guid, format!("{base}{path}"), format!("題 {path}"), date);
        serve(&world, &[row(Some("g1"), "one.html"), row(None, "two.html"), row(None, "p?id=1"), row(None, "p?id=2")]);
        assert!(world.run().await.summary.to_string().contains("4 recorded as known"));
        world.clock.advance(5 * MINUTE);
        let known = row(None, "p?id=1");
        serve(&world, &[row(Some("g1"), "moved.html"), row(None, "two.html?utm_source=rss#top"), known.clone()]);
        assert!(world.run().await.summary.to_string().contains("0 new"), "one entry under another address");

        // Guids that differ only far behind are two.
        let long = "x".repeat(600);
        let (one, two) = (format!("{long}1"), format!("{long}2"));
        world.clock.advance(5 * MINUTE);
        serve(&world, &[known.clone(), row(Some(&one), "long1.html")]);
        assert!(world.run().await.summary.to_string().contains("1 new"));
        world.clock.advance(5 * MINUTE);
        serve(&world, &[known.clone(), row(Some(&one), "long1.html"), row(Some(&two), "long2.html")]);
        assert!(world.run().await.summary.to_string().contains("1 new"));

        // If a document has several entries with apparently one address, the exact address decides.
        world.clock.advance(5 * MINUTE);
        let same = [row(None, "s.html?utm_content=1"), row(None, "s.html?utm_content=2"), known];
        serve(&world, &same);
        assert!(world.run().await.summary.to_string().contains("2 new"));
        world.clock.advance(5 * MINUTE);
        serve(&world, &same[1..]);
        assert!(world.run().await.summary.to_string().contains("0 new"));
    }

    async fn a_feed_that_rewrites_its_addresses_posts_only_what_is_new(fixture) {
        let world = World::untouched(&fixture, &PLAIN).await;
        serve(&world, &numbered(&world, "a", 0..3));
        world.run().await;
        world.clock.advance(5 * MINUTE);
        let mut rewritten = numbered(&world, "b", 0..3);
        let soon = world.clock.now().plus(MINUTE).to_string();
        let new = format!("{}b/new.html", world.ministry.url);
        rewritten.push((None, new.clone(), "新しい".to_owned(), &soon));
        serve(&world, &rewritten);
        let report = world.run().await;
        assert!(report.summary.to_string().contains("1 new, 3 at a new address"), "{}", report.summary);
        assert_eq!(codes_about(&world, &rewritten[0].1).await, ["rewritten"]);
        assert_eq!(codes_about(&world, &new).await[0], "found");
        world.clock.advance(5 * MINUTE);
        assert!(!world.run().await.summary.to_string().contains("new"), "{}", "told once");
    }

    async fn a_short_feed_whose_entries_are_all_replaced_is_not_rewritten(fixture) {
        let world = World::untouched(&fixture, &PLAIN).await;
        serve(&world, &numbered(&world, "a", 0..1));
        world.run().await;
        world.clock.advance(5 * MINUTE);
        // Published late, with the date of its day.
        serve(&world, &numbered(&world, "a", 1..2));
        assert!(world.run().await.summary.to_string().contains("1 new"));
    }

    async fn what_moves_up_at_the_end_of_a_feed_is_not_new(fixture) {
        let world = World::untouched(&fixture, &PLAIN).await;
        let row = |name: &'static str, date| (None, format!("{}{name}.html", world.ministry.url), name.to_owned(), date);
        let (a, b) = (row("a", "2026-01-10T00:00:00Z"), row("b", "2026-01-09T00:00:00Z"));
        let (older, late) = (row("older", "2025-06-01T00:00:00Z"), row("new", "2026-01-09T12:00:00Z"));
        serve(&world, &[a.clone(), b.clone()]);
        world.run().await;
        world.clock.advance(5 * MINUTE);
        // One was removed, and one was published late, with the date of its day.
        serve(&world, &[late.clone(), b, older.clone()]);
        let report = world.run().await;
        assert!(report.summary.to_string().contains("1 new, 1 older at the end of the feed"), "{}", report.summary);
        assert_eq!(codes_about(&world, &older.1).await, ["moved_up"]);
        assert_eq!(codes_about(&world, &late.1).await[0], "found");
        world.clock.advance(5 * MINUTE);
        assert!(!world.run().await.summary.to_string().contains("older"), "{}", "told once");
    }

    async fn more_than_half_of_a_feed_at_once_is_held(fixture) {
        let world = World::untouched(&fixture, &More { job: "items_per_run = 99", ..PLAIN }).await;
        serve(&world, &numbered(&world, "a", 0..20));
        world.run().await;
        world.clock.advance(5 * MINUTE);
        serve(&world, &numbered(&world, "a", 10..30));
        let report = world.run().await;
        assert!(report.summary.to_string().contains("10 new") && !report.summary.to_string().contains("held"), "{}", report.summary);
        world.clock.advance(5 * MINUTE);
        for number in 30..41 {
            world.ministry.publish(&number.to_string(), "甲", Some(at("2026-01-10T00:00:00Z")), files(&[2000]));
        }
        let mut entries = numbered(&world, "menu_news/s-news", 30..41);
        entries.extend(numbered(&world, "a", 25..30));
        serve(&world, &entries);
        let report = world.live(1).await.remove(0);
        assert!(report.summary.to_string().contains("11 new, their posts need approval: more than half of the feed at once"), "{}", report.summary);
        assert_eq!(world.posts().len(), 0);
        let now = world.clock.now();
        world.db.write(move |tx| outbox::approve_job(tx, "mic", now)).await.unwrap();
        world.live(1).await;
        assert_eq!(world.posts().len(), 11);
    }

    async fn a_date_without_a_zone_is_one_of_the_configured_zone(fixture) {
        for (zone, expected) in [("Asia/Tokyo", "2026-01-09T15:00:00Z"), ("America/New_York", "2026-01-10T05:00:00Z")] {
            let tables = format!("[app]\ntimezone = \"{zone}\"");
            let world = World::untouched(&fixture, &More { tables: &tables, ..PLAIN }).await;
            let link = format!("{}a.html", world.ministry.url);
            serve(&world, &[(None, link.clone(), "題".to_owned(), "2026-01-10 00:00:00")]);
            world.run().await;
            let item = world.db.read(move |tx| store::find_by_url(tx, "mic", &link)).await.unwrap().unwrap();
            assert_eq!(item.published_at, at(expected), "{zone}");
        }
    }

    async fn a_server_that_asks_to_wait_is_left_alone_by_the_next_process_too(fixture) {
        let mut world = World::new(&fixture, &PLAIN).await;
        let wait = vec![("retry-after", "3600".to_owned())];
        world.ministry.script("/news.rdf").next(Fault::Status(429, wait));
        world.run().await;
        let asked = world.ministry.log().len();
        for minutes in [5, 50] {
            world.clock.advance(minutes * MINUTE);
            // Another process knows only what is stored.
            world.reconfigure(&PLAIN, &fixture);
            let report = world.run().await;
            assert!(report.problems[0].to_string().contains("its server asked us to wait until"), "{report:?}");
        }
        assert_eq!(world.ministry.log().len(), asked);
        world.clock.advance(5 * MINUTE);
        world.reconfigure(&PLAIN, &fixture);
        let report = world.run().await;
        assert!(report.problems.is_empty() && world.ministry.log().len() == asked + 1, "{report:?}");
    }
}
