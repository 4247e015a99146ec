//! Whole runs of a books job: positions over several runs, quota days, stored rows, messages.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use tsuzuki::books::{store, view};
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::google_books::{Reply, isbn, volume, volumes};
use tsuzuki::engine::{Failure, Finished, Progress, RunOutcome, Runner, Selection, Skipped};
use tsuzuki::id::JobName;
use tsuzuki::ledger::{Subject, cursor, event, pause};
use tsuzuki::{params, sql};

use crate::books_world::{self, World};
use crate::databases::Fixture;
use crate::test_env::read_config;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn shelf() -> JobName {
    "shelf".parse().unwrap()
}

/// Numbers of generated books, as their ISBNs.
fn isbns(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(isbn).collect()
}

async fn reset_cursors(fixture: &Fixture) -> u64 {
    fixture.db.write(|tx| cursor::reset_by_job(tx, "shelf")).await.unwrap()
}

on_both_databases! {
    async fn the_next_run_goes_on_where_the_last_one_stopped(fixture) {
        let world = World::new(&fixture, volumes(0, 50)).await;
        let report = world.run("max_per_run = 20").await;
        assert_eq!(report.summary, "collected 20 → with ISBN 20 → new 20 → undelivered 20 → queued 5; bottleneck: mail_limit, 15 more wait for the next digest");
        assert_eq!((report.problems.len(), report.waiting_until), (0, None));
        world.run("max_per_run = 20").await;
        assert_eq!(world.cursors().await, [(40, false)]);
        world.run("max_per_run = 20").await;
        assert_eq!(world.cursors().await, [(50, true)], "the last page had fewer than were asked for");
        let starts: Vec<i64> = world.google.asked().iter().map(|asked| asked.start_index).collect();
        assert_eq!(starts, [0, 20, 40]);
        assert_eq!(world.google.asked()[0].all["q"], "rust");
        assert_eq!(world.google.asked()[0].all["printType"], "books");
    }

    async fn google_is_asked_as_the_config_says_and_for_no_more_than_is_read(fixture) {
        let world = World::new(&fixture, volumes(0, 3)).await;
        let options = "langRestrict = \"ja\", country = \"JP\", filter = \"paid-ebooks\", order_by = \"newest\", api_key = \"k\"";
        let text = world.text("also_newest = true").replace("printType = \"books\"", options);
        let app = tsuzuki::app::App::new(&read_config(&text), world.db.clone()).unwrap();
        Runner::new(world.db.clone(), Progress::default()).run(app.jobs, Selection::Forced, &CancellationToken::new()).await;
        let asked = world.google.asked();
        assert_eq!(asked.len(), 2, "the newest, and the search");
        for asked in asked {
            for (name, value) in [("langRestrict", "ja"), ("country", "JP"), ("filter", "paid-ebooks"), ("orderBy", "newest"), ("key", "k")] {
                assert_eq!(asked.all.get(name).map(String::as_str), Some(value), "{name}: {asked:?}");
            }
            let fields = &asked.all["fields"];
            assert!(fields.starts_with("totalItems,items(volumeInfo(title,") && fields.contains("industryIdentifiers"), "{fields}");
        }
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM books")).await, 3);
    }

    async fn an_exhausted_search_is_left_alone_and_mail_goes_on(fixture) {
        let world = World::new(&fixture, volumes(0, 12)).await;
        world.run("max_per_run = 40").await;
        world.send().await;
        let before = world.google.asked().len();
        let report = world.run("max_per_run = 40").await;
        assert_eq!(world.google.asked().len(), before, "no request is made");
        assert_eq!(report.summary, "collected 0 → with ISBN 0 → new 0 → undelivered 7 → queued 5; bottleneck: mail_limit, 2 more wait for the next digest");
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM book_digests")).await, 2);
        assert_eq!(reset_cursors(&fixture).await, 1);
        world.run("max_per_run = 40").await;
        assert_eq!(world.google.asked().len(), before + 1, "after a reset it starts again");
        assert_eq!(world.google.asked().last().unwrap().start_index, 0);
    }

    async fn other_queries_are_another_position_and_order_does_not_matter(fixture) {
        let world = World::new(&fixture, volumes(0, 100)).await;
        world.run("queries = [\"b  c\", \"a\"]\nmax_per_run = 10").await;
        world.run("queries = [\"a\", \" b c \"]\nmax_per_run = 10").await;
        assert_eq!(world.cursors().await, [(20, false)]);
        assert_eq!(world.google.asked()[0].all["q"], "a OR b c");
        world.run("queries = [\"a\"]\nmax_per_run = 10").await;
        assert_eq!(world.google.asked().last().unwrap().start_index, 0);
        assert_eq!(world.cursors().await.len(), 2);
    }

    async fn a_search_may_be_read_again_after_a_while(fixture) {
        let world = World::new(&fixture, volumes(0, 12)).await;
        let keys = "max_per_run = 40\nrecheck_after = \"7d\"";
        world.run(keys).await;
        fixture.clock.advance(DAY * 7 - Duration::from_secs(1));
        world.run(keys).await;
        assert_eq!(world.google.asked().len(), 1);
        fixture.clock.advance(Duration::from_secs(1));
        world.google.set_volumes(volumes(0, 14));
        world.run("max_per_run = 40\nrecheck_after = 0").await;
        assert_eq!(world.google.asked().len(), 1, "0 is only by hand");
        world.run(keys).await;
        assert_eq!(world.google.asked().last().unwrap().start_index, 0);
        assert_eq!(world.cursors().await, [(14, true)]);
        let asked = world.google.asked().len();
        fixture.execute_batch("UPDATE collect_cursor SET last_updated_at = '2037-01-01T00:00:00.000Z'");
        world.run(keys).await;
        assert_eq!(world.google.asked().len(), asked + 1, "a clock that was years ahead does not end the search for years");
    }

    async fn after_an_error_or_a_full_quota_the_next_run_goes_on(fixture) {
        let world = World::new(&fixture, volumes(0, 100)).await;
        world.google.reply(Reply::Volumes);
        world.google.reply(Reply::Raw { status: 500, headers: Vec::new(), body: String::new() });
        let report = world.run("max_per_run = 80\nretries = 0").await;
        assert_eq!(report.problems, ["Google Books: HTTP 500"]);
        assert_eq!(world.cursors().await, [(40, false)]);
        let report = world.run("max_per_run = 80").await;
        assert_eq!(report.problems.len(), 0);
        assert_eq!(world.cursors().await, [(100, true)]);
    }

    async fn while_a_digest_waits_for_its_channel_the_books_gather(fixture) {
        let world = World::new(&fixture, volumes(0, 60)).await;
        let keys = "max_per_run = 20\nmail_limit = 5\nfallback_limit = 0";
        let digests = || world.count(sql!("SELECT COUNT(*) FROM book_digests"));
        world.run(keys).await;
        for _ in 0..2 {
            fixture.clock.advance(Duration::from_secs(60 * 60));
            let report = world.run(keys).await;
            assert!(report.summary.to_string().contains("the last digest is not sent yet"), "{report:?}");
        }
        assert_eq!(digests().await, 1, "a channel that was locked does not flood its readers");
        let plan = world.app(keys).jobs[0].collector.plan(&world.db, fixture.clock.now()).await.unwrap();
        assert!(plan.steps.iter().any(|step| step.to_string().contains("nothing before the last digest is sent")), "{plan:?}");
        assert_eq!(world.send().await.sent, 1);
        world.run(keys).await;
        assert_eq!(digests().await, 2);
        // A person may take any time to decide about a held message.
        fixture.db.write(|tx| tx.execute(sql!("UPDATE outbox SET state = 'held' WHERE state = 'ready'"), params![])).await.unwrap();
        world.run(keys).await;
        assert_eq!(digests().await, 3);
        // Nor is the job kept waiting by a channel that it has left.
        let second = world.text(keys).split("[[job]]").next().unwrap().replace("[channel.hook]", "[channel.second]");
        world.run(&format!("{keys}\ndeliver = [\"second\"]\n{second}")).await;
        assert_eq!(digests().await, 4);
    }

    async fn a_daily_job_that_met_an_outage_is_tried_again_after_minutes(fixture) {
        let world = World::new(&fixture, volumes(0, 100)).await;
        let app = world.app("cron = \"0 9 * * *\"\nretries = 0\nmax_per_run = 10");
        let runner = Runner::new(world.db.clone(), Progress::default());
        let run = async || runner.run(app.jobs.clone(), Selection::Due, &CancellationToken::new()).await.remove(0).1;
        let due_at = async || match run().await {
            Finished::Skipped(Skipped::NotDue(at)) => at.unwrap(),
            other => panic!("{other:?}"),
        };
        for gap in [5, 15].map(|minutes| Duration::from_secs(minutes * 60)) {
            world.google.reply(books_world::outage());
            let finished = run().await;
            assert!(matches!(&finished, Finished::Ran(report) if report.outcome() == RunOutcome::Failed), "{finished:?}");
            assert_eq!(due_at().await, fixture.clock.now().plus(gap));
            fixture.clock.advance(gap - Duration::from_millis(1));
            due_at().await;
            fixture.clock.advance(Duration::from_millis(1));
        }
        let finished = run().await;
        assert!(matches!(&finished, Finished::Ran(report) if report.outcome() == RunOutcome::Success), "{finished:?}");
        let tomorrow = "2026-01-16T00:00:00Z".parse().unwrap();
        assert_eq!(due_at().await, tomorrow, "what went well waits for its schedule");
        assert_eq!(world.google.asked().len(), 3);
        fixture.clock.set(tomorrow);
        world.google.reply(books_world::refusal(403, "accessNotConfigured"));
        assert!(matches!(run().await, Finished::Failed(Failure::Credentials(_))));
        assert_eq!(due_at().await, tomorrow.plus(DAY), "a key does not become right by itself");
    }

    async fn a_provider_that_complains_rests_for_every_job(fixture) {
        let world = World::new(&fixture, volumes(0, 100)).await;
        world.google.reply(Reply::Raw { status: 429, headers: vec![("retry-after", "600".into())], body: String::new() });
        let report = world.run("").await;
        assert_eq!(report.waiting_until, Some(fixture.clock.now().plus(Duration::from_secs(600))));
        world.run("queries = [\"other\"]").await;
        assert_eq!(world.google.asked().len(), 1, "while it rests nothing is asked");
        fixture.clock.advance(Duration::from_secs(600));
        world.run("").await;
        assert_eq!(world.google.asked().len(), 2);
    }

    async fn a_limit_of_google_lasts_as_long_as_what_it_counts_by(fixture) {
        let world = World::new(&fixture, volumes(0, 100)).await;
        // 00:02 in UTC is 16:02 of the day before in California.
        let midnight = "2026-01-15T08:00:00Z".parse().unwrap();
        let minute = fixture.clock.now().plus(Duration::from_secs(60));
        for (limit, unit, until) in [
            ("defaultPerMinutePerProject", "1/min/{project}", minute),
            ("defaultPerDayPerProject", "1/d/{project}", midnight),
        ] {
            let asked = world.google.asked().len();
            world.google.reply(books_world::over_limit(limit, unit, "100"));
            let report = world.run("max_per_run = 10").await;
            assert_eq!((report.waiting_until, report.outcome()), (Some(until), RunOutcome::Waiting), "{limit}");
            fixture.clock.set(until.minus(Duration::from_millis(1)));
            world.run("max_per_run = 10").await;
            assert_eq!(world.google.asked().len(), asked + 1, "{limit}: while it lasts nothing is asked");
            fixture.clock.set(until);
            let report = world.run("max_per_run = 10").await;
            assert_eq!((world.google.asked().len(), report.waiting_until), (asked + 2, None), "{limit}");
        }
    }

    async fn what_google_wants_to_know_is_named_by_its_key(fixture) {
        let world = World::new(&fixture, volumes(0, 100)).await;
        world.google.reply(books_world::refusal(403, "unknownLocation"));
        let report = world.run("max_per_run = 10").await;
        assert!(report.needs_config && report.problems[0].to_string().contains("set `country` in `google_books`"), "{report:?}");
        // The shared quota without a key is used up: a key would help before tomorrow.
        world.google.reply(books_world::over_limit("defaultPerDayPerProject", "1/d/{project}", "1000"));
        assert_eq!(world.run("max_per_run = 10").await.outcome(), RunOutcome::Waiting);
        let pause = fixture.db.read({ let now = fixture.clock.now(); move |tx| pause::find(tx, &Subject::provider("google_books"), now) });
        let why = format!("{:?}", pause.await.unwrap().unwrap());
        assert!(why.contains("https://console.cloud.google.com/apis/credentials"), "{why}");
    }

    async fn a_rest_from_a_clock_that_was_ahead_is_over_once_the_clock_is_right(fixture) {
        let world = World::new(&fixture, volumes(0, 100)).await;
        let right = fixture.clock.now();
        for (ahead, is_over) in [(Duration::from_secs(10 * 365 * 24 * 3600), true), (Duration::from_secs(3600), false)] {
            fixture.clock.set(right.plus(ahead));
            world.google.reply(Reply::Raw { status: 429, headers: vec![("retry-after", "86400".into())], body: String::new() });
            world.run("").await;
            fixture.clock.set(right);
            let asked = world.google.asked().len();
            let report = world.run("").await;
            assert_eq!((world.google.asked().len() > asked, report.waiting_until.is_none()), (is_over, is_over), "{ahead:?}");
        }
    }

    async fn a_refused_key_fails_the_run_after_the_mail_was_queued(fixture) {
        let world = World::new(&fixture, volumes(0, 100)).await;
        world.run("max_per_run = 10").await;
        world.send().await;
        world.google.reply(books_world::refusal(403, "accessNotConfigured"));
        match world.finish("max_per_run = 10").await {
            Finished::Failed(Failure::Credentials(why)) => assert!(why.to_string().contains("accessNotConfigured"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM book_digests")).await, 2);
    }

    async fn the_quota_day_ends_at_midnight_of_its_zone(fixture) {
        // 2026-01-15T00:02:11Z is 09:02 in Tokyo.
        let world = World::new(&fixture, volumes(0, 100)).await;
        let keys = "max_per_run = 1\nfallback_limit = 0\ndeliver = []\nquota = \"two\"";
        let text = format!("[app]\ntimezone = \"America/New_York\"\n{}[quota.two]\nper_day = 2\n", world.text(keys));
        let run = async || {
            let app = tsuzuki::app::App::new(&read_config(&text), world.db.clone()).unwrap();
            let usual = &app.env.quotas["google_books"].rule.zone;
            assert_eq!(usual.name(), "Asia/Tokyo", "whatever the zone of the program is, also without a table");
            let runner = tsuzuki::engine::Runner::new(world.db.clone(), tsuzuki::engine::Progress::default());
            runner.run(app.jobs, tsuzuki::engine::Selection::Forced, &tokio_util::sync::CancellationToken::new()).await;
            world.google.asked().len()
        };
        assert_eq!([run().await, run().await, run().await], [1, 2, 2]);
        fixture.clock.set("2026-01-15T14:59:59.999Z".parse().unwrap());
        assert_eq!(run().await, 2);
        fixture.clock.set("2026-01-15T15:00:00.000Z".parse().unwrap());
        assert_eq!([run().await, run().await, run().await], [3, 4, 4]);
        let days = fixture.db.read(|tx| tsuzuki::ledger::quota::list_usage(tx, Some("two"), 9)).await.unwrap();
        assert_eq!(days.iter().map(|day| (day.date.as_str(), day.count)).collect::<Vec<_>>(), [("2026-01-16", 2), ("2026-01-15", 2)]);
    }

    async fn a_quota_day_may_have_23_or_25_hours(fixture) {
        let world = World::new(&fixture, volumes(0, 100)).await;
        let keys = "max_per_run = 1\nfallback_limit = 0\ndeliver = []\nquota = \"one\"";
        let text = world.text(keys) + "[quota.one]\nper_day = 1\ntimezone = \"America/New_York\"\n";
        let app = tsuzuki::app::App::new(&read_config(&text), world.db.clone()).unwrap();
        let runner = tsuzuki::engine::Runner::new(world.db.clone(), tsuzuki::engine::Progress::default());
        for (now, requests) in [
            ("2026-03-08T05:00:00.000Z", 1), // the short day begins
            ("2026-03-09T03:59:59.999Z", 1), // 22:59:59 later
            ("2026-03-09T04:00:00.000Z", 2),
            ("2026-11-01T04:00:00.000Z", 3), // the long day begins
            ("2026-11-02T04:59:59.999Z", 3), // 24:59:59 later
            ("2026-11-02T05:00:00.000Z", 4),
        ] {
            fixture.clock.set(now.parse().unwrap());
            runner.run(app.jobs.clone(), tsuzuki::engine::Selection::Forced, &tokio_util::sync::CancellationToken::new()).await;
            assert_eq!(world.google.asked().len(), requests, "{now}");
        }
    }

    async fn what_is_known_is_never_forgotten_and_times_are_kept(fixture) {
        let world = World::new(&fixture, vec![volume(1)]).await;
        let keys = "max_per_run = 10\ndeliver = []\nrecheck_after = \"1h\"";
        world.run(keys).await;
        let first = fixture.clock.now();
        let mut bare = volume(1);
        for key in ["title", "authors", "publisher", "publishedDate", "description", "imageLinks", "infoLink", "previewLink"] {
            bare["volumeInfo"].as_object_mut().unwrap().remove(key);
        }
        world.google.set_volumes(vec![bare]);
        fixture.clock.advance(DAY);
        world.run(keys).await;
        let filter = store::BookQuery { limit: 10, ..store::BookQuery::default() };
        let rows = fixture.db.read(move |tx| view::list(tx, filter)).await.unwrap();
        let row = &rows[0];
        assert_eq!((row.first_seen_at, row.last_seen_at), (first, fixture.clock.now()));
        assert_eq!(row.book.title, "機械学習入門 第2版");
        assert_eq!((row.book.authors.len(), row.book.links.len()), (2, 2));
        assert!(row.book.publisher.is_some() && row.book.published_date.is_some() && row.book.description.is_some() && row.book.cover_url.is_some());
        let mut richer = volume(1);
        richer["volumeInfo"]["publisher"] = json!("新しい出版社");
        world.google.set_volumes(vec![richer]);
        fixture.clock.advance(DAY);
        world.run(keys).await;
        let rows = fixture.db.read(move |tx| view::list(tx, filter)).await.unwrap();
        assert_eq!(rows[0].book.publisher.as_deref(), Some("新しい出版社"), "a new value replaces the old one");
    }

    async fn a_book_is_delivered_when_it_was_accepted_and_not_before(fixture) {
        let world = World::new(&fixture, volumes(0, 3)).await;
        world.run("max_per_run = 10").await;
        assert_eq!(world.delivered().await.len(), 0, "queued is not delivered");
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM books WHERE last_delivered_at IS NOT NULL")).await, 0);
        world.run("max_per_run = 10").await;
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM outbox")).await, 1, "what is on its way is not chosen again");
        assert_eq!(world.send().await.sent, 1);
        let mut delivered = world.delivered().await;
        delivered.sort();
        assert_eq!(delivered, isbns(0..3));
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM deliveries")).await, 1);
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM books WHERE last_delivered_at IS NOT NULL")).await, 3);
        let body = &world.hook.posts()[0].body;
        assert!(body.contains("機械学習入門") && body.contains("/p/"), "{body}");
        assert!(!body.contains("身近な例から"), "a short form has no description: {body}");
        let events = fixture.db.read(|tx| event::list_about(tx, &Subject::new("book", isbn(1)), 9)).await.unwrap();
        assert_eq!(events.iter().map(|event| event.code.as_str()).collect::<Vec<_>>(), ["collected", "queued", "delivered"]);
    }

    async fn a_digest_that_did_arrive_is_confirmed_and_its_books_are_not_sent_again(fixture) {
        let world = World::new(&fixture, volumes(0, 3)).await;
        world.run("max_per_run = 10").await;
        world.hook.script.next(Fault::DoneThenCut);
        world.hook.script.next(Fault::DoneThenCut);
        for state in ["unknown", "unknown", "held"] {
            world.send().await;
            let word = fixture.db.read(|tx| tx.find(sql!("SELECT state FROM outbox"), params![], |row| row.get::<String>(0)));
            assert_eq!(word.await.unwrap().as_deref(), Some(state));
            fixture.clock.advance(DAY);
        }
        assert_eq!(world.delivered().await.len(), 0);
        let (id, topics) = (world.count(sql!("SELECT id FROM outbox")).await, tsuzuki::app::topics());
        fixture.db.write(move |tx| tsuzuki::channel::outbox::confirm(tx, id, &topics, tx.now())).await.unwrap();
        assert_eq!(world.delivered().await.len(), 3);
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM books WHERE last_delivered_at IS NOT NULL")).await, 3);
        world.run("max_per_run = 10\nfallback_limit = 0").await;
        assert_eq!(world.send().await.sent, 0);
        assert_eq!(world.hook.posts().len(), 2, "the two that had no answer");
    }

    async fn two_recipients_are_one_delivery(fixture) {
        let world = World::new(&fixture, volumes(0, 3)).await;
        let other = tsuzuki::demo::webhook::WebhookServer::start().await.unwrap();
        let text = world.text("max_per_run = 10\ndeliver = [\"hook\", \"other\"]")
            + &format!("[channel.other]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = [\"127.0.0.1\"]\n", other.url);
        other.script.always(Some(Fault::Status(400, Vec::new())));
        let app = tsuzuki::app::App::new(&read_config(&text), world.db.clone()).unwrap();
        let runner = tsuzuki::engine::Runner::new(world.db.clone(), tsuzuki::engine::Progress::default());
        runner.run(app.jobs.clone(), tsuzuki::engine::Selection::Forced, &tokio_util::sync::CancellationToken::new()).await;
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM outbox")).await, 2);
        let report = crate::books_world::send(&app).await;
        assert_eq!((report.sent, report.failed), (1, 1));
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM deliveries")).await, 1);
        // The refused one is sent after all, later: nothing is recorded twice.
        other.script.always(None);
        let id = world.count(sql!("SELECT id FROM outbox WHERE state = 'failed'")).await;
        let now = fixture.clock.now();
        fixture.db.write(move |tx| tsuzuki::channel::outbox::retry(tx, id, false, now)).await.unwrap();
        fixture.clock.advance(DAY);
        assert_eq!(crate::books_world::send(&app).await.sent, 1);
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM deliveries")).await, 1);
        assert_eq!(world.delivered().await.len(), 3);
    }

    async fn a_refused_digest_releases_its_books(fixture) {
        let world = World::new(&fixture, volumes(0, 3)).await;
        world.hook.script.next(Fault::Status(400, Vec::new()));
        world.run("max_per_run = 10").await;
        assert_eq!(world.send().await.failed, 1);
        assert_eq!(world.delivered().await.len(), 0);
        // Not in the next run: a refused digest would be refused every hour.
        let report = world.run("max_per_run = 10").await;
        let next = fixture.clock.now().plus(DAY - Duration::from_secs(3600));
        let wanted = format!("undelivered 3 → queued 0; bottleneck: a digest was refused, the next is made after {next}");
        assert!(report.summary.to_string().ends_with(&wanted), "{}", report.summary);
        assert_eq!((report.waiting_until, report.outcome()), (Some(next), RunOutcome::Waiting));
        fixture.clock.advance(DAY / 2);
        world.run("max_per_run = 10").await;
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM outbox")).await, 1);
        fixture.clock.advance(DAY / 2);
        world.run("max_per_run = 10").await;
        assert_eq!(world.send().await.sent, 1);
        assert_eq!(world.delivered().await.len(), 3);
        let events = fixture.db.read(|tx| event::list_about(tx, &Subject::new("book", isbn(1)), 9)).await.unwrap();
        let codes: Vec<_> = events.iter().map(|event| event.code.as_str()).collect();
        assert_eq!(codes, ["collected", "queued", "released", "queued", "delivered"]);
    }

    async fn books_that_make_every_digest_be_refused_do_not_keep_the_others_back(fixture) {
        let world = World::new(&fixture, volumes(0, 3)).await;
        let keys = "max_per_run = 3\nmail_limit = 2";
        world.hook.script.always(Some(Fault::Status(400, Vec::new())));
        for _ in 0..2 {
            world.run(keys).await;
            assert_eq!(world.send().await.failed, 1);
            fixture.clock.advance(DAY);
        }
        // The two newest were refused twice and are deferred for two days; the third is next.
        world.hook.script.always(None);
        world.run(keys).await;
        assert_eq!(world.send().await.sent, 1);
        assert_eq!(world.delivered().await.len(), 1);
        fixture.clock.advance(DAY);
        world.run(keys).await;
        world.send().await;
        assert_eq!(world.delivered().await.len(), 3);
    }

    async fn the_newest_come_first_and_no_more_than_the_limit(fixture) {
        let world = World::new(&fixture, volumes(0, 3)).await;
        world.run("max_per_run = 3\nmail_limit = 2\ndeliver = []").await;
        fixture.clock.advance(DAY);
        world.google.set_volumes(volumes(0, 6));
        world.run("max_per_run = 3\nmail_limit = 2").await;
        world.send().await;
        // Books 3, 4 and 5 were found last; of them 5 and 4 were published last (2025, 2024).
        assert_eq!(world.delivered().await, isbns([5, 4]));
        world.run("max_per_run = 3\nmail_limit = 2").await;
        world.send().await;
        assert_eq!(world.delivered().await, isbns([5, 4, 3, 2]));
    }

    async fn when_nothing_is_left_a_few_of_long_ago_are_told_again_once_a_day(fixture) {
        let world = World::new(&fixture, volumes(0, 5)).await;
        let keys = "max_per_run = 10\nmail_limit = 3\nfallback_limit = 2";
        world.run(keys).await;
        world.send().await;
        fixture.clock.advance(DAY);
        world.run(keys).await;
        world.send().await;
        assert_eq!(world.delivered().await, isbns([4, 3, 2, 1, 0]));
        let first_delivery = world.count(sql!("SELECT COUNT(*) FROM deliveries")).await;
        for _ in 0..6 {
            world.run(keys).await;
            assert_eq!(world.send().await.sent, 0, "they were sent a short while ago");
            fixture.clock.advance(DAY);
        }
        let report = world.run(keys).await;
        assert_eq!(report.summary, "collected 0 → with ISBN 0 → new 0 → undelivered 0 → queued 2 again; bottleneck: exhausted, the search was read to its end");
        world.run(keys).await;
        assert_eq!(world.send().await.sent, 1, "a digest on its way is enough");
        world.run(keys).await;
        assert_eq!(world.send().await.sent, 0, "not twice a day");
        let again = fixture.db.read(|tx| tx.find(sql!("SELECT isbn13_list_json FROM deliveries ORDER BY id DESC LIMIT 1"), params![], |row| row.get::<String>(0))).await.unwrap();
        let mut oldest = isbns([4, 3, 2]);
        oldest.sort();
        assert_eq!(again.unwrap(), json!(oldest[..2]).to_string(), "of those sent longest ago");
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM deliveries")).await, first_delivery + 1);
        assert_eq!(world.delivered().await.len(), 5, "a job delivers a book once");
        assert!(world.hook.posts().last().unwrap().body.contains("再紹介"));
        let generation = world.count(sql!("SELECT MAX(generation) FROM outbox")).await;
        assert_eq!(generation, 1);
        fixture.clock.advance(DAY);
        world.run("max_per_run = 10\nfallback_limit = 0").await;
        assert_eq!(world.send().await.sent, 0, "0 is off");
        world.run(keys).await;
        assert_eq!(world.send().await.sent, 1);
        let next = fixture.db.read(|tx| tx.find(sql!("SELECT isbn13_list_json FROM deliveries ORDER BY id DESC LIMIT 1"), params![], |row| row.get::<String>(0))).await.unwrap();
        assert_ne!(next.unwrap(), json!(oldest[..2]).to_string(), "others have their turn");
    }

    async fn a_day_with_a_digest_of_new_books_has_none_of_old_ones(fixture) {
        let world = World::new(&fixture, volumes(0, 3)).await;
        let keys = "max_per_run = 10\nrecheck_after = \"7d\"";
        world.run(keys).await;
        assert_eq!(world.send().await.sent, 1);
        fixture.clock.advance(DAY * 8);
        world.google.set_volumes(volumes(0, 4));
        world.run(keys).await;
        assert_eq!(world.send().await.sent, 1, "the fourth book");
        world.run(keys).await;
        assert_eq!(world.send().await.sent, 0, "the other three are old enough, but not today");
        fixture.clock.advance(DAY);
        let report = world.run(keys).await;
        assert!(report.summary.to_string().contains("queued 3 again"), "{}", report.summary);
    }

    async fn the_first_run_may_keep_what_it_finds_to_itself(fixture) {
        let world = World::new(&fixture, volumes(0, 5)).await;
        let keys = "max_per_run = 10\nfirst_run = \"latest:2\"\nrecheck_after = \"1h\"";
        world.run(keys).await;
        world.send().await;
        assert_eq!(world.delivered().await.len(), 2);
        fixture.clock.advance(DAY);
        world.google.set_volumes(volumes(0, 6));
        world.run(keys).await;
        world.send().await;
        assert_eq!(world.delivered().await.len(), 3, "what comes later is told");
        assert!(world.delivered().await.contains(&isbn(5)));
    }

    async fn the_first_book_of_a_search_that_had_none_is_told(fixture) {
        let world = World::new(&fixture, Vec::new()).await;
        let keys = "first_run = \"baseline\"\nrecheck_after = \"1h\"";
        world.run(keys).await;
        assert_eq!(world.cursors().await, [(0, true)]);
        fixture.clock.advance(DAY);
        world.google.set_volumes(volumes(0, 1));
        world.run(keys).await;
        world.send().await;
        assert_eq!(world.delivered().await, isbns([0]));
    }

    async fn deliveries_can_be_forgotten_on_request(fixture) {
        let world = World::new(&fixture, volumes(0, 5)).await;
        let keys = "max_per_run = 10\nmail_limit = 3\nfallback_limit = 0";
        world.run(keys).await;
        world.send().await;
        fixture.clock.advance(DAY);
        let since = fixture.clock.now();
        world.run(keys).await;
        world.send().await;
        let forgotten = fixture.db.write(move |tx| view::reset_mail(tx, Some(&"other".parse().unwrap()), None, since)).await.unwrap();
        assert_eq!(forgotten, 0);
        let forgotten = fixture.db.write(move |tx| view::reset_mail(tx, Some(&shelf()), Some(since), since)).await.unwrap();
        assert_eq!(forgotten, 2);
        let status = fixture.db.read(|tx| view::mail_status(tx, &shelf())).await.unwrap();
        assert_eq!((status.books, status.delivered, status.undelivered), (5, 3, 2));
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM books WHERE last_delivered_at IS NULL")).await, 2);
        assert_eq!(world.count(sql!("SELECT COUNT(*) FROM deliveries")).await, 2, "the audit log stays");
        world.run(keys).await;
        world.send().await;
        assert_eq!(world.delivered().await.len(), 5);
    }
}
