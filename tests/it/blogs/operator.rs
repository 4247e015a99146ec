//! Failing blogs are reported to the operator, to the channels of `[app] alert`, once and never to readers.

use tsuzuki::channel::outbox::Row;
use tsuzuki::demo::faults::Fault;
use tsuzuki::engine::alert::{self, AlertKind, Announcer};

use super::*;

fn config_with(alert: &str, blogs: &[String]) -> String {
    let ops = "[channel.ops]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/ops\"\nallow_private = [\"127.0.0.1\"]\n";
    config_text("", blogs).replace("[app]\n", &format!("[app]\nalert = {alert}\n")) + ops
}

async fn run_and_announce(world: &World) {
    world.run().await;
    Announcer::new(&world.env).update().await.unwrap();
    world.clock.advance(HOUR);
}

/// The headlines that a channel was sent, oldest first.
async fn headlines(world: &World, channel: &str) -> Vec<String> {
    let headline = |row: &Row| {
        let payload: serde_json::Value = serde_json::from_str(&row.payload).unwrap();
        payload["data"]["headline"].as_str().unwrap_or_else(|| panic!("{payload}")).to_owned()
    };
    world.messages().await.iter().filter(|row| row.channel == channel).map(headline).collect()
}

async fn causes(world: &World) -> Vec<String> {
    world.db.read(alert::list_open).await.unwrap().into_iter().map(|alert| alert.cause).collect()
}

on_both_databases! {
    async fn a_blog_that_fails_or_is_gone_is_told_to_the_operator_and_to_no_reader(fixture) {
        let (bad, gone, good) = (site(feed_only).await, site(feed_only).await, site(feed_only).await);
        let blogs = [blog("bad", &bad, ""), blog("gone", &gone, ""), blog("good", &good, "")];
        let world = World::new(&fixture, &config_with("[\"ops\"]", &blogs));
        run_and_announce(&world).await;
        bad.edit(|content| content.fault = Some(Fault::Status(500, vec![])));
        gone.edit(|content| content.fault = Some(Fault::Status(410, vec![])));
        for _ in 0..30 {
            run_and_announce(&world).await;
        }
        let alerts = headlines(&world, "ops").await;
        let begins = |alerts: &[String], words: &str| alerts.iter().filter(|headline| headline.starts_with(words)).count();
        assert_eq!((begins(&alerts, "tsuzuki: blog bad: failing since"), begins(&alerts, "tsuzuki: blog gone: paused: ")), (1, 1), "{alerts:?}");
        assert_eq!(alerts.len(), 2, "a day is no new cause: {alerts:?}");
        for site in [&bad, &gone] {
            site.edit(|content| content.fault = None);
        }
        let now = fixture.clock.now();
        assert!(fixture.db.write(move |tx| store::resume(tx, "gone", now)).await.unwrap());
        for _ in 0..3 {
            run_and_announce(&world).await;
        }
        let alerts = headlines(&world, "ops").await;
        assert_eq!((begins(&alerts, "tsuzuki: over: blog bad"), begins(&alerts, "tsuzuki: over: blog gone"), alerts.len()), (1, 1, 4), "{alerts:?}");
        assert_eq!(headlines(&world, "hook").await, [""; 0], "readers hear nothing of it");
    }

    async fn without_alert_channels_trouble_is_kept_and_sent_to_nobody(fixture) {
        let bad = site(feed_only).await;
        let text = config_with("[]", &[blog("a", &bad, ""), blog("b", &bad, "")]);
        let mut world = World::new(&fixture, &text);
        run_and_announce(&world).await;
        bad.edit(|content| content.fault = Some(Fault::Status(500, vec![])));
        for _ in 0..4 {
            run_and_announce(&world).await;
        }
        let mut kept = causes(&world).await;
        kept.retain(|cause| cause.contains("blog:"));
        assert_eq!(kept, ["failing blog:a", "failing blog:b"]);
        assert!(world.messages().await.is_empty());
        world.reconfigure(&config_with("[]", &[blog("a", &bad, "")]));
        run_and_announce(&world).await;
        let left = causes(&world).await;
        assert!(!left.contains(&"failing blog:b".to_owned()), "nobody has to act about what has left the config: {left:?}");
    }

    async fn many_blogs_that_fail_at_once_are_one_message(fixture) {
        let bad = site(feed_only).await;
        let blogs: Vec<String> = (0..8).map(|number| blog(&format!("b{number}"), &bad, "")).collect();
        let world = World::new(&fixture, &config_with("[\"ops\"]", &blogs));
        run_and_announce(&world).await;
        bad.edit(|content| content.fault = Some(Fault::Status(500, vec![])));
        for _ in 0..5 {
            run_and_announce(&world).await;
        }
        let mut alerts = headlines(&world, "ops").await;
        alerts.retain(|headline| headline.starts_with("tsuzuki: blog "));
        assert!(alerts.len() == 1 && alerts[0].contains("(and 7 more)"), "{alerts:?}");
    }

    async fn a_silent_blog_is_an_alert_until_it_brings_something(fixture) {
        let quiet = site(feed_only).await;
        let world = World::new(&fixture, &config_with("[\"ops\"]", &[blog("b", &quiet, "")]));
        for _ in 0..8 {
            world.run().await;
            fixture.clock.advance(DAY);
        }
        let open = fixture.db.read(alert::list_open).await.unwrap();
        assert_eq!((open.len(), open[0].kind()), (1, Some(AlertKind::Silent)));
        Announcer::new(&world.env).update().await.unwrap();
        quiet.edit(|content| content.publish("x", "x", fixture.clock.now()));
        run_and_announce(&world).await;
        let alerts = headlines(&world, "ops").await;
        assert!(alerts.len() == 2 && alerts[0].starts_with("tsuzuki: blog b: nothing new since") && alerts[1].starts_with("tsuzuki: over: blog b"), "{alerts:?}");
    }
}
