//! From feed to post: pages of every shape, dates of every kind, and decisions by a person.

use super::*;
use tsuzuki::press::commands::{self, ItemAnswer};

const WAITS: More<'static> = More { tables: "", llm: "", job: "" };

on_both_databases! {
    async fn pages_of_four_shapes_end_as_they_should(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 9", ..WAITS }).await;
        for (slug, shape) in [("bare", Shape::Bare), ("done", files(&[2000, 3000])), ("later", Shape::Later), ("among", Shape::AmongLinks)] {
            world.publish(slug, shape);
            world.clock.advance(MINUTE);
        }
        let report = world.live(1).await.remove(0);
        assert!(report.summary.to_string().contains("4 new"), "{}", report.summary);
        assert_eq!(world.standing("bare").await, "1/1/1");
        assert_eq!(world.standing("later").await, "1/2/1");
        assert_eq!(world.standing("done").await, "3/0/0");
        assert_eq!(world.standing("among").await, "3/0/0");

        let posts = world.posts();
        assert_eq!(posts.len(), 2, "{posts:?}");
        for (slug, files) in [("done", 2), ("among", 1)] {
            let url = world.ministry.page(slug);
            let mine: Vec<_> = posts.iter().filter(|post| post.contains(&url)).collect();
            assert_eq!(mine.len(), 1, "{slug}");
            assert!(mine[0].starts_with(&format!("報道資料 {slug}")), "{}", mine[0]);
            assert!(mine[0].contains(&format!("資料{files}件を公表した。")), "{}", mine[0]);
        }
        let questions = world.gemini.questions();
        let summary = questions.iter().find(|asked| asked.text().contains("keikaku") || asked.text().contains("計画本文") && asked.body["contents"][0]["parts"].as_array().unwrap().len() == 2).unwrap();
        assert!(summary.text().contains("計画㈱を取りまとめました"), "Shift_JIS with ㈱ is read right: {}", summary.text());

        // The minutes appear; the item is checked again when it is due.
        world.ministry.change("later", files(&[4000]));
        world.live(6).await;
        assert_eq!(world.standing("later").await, "3/0/1");
        assert_eq!(world.story("later").await, ["found", "page_not_ready", "worth", "queued", "posted"]);
        assert_eq!(world.posts().len(), 3);
        // The bare page has not changed, so the model was not called for it a second time.
        let asked = world.gemini.questions().iter().filter(|asked| asked.text().contains("報道資料 bare")).count();
        assert_eq!(asked, 1);
        let mut rounds = 0;
        while world.standing("bare").await != "3/6/1" {
            world.clock.advance(DAY);
            world.live(1).await;
            rounds += 1;
            assert!(rounds <= 30, "{}", world.standing("bare").await);
        }
        assert_eq!(world.story("bare").await, ["found", "not_valuable", "wait_over"]);
        assert_eq!(world.gemini.questions().iter().filter(|asked| asked.text().contains("報道資料 bare")).count(), 1);
        assert_eq!(world.posts().len(), 3);
    }

    async fn a_first_look_records_and_a_feed_that_starts_empty_announces_its_first_entry(fixture) {
        let world = World::untouched(&fixture, &WAITS).await;
        world.ministry.publish("old", "前から", Some(at("2025-12-01T00:00:00Z")), files(&[2000]));
        world.ministry.script("/news.rdf").next(tsuzuki::demo::faults::Fault::Status(404, vec![]));
        let report = world.run().await;
        assert!(report.problems[0].to_string().contains("feed"), "{report:?}");
        world.clock.advance(HOUR);
        world.live(2).await;
        assert_eq!(world.standing("old").await, "3/0/0");
        assert_eq!(world.story("old").await, ["baseline"]);
        world.publish("new", files(&[2000]));
        world.live(3).await;
        assert_eq!(world.standing("new").await, "3/0/0");
        assert_eq!(world.posts().len(), 1);
    }

    async fn late_undated_and_future_entries_are_handled_as_configured(fixture) {
        let world = World::new(&fixture, &WAITS).await;
        world.ministry.publish("late", "遅れて", Some(at("2020-01-01T00:00:00Z")), files(&[2000]));
        world.ministry.publish("undated", "日付なし", None, files(&[2001]));
        let date = at("2026-01-17T00:00:00Z");
        world.ministry.publish("future", "未来", Some(date), files(&[2002]));
        let report = world.run().await;
        assert!(report.summary.to_string().contains("2 new, 1 dated in the future"), "{}", report.summary);
        assert_eq!(world.item("late").await.published_at, at("2020-01-01T00:00:00Z"));
        assert_eq!(world.item("undated").await.published_at, world.clock.now());
        world.clock.advance(DAY);
        world.run().await;
        assert_eq!(world.items().await.len(), 2, "its day has not come");
        // The feed has not changed since, and yet the entry is found when its date has come.
        world.clock.advance(DAY + HOUR);
        world.run().await;
        assert_eq!(world.item("future").await.published_at, date);
    }

    async fn pending_items_go_first_by_date_and_one_step_is_one_item(fixture) {
        let world = World::new(&fixture, &WAITS).await;
        world.ministry.publish("b", "乙", Some(at("2026-01-10T00:00:00Z")), files(&[2000]));
        world.ministry.publish("a", "甲", Some(at("2026-01-05T00:00:00Z")), files(&[2001]));
        world.run().await;
        let standings = [world.standing("a").await, world.standing("b").await];
        assert_eq!(standings.iter().filter(|standing| *standing == "2/-/0").count(), 1, "one step: {standings:?}");
        // A pending item with an open post is not free: the next step screens another.
        world.clock.advance(MINUTE);
        world.run().await;
        assert_eq!(world.posts().len(), 0);
        world.run().await;
        world.run().await;
        let questions = world.gemini.questions().len();
        assert_eq!(questions, 4, "two screenings, two summaries");
        world.run().await;
        assert_eq!(world.gemini.questions().len(), questions, "both are spoken for");
        world.send().await;
        assert_eq!((world.standing("a").await, world.standing("b").await), ("3/0/0".into(), "3/0/0".into()));
    }

    async fn posts_leave_in_the_order_of_publication(fixture) {
        let world = World::new(&fixture, &WAITS).await;
        // The newest entry is first in the feed, as usual.
        for (slug, date) in [("a", "2026-01-05T00:00:00Z"), ("b", "2026-01-06T00:00:00Z"), ("c", "2026-01-07T00:00:00Z")] {
            world.ministry.publish(slug, slug, Some(at(date)), files(&[2000]));
        }
        world.live(6).await;
        let order: Vec<_> = world.posts().iter().map(|post| post.chars().next().unwrap()).collect();
        assert_eq!(order, ['a', 'b', 'c']);
    }

    async fn more_new_entries_than_hold_above_wait_for_a_person(fixture) {
        let world = World::new(&fixture, &More { job: "hold_above = 2\nitems_per_run = 9", ..WAITS }).await;
        for slug in ["a", "b", "c"] {
            world.publish(slug, files(&[2000]));
        }
        world.live(3).await;
        assert!(world.posts().is_empty());
        assert_eq!(world.standing("a").await, "2/-/0");
        let now = world.clock.now();
        world.db.write(move |tx| tsuzuki::channel::outbox::approve_job(tx, "mic", now)).await.unwrap();
        world.live(1).await;
        assert_eq!(world.posts().len(), 3);
        assert_eq!(world.standing("c").await, "3/0/0");
    }

    async fn files_that_fail_or_are_too_large_are_told_apart(fixture) {
        let world = World::new(&fixture, &More { job: "max_file = \"4 KiB\"\nitems_per_run = 9\nmax_retries = 1", ..WAITS }).await;
        world.publish("large", files(&[9000, 8000]));
        world.live(1).await;
        assert_eq!(world.standing("large").await, "1/4/1");
        world.ministry.withdraw("large");

        // One of two is too large: the model gets its name and size, and the other file.
        world.ministry.publish("mixed", "混在", Some(world.clock.now()), Shape::WithFiles(vec![("big.pdf".into(), 9000), ("small.pdf".into(), 1000)]));
        world.live(2).await;
        assert_eq!(world.standing("mixed").await, "3/0/0");
        let summary = world.gemini.questions().into_iter().rfind(|asked| asked.text().contains("混在")).unwrap();
        assert!(summary.text().contains("big.pdf） (9 KiB／大きすぎるため内容なし)"), "{}", summary.text());
        assert_eq!(summary.body["contents"][0]["parts"].as_array().unwrap().len(), 2);

        // An error page in place of a PDF is a failed download, not a document.
        world.ministry.instead("/main_content/fake.pdf", "application/pdf", "<!DOCTYPE html><title>しばらくお待ちください</title>");
        world.ministry.publish("fake", "偽物", Some(world.clock.now()), Shape::WithFiles(vec![("fake.pdf".into(), 1000)]));
        world.live(1).await;
        assert_eq!(world.standing("fake").await, "1/3/1");
        world.ministry.publish("gone", "なし", Some(world.clock.now()), Shape::Bare);
        world.ministry.script("/menu_news/s-news/gone.html").always(Some(tsuzuki::demo::faults::Fault::Status(404, vec![])));
        world.live(1).await;
        assert_eq!(world.standing("gone").await, "1/3/1");
        world.clock.advance(DAY);
        world.live(3).await;
        assert_eq!((world.standing("gone").await, world.standing("fake").await), ("3/6/2".into(), "3/0/1".into()), "the text of the page has to do");
        assert!(world.story("gone").await.contains(&"retry_limit_exceeded".to_owned()));
    }

    async fn a_refused_post_puts_the_item_off_until_the_limit(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 2\nmax_retries = 1", ..WAITS }).await;
        world.publish("a", files(&[2000]));
        world.mastodon.posts.always(Some(tsuzuki::demo::faults::Fault::Status(422, vec![])));
        world.live(1).await;
        assert_eq!(world.standing("a").await, "1/5/1");
        assert_eq!(world.story("a").await, ["found", "worth", "queued", "post_failed"]);
        world.clock.advance(HOUR);
        world.live(1).await;
        assert_eq!(world.standing("a").await, "1/5/2", "a post that fails knows no limits");
        world.clock.advance(DAY);
        world.live(1).await;
        assert_eq!(world.standing("a").await, "3/6/2");
        assert_eq!(world.gemini.questions().len(), 2, "verdict and summary were known");
        assert!(world.posts().is_empty());
    }

    async fn a_channel_that_can_make_no_message_is_told_and_does_not_keep_the_post_from_others(fixture) {
        let second = "[channel.second]\nkind = \"mastodon\"\ninstance = \"http://127.0.0.1:9\"\ntoken = \"t\"\nallow_private = [\"127.0.0.1\"]\n\
                      template = \"{{ link }}{% if '報道資料' in headline %}{{ nothing }}{% endif %}\"\n";
        let both = More { tables: second, job: "items_per_run = 2\ndeliver = [\"second\", \"toots\"]", ..WAITS };
        let mut world = World::new(&fixture, &both).await;
        world.publish("a", files(&[2000]));
        let report = world.live(1).await.remove(0);
        assert!(report.problems.len() == 1 && report.problems[0].to_string().contains("`second` cannot make a message"), "{report:?}");
        assert_eq!(report.outcome().word(), "partly");
        assert_eq!((world.posts().len(), world.standing("a").await), (1, "3/0/0".into()));
        assert_eq!(world.story("a").await, ["found", "worth", "not_rendered", "queued", "posted"]);

        let none = More { job: "items_per_run = 2\ndeliver = [\"second\"]", ..both };
        world.reconfigure(&none, &fixture);
        world.publish("b", files(&[2000]));
        let report = world.run().await;
        assert!(report.problems.len() == 1 && report.problems[0].to_string().contains("`second` cannot make a message"), "{report:?}");
        assert_eq!(world.standing("b").await, "1/5/1");
        assert_eq!(world.story("b").await, ["found", "worth", "post_failed"]);
    }

    async fn an_item_put_off_under_a_clock_that_was_ahead_is_looked_at_once_the_clock_is_right(fixture) {
        let world = World::new(&fixture, &More { job: "future = \"wait\"\nmax_retries = 9", ..WAITS }).await;
        let right = world.clock.now();
        world.clock.set(right.plus(DAY * 3650));
        world.ministry.publish("late", "遅", Some(right), Shape::Later);
        world.run().await;
        assert_eq!(world.standing("late").await, "1/2/1");
        world.clock.set(right);
        world.run().await;
        assert_eq!(world.item("late").await.last_checked_at, right, "its time was years away");
        world.clock.advance(MINUTE);
        world.run().await;
        assert_eq!(world.item("late").await.last_checked_at, right, "now it waits for its hour");
        assert_eq!(world.standing("late").await, "1/2/1", "an unchanged page costs no try");
        world.ministry.withdraw("late");
        // An entry with a future date waits until then.
        world.ministry.publish("soon", "先", Some(right.plus(DAY * 30)), Shape::Bare);
        world.run().await;
        world.run().await;
        assert_eq!(world.standing("soon").await, "0/-/0");
    }

    async fn a_person_may_skip_and_retry(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 1", ..WAITS }).await;
        world.publish("a", Shape::Bare);
        world.live(1).await;
        let now = world.clock.now();
        let item = world.item("a").await;
        let skipped = world.db.write(move |tx| commands::skip(tx, &item, now)).await.unwrap();
        assert!(matches!(skipped, ItemAnswer::Done { .. }));
        assert_eq!(world.standing("a").await, "3/0/1");
        world.ministry.change("a", files(&[2000]));
        world.clock.advance(DAY);
        world.live(1).await;
        assert_eq!(world.standing("a").await, "3/0/1", "processed is the end");
        let item = world.item("a").await;
        world.db.write(move |tx| commands::retry(tx, &item, now)).await.unwrap();
        assert_eq!(world.standing("a").await, "0/-/0");
        world.run().await;
        world.run().await;
        let item = world.item("a").await;
        let busy = world.db.write(move |tx| commands::skip(tx, &item, now)).await.unwrap();
        assert!(matches!(&busy, ItemAnswer::NotNow { why, .. } if why.to_string().contains("its post is ready")), "{busy:?}");
        world.send().await;
        let item = world.item("a").await;
        let posted = world.db.write(move |tx| commands::retry(tx, &item, now)).await.unwrap();
        assert!(matches!(&posted, ItemAnswer::NotNow { why, .. } if why.to_string().contains("posted")), "{posted:?}");
        assert_eq!(world.posts().len(), 1);
    }
}
