//! New books are found wherever results grow, and only those that match are announced.

use std::time::Duration;

use serde_json::{Value as Json, json};
use tsuzuki::app::App;
use tsuzuki::books::{Books, select};
use tsuzuki::config::{self, Env};
use tsuzuki::demo::google_books::{isbn, volume, volumes};
use tsuzuki::engine::RunOutcome;
use tsuzuki::time::Timestamp;
use tsuzuki::{params, sql};

use crate::books_world::{self, World};
use crate::test_env::read_config;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const RECIPE: &str = "max_per_run = 40\nalso_newest = true\nrecheck_after = \"30d\"\ndeliver = []";

/// A book that came out on that day.
fn published(number: u32, at: Timestamp) -> Json {
    let mut book = volume(number);
    book["volumeInfo"]["publishedDate"] = at.to_string()[..10].into();
    book
}

fn book(number: u32, title: &str, author: &str, publisher: &str, date: &str) -> Json {
    let mut book = volume(number);
    book["volumeInfo"]["title"] = title.into();
    book["volumeInfo"]["authors"] = json!([author]);
    book["volumeInfo"]["publisher"] = publisher.into();
    book["volumeInfo"]["publishedDate"] = date.into();
    book
}

/// The ISBNs of undelivered books.
async fn waiting(world: &World) -> Vec<String> {
    let list = sql!("SELECT isbn13 FROM job_books WHERE is_waiting = 1 ORDER BY isbn13");
    world.db.read(move |tx| tx.list(list, params![], |row| row.get(0))).await.unwrap()
}

on_both_databases! {
    async fn a_year_of_a_book_a_week_at_either_end_is_found_within_a_week_and_within_quota(fixture) {
        let mut shelf = volumes(0, 60);
        let world = World::new(&fixture, shelf.clone()).await;
        let app = world.app(RECIPE);
        let runner = tsuzuki::engine::Runner::new(world.db.clone(), tsuzuki::engine::Progress::default());
        let stop = tokio_util::sync::CancellationToken::new();
        let mut added = Vec::new();
        for day in 0..365_u32 {
            if day % 7 == 3 {
                let (number, now) = (1_000 + day, fixture.clock.now());
                let book = published(number, now);
                if day % 14 == 3 { shelf.insert(0, book) } else { shelf.push(book) }
                added.push((isbn(number), now));
                world.google.set_volumes(shelf.clone());
            }
            runner.run(app.jobs.clone(), tsuzuki::engine::Selection::Forced, &stop).await;
            fixture.clock.advance(DAY);
        }
        assert_eq!(added.len(), 52);
        for (isbn13, at) in &added {
            let (isbn13, at) = (isbn13.clone(), *at);
            let found: Option<Timestamp> = world.db.read(move |tx| tx.find(
                sql!("SELECT first_seen_at FROM job_books WHERE isbn13 = ?1"), params![isbn13], |row| row.get(0))).await.unwrap();
            assert!(found.is_some_and(|found| found.since(at) <= DAY * 7), "added {at}, found {found:?}");
        }
        let most = world.count(sql!("SELECT MAX(count) FROM api_usage")).await;
        let asked = world.google.asked().len();
        assert!(most <= 2 && asked < 420, "at most {most} requests a day, {asked} in the year");
    }

    async fn without_the_newest_a_book_waits_until_the_search_is_read_again(fixture) {
        let world = World::new(&fixture, volumes(0, 10)).await;
        let keys = RECIPE.replace("also_newest = true\n", "");
        world.run(&keys).await;
        let mut shelf = vec![published(99, fixture.clock.now())];
        shelf.extend(volumes(0, 10));
        world.google.set_volumes(shelf);
        fixture.clock.advance(DAY * 8);
        world.run(&keys).await;
        assert!(!waiting(&world).await.contains(&isbn(99)));
        world.run(RECIPE).await;
        assert!(waiting(&world).await.contains(&isbn(99)));
        let asked = world.google.asked();
        let last = asked.last().unwrap();
        assert_eq!((last.all["orderBy"].as_str(), last.start_index, last.max_results), ("newest", 0, 40));
        fixture.clock.advance(DAY * 23);
        world.google.reply(books_world::refusal(503, "backendFailed"));
        world.run(&format!("{RECIPE}\nretries = 0")).await;
        fixture.clock.advance(DAY);
        world.run(RECIPE).await;
        assert_eq!(world.cursors().await, [(11, true)], "an outage of the newest loses no position");
    }

    async fn once_all_is_read_an_outage_or_a_limit_of_the_newest_is_met_as_any_other(fixture) {
        let world = World::new(&fixture, volumes(0, 10)).await;
        world.run(RECIPE).await;
        assert_eq!(world.cursors().await, [(10, true)]);
        let asked = || world.google.asked().len();
        let before = asked();
        let keys = format!("{RECIPE}\nretries = 1");
        // The wait between two requests is passed by moving the clock until the second is there.
        let run = async |requests: usize| {
            let waiting = async {
                while asked() < before + requests {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    fixture.clock.advance(Duration::from_secs(1));
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                report = world.run(&keys) => report,
                () = waiting => unreachable!(),
            }
        };
        world.google.reply(books_world::outage());
        let report = run(2).await;
        assert_eq!((report.problems.len(), asked() - before), (0, 2), "repeated: {report:?}");
        world.google.reply(books_world::outage());
        world.google.reply(books_world::outage());
        let report = run(4).await;
        assert_eq!((report.outcome(), asked() - before), (RunOutcome::Failed, 4), "{report:?}");
        assert!(report.problems[0].to_string().contains("HTTP 503"), "{report:?}");
        assert_eq!(world.count(sql!("SELECT CAST(SUM(count) AS BIGINT) FROM api_usage")).await, i64::try_from(asked()).unwrap());
        fixture.clock.advance(DAY);
        world.google.reply(books_world::over_limit("defaultPerDayPerProject", "1/d/{project}", "1000"));
        for _ in 0..2 {
            let report = world.run(RECIPE).await;
            assert_eq!((report.outcome(), asked() - before), (RunOutcome::Waiting, 5), "{report:?}");
            assert!(report.summary.to_string().contains("quota, no more requests before 2026-01-16T08"), "{}", report.summary);
        }
    }

    async fn what_is_no_longer_worth_it_is_neither_sent_again_nor_shown_as_next(fixture) {
        let world = World::new(&fixture, volumes(0, 8)).await;
        let keys = "max_per_run = 40\nmail_limit = 4\nfallback_limit = 3";
        world.run(keys).await;
        world.send().await;
        let sent = world.delivered().await;
        let keys = format!("{keys}\ninclude = {{ words = [\"都市計画\", \"機械学習\"] }}");
        let app = world.app(&keys);
        let books = Books::new(&read_config(&world.text(&keys)).jobs[0], &app.env).unwrap();
        let (limits, now) = (books.deliver_plan().limits.clone(), fixture.clock.now());
        let next = fixture.db.read(move |tx| select::choose(tx, &"shelf".parse().unwrap(), &limits, now)).await.unwrap();
        let titles: Vec<&str> = next.books().iter().map(|book| book.title.as_str()).collect();
        assert!(titles.len() == 1 && titles[0].starts_with("機械学習"), "{titles:?}");
        for days in [1, 8] {
            fixture.clock.advance(DAY * days);
            world.run(&keys).await;
            world.send().await;
        }
        let again: Option<String> = fixture.db.read(|tx| tx.find(
            sql!("SELECT isbn13_list_json FROM deliveries ORDER BY id DESC LIMIT 1"), params![], |row| row.get(0))).await.unwrap();
        assert!(sent.contains(&isbn(5)), "都市計画 was among the first: {sent:?}");
        assert_eq!(again.unwrap(), json!([isbn(5), isbn(1)]).to_string(), "of what was sent, only what is wanted now");
    }

    async fn only_what_is_worth_it_is_told(fixture) {
        let shelf = vec![
            book(0, "経営戦略入門", "青木 遥", "架空書房", "2025-04-01"),
            book(1, "経営戦略の歴史", "石田 怜", "北窓社", "2024-04"),
            book(2, "経営戦略百科", "青木 遥", "架空書房", "2019"),
            book(3, "数理統計", "青木 遥", "架空書房", "2025-06-01"),
            book(4, "経営戦略の教科書", "Elena Marsh", "Lantern Press", "2025-06-02"),
        ];
        let world = World::new(&fixture, shelf).await;
        let keys = |more: &str| format!("max_per_run = 40\ndeliver = []\nrecheck_after = \"1d\"\n{more}");
        world.run(&keys("include = { words = [\"経営\"] }\nexclude = { words = [\"入門\"], publishers = [\"lantern\"] }\nearliest = \"2024\"")).await;
        assert_eq!(waiting(&world).await, [isbn(1)]);
        // With a looser filter they are found again and wait, once.
        fixture.clock.advance(DAY);
        world.run(&keys("include = { words = [\"経営\"] }\nearliest = \"2024\"")).await;
        let mut expected = vec![isbn(0), isbn(1), isbn(4)];
        expected.sort();
        assert_eq!(waiting(&world).await, expected);
        // With a stricter filter, waiting books are dropped before a digest is made.
        let report = world.run("max_per_run = 40\ninclude = { authors = [\"怜\"] }").await;
        assert!(report.problems.is_empty(), "{report:?}");
        world.send().await;
        assert_eq!(world.delivered().await, [isbn(1)]);
        let rejected = world.count(sql!("SELECT COUNT(*) FROM events WHERE code = 'not_wanted'")).await;
        assert_eq!(rejected, 6, "four at first, two when it became stricter");
    }

    async fn a_prompt_comes_from_the_template_of_the_job(fixture) {
        let world = World::new(&fixture, volumes(0, 2)).await;
        let file = fixture.dir.path().join("prompt.txt");
        std::fs::write(&file, "Read {{ title }} ({{ isbn13 }}){% for author in authors %}, {{ author }}{% endfor %}.").unwrap();
        world.run(&format!("prompt = {file:?}")).await;
        let prompts: Vec<String> = world.db.read(|tx| tx.list(
            sql!("SELECT prompt_text FROM prompts ORDER BY isbn13"), params![], |row| row.get(0))).await.unwrap();
        assert_eq!(prompts.len(), 2);
        assert!(prompts[0].starts_with("Read 経営戦略入門") && prompts[0].contains(&isbn(0)), "{prompts:?}");
        for (text, why) in [
            ("{{ titel }}", "undefined"),
            ("{{ title", "syntax"),
            ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "fuel"),
            ("{% if publisher %}x{% endif %}", "empty prompt"),
        ] {
            std::fs::write(&file, text).unwrap();
            let text = world.text(&format!("prompt = {file:?}"));
            let config = config::parse(&text, std::path::Path::new("t.toml"), tsuzuki::app::kinds(), &Env::of([]));
            let problems = match config {
                Ok(config) => App::new(&config, world.db.clone()).err().unwrap().to_string(),
                Err(problems) => problems.to_string(),
            };
            assert!(problems.to_lowercase().contains(why), "{why}: {problems}");
        }
        std::fs::write(&file, "Read {{ title }}.").unwrap();
        world.app(&format!("prompt = \"${{file:{}}}\"", file.display()));
    }
}
