//! A feed that has moved permanently: followed at once, adopted after the third fetch, and remembered.

use std::fmt::Write as _;

use super::*;
use tsuzuki::demo::faults::Fault;

const PLAIN: More<'static> = More { tables: "", llm: "", job: "items_per_run = 9" };

fn serve_at(world: &World, path: &str, slugs: &[&str]) {
    let mut feed = "<rss version=\"2.0\"><channel><title>t</title>".to_owned();
    for slug in slugs {
        let _ = write!(
            feed,
            "<item><link>{}a/{slug}.html</link><title>{slug}</title><pubDate>Sat, 10 Jan 2026 00:00:00 GMT</pubDate></item>",
            world.ministry.url
        );
    }
    world.ministry.instead(path, "application/rss+xml", feed + "</channel></rss>");
}

fn asked(world: &World, path: &str) -> usize {
    world.ministry.log().iter().filter(|line| line.ends_with(path)).count()
}

async fn run_often(world: &World, times: usize) -> Vec<String> {
    let mut summaries = Vec::new();
    for _ in 0..times {
        summaries.push(world.run().await.summary.to_string());
        world.clock.advance(5 * MINUTE);
    }
    summaries
}

async fn job_codes(world: &World) -> Vec<String> {
    let about = Subject::new("job", "mic");
    let events = world.db.read(move |tx| event::list_about(tx, &about, 100)).await.unwrap();
    let codes = events.into_iter().map(|event| event.code);
    codes.filter(|code| code.starts_with("feed_moved")).collect()
}

on_both_databases! {
    async fn a_feed_that_has_moved_for_good_is_adopted_and_outlives_its_old_address(fixture) {
        let mut world = World::untouched(&fixture, &PLAIN).await;
        let to = ("location", format!("{}moved.rdf", world.ministry.url));
        serve_at(&world, "/moved.rdf", &["a"]);
        world.ministry.script("/news.rdf").always(Some(Fault::Status(301, vec![to.clone()])));
        run_often(&world, 2).await;
        assert_eq!(job_codes(&world).await, [""; 0], "two sightings prove nothing");
        run_often(&world, 1).await;
        assert_eq!(job_codes(&world).await, ["feed_moved"]);

        world.ministry.script("/news.rdf").always(Some(Fault::Status(404, vec![])));
        serve_at(&world, "/moved.rdf", &["b", "a"]);
        let summaries = run_often(&world, 2).await;
        assert!(summaries[0].starts_with("1 new"), "{summaries:?}");
        assert_eq!(asked(&world, "/news.rdf"), 3, "the old address is asked no more");

        // Writing the new address into the config, as advised, loses nothing.
        let text = config_text(&world.ministry, &world.gemini, &world.mastodon, &PLAIN);
        world.config = read_config(&text.replace("/news.rdf", "/moved.rdf"));
        serve_at(&world, "/moved.rdf", &["c", "b", "a"]);
        let summaries = run_often(&world, 1).await;
        assert!(summaries[0].starts_with("1 new"), "what came meanwhile is no baseline: {summaries:?}");
        assert_eq!(job_codes(&world).await, ["feed_moved"]);
    }

    async fn an_adopted_address_that_is_lost_gives_way_to_that_of_the_config(fixture) {
        let world = World::untouched(&fixture, &PLAIN).await;
        serve_at(&world, "/moved.rdf", &["a"]);
        let to = ("location", format!("{}moved.rdf", world.ministry.url));
        world.ministry.script("/news.rdf").always(Some(Fault::Status(308, vec![to])));
        run_often(&world, 4).await;
        world.ministry.script("/moved.rdf").always(Some(Fault::Status(410, vec![])));
        world.ministry.script("/news.rdf").always(None);
        serve_at(&world, "/news.rdf", &["b", "a"]);
        let report = world.run().await;
        assert!(report.problems[0].to_string().contains("where it had moved to"), "{report:?}");
        world.clock.advance(5 * MINUTE);
        let summaries = run_often(&world, 1).await;
        assert!(summaries[0].starts_with("1 new"), "{summaries:?}");
        assert_eq!(job_codes(&world).await, ["feed_moved", "feed_moved_back"]);
    }

    async fn a_redirect_that_is_not_for_good_is_followed_and_never_adopted(fixture) {
        let world = World::untouched(&fixture, &PLAIN).await;
        serve_at(&world, "/elsewhere.rdf", &["a"]);
        let to = ("location", format!("{}elsewhere.rdf", world.ministry.url));
        world.ministry.script("/news.rdf").always(Some(Fault::Status(302, vec![to])));
        run_often(&world, 5).await;
        assert_eq!((asked(&world, "/news.rdf"), job_codes(&world).await.len()), (5, 0));
    }
}
