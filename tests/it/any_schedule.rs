//! Any schedule of runs and any temporary failures: every message arrives once, on every channel, without a person.

use std::collections::HashSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tsuzuki::db::{Db, DbUrl, Open};
use tsuzuki::demo::faults::{Fault, Script};
use tsuzuki::demo::mastodon::{MastodonServer, TOKEN};
use tsuzuki::demo::smtp::{Phase, SmtpServer, Trouble};
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::time::Clock;

use crate::channels::{Post, TO_ONE, news};
use crate::databases::test_start;
use crate::outbox::channels;

const SCHEDULES: u32 = 2_000;
/// Schedules that share servers and a database, which remember everything.
const PER_WORLD: u32 = 25;
const MINUTE: u64 = 60;
const DAY: u64 = 24 * 3600;
/// A message that fails eight times is given up.
const MOST_FAILURES: usize = 7;

/// More runs than any schedule needs.
const MOST_RUNS: u32 = 1_000;

/// One way in which things may go.
#[derive(Clone, Debug)]
struct Schedule {
    /// Seconds between runs, again and again.
    gaps: Vec<u64>,
    /// The failures before success: which kind, and how long the server asks to wait.
    failures: Vec<(prop::sample::Index, Option<u64>)>,
    messages: u32,
    /// Which of [`CHANNELS`].
    channel: usize,
}

/// The relevant settings of a channel: what it does about unknown outcomes, and how many messages a day it sends.
const CHANNELS: [(&str, &str); 4] =
    [("resend", ""), ("hold", ""), ("resend", "max_per_day = 1"), ("hold", "max_per_day = 1")];

/// From `low` to `high`, short ones as likely as long ones.
fn spread(low: u64, high: u64) -> impl Strategy<Value = u64> {
    (0.0..=1.0_f64).prop_map(move |at| (low as f64 * (high as f64 / low as f64).powf(at)) as u64)
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let failure = (any::<prop::sample::Index>(), proptest::option::of(spread(1, 2 * DAY)));
    (vec(spread(MINUTE, 3 * DAY), 1..8), vec(failure, 0..=MOST_FAILURES), 1..=3_u32, 0..CHANNELS.len())
        .prop_map(|(gaps, failures, messages, channel)| Schedule { gaps, failures, messages, channel })
}

/// The other side of a channel.
enum Server {
    Mail(SmtpServer),
    Toots(MastodonServer),
    Hook(WebhookServer),
}

impl Server {
    async fn start(kind: &str, clock: &Clock) -> Self {
        match kind {
            "email" => Server::Mail(SmtpServer::start().await.unwrap()),
            "mastodon" => Server::Toots(MastodonServer::start(clock.clone()).await.unwrap()),
            _ => Server::Hook(WebhookServer::start().await.unwrap()),
        }
    }

    fn keys(&self) -> String {
        match self {
            Server::Mail(server) => {
                format!("smtp = \"{}\"\ntls = \"none\"\nfrom = \"bot@example.com\"\n{TO_ONE}", server.address)
            }
            Server::Toots(server) => format!("instance = \"{}\"\ntoken = \"{TOKEN}\"", server.url),
            Server::Hook(server) => format!("url = \"{}\"", server.url),
        }
    }

    /// Makes the next attempts fail, each in a way after which the message is not there or can be found.
    fn fail(&self, failures: &[(prop::sample::Index, Option<u64>)]) {
        for (which, wait) in failures {
            let wait: Vec<_> = wait.iter().map(|wait| ("retry-after", wait.to_string())).collect();
            match self {
                Server::Mail(server) => {
                    let (phase, trouble) = which.get(&MAIL_FAILURES);
                    server.next(*phase, trouble.clone());
                }
                Server::Toots(server) => server.posts.next(match which.index(6) {
                    0 | 1 => Fault::Status(503, wait),
                    2 => Fault::Status(429, wait),
                    3 => Fault::Cut,
                    4 => Fault::DoneBut(503),
                    _ => Fault::DoneThenCut,
                }),
                Server::Hook(server) => {
                    server.script.next(Fault::Status(*which.get(&[500, 502, 503, 504, 429, 408]), wait));
                }
            }
        }
    }

    /// Removes failures that were not used.
    fn recover(&self) {
        let forget = |script: &Script| while script.draw().is_some() {};
        match self {
            Server::Mail(_) => {}
            Server::Toots(server) => forget(&server.posts),
            Server::Hook(server) => forget(&server.script),
        }
    }

    /// Everything that arrived, as keys that are equal for copies of a message.
    fn arrived(&self) -> Vec<String> {
        match self {
            Server::Mail(server) => {
                server.mails().iter().map(|mail| mail.header("message-id").unwrap().to_owned()).collect()
            }
            Server::Toots(server) => server.toots().iter().map(|toot| toot.request.to_string()).collect(),
            Server::Hook(server) => server.posts().iter().map(|post| post.body.clone()).collect(),
        }
    }
}

/// A cut within the text is not included: a short mail is sent as a whole by then, so its outcome is unknown.
const MAIL_FAILURES: [(Phase, Trouble); 11] = [
    (Phase::Greeting, Trouble::Say("421 4.3.2 busy")),
    (Phase::Greeting, Trouble::Cut),
    (Phase::Hello, Trouble::Say("451 4.3.0 not now")),
    (Phase::Mail, Trouble::Say("451 4.3.2 not now")),
    (Phase::Mail, Trouble::Cut),
    (Phase::Rcpt, Trouble::Say("451 4.7.1 greylisted")),
    (Phase::Rcpt, Trouble::Say("450 4.2.0 mailbox busy")),
    (Phase::Rcpt, Trouble::Say("421 4.7.0 try again later")),
    (Phase::Data, Trouble::Say("451 4.3.0 not now")),
    (Phase::Data, Trouble::Cut),
    (Phase::End, Trouble::Say("452 4.3.1 no space")),
];

/// A server, and one channel to it for each of [`CHANNELS`].
struct World {
    clock: Clock,
    server: Server,
    posts: Vec<Post>,
}

impl World {
    async fn new(kind: &str) -> Self {
        let clock = Clock::manual(test_start());
        let server = Server::start(kind, &clock).await;
        let db = Db::open(DbUrl::Memory, Open::Create, clock.clone()).await.unwrap();
        let post = |(on_unknown, more): &(&str, &str)| {
            let keys = server.keys();
            // A post can be searched for, so there is no such choice.
            let on_unknown = match kind {
                "mastodon" => String::new(),
                _ => format!("on_unknown = \"{on_unknown}\""),
            };
            let text = format!(
                "[channel.a]\nkind = \"{kind}\"\n{keys}\n{on_unknown}\n{more}\nallow_private = [\"127.0.0.1\"]\n"
            );
            Post::new(db.clone(), clock.clone(), channels(&text))
        };
        let posts = CHANNELS.iter().map(post).collect();
        Self { clock, server, posts }
    }

    /// Runs until everything has arrived.
    async fn play(&self, number: u32, schedule: &Schedule) -> Result<(), String> {
        let before = self.server.arrived().len();
        let post = &self.posts[schedule.channel];
        for message in 0..schedule.messages {
            post.add("a", &format!("{number}/{message}"), &news(number * 10 + message)).await;
        }
        self.server.fail(&schedule.failures);
        let mut gaps = schedule.gaps.iter().cycle().map(|gap| Duration::from_secs(*gap));
        let (mut sent, mut idle, mut runs) = (0, 0, 0);
        while sent < u64::from(schedule.messages) {
            runs += 1;
            let report = post.send().await;
            if report.held + report.failed + report.lost > 0 || !report.locked.is_empty() {
                return Err(format!("after temporary failures: {report:?}"));
            }
            sent += report.sent;
            self.clock.advance(gaps.next().unwrap());
            idle = if report.sent + report.deferred + report.unknown > 0 { 0 } else { idle + 1 };
            // Of many runs in a row without work, it is enough to look at the first.
            if idle > 3 {
                let Some(next) = report.next_at else { return Err(format!("it never arrives: {report:?}")) };
                while self.clock.now() < next {
                    self.clock.advance(gaps.next().unwrap());
                }
            }
            if idle > 20 || runs > MOST_RUNS {
                return Err(format!("it never arrives: {report:?}"));
            }
        }
        self.server.recover();
        // The next schedule begins on another day.
        self.clock.advance(Duration::from_secs(2 * DAY));
        let arrived = self.server.arrived().split_off(before);
        let different: HashSet<&String> = arrived.iter().collect();
        if arrived.len() == different.len() && arrived.len() == schedule.messages as usize {
            Ok(())
        } else {
            Err(format!("{} arrived, {} different ones", arrived.len(), different.len()))
        }
    }
}

fn every_message_arrives_once(kind: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner =
        TestRunner::new(Config { cases: SCHEDULES, failure_persistence: None, ..Config::default() });
    let (played, world) = (std::cell::Cell::new(0), std::cell::RefCell::new(None));
    runner
        .run(&schedules(), |schedule| {
            let number = played.get();
            let fresh = || runtime.block_on(World::new(kind));
            let mut world = world.borrow_mut();
            let mut shared = world.take().filter(|_| number % PER_WORLD != 0).unwrap_or_else(fresh);
            played.set(number + 1);
            let outcome = runtime.block_on(shared.play(number, &schedule));
            if outcome.is_err() {
                // Remaining failures must not affect the next schedule.
                shared = fresh();
            }
            *world = Some(shared);
            outcome.map_err(TestCaseError::fail)
        })
        .unwrap();
    assert!(played.get() >= SCHEDULES, "{}", played.get());
}

#[test]
fn every_mail_arrives_once_whatever_the_schedule() {
    every_message_arrives_once("email");
}

#[test]
fn every_post_arrives_once_whatever_the_schedule() {
    every_message_arrives_once("mastodon");
}

#[test]
fn every_slack_message_arrives_once_whatever_the_schedule() {
    every_message_arrives_once("slack");
}

#[test]
fn every_webhook_arrives_once_whatever_the_schedule() {
    every_message_arrives_once("webhook");
}
