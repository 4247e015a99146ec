//! Items that wait for their page: unchanged pages cost nothing, waiting ends at some time, and delays no others.

use super::*;
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::gemini::Reply;

const PLAIN: More<'static> = More { tables: "", llm: "", job: "" };

async fn gap(world: &World, slug: &str) -> Duration {
    let item = world.item(slug).await;
    item.not_before.unwrap().since(item.last_checked_at)
}

on_both_databases! {
    async fn an_unchanged_page_costs_no_try_and_is_found_when_it_is_completed_after_weeks(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        world.publish("later", Shape::Later);
        world.run().await;
        assert_eq!((world.standing("later").await.as_str(), gap(&world, "later").await), ("1/2/1", 15 * MINUTE));
        for wanted in [HOUR, 6 * HOUR, DAY, DAY, DAY, DAY] {
            world.clock.advance(gap(&world, "later").await);
            let report = world.run().await;
            assert!(report.summary.to_string().contains("1 page unchanged"), "{}", report.summary);
            assert_eq!((world.standing("later").await.as_str(), gap(&world, "later").await), ("1/2/1", wanted));
        }
        assert_eq!(world.story("later").await, ["found", "page_not_ready"]);
        assert_eq!(world.gemini.questions().len(), 1);
        // The model was called for another page that is not ready either: that counts.
        world.ministry.change("later", Shape::Html("<p>資料は後日掲載します。第２報。</p>".to_owned()));
        world.clock.advance(DAY);
        world.run().await;
        assert_eq!((world.standing("later").await.as_str(), gap(&world, "later").await), ("1/2/2", HOUR));
        world.ministry.change("later", files(&[2000]));
        world.clock.advance(HOUR);
        world.live(2).await;
        assert_eq!((world.standing("later").await.as_str(), world.posts().len()), ("3/0/2", 1));
    }

    async fn the_waiting_ends_as_configured(fixture) {
        let world = World::new(&fixture, &More { job: "wait_for_page = \"3d\"", ..PLAIN }).await;
        world.publish("later", Shape::Later);
        world.run().await;
        let mut days = 0;
        while world.standing("later").await == "1/2/1" {
            world.clock.advance(DAY);
            world.run().await;
            days += 1;
            assert!(days < 9);
        }
        assert_eq!((world.standing("later").await.as_str(), days), ("3/6/1", 3));
        assert_eq!(world.story("later").await, ["found", "page_not_ready", "wait_over"]);
        // A person restarts the waiting.
        let (item, now) = (world.item("later").await, world.clock.now());
        world.db.write(move |tx| tsuzuki::press::commands::retry(tx, &item, now)).await.unwrap();
        world.run().await;
        world.clock.advance(DAY);
        world.run().await;
        assert_eq!(world.standing("later").await, "1/2/1");
    }

    async fn items_that_wait_do_not_keep_new_ones_waiting(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        for slug in ["a", "b", "c"] {
            world.publish(slug, Shape::Bare);
            world.live(1).await;
        }
        world.clock.advance(HOUR);
        world.publish("new", files(&[2000]));
        let report = world.run().await;
        assert_eq!(world.standing("new").await, "2/-/0", "{}", report.summary);
        assert!(report.summary.to_string().contains("3 pages unchanged"), "{}", report.summary);
    }

    /// A network outage of a day, ours or theirs, has no effect on the items.
    async fn a_site_that_is_out_of_reach_as_a_whole_costs_no_item_a_try(fixture) {
        for fault in [Fault::Cut, Fault::Status(503, vec![]), Fault::Status(503, vec![("retry-after", "1800".to_owned())])] {
            fixture.clock.set(crate::databases::test_start());
            crate::press::answers::reset(&fixture).await;
            let world = World::new(&fixture, &More { job: "items_per_run = 9", ..PLAIN }).await;
            world.publish("later", Shape::Later);
            world.run().await;
            world.gemini.next(Reply::Usual);
            world.gemini.next(Reply::PerMinute(30));
            world.publish("pending", files(&[2000]));
            world.run().await;
            world.gemini.next(Reply::PerMinute(30));
            world.clock.advance(MINUTE);
            world.publish("new", files(&[2000]));
            world.run().await;
            let standings = async || [world.standing("later").await, world.standing("pending").await, world.standing("new").await];
            assert_eq!(standings().await, ["1/2/1", "2/-/0", "0/-/0"]);
            let paths = ["/news.rdf", "/menu_news/s-news/later.html", "/menu_news/s-news/pending.html", "/menu_news/s-news/new.html"];
            for path in paths {
                world.ministry.script(path).always(Some(fault.clone()));
            }
            for _ in 0..24 {
                world.clock.advance(HOUR);
                world.finish().await;
            }
            assert_eq!(standings().await, ["1/2/1", "2/-/0", "0/-/0"], "{fault:?}");
            assert_eq!(world.story("new").await, ["found", "out_of_reach"], "it is told once");
            for path in paths {
                world.ministry.script(path).always(None);
            }
            world.clock.advance(HOUR);
            world.live(4).await;
            assert_eq!(standings().await, ["1/2/1", "3/0/0", "3/0/0"], "{fault:?}");
            // A page that alone is out of reach is tried as before.
            world.publish("alone", files(&[2000]));
            world.ministry.script("/menu_news/s-news/alone.html").always(Some(fault.clone()));
            world.live(1).await;
            assert_eq!(world.standing("alone").await, "1/3/1", "{fault:?}");
            world.ministry.script("/menu_news/s-news/alone.html").always(None);
        }
    }

    /// A host that is paused after one failed page says nothing about its other pages, which were not requested.
    async fn a_page_that_was_not_requested_costs_no_try(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 9", ..PLAIN }).await;
        world.run().await;
        world.publish("broken", files(&[2000]));
        world.publish("fine", files(&[2000]));
        let page = world.ministry.script("/menu_news/s-news/broken.html");
        page.always(Some(Fault::Status(503, vec![])));
        world.run().await;
        assert_eq!([world.standing("broken").await, world.standing("fine").await], ["1/3/1", "0/-/0"]);
        assert_eq!(world.story("fine").await, ["found", "out_of_reach"]);
        page.always(None);
        world.clock.advance(HOUR);
        world.live(2).await;
        assert_eq!([world.standing("broken").await, world.standing("fine").await], ["3/0/1", "3/0/0"]);
    }
}
