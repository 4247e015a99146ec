//! What a press job does not do: request a feed that is gone, summarise without a channel, flood a new channel, or use
//! a cached answer when a person asked for a new one.

use super::*;
use tsuzuki::channel::outbox;
use tsuzuki::demo::faults::Fault;
use tsuzuki::engine::RunOutcome;
use tsuzuki::ledger::{Subject, pause};
use tsuzuki::press::{commands, gone};

const PLAIN: More<'static> = More { tables: "", llm: "", job: "items_per_run = 9" };
const NOBODY: More<'static> = More { tables: "", llm: "", job: "items_per_run = 9\ndeliver = []" };

fn asked_for_feed(world: &World) -> usize {
    world.ministry.log().iter().filter(|line| line.ends_with(".rdf")).count()
}

async fn resume(world: &World) -> bool {
    world.db.write(|tx| gone::resume(tx, &"mic".parse().unwrap())).await.unwrap()
}

async fn feed_rests(world: &World) -> bool {
    let now = world.clock.now();
    world.db.read(move |tx| pause::find(tx, &Subject::new("feed", "mic"), now)).await.unwrap().is_some()
}

on_both_databases! {
    async fn a_feed_that_is_gone_rests_until_somebody_wakes_it_and_its_readers_never_hear_of_it(fixture) {
        let mut world = World::new(&fixture, &More { job: "", ..PLAIN }).await;
        world.publish("a", files(&[2000]));
        world.live(1).await;
        world.ministry.script("/news.rdf").always(Some(Fault::Status(410, vec![])));
        let report = world.live(1).await.remove(0);
        assert!(report.problems[0].to_string().contains("gone for good (410)"), "{report:?}");
        assert_eq!(report.outcome(), RunOutcome::Partly, "the item that is known goes on: {report:?}");
        assert_eq!(world.standing("a").await, "3/0/0");
        assert_eq!(world.posts().len(), 1, "{:?}", world.posts());
        tsuzuki::engine::alert::Announcer::new(&world.env).update().await.unwrap();
        let alerts = fixture.db.read(tsuzuki::engine::alert::list_open).await.unwrap();
        assert_eq!(alerts.iter().map(|alert| alert.cause.as_str()).collect::<Vec<_>>(), ["paused feed:mic"]);
        assert!(feed_rests(&world).await);

        let asked = asked_for_feed(&world);
        let report = world.live(2).await.remove(1);
        assert_eq!((asked_for_feed(&world), report.outcome()), (asked, RunOutcome::Success), "{report:?}");
        assert!(report.summary.to_string().contains("`tsuzuki job resume mic` or another `feed` resumes it"), "{report:?}");

        assert!(resume(&world).await && !resume(&world).await);
        world.live(2).await;
        assert_eq!(asked_for_feed(&world), asked + 1, "still gone");
        world.ministry.script("/news.rdf").always(None);
        resume(&world).await;
        world.publish("b", files(&[2001]));
        world.live(2).await;
        assert_eq!((world.standing("b").await.as_str(), feed_rests(&world).await), ("3/0/0", false));

        world.ministry.script("/news.rdf").always(Some(Fault::Status(410, vec![])));
        world.live(1).await;
        assert!(feed_rests(&world).await);
        let text = config_text(&world.ministry, &world.gemini, &world.mastodon, &PLAIN);
        world.config = read_config(&text.replace("/news.rdf", "/moved.rdf"));
        world.env = fast_parts(&world.config, &fixture);
        let feed = "<rss version=\"2.0\"><channel><title>t</title></channel></rss>";
        world.ministry.instead("/moved.rdf", "application/rss+xml", feed);
        let report = world.live(1).await.remove(0);
        assert_eq!((report.problems.len(), feed_rests(&world).await), (0, false), "{report:?}");
        assert!(world.posts().iter().all(|post| !post.contains("410")), "{:?}", world.posts());
    }

    async fn without_a_channel_nothing_is_summarised_and_a_later_one_gets_it(fixture) {
        let mut world = World::new(&fixture, &NOBODY).await;
        world.publish("a", files(&[2000]));
        world.publish("b", files(&[2001]));
        for _ in 0..2 {
            let report = world.live(1).await.remove(0);
            let wanted = "2 pending, not posted (`deliver` names no channel)";
            assert!(report.summary.to_string().contains(wanted), "{}", report.summary);
        }
        assert_eq!(world.gemini.questions().len(), 2, "two screenings, no summary");
        assert_eq!((world.standing("a").await, world.standing("b").await), ("2/-/0".into(), "2/-/0".into()));
        world.reconfigure(&PLAIN, &fixture);
        world.live(1).await;
        assert_eq!((world.posts().len(), world.standing("a").await.as_str()), (2, "3/0/0"));
    }

    async fn what_has_piled_up_does_not_flood_a_new_channel(fixture) {
        let mut world = World::new(&fixture, &NOBODY).await;
        for slug in ["a", "b", "c"] {
            world.publish(slug, files(&[2000]));
            world.live(1).await;
        }
        world.reconfigure(&More { job: "items_per_run = 9\nhold_above = 2", ..PLAIN }, &fixture);
        let reports = world.live(2).await;
        assert!(reports[0].summary.to_string().contains("3 pending need approval: more than `hold_above` at once"), "{reports:?}");
        assert!(!reports[1].summary.to_string().contains("need approval"), "{reports:?}");
        assert_eq!(world.posts().len(), 0);
        let now = world.clock.now();
        world.db.write(move |tx| outbox::approve_job(tx, "mic", now)).await.unwrap();
        world.live(1).await;
        assert_eq!((world.posts().len(), world.standing("c").await.as_str()), (3, "3/0/0"));
    }

    async fn an_item_that_a_person_retries_is_asked_about_anew_and_only_once(fixture) {
        let world = World::new(&fixture, &PLAIN).await;
        world.publish("bare", Shape::Bare);
        world.live(1).await;
        world.clock.advance(HOUR);
        world.live(1).await;
        assert_eq!((world.standing("bare").await.as_str(), world.gemini.questions().len()), ("1/1/1", 1), "known");
        let (item, now) = (world.item("bare").await, world.clock.now());
        world.db.write(move |tx| commands::retry(tx, &item, now)).await.unwrap();
        world.live(1).await;
        assert_eq!((world.standing("bare").await.as_str(), world.gemini.questions().len()), ("1/1/1", 2), "anew");
        world.clock.advance(HOUR);
        world.live(1).await;
        assert_eq!((world.standing("bare").await.as_str(), world.gemini.questions().len()), ("1/1/1", 2), "once");
    }
}
