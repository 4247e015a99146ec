//! A feed that is unusually silent: one alert when that is noticed, and one when it is over.

use super::*;

const PLAIN: More<'static> = More { tables: "", llm: "", job: "items_per_run = 9" };

async fn silence_codes(world: &World) -> Vec<String> {
    let about = Subject::new("job", "mic");
    let events = world.db.read(move |tx| event::list_about(tx, &about, 500)).await.unwrap();
    let codes = events.into_iter().map(|event| event.code);
    codes.filter(|code| code.contains("silen")).collect()
}

on_both_databases! {
    async fn a_feed_that_falls_silent_is_noted_once_and_so_is_the_end_of_it(fixture) {
        let world = World::untouched(&fixture, &PLAIN).await;
        let start = world.clock.now();
        for day in 1..=6 {
            world.ministry.publish(&format!("old{day}"), "甲", Some(start.minus(DAY * day)), Shape::Bare);
        }
        for _ in 0..2 {
            world.run().await;
            world.clock.advance(DAY);
        }
        assert_eq!(silence_codes(&world).await, [""; 0], "it usually takes a day; two are nothing");
        for _ in 0..5 {
            world.run().await;
            world.clock.advance(DAY);
        }
        assert_eq!(silence_codes(&world).await, ["feed_silent"], "once");
        let printed = world.test_env(&fixture, &PLAIN).ends("why mic", 0);
        assert!(printed.contains("nothing new since") && printed.contains("usually something comes every"), "{printed}");

        world.publish("again", Shape::Bare);
        world.run().await;
        assert_eq!(silence_codes(&world).await, ["feed_silent", "feed_silence_over"]);
    }
}
