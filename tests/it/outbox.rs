//! The outbox on both databases: adding, sending, deferring, holding and notifying owners.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::channel::outbox::{
    self, Added, Answer, DeliveryFilter, DeliveryOutcome, NewMessage, Provenance, Row, Sender, State, Topics,
};
use tsuzuki::channel::{ChannelSet, Rendered};
use tsuzuki::config::{self, Env};
use tsuzuki::db::{Db, Tx};
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::fetch::{ClientConfig, Clients};
use tsuzuki::id::JobName;
use tsuzuki::ledger::{Subject, event, pause};
use tsuzuki::{params, sql};

use crate::databases::Fixture;

const HOUR: Duration = Duration::from_secs(3600);

/// Channels from the text of a config file.
pub(crate) fn channels(text: &str) -> Arc<ChannelSet> {
    channels_at(std::path::Path::new("tsuzuki.toml"), text)
}

/// The same from an existing file.
pub(crate) fn channels_at(path: &std::path::Path, text: &str) -> Arc<ChannelSet> {
    let config = config::parse(text, path, tsuzuki::app::kinds(), &Env::of([]))
        .unwrap_or_else(|problems| panic!("{}", problems.render(config::Colour::Never)));
    Arc::new(
        ChannelSet::read(&config.channels, &config.app.timezone)
            .unwrap_or_else(|problems| panic!("{}", problems.render(config::Colour::Never))),
    )
}

pub(crate) fn clients() -> Clients {
    Clients::new(ClientConfig { user_agent: "tsuzuki-test".into(), ..ClientConfig::default() }).unwrap()
}

/// Adds a rendered notice; returns its number, also if it was known.
pub(crate) fn add_rendered(tx: &mut Tx<'_>, one: &Rendered, subject: &str) -> tsuzuki::db::Result<i64> {
    let message = NewMessage {
        job: &"press".parse().unwrap(),
        channel: &one.channel,
        recipient: &one.recipient,
        topic: "test",
        subject,
        generation: 0,
        payload: &one.payload,
        hold: false,
        not_before: None,
        found: Provenance::Since(Some(tx.now())),
    };
    match outbox::add(tx, &message, tx.now())? {
        Added::Added(id) | Added::Known(id) => Ok(id),
    }
}

/// A server, a channel `hook` that posts to it, and a sender.
struct World {
    server: WebhookServer,
    db: Db,
    sender: Sender,
    topics: Topics,
    notified: Arc<AtomicU32>,
}

async fn world(fixture: &Fixture, more: &str) -> World {
    let server = WebhookServer::start().await.unwrap();
    let channels = channels(&(hook("hook", &server) + more));
    let notified = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&notified);
    let topics = Topics::new().on("test", move |tx, row, outcome| {
        count.fetch_add(1, Ordering::SeqCst);
        let code = match outcome {
            DeliveryOutcome::Sent => "owner_sent",
            DeliveryOutcome::Failed => "owner_failed",
            DeliveryOutcome::Skipped => "owner_skipped",
        };
        event::add(
            tx,
            None,
            &Subject::verbatim(format!("owner:{}", row.subject)),
            code,
            &serde_json::Value::Null,
            tx.now(),
        )
    });
    let sender = Sender::new(fixture.db.clone(), channels, clients(), fixture.clock.clone(), topics.clone());
    World { server, db: fixture.db.clone(), sender, topics, notified }
}

/// The config of a channel that posts to `server`.
pub(crate) fn hook(name: &str, server: &WebhookServer) -> String {
    format!(
        "[channel.{name}]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = [\"127.0.0.1\"]\n",
        server.url
    )
}

/// Adds a message about `subject` for the channel `hook`.
pub(crate) async fn add_to_hook(db: &Db, subject: &str) -> Added {
    add(db, "hook", subject, false, 0).await
}

/// The same, to wait for a person.
pub(crate) async fn hold_for_hook(db: &Db, subject: &str) -> Added {
    add(db, "hook", subject, true, 0).await
}

async fn add(db: &Db, channel: &'static str, subject: &str, hold: bool, generation: u32) -> Added {
    let subject = subject.to_owned();
    db.write(move |tx| {
        let job: JobName = "blogs".parse().unwrap();
        let message = NewMessage {
            job: &job,
            channel,
            recipient: "webhook",
            topic: "test",
            subject: &subject,
            generation,
            payload: &format!("{{\"text\":\"{subject}\"}}"),
            hold,
            not_before: None,
            found: Provenance::Since(Some(tx.now())),
        };
        outbox::add(tx, &message, tx.now())
    })
    .await
    .unwrap()
}

impl World {
    async fn add(&self, subject: &str) -> Added {
        self.add_with(subject, false, 0).await
    }

    async fn add_with(&self, subject: &str, hold: bool, generation: u32) -> Added {
        self.add_to("hook", subject, hold, generation).await
    }

    async fn add_to(&self, channel: &'static str, subject: &str, hold: bool, generation: u32) -> Added {
        add(&self.db, channel, subject, hold, generation).await
    }

    async fn send(&self) -> outbox::SendReport {
        self.sender.send_due(&CancellationToken::new()).await.unwrap()
    }

    async fn confirm(&self, id: i64) -> Answer {
        let topics = self.topics.clone();
        self.db.write(move |tx| outbox::confirm(tx, id, &topics, tx.now())).await.unwrap()
    }

    async fn row(&self, id: i64) -> Row {
        self.db.read(move |tx| outbox::find(tx, id)).await.unwrap().unwrap()
    }

    async fn owner_story(&self, subject: &str) -> Vec<String> {
        let about = Subject::verbatim(format!("owner:{subject}"));
        let events = self.db.read(move |tx| event::list_about(tx, &about, 10)).await.unwrap();
        events.into_iter().map(|event| event.code).collect()
    }
}

fn id(added: Added) -> i64 {
    match added {
        Added::Added(id) => id,
        Added::Known(id) => panic!("{id} was known"),
    }
}

on_both_databases! {
    async fn a_message_is_added_once_sent_once_and_its_owner_told_once(fixture) {
        let world = world(&fixture, "").await;
        let first = id(world.add("a").await);
        assert_eq!(world.add("a").await, Added::Known(first));
        assert_eq!(world.send().await.sent, 1);
        assert_eq!(world.send().await.sent, 0);
        assert_eq!(world.add("a").await, Added::Known(first), "a sent message stays known");
        let posts = world.server.posts();
        assert_eq!(posts.len(), 1);
        let row = world.row(first).await;
        assert_eq!(posts[0].headers["idempotency-key"], row.key.as_str());
        assert_eq!(posts[0].headers["webhook-id"], row.key.as_str());
        assert_eq!((row.state, row.attempts), (State::Sent, 1));
        assert_eq!(row.settled_at, Some(fixture.clock.now()));
        assert_eq!(world.owner_story("a").await, ["owner_sent"]);
        assert_eq!(world.notified.load(Ordering::SeqCst), 1);
    }

    async fn a_message_that_failed_is_ready_again_when_its_owner_adds_it_again(fixture) {
        let world = world(&fixture, "").await;
        world.server.script.next(Fault::Status(400, vec![]));
        let first = id(world.add("a").await);
        assert_eq!(world.send().await.failed, 1);
        assert_eq!(world.owner_story("a").await, ["owner_failed"]);
        assert_eq!(id(world.add("a").await), first);
        assert_eq!(world.send().await.sent, 1);
        assert_eq!(world.owner_story("a").await, ["owner_failed", "owner_sent"]);
    }

    async fn what_the_server_answers_decides_what_happens_next(fixture) {
        let wait = |seconds: &str| vec![("retry-after", seconds.to_owned())];
        for (fault, state, attempts, rests) in [
            (Fault::Status(400, vec![]), State::Failed, 1, false),
            (Fault::Status(404, vec![]), State::Failed, 1, false),
            (Fault::Status(410, vec![]), State::Failed, 1, false),
            (Fault::Status(422, vec![]), State::Failed, 1, false),
            (Fault::Status(500, vec![]), State::Ready, 1, false),
            (Fault::Status(503, wait("7200")), State::Ready, 1, false),
            (Fault::Status(302, vec![("location", "https://example.com/".into())]), State::Ready, 1, false),
            (Fault::Status(401, vec![]), State::Ready, 0, true),
            (Fault::Status(403, vec![]), State::Ready, 0, true),
            (Fault::Status(429, wait("90")), State::Ready, 0, true),
            (Fault::Cut, State::Unknown, 1, false),
            (Fault::DoneThenCut, State::Unknown, 1, false),
        ] {
            let world = world(&fixture, "").await;
            let subject = format!("{fault:?}");
            let message = id(world.add(&subject).await);
            world.server.script.next(fault.clone());
            world.send().await;
            let row = world.row(message).await;
            assert_eq!((row.state, row.attempts), (state, attempts), "{fault:?}: {:?}", row.last_error);
            let now = fixture.clock.now();
            let rest = fixture.db.read(move |tx| pause::find(tx, &Subject::channel("hook"), now)).await.unwrap();
            assert_eq!(rest.is_some(), rests, "{fault:?}");
            match &fault {
                Fault::Status(503, _) => assert_eq!(row.not_before, now.plus(HOUR * 2), "Retry-After is obeyed"),
                Fault::Status(429, _) => {
                    assert_eq!(rest.unwrap().paused_until, Some(now.plus(Duration::from_secs(90))));
                }
                _ => {}
            }
            // Clear the table for the next case.
            fixture.db.write(move |tx| {
                outbox::resume_channel(tx, "hook", tx.now())?;
                outbox::skip(tx, message, &Topics::new(), tx.now()).map(drop)
            }).await.unwrap();
            fixture.clock.advance(HOUR * 3);
            world.server.script.always(None);
            world.send().await;
        }
    }

    async fn one_failing_message_does_not_stop_the_others(fixture) {
        let world = world(&fixture, "").await;
        for subject in ["a", "b", "c"] {
            world.add(subject).await;
        }
        world.server.script.next(Fault::Status(500, vec![]));
        world.server.script.next(Fault::Status(400, vec![]));
        let report = world.send().await;
        assert_eq!((report.deferred, report.failed, report.sent), (1, 1, 1));
        assert_eq!(world.server.posts().len(), 1);
    }

    async fn a_message_is_given_up_after_its_last_attempt_and_sent_when_somebody_says_so(fixture) {
        let world = world(&fixture, "max_attempts = 3").await;
        let message = id(world.add("a").await);
        world.server.script.always(Some(Fault::Status(500, vec![])));
        for attempt in 1..=3_u32 {
            assert_eq!(world.row(message).await.state, State::Ready);
            world.send().await;
            assert_eq!(world.row(message).await.attempts, attempt);
            assert_eq!(world.send().await.deferred, 0, "nothing is tried before its time");
            fixture.clock.advance(HOUR);
        }
        assert_eq!(world.row(message).await.state, State::Failed);
        assert_eq!(world.owner_story("a").await, ["owner_failed"]);
        world.server.script.always(None);
        assert_eq!(world.send().await.sent, 0);
        let answer = fixture.db.write(move |tx| outbox::retry(tx, message, false, tx.now())).await.unwrap();
        assert_eq!(answer, Answer::Done { id: message, state: State::Ready });
        assert_eq!(world.send().await.sent, 1);
        assert_eq!(world.owner_story("a").await, ["owner_failed", "owner_sent"]);
    }

    async fn rejected_credentials_cost_nothing_are_told_once_and_heal_themselves(fixture) {
        let first = world(&fixture, "token = \"old\"").await;
        let messages = [id(first.add("a").await), id(first.add("b").await)];
        first.server.script.always(Some(Fault::Status(401, vec![])));
        for _ in 0..3 {
            let report = first.send().await;
            assert_eq!((report.sent, report.failed), (0, 0));
            fixture.clock.advance(HOUR);
        }
        assert_eq!(first.row(messages[0]).await.attempts, 0);
        let recorded = fixture.db.read(|tx| event::list_about(tx, &Subject::channel("hook"), 10)).await.unwrap();
        assert_eq!(recorded.iter().map(|event| event.code.as_str()).collect::<Vec<_>>(), ["credentials_rejected"]);
        assert_eq!(first.send().await.locked, ["hook"]);
        // The operator corrects the token; nothing else is needed.
        let second = world(&fixture, "token = \"new\"").await;
        assert_eq!(second.send().await.sent, 2);
        let recorded = fixture.db.read(|tx| event::list_about(tx, &Subject::channel("hook"), 10)).await.unwrap();
        assert_eq!(recorded.last().unwrap().code, "credentials_changed");
    }

    async fn a_held_message_waits_for_approve_or_skip(fixture) {
        let world = world(&fixture, "").await;
        let (first, second) = (id(world.add_with("a", true, 0).await), id(world.add_with("b", true, 0).await));
        assert_eq!(world.send().await, outbox::SendReport::default());
        let topics = Topics::new().on("test", |tx, row, outcome| {
            assert_eq!(outcome, DeliveryOutcome::Skipped);
            event::add(tx, None, &Subject::verbatim(format!("owner:{}", row.subject)), "owner_skipped", &serde_json::Value::Null, tx.now())
        });
        let answers = fixture.db.write(move |tx| {
            let now = tx.now();
            Ok((outbox::approve(tx, first, now)?, outbox::skip(tx, second, &topics, now)?, outbox::approve(tx, second, now)?, outbox::approve(tx, 999, now)?))
        }).await.unwrap();
        assert_eq!(answers.0, Answer::Done { id: first, state: State::Ready });
        assert_eq!(answers.1, Answer::Done { id: second, state: State::Skipped });
        assert!(matches!(answers.2, Answer::NotNow { state: State::Skipped, .. }));
        assert_eq!(answers.3, Answer::Missing);
        assert_eq!(world.send().await.sent, 1);
        assert_eq!(world.owner_story("b").await, ["owner_skipped"]);
        assert_eq!(world.add("b").await, Added::Known(second), "a skipped message is not made ready by its owner");
    }

    async fn a_whole_flood_is_approved_or_skipped_at_once(fixture) {
        let world = world(&fixture, "").await;
        for subject in ["a", "b", "c"] {
            world.add_with(subject, true, 0).await;
        }
        assert_eq!(fixture.db.write(|tx| outbox::approve_job(tx, "blogs", tx.now())).await.unwrap(), 3);
        assert_eq!(fixture.db.write(|tx| outbox::skip_job(tx, "blogs", &Topics::new(), tx.now())).await.unwrap(), 0);
        assert_eq!(world.send().await.sent, 3);
    }

    async fn a_sent_message_is_repeated_only_on_request_and_under_a_new_key(fixture) {
        let world = world(&fixture, "").await;
        let message = id(world.add("a").await);
        world.send().await;
        let refused = fixture.db.write(move |tx| outbox::retry(tx, message, false, tx.now())).await.unwrap();
        assert!(matches!(refused, Answer::NotNow { state: State::Sent, .. }));
        let again = fixture.db.write(move |tx| outbox::retry(tx, message, true, tx.now())).await.unwrap();
        assert!(matches!(again, Answer::Done { id, .. } if id != message));
        let twice = fixture.db.write(move |tx| outbox::retry(tx, message, true, tx.now())).await.unwrap();
        assert!(matches!(twice, Answer::NotNow { .. }), "{twice:?}");
        world.send().await;
        let posts = world.server.posts();
        assert_eq!(posts.len(), 2);
        assert_ne!(posts[0].headers["idempotency-key"], posts[1].headers["idempotency-key"]);
    }

    async fn quiet_hours_pace_and_the_daily_limit_hold_for_all_senders(fixture) {
        let more = "pace = \"1m\"\nmax_per_day = 3\nquiet_hours = \"09:10-10:00\"\ntimezone = \"Asia/Tokyo\"";
        let world = world(&fixture, more).await;
        for number in 0..9 {
            world.add(&number.to_string()).await;
        }
        // It is 09:02 in Tokyo.
        let report = world.send().await;
        assert_eq!(report.sent, 1);
        assert_eq!(report.next_at, Some(fixture.clock.now().plus(Duration::from_secs(60))));
        assert_eq!(world.send().await.sent, 0);
        fixture.clock.advance(Duration::from_secs(60));
        assert_eq!(world.send().await.sent, 1);
        fixture.clock.advance(Duration::from_secs(600));
        let quiet = world.send().await;
        assert_eq!((quiet.sent, quiet.next_at), (0, Some("2026-01-15T01:00:00Z".parse().unwrap())));
        fixture.clock.advance(HOUR);
        assert_eq!(world.send().await.sent, 1);
        fixture.clock.advance(HOUR);
        let full = world.send().await;
        assert_eq!((full.sent, full.next_at), (0, Some("2026-01-15T15:00:00Z".parse().unwrap())));
        fixture.clock.set("2026-01-15T15:00:00Z".parse().unwrap());
        assert_eq!(world.send().await.sent, 1, "the next day of the channel has begun");
        assert_eq!(world.server.posts().len(), 4);
    }

    async fn two_senders_never_take_the_same_message(fixture) {
        let world = world(&fixture, "").await;
        for number in 0..40 {
            world.add(&number.to_string()).await;
        }
        let other = Sender::new(fixture.open_again().await, channels(&hook("hook", &world.server)), clients(), fixture.clock.clone(), Topics::new());
        let stop = CancellationToken::new();
        let (mine, theirs) = tokio::join!(world.sender.send_due(&stop), other.send_due(&stop));
        assert_eq!(mine.unwrap().sent + theirs.unwrap().sent, 40);
        let mut keys: Vec<_> = world.server.posts().iter().map(|post| post.headers["webhook-id"].clone()).collect();
        assert_eq!(keys.len(), 40);
        keys.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        keys.dedup();
        assert_eq!(keys.len(), 40);
    }

    async fn a_sender_that_stalls_past_its_lease_writes_nothing(fixture) {
        let world = world(&fixture, "").await;
        let message = id(world.add("a").await);
        world.server.script.next(Fault::DoneThenHang);
        let stop = CancellationToken::new();
        let sender = world.sender.clone();
        let running = tokio::spawn({ let stop = stop.clone(); async move { sender.send_due(&stop).await } });
        while world.server.posts().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.row(message).await.state, State::Sending);
        // While it hangs, its lease expires and another sender finds the row.
        fixture.clock.advance(Duration::from_secs(46));
        let report = world.send().await;
        assert_eq!(report.sent, 0, "nothing is sent again before twice the time-out");
        assert_eq!(world.row(message).await.state, State::Unknown);
        running.abort();
        fixture.clock.advance(Duration::from_secs(60));
        assert_eq!(world.send().await.sent, 1, "a webhook cannot be asked, so it is sent again");
        let posts = world.server.posts();
        assert_eq!(posts.len(), 2);
        assert_eq!(posts[0].headers["webhook-id"], posts[1].headers["webhook-id"], "and its key says so");
    }

    /// The server has it; a disk that is full for a while, or a clock that jumps meanwhile, must not lose that.
    async fn what_was_accepted_is_written_down_however_long_that_takes(fixture) {
        let world = world(&fixture, "").await;
        let message = id(world.add("a").await);
        let (clock, tries) = (fixture.clock.clone(), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&tries);
        let topics = Topics::new().on("test", move |_, _, _| {
            clock.advance(HOUR);
            match count.fetch_add(1, Ordering::SeqCst) {
                0..3 => Err(tsuzuki::db::Error::Full("for a while".into())),
                _ => Ok(()),
            }
        });
        let sender = Sender::new(fixture.db.clone(), channels(&hook("hook", &world.server)), clients(), fixture.clock.clone(), topics);
        assert_eq!(sender.send_due(&CancellationToken::new()).await.unwrap().sent, 1);
        assert_eq!(tries.load(Ordering::SeqCst), 4);
        fixture.clock.advance(HOUR);
        assert_eq!(world.send().await, outbox::SendReport::default());
        let row = world.row(message).await;
        assert_eq!((row.state, row.attempts, world.server.posts().len()), (State::Sent, 1, 1));
    }

    async fn a_doubt_that_nobody_knows_is_an_error_and_not_taken_for_none(fixture) {
        let world = world(&fixture, "").await;
        let message = id(world.add("a").await);
        fixture.db.write(|tx| tx.execute(sql!("UPDATE outbox SET state = 'unknown', suspicion = 'of tomorrow'"), params![])).await.unwrap();
        let found = fixture.db.read(move |tx| outbox::find(tx, message)).await;
        assert!(found.unwrap_err().to_string().contains("of tomorrow"));
        assert!(world.sender.send_due(&CancellationToken::new()).await.is_err());
        assert!(world.server.posts().is_empty(), "it was sent blindly");
    }

    async fn a_second_attempt_that_fails_does_not_say_that_the_first_did(fixture) {
        let world = world(&fixture, "").await;
        let message = id(world.add("a").await);
        world.server.script.next(Fault::DoneThenCut);
        world.server.script.next(Fault::Status(400, vec![]));
        assert_eq!(world.send().await.unknown, 1);
        fixture.clock.advance(Duration::from_secs(60));
        assert_eq!(world.send().await.held, 1);
        let row = world.row(message).await;
        assert!(row.last_error.unwrap().to_string().starts_with("it may have been sent already"));
        assert_eq!(world.owner_story("a").await, Vec::<String>::new(), "its owner would try once more");
    }

    async fn an_unknown_outcome_is_held_where_the_config_says_so(fixture) {
        let world = world(&fixture, "on_unknown = \"hold\"").await;
        let message = id(world.add("a").await);
        world.server.script.next(Fault::DoneThenCut);
        assert_eq!(world.send().await.unknown, 1);
        fixture.clock.advance(HOUR);
        assert_eq!(world.send().await.held, 1);
        assert_eq!(world.row(message).await.state, State::Held);
        assert_eq!(world.server.posts().len(), 1);
    }

    async fn what_a_person_says_has_arrived_is_sent_and_its_owner_told_once(fixture) {
        let world = world(&fixture, "on_unknown = \"hold\"").await;
        let done = |id| Answer::Done { id, state: State::Sent };
        let (first, second) = (id(world.add("unknown").await), id(world.add("held").await));
        world.server.script.next(Fault::DoneThenCut);
        world.server.script.next(Fault::DoneThenCut);
        assert_eq!(world.send().await.unknown, 2);
        assert_eq!(world.confirm(first).await, done(first));
        fixture.clock.advance(HOUR);
        assert_eq!(world.send().await.held, 1);
        assert_eq!(world.confirm(second).await, done(second));
        let row = world.row(second).await;
        assert_eq!((row.attempts, row.last_error, row.settled_at), (1, None, Some(fixture.clock.now())));
        for subject in ["unknown", "held"] {
            assert_eq!(world.owner_story(subject).await, ["owner_sent"]);
        }
        let events = fixture.db.read(move |tx| event::list_about(tx, &Subject::delivery(second), 9)).await.unwrap();
        assert_eq!(events.last().unwrap().code, "confirmed");
        assert!(matches!(world.confirm(second).await, Answer::NotNow { state: State::Sent, .. }));
        assert_eq!(world.send().await, outbox::SendReport::default());
        assert_eq!(world.server.posts().len(), 2, "nothing is sent a second time");

        world.server.script.next(Fault::Status(400, vec![]));
        let failed = id(world.add("failed").await);
        world.send().await;
        let ready = id(world.add("ready").await);
        assert!(matches!(world.confirm(failed).await, Answer::NotNow { state: State::Failed, .. }), "it was not sent");
        assert!(matches!(world.confirm(ready).await, Answer::NotNow { state: State::Ready, .. }));
        assert_eq!(world.confirm(999).await, Answer::Missing);
    }

    async fn a_restored_backup_sends_nothing_blindly(fixture) {
        let world = world(&fixture, "").await;
        let message = id(world.add("a").await);
        assert_eq!(fixture.db.write(|tx| outbox::suspect(tx, outbox::Suspicion::Restored, tx.now())).await.unwrap(), 1);
        assert_eq!(world.send().await.held, 1);
        assert!(world.server.posts().is_empty());
        assert!(world.row(message).await.last_error.unwrap().to_string().contains("may have been sent"));
        // Messages decided after the restore are news.
        world.add("b").await;
        assert_eq!(world.send().await.sent, 1);
    }

    /// Messages held in the evening are approved in the morning, and nothing else was queued meanwhile.
    async fn what_a_person_lets_go_is_not_doubted_because_the_outbox_was_quiet(fixture) {
        let world = world(&fixture, "on_unknown = \"hold\"").await;
        world.add("before").await;
        assert_eq!(world.send().await.sent, 1);
        let held = id(world.add_with("held", true, 0).await);
        world.server.script.next(Fault::Status(400, vec![]));
        let failed = id(world.add("failed").await);
        world.server.script.next(Fault::Status(400, vec![]));
        let renewed = id(world.add("renewed").await);
        assert_eq!(world.send().await.failed, 2);
        fixture.clock.advance(HOUR * 10);
        assert_eq!(world.send().await, outbox::SendReport::default());
        fixture.db.write(move |tx| {
            let now = tx.now();
            outbox::approve(tx, held, now)?;
            outbox::retry(tx, failed, false, now)
        }).await.unwrap();
        assert_eq!(id(world.add("renewed").await), renewed, "its owner has new hope");
        let report = world.send().await;
        assert_eq!((report.sent, report.held), (3, 0), "{:?}", world.row(held).await.last_error);
    }

    async fn messages_wait_for_a_channel_that_the_config_no_longer_names(fixture) {
        let world = world(&fixture, "").await;
        let message = id(world.add("a").await);
        let none = Sender::new(fixture.db.clone(), channels(""), clients(), fixture.clock.clone(), Topics::new());
        assert_eq!(none.send_due(&CancellationToken::new()).await.unwrap().orphans, ["hook"]);
        assert_eq!(world.row(message).await.state, State::Ready);
    }

    async fn an_owner_that_cannot_be_told_does_not_cause_a_second_message(fixture) {
        let world = world(&fixture, "").await;
        let message = id(world.add("a").await);
        let broken = Arc::new(AtomicU32::new(1));
        let switch = Arc::clone(&broken);
        let topics = Topics::new().on("test", move |tx, row, _| match switch.load(Ordering::SeqCst) {
            0 => event::add(tx, None, &Subject::verbatim(format!("owner:{}", row.subject)), "owner_sent", &serde_json::Value::Null, tx.now()),
            // As after a bug in a pipeline.
            _ => Err(tsuzuki::db::Error::Constraint("no".into())),
        });
        let sender = Sender::new(fixture.db.clone(), channels(&hook("hook", &world.server)), clients(), fixture.clock.clone(), topics);
        let stop = CancellationToken::new();
        assert_eq!(sender.send_due(&stop).await.unwrap().sent, 1);
        let row = world.row(message).await;
        assert_eq!((row.state, row.settled_at), (State::Sent, None));
        fixture.clock.advance(HOUR);
        assert_eq!(sender.send_due(&stop).await.unwrap().sent, 0);
        broken.store(0, Ordering::SeqCst);
        sender.send_due(&stop).await.unwrap();
        assert_eq!(world.owner_story("a").await, ["owner_sent"], "it is told as soon as it can listen");
        assert!(world.row(message).await.settled_at.is_some());
        assert_eq!(world.server.posts().len(), 1);
    }

    async fn the_loop_sends_what_comes_until_it_is_stopped(fixture) {
        let world = world(&fixture, "").await;
        world.add("a").await;
        let (sender, stop) = (world.sender.clone(), CancellationToken::new());
        let running = tokio::spawn({ let stop = stop.clone(); async move { sender.run(&stop, &stop).await } });
        while world.server.posts().is_empty() {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        running.await.unwrap();
        assert_eq!(world.owner_story("a").await, ["owner_sent"], "what was under way is finished and told");
    }

    /// Otherwise a pass over a channel with ever new due messages would never end.
    async fn a_pass_takes_only_what_was_due_when_it_began(fixture) {
        let server = WebhookServer::start().await.unwrap();
        let clock = fixture.clock.clone();
        let topics = Topics::new().on("test", move |_, _, _| { clock.advance(HOUR); Ok(()) });
        let world = World { sender: Sender::new(fixture.db.clone(), channels(&hook("hook", &server)), clients(), fixture.clock.clone(), topics), ..world(&fixture, "").await };
        server.script.next(Fault::Status(500, vec![]));
        let first = id(world.add("a").await);
        world.add("b").await;
        let report = world.send().await;
        assert_eq!((report.deferred, report.sent), (1, 1));
        assert!(world.row(first).await.not_before < fixture.clock.now(), "it is due again by now");
        assert_eq!(world.send().await.sent, 1);
    }

    async fn a_channel_that_hangs_holds_up_no_other(fixture) {
        let (silent, fine) = (WebhookServer::start().await.unwrap(), WebhookServer::start().await.unwrap());
        silent.script.always(Some(Fault::DoneThenHang));
        let both = channels(&format!("{}{}", hook("hook", &silent), hook("other", &fine)));
        let world = World { sender: Sender::new(fixture.db.clone(), both, clients(), fixture.clock.clone(), Topics::new()), ..world(&fixture, "").await };
        let message = id(world.add("a").await);
        let (sender, stop) = (world.sender.clone(), CancellationToken::new());
        let running = tokio::spawn({ let stop = stop.clone(); async move { sender.run(&stop, &stop).await } });
        while silent.posts().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // A new message finds a sender that waits for a channel that does not answer.
        world.add_to("other", "b", false, 0).await;
        while fine.posts().is_empty() {
            assert_eq!(world.row(message).await.state, State::Sending, "the other message waited for the end of this one");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stop.cancel();
        running.abort();
    }

    /// The clock was set to 2037 for a while: nothing waits until then.
    async fn times_from_a_clock_that_was_ahead_do_not_block_for_years(fixture) {
        let now = fixture.clock.now();
        let ahead: tsuzuki::time::Timestamp = "2037-01-15T00:02:00Z".parse().unwrap();
        let wait = |seconds: &str| vec![("retry-after", seconds.to_owned())];
        for fault in [None, Some(Fault::Status(500, vec![])), Some(Fault::Status(429, wait("90"))), Some(Fault::Cut), Some(Fault::DoneThenHang)] {
            let world = world(&fixture, "max_per_day = 1").await;
            fixture.clock.set(ahead);
            let what = format!("{fault:?}");
            let message = id(world.add(&what).await);
            match &fault {
                // It was only added.
                None => {}
                Some(Fault::DoneThenHang) => {
                    world.server.script.next(Fault::DoneThenHang);
                    let sender = world.sender.clone();
                    let running = tokio::spawn(async move { sender.send_due(&CancellationToken::new()).await });
                    while world.server.posts().is_empty() {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                    running.abort();
                    assert_eq!(world.row(message).await.state, State::Sending);
                }
                Some(fault) => {
                    world.server.script.next(fault.clone());
                    world.send().await;
                    assert!(world.row(message).await.not_before > ahead, "{what}");
                }
            }
            fixture.clock.set(now);
            world.send().await;
            fixture.clock.advance(Duration::from_secs(120));
            world.send().await;
            let row = world.row(message).await;
            assert_eq!(row.state, State::Sent, "{what}: {:?} until {}", row.last_error, row.not_before);
            // The day has passed.
            fixture.clock.advance(HOUR * 24);
            fixture.db.write(|tx| tx.execute(sql!("DELETE FROM outbox"), params![])).await.unwrap();
        }
        let world = world(&fixture, "max_per_day = 1").await;
        fixture.clock.set(ahead);
        world.add("sent in 2037").await;
        assert_eq!(world.send().await.sent, 1);
        fixture.clock.set(now);
        world.add("sent today").await;
        assert_eq!(world.send().await.sent, 1, "what left in 2037 did not leave today");
    }

    async fn a_message_that_its_owner_put_off_for_long_is_not_sent_early(fixture) {
        let world = world(&fixture, "").await;
        let later = fixture.clock.now().plus(HOUR * 24 * 30);
        let message = id(world.add("a").await);
        fixture.db.write(move |tx| tx.execute(sql!("UPDATE outbox SET not_before = ?2 WHERE id = ?1"), params![message, later])).await.unwrap();
        let report = world.send().await;
        assert_eq!((report.sent, report.next_at), (0, Some(later)));
    }

    async fn lists_and_counts_show_what_is_open(fixture) {
        let world = world(&fixture, "").await;
        world.add("a").await;
        world.add_with("b", true, 0).await;
        let all = fixture.db.read(|tx| outbox::list(tx, &DeliveryFilter::default(), 10)).await.unwrap();
        assert_eq!(all.iter().map(|row| row.subject.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        let held = DeliveryFilter {
            state: Some(State::Held),
            job: Some("blogs".into()),
            channel: Some("hook".into()),
            before: None,
        };
        assert_eq!(fixture.db.read(move |tx| outbox::list(tx, &held, 10)).await.unwrap().len(), 1);
        assert!(fixture.db.read(|tx| outbox::find_open(tx, "test", "a")).await.unwrap().is_some());
        world.send().await;
        assert!(fixture.db.read(|tx| outbox::find_open(tx, "test", "a")).await.unwrap().is_none());
        let tally = fixture.db.read(outbox::tally).await.unwrap();
        assert_eq!(tally.iter().map(|one| (one.state.word(), one.count)).collect::<Vec<_>>(), [("held", 1)]);
    }
}

/// A full disk makes the claim fail, and the claim comes first: nothing is sent if its outcome could not be recorded.
#[test]
fn nothing_is_sent_from_a_file_that_was_removed_or_replaced() {
    crate::databases::run(tsuzuki::db::Dialect::Sqlite, |fixture| async move {
        let world = world(&fixture, "").await;
        world.add("a").await;
        let file = fixture.dir.path().join("tsuzuki.db");
        let aside = fixture.dir.path().join("aside.db");
        std::fs::rename(&file, &aside).unwrap();
        for is_there in [false, true] {
            if is_there {
                std::fs::copy(&aside, &file).unwrap();
            }
            let error = world.sender.send_due(&CancellationToken::new()).await.unwrap_err();
            assert!(matches!(error, tsuzuki::db::Error::Replaced(_)), "{error:?}");
            assert!(fixture.db.is_replaced());
        }
        assert!(world.server.posts().is_empty());
    });
}

#[test]
fn nothing_is_sent_when_its_result_could_not_be_recorded() {
    crate::databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture: Fixture| {
        let world = world(&fixture, "").await;
        let message = id(world.add("a").await);
        let full =
            sql!("CREATE TRIGGER full BEFORE UPDATE ON outbox BEGIN SELECT RAISE(ABORT, 'disk full'); END");
        fixture.db.write(move |tx| tx.execute(full, params![])).await.unwrap();
        assert!(world.sender.send_due(&CancellationToken::new()).await.is_err());
        assert!(world.server.posts().is_empty());
        fixture.db.write(|tx| tx.execute(sql!("DROP TRIGGER full"), params![])).await.unwrap();
        assert_eq!(world.send().await.sent, 1, "and when there is room again, it is sent");
        assert_eq!(world.row(message).await.attempts, 1);
    });
}
