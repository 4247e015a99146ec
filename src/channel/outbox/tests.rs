//! Any schedule of runs and any temporary failures: every message arrives once, and no person is asked.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::decide::{self, OnUnknown};
use super::model::{NewMessage, State};
use super::restored::Provenance;
use super::sender::{Sender, Taken};
use super::{Topics, claim, store};
use crate::channel::{Accepted, Channel, ChannelSet, KINDS, SendError};
use crate::config::{self, Env};
use crate::db::{Db, DbUrl, Open};
use crate::fetch::{ClientConfig, Clients};
use crate::id::JobName;
use crate::time::{Clock, Timestamp};

const SCHEDULES: u32 = 2_000;
const MINUTE: u64 = 60;
const DAY: u64 = 24 * 3600;

/// One way in which things may go.
#[derive(Clone, Debug)]
struct Schedule {
    /// Seconds between runs, again and again.
    gaps: Vec<u64>,
    /// What each message meets before it is accepted.
    failures: Vec<Vec<SendError>>,
    on_unknown: OnUnknown,
    max_per_day: Option<u32>,
}

/// From `low` to `high`, short ones as likely as long ones.
fn spread(low: u64, high: u64) -> impl Strategy<Value = u64> {
    (0.0..=1.0_f64).prop_map(move |at| (low as f64 * (high as f64 / low as f64).powf(at)) as u64)
}

fn failure() -> impl Strategy<Value = SendError> {
    let why = || "503".to_owned();
    prop_oneof![
        4 => Just(SendError::Later { why: why(), after: None }),
        2 => spread(1, 2 * DAY)
            .prop_map(move |after| SendError::Later { why: why(), after: Some(Duration::from_secs(after)) }),
        2 => spread(1, 2 * DAY)
            .prop_map(move |after| SendError::Busy { why: why(), after: Duration::from_secs(after) }),
        1 => Just(SendError::Unsafe { why: why() }),
    ]
}

fn schedules() -> impl Strategy<Value = Schedule> {
    (
        vec(spread(MINUTE, 3 * DAY), 1..8),
        // The eighth failure that counts would be the last.
        vec(vec(failure(), 0..=7), 1..=3),
        prop_oneof![Just(OnUnknown::Resend), Just(OnUnknown::Hold)],
        prop_oneof![Just(None), Just(Some(1))],
    )
        .prop_map(|(gaps, failures, on_unknown, max_per_day)| Schedule {
            gaps,
            failures,
            on_unknown,
            max_per_day,
        })
}

fn channel(kind: &str) -> Channel {
    let keys = match kind {
        "email" => "smtp = \"memory:\"\nfrom = \"a@example.com\"\nto = [\"b@example.com\"]",
        "mastodon" => "instance = \"https://m.example\"\ntoken = \"t0ken\"",
        _ => "url = \"https://hook.example/\"",
    };
    let text = format!("[channel.a]\nkind = \"{kind}\"\n{keys}\n");
    let kinds = KINDS.iter().map(|kind| kind.keys).collect::<Vec<_>>().leak();
    let config = config::parse(&text, Path::new("tsuzuki.toml"), kinds, &Env::of_process()).unwrap();
    Channel::read(&config.channels[0], &config.app.timezone).unwrap()
}

/// Runs until everything has arrived, as the sender does it, with scripted answers in place of the other side.
async fn play(sender: &Sender, clock: &Clock, channel: &Channel, schedule: &Schedule) -> Result<(), String> {
    let (name, count) = (channel.name.clone(), schedule.failures.len());
    let add = move |tx: &mut crate::db::Tx<'_>| {
        let job: JobName = "press".parse().unwrap();
        for subject in 0..count {
            let message = NewMessage {
                job: &job,
                channel: &name,
                recipient: "reader",
                topic: "test",
                subject: &subject.to_string(),
                generation: 0,
                payload: "{}",
                hold: false,
                not_before: None,
                found: Provenance::Since(Some(tx.now())),
            };
            store::add(tx, &message, tx.now())?;
        }
        Ok(())
    };
    sender.db.write(add).await.map_err(|error| error.to_string())?;
    let mut to_come = schedule.failures.clone();
    let mut arrived = vec![0; count];
    let mut gaps = schedule.gaps.iter().cycle();
    let mut idle = 0;
    for _ in 0..20_000 {
        let began = clock.now();
        idle += 1;
        loop {
            let row = match sender.claim(channel, began).await.map_err(|error| error.to_string())? {
                Taken::Send(row, _) => row,
                Taken::Resolve(row) => return Err(format!("suspected without evidence: {row:?}")),
                Taken::Wait { .. } | Taken::Nothing => break,
            };
            idle = 0;
            let at: usize = row.subject.parse().unwrap();
            let result = match to_come[at].pop() {
                Some(failure) => Err(failure),
                None => Ok(Accepted::default()),
            };
            arrived[at] += usize::from(result.is_ok());
            let step = decide::after_attempt(&row, &result, &channel.settings, clock.now());
            if !matches!(step.state, State::Ready | State::Sent) {
                return Err(format!("a temporary failure led to {step:?}"));
            }
            sender.record(channel, row, step).await.map_err(|error| error.to_string())?;
        }
        if arrived.iter().all(|count| *count > 0) {
            return if arrived.iter().all(|count| *count == 1) {
                Ok(())
            } else {
                Err(format!("{arrived:?}"))
            };
        }
        clock.advance(Duration::from_secs(*gaps.next().unwrap()));
        // Of very many runs in a row that have nothing to do, the first ones tell as much as all of them.
        if idle > 20 {
            let name = channel.name.clone();
            let due = sender.db.read(move |tx| claim::find_next_due(tx, &name)).await;
            let due = due.map_err(|error| error.to_string())?.unwrap_or(began);
            while clock.now() < due {
                clock.advance(Duration::from_secs(*gaps.next().unwrap()));
            }
        }
    }
    Err(format!("it never arrives: {arrived:?}"))
}

fn every_message_arrives_once(kind: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let clock = Clock::manual("2026-01-15T00:02:11.123Z".parse::<Timestamp>().unwrap());
    let db = runtime.block_on(Db::open(DbUrl::Memory, Open::Create, clock.clone())).unwrap();
    let clients = Clients::new(ClientConfig::default()).unwrap();
    let channels = Arc::new(ChannelSet::default());
    let sender = Sender::new(db, channels, clients, clock.clone(), Topics::new());
    let channel = std::cell::RefCell::new(channel(kind));
    let mut runner =
        TestRunner::new(Config { cases: SCHEDULES, failure_persistence: None, ..Config::default() });
    let played = std::cell::Cell::new(0);
    runner
        .run(&schedules(), |schedule| {
            played.set(played.get() + 1);
            // A name of its own for each, so that none meets what another left.
            let mut channel = channel.borrow_mut();
            channel.name = format!("{kind}-{}", played.get());
            channel.settings.on_unknown = schedule.on_unknown;
            channel.settings.max_per_day = schedule.max_per_day;
            runtime.block_on(play(&sender, &clock, &channel, &schedule)).map_err(TestCaseError::fail)
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
