//! An item whose post was refused, or is suspected, always ends with a reason that `why` shows.

use super::*;
use tsuzuki::channel::outbox::{self, State, Suspicion};
use tsuzuki::demo::faults::Fault;
use tsuzuki::phrase::Phrase;
use tsuzuki::press::Reason;

const PLAIN: More<'static> = More { tables: "", llm: "", job: "items_per_run = 9\nmax_retries = 1" };

fn why(world: &World, fixture: &Fixture, slug: &str) -> String {
    story(world, fixture, &world.ministry.page(slug))
}

fn story(world: &World, fixture: &Fixture, name: &str) -> String {
    world.test_env(fixture, &PLAIN).ends(&format!("why {name}"), 0)
}

on_both_databases! {
    async fn a_refused_post_ends_with_the_words_of_the_server(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        world.publish("a", files(&[2000]));
        world.mastodon.posts.always(Some(Fault::Status(422, vec![])));
        world.live(1).await;
        assert_eq!(world.standing("a").await, "1/5/1");
        let printed = why(&world, &fixture, "a");
        assert!(printed.contains("put off: the model or the post failed") && printed.contains("the post failed"), "{printed}");
        assert!(printed.contains("422"), "the reason of the server: {printed}");
        for _ in 0..3 {
            world.clock.advance(DAY);
            world.live(2).await;
        }
        let printed = why(&world, &fixture, "a");
        assert_eq!(world.item("a").await.status.word(), "processed", "{printed}");
        assert!(printed.contains("closed: too many failed attempts") && printed.contains("422"), "{printed}");
    }

    async fn a_refused_post_that_a_person_sends_after_all_posts_its_item(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        for (slug, rounds) in [("put-off", 1), ("closed", 4)] {
            world.publish(slug, files(&[2000]));
            world.mastodon.posts.always(Some(Fault::Status(422, vec![])));
            for _ in 0..rounds {
                world.live(2).await;
                world.clock.advance(DAY);
            }
            assert!(world.item(slug).await.reason.is_some_and(|reason| reason != Reason::None), "{slug}");
            world.mastodon.posts.always(None);
            let page = world.ministry.page(slug);
            let of_page = move |row: &outbox::Row| row.subject == page && row.state == State::Failed;
            let rows = world.db.read(|tx| outbox::list(tx, &outbox::DeliveryFilter::default(), 20)).await.unwrap();
            let (id, now) = (rows.into_iter().find(of_page).unwrap().id, world.clock.now());
            world.db.write(move |tx| outbox::retry(tx, id, false, now)).await.unwrap();
            world.send().await;
            assert!(world.standing(slug).await.starts_with("3/0/"), "{slug}");
            let printed = why(&world, &fixture, slug);
            assert!(printed.starts_with('●') && printed.contains("state            posted"), "{printed}");
        }
    }

    async fn a_closed_item_says_what_failed_last_or_that_it_was_waited_for_long_enough(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 9\nmax_retries = 1\nwait_for_page = \"2d\"", ..More::default() }).await;
        world.publish("lost", files(&[2000]));
        world.publish("later", Shape::Later);
        world.ministry.script("/menu_news/s-news/lost.html").always(Some(Fault::Status(404, vec![])));
        let mut printed = Vec::new();
        for _ in 0..3 {
            let report = world.live(1).await.remove(0);
            printed.extend(report.problems);
            printed.push(report.summary);
            world.clock.advance(DAY);
        }
        let printed = Phrase::list(printed).to_string();
        let failed = "could not be fetched: 報道資料 lost (HTTP 404: the server does not know this address)";
        assert!(printed.contains(&format!("{failed}; given up after 2 failed attempts")), "{printed}");
        assert_eq!(printed.matches(failed).count(), 2, "{printed}");
        let printed = why(&world, &fixture, "lost");
        let state = "closed: too many failed attempts, the last: could not be fetched";
        assert!(printed.contains(state) && printed.contains("HTTP 404"), "{printed}");
        assert!(printed.starts_with('–'), "nothing more happens to it, and nothing is well: {printed}");
        let printed = why(&world, &fixture, "later");
        assert!(printed.contains("state            given up: the page did not change for as long as `wait_for_page` says"), "{printed}");
        assert!(!printed.contains("too many failed attempts"), "{printed}");
    }

    async fn a_suspected_post_says_why_it_waits_and_how_it_ended(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        world.publish("a", files(&[2000]));
        world.run().await;
        let now = world.clock.now();
        world.db.write(move |tx| outbox::suspect(tx, Suspicion::Restored, now)).await.unwrap();
        let printed = why(&world, &fixture, "a");
        assert!(printed.contains("the database was restored from a backup"), "{printed}");
        assert_eq!(world.standing("a").await, "2/-/0", "it waits");
        // Its outcome cannot be found out: finally a person has to decide.
        world.mastodon.reads.always(Some(Fault::Status(500, vec![])));
        for _ in 0..20 {
            world.clock.advance(12 * HOUR);
            world.send().await;
        }
        let row = world.db.read(|tx| outbox::list(tx, &outbox::DeliveryFilter::default(), 10)).await.unwrap().remove(0);
        assert_eq!(row.state, State::Held);
        let printed = why(&world, &fixture, "a");
        let error = row.last_error.clone().map(|why| why.to_string()).unwrap_or_default();
        assert!(!error.is_empty() && printed.contains(&error) && printed.contains("delivery skip"), "{printed}");
        let (id, now) = (row.id, world.clock.now());
        world.db.write(move |tx| outbox::skip(tx, id, &app::topics(), now)).await.unwrap();
        assert_eq!(world.standing("a").await, "3/0/0");
        let printed = why(&world, &fixture, "a");
        assert!(printed.contains("skipped (delivery 1)"), "{printed}");
    }

    async fn an_item_that_waits_for_the_model_or_for_its_channel_says_so(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        world.publish("a", files(&[2000]));
        world.gemini.next(tsuzuki::demo::gemini::Reply::Status(503));
        world.run().await;
        let printed = why(&world, &fixture, "a");
        assert!(printed.contains("paused") && printed.contains("gemini until") && printed.contains("HTTP 503"), "{printed}");
        assert!(printed.contains("item skip"), "{printed}");
        world.mastodon.posts.always(Some(Fault::Status(403, vec![])));
        world.clock.advance(5 * MINUTE);
        world.live(1).await;
        let printed = why(&world, &fixture, "a");
        assert!(printed.contains("toots until its credentials change") && !printed.contains("gemini until"), "{printed}");
        assert!(!printed.contains("item skip"), "its post is under way: {printed}");
        let printed = story(&world, &fixture, "delivery:1");
        assert!(printed.contains("toots until its credentials change") && !printed.contains("next attempt"), "{printed}");
        assert!(printed.contains("delivery retry --channel toots"), "{printed}");
    }

    async fn a_provider_of_which_one_model_is_paused_says_so(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        world.publish("a", files(&[2000]));
        world.gemini.next(tsuzuki::demo::gemini::Reply::PerDay);
        world.run().await;
        let printed = story(&world, &fixture, "gemini");
        assert!(printed.starts_with('∥') && printed.contains("provider gemini/gemini-flash-lite-latest until"), "{printed}");
    }
}
