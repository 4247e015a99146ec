//! Alerts to the operator: one for each cause, one for its end, and none to readers; on both databases.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::app::App;
use tsuzuki::channel::outbox;
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::engine::alert::{self, AlertKind};
use tsuzuki::engine::{Failure, Progress, Report, RunContext, Runner, Selection};
use tsuzuki::ledger::{Subject, pause};

use crate::books_world::send;
use crate::databases::{Fixture, test_start};
use crate::outbox::add_to_hook;
use crate::running::job;
use crate::test_env::read_config;

const HOUR: Duration = Duration::from_secs(3600);

/// A channel `hook` of readers, a channel `ops` of operators, and a job.
struct World {
    readers: WebhookServer,
    operators: WebhookServer,
    app: App,
}

impl World {
    async fn new(fixture: &Fixture, alert: &str) -> Self {
        let (readers, operators) =
            (WebhookServer::start().await.unwrap(), WebhookServer::start().await.unwrap());
        let channel = |name: &str, server: &WebhookServer| {
            format!(
                "[channel.{name}]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = [\"127.0.0.1\"]\n",
                server.url
            )
        };
        let text = format!(
            "[app]\nlanguage = \"en\"\ntimezone = \"UTC\"\nalert = {alert}\n{}{}\
             [[job]]\nname = \"blogs\"\nkind = \"blogs\"\ndeliver = [\"hook\"]\nblog = [{{ id = \"a\", url = \"https://a.example\" }}]\n",
            channel("hook", &readers),
            channel("ops", &operators)
        );
        let app = App::new(&read_config(&text), fixture.db.clone()).unwrap();
        Self { readers, operators, app }
    }

    /// What a run does after its jobs: sends, updates alerts, sends those; returns the headlines that operators got.
    async fn announced(&self) -> Vec<String> {
        send(&self.app).await;
        self.app.announcer().update().await.unwrap();
        send(&self.app).await;
        headlines(&self.operators)
    }
}

fn headlines(server: &WebhookServer) -> Vec<String> {
    let headline =
        |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap()["data"]["headline"].clone();
    server.posts().iter().map(|post| headline(&post.body).as_str().unwrap().to_owned()).collect()
}

/// Fails for the first five hours.
fn fails_at_first(ctx: &RunContext) -> Result<Report, Failure> {
    if ctx.clock.now() < test_start().plus(HOUR * 5) {
        Err(Failure::Failed("no route".into()))
    } else {
        Ok(Report::new("fine".into()))
    }
}

on_both_databases! {
    async fn a_job_that_keeps_failing_is_told_once_and_once_when_it_works_again(fixture) {
        let world = World::new(&fixture, "[\"ops\"]").await;
        let (failing, _) = job("blogs", fails_at_first, Duration::ZERO);
        let runner = Runner::new(fixture.db.clone(), Progress::default());
        let mut counts = Vec::new();
        for _ in 0..7 {
            runner.run(vec![failing.clone()], Selection::Forced, &CancellationToken::new()).await;
            counts.push(world.announced().await.len());
            fixture.clock.advance(HOUR);
        }
        assert_eq!(counts, [0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(world.announced().await, [
            "tsuzuki: job blogs: failed 3 times in a row: no route",
            "tsuzuki: over: job blogs: failed 5 times in a row: no route",
        ]);
        assert!(world.readers.posts().is_empty());
    }

    async fn what_stays_refused_until_somebody_acts_is_told_at_once(fixture) {
        let world = World::new(&fixture, "[\"ops\"]").await;
        let (refused, _) = job("blogs", |_| Err(Failure::Credentials("the token is refused".into())), Duration::ZERO);
        let runner = Runner::new(fixture.db.clone(), Progress::default());
        for _ in 0..3 {
            runner.run(vec![refused.clone()], Selection::Forced, &CancellationToken::new()).await;
            let announced = world.announced().await;
            assert_eq!(announced.len(), 1, "{announced:?}");
            assert!(announced[0].contains("job blogs: failed: "), "{announced:?}");
        }
    }

    async fn a_locked_channel_is_told_by_another_one_and_by_itself_never(fixture) {
        let world = World::new(&fixture, "[\"hook\", \"ops\"]").await;
        add_to_hook(&fixture.db, "a").await;
        world.readers.script.next(Fault::Status(401, vec![]));
        let announced = world.announced().await;
        assert!(announced.len() == 1 && announced[0].starts_with("tsuzuki: channel hook: paused: ") && announced[0].contains("401"), "{announced:?}");
        assert_eq!(world.announced().await.len(), 1, "once");
        fixture.db.write(|tx| outbox::resume_channel(tx, "hook", tx.now())).await.unwrap();
        let announced = world.announced().await;
        assert!(announced.len() == 2 && announced[1].starts_with("tsuzuki: over: channel hook"), "{announced:?}");
        assert_eq!(world.announced().await.len(), 2);
        assert_eq!(world.readers.posts().len(), 1, "the message that waited, and nothing about its channel");
    }

    async fn messages_that_wait_for_approval_are_told_once_however_many_come(fixture) {
        let world = World::new(&fixture, "[\"ops\"]").await;
        for subject in ["a", "b"] {
            crate::outbox::hold_for_hook(&fixture.db, subject).await;
            assert_eq!(world.announced().await, [
                "tsuzuki: job blogs: 1 message on hold until you decide"
            ]);
        }
        fixture.db.write(|tx| outbox::approve_job(tx, "blogs", tx.now())).await.unwrap();
        assert_eq!(world.announced().await.len(), 2);
    }

    async fn a_provider_that_is_used_up_every_day_is_told_once_until_it_recovers(fixture) {
        let world = World::new(&fixture, "[\"ops\"]").await;
        let provider = Subject::provider("gemini");
        let pause_for = |length: Duration| {
            let name = provider.clone();
            fixture.db.write(move |tx| {
                let now = tx.now();
                pause::put(tx, &name, Some(now.plus(length)), &"used up for today".into(), now)
            })
        };
        pause_for(HOUR / 6).await.unwrap();
        assert!(world.announced().await.is_empty(), "ten minutes are everyday life");
        pause_for(HOUR * 6).await.unwrap();
        assert_eq!(world.announced().await, ["tsuzuki: provider gemini: paused until 2026-01-15 06:02 +00:00: used up for today"]);
        fixture.clock.advance(HOUR * 6 + HOUR / 2);
        assert_eq!(world.announced().await.len(), 1, "it may be refused again with the next request");
        pause_for(HOUR * 6).await.unwrap();
        assert_eq!(world.announced().await.len(), 1, "the same cause");
        fixture.clock.advance(HOUR * 20);
        assert_eq!(world.announced().await.len(), 1, "nobody has asked it since");
        let works = provider.clone();
        fixture.db.write(move |tx| pause::forget_ended(tx, &works, tx.now())).await.unwrap();
        let announced = world.announced().await;
        assert!(announced.len() == 2 && announced[1].starts_with("tsuzuki: over: provider gemini"), "{announced:?}");
        pause_for(HOUR * 6).await.unwrap();
        assert_eq!(world.announced().await.len(), 3, "another cause");
        fixture.clock.advance(HOUR * 32);
        assert_eq!(world.announced().await.len(), 4, "nobody has asked it for a day");
    }

    /// Ten minutes at a time, repeatedly: nothing is sent, so an alert is needed. Not so if it works in between.
    async fn short_pauses_without_end_are_told_and_their_end_at_once(fixture) {
        let world = World::new(&fixture, "[\"ops\"]").await;
        let busy = || Fault::Status(429, vec![("retry-after", "600".into())]);
        let mut counts = Vec::new();
        for subject in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
            add_to_hook(&fixture.db, subject).await;
            world.readers.script.next(busy());
            world.announced().await;
            fixture.clock.advance(HOUR / 6);
            // Of the first five it asks for a pause, and then accepts a message.
            let works = subject < "f";
            world.readers.script.next(if works { Fault::DoneBut(200) } else { busy() });
            counts.push(world.announced().await.len());
            fixture.clock.advance(HOUR / 6);
        }
        assert_eq!(counts, [0, 0, 0, 0, 0, 0, 0, 1, 1]);
        let announced = world.announced().await;
        assert!(announced[0].starts_with("tsuzuki: channel hook: paused until ") && announced[0].contains("429"), "{announced:?}");
        assert!(announced.len() == 2 && announced[1].starts_with("tsuzuki: over: channel hook: paused until "), "{announced:?}");
        assert_eq!(world.readers.posts().len(), 9, "and nothing was lost");
    }

    async fn several_processes_tell_a_cause_once(fixture) {
        let world = World::new(&fixture, "[\"ops\"]").await;
        fixture.db.write(|tx| alert::raise(tx, AlertKind::Silent, &Subject::new("feed", "x"), &"silent".into(), tx.now())).await.unwrap();
        let others: Vec<_> = (0..4).map(|_| world.app.announcer()).collect();
        let queued = futures_util::future::join_all(others.iter().map(tsuzuki::engine::alert::Announcer::update)).await;
        assert_eq!(queued.into_iter().map(Result::unwrap).sum::<usize>(), 1);
        assert_eq!(world.announced().await, ["tsuzuki: feed x: silent"]);
    }

    async fn without_channels_alerts_are_kept_and_what_is_over_is_forgotten(fixture) {
        let world = World::new(&fixture, "[]").await;
        let feed = || Subject::new("feed", "x");
        fixture.db.write(move |tx| alert::raise(tx, AlertKind::Silent, &feed(), &"silent".into(), tx.now())).await.unwrap();
        assert!(world.announced().await.is_empty());
        let open = fixture.db.read(alert::list_open).await.unwrap();
        assert_eq!((open.len(), open[0].kind(), open[0].subject()), (1, Some(AlertKind::Silent), feed()));
        fixture.db.write(move |tx| alert::clear(tx, AlertKind::Silent, &feed(), tx.now())).await.unwrap();
        let named = World::new(&fixture, "[\"ops\"]").await;
        assert!(named.announced().await.is_empty(), "nobody was told that it began");
    }
}

/// A retry would not help: the alert is sent at once, and the problem is listed until the config changes.
#[test]
fn what_only_another_config_ends_is_told_once_and_not_tried_again_before_its_time() {
    let job = |name: &str, kind: &str, keys: &str| {
        format!("[[job]]\nname = \"{name}\"\nkind = \"{kind}\"\nevery = \"1d\"\n{keys}\n")
    };
    let text = [
        job("blogs", "blogs", "blog = [{ id = \"a\", url = \"http://127.0.0.1:9\" }]"),
        job("press", "press", "feed = \"http://127.0.0.1:9/feed\"\nllm = \"none\""),
        job("code", "commits", "gitlab = \"http://127.0.0.1:9\"\nprojects = [\"a/b\"]"),
        job(
            "shelf",
            "books",
            "queries = [\"x\"]\ngoogle_books = { api_url = \"http://127.0.0.1:9\", api_key = \"k\" }",
        ),
    ];
    let env = crate::test_env::TestEnv::new(&text.concat());
    assert_ne!(env.run(&["run-due"]).status.code(), Some(0));
    let database = rusqlite::Connection::open(env.file("tsuzuki.db")).unwrap();
    let list = |text: &str| -> Vec<String> {
        let mut statement = database.prepare(text).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let alerts = list("SELECT cause FROM alerts ORDER BY cause");
    assert_eq!(alerts, ["failing job:blogs", "failing job:code", "failing job:press", "failing job:shelf"]);
    assert_eq!(list("SELECT job_name FROM job_state WHERE retry_at IS NOT NULL"), [""; 0]);
    let status = crate::test_env::output_text(&env.run(&["status"]));
    for name in ["blogs", "code", "press", "shelf"] {
        assert!(status.contains(&format!("why job:{name}")), "it needs you: {status}");
    }
}
