//! Clocks that are set while a message is under way: with several processes on one machine, too, nothing is sent twice.

use std::time::Duration;

use jiff::SignedDuration;
use tsuzuki::channel::outbox::{self, SendReport, State};
use tsuzuki::db::{Db, Dialect, Open};
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::mastodon::MastodonServer;
use tsuzuki::demo::smtp::{Phase, SmtpServer, Trouble};
use tsuzuki::time::Clock;

use crate::channels::{Post, TO_ONE, email, mastodon, news};
use crate::databases::{self, Fixture};
use crate::outbox::channels;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How far another process's clock differs from the sender's: ahead and behind.
const SET: [SignedDuration; 5] = [
    SignedDuration::from_mins(10),
    DAY,
    SignedDuration::from_mins(-10),
    SignedDuration::from_hours(-24),
    SignedDuration::from_hours(-24 * 365),
];

/// One process: its own connection and sender, and its clock.
async fn start(fixture: &Fixture, config: &str, clock: Clock) -> Post {
    let db = Db::open(fixture.place.clone(), Open::Existing, clock.clone()).await.unwrap();
    Post::new(db, clock, channels(config))
}

fn mail_to(server: &SmtpServer, more: &str) -> String {
    email(server, &format!("{TO_ONE}\n{more}"))
}

/// Checks repeatedly until `is_there`.
async fn until(mut is_there: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while !is_there().await {
        assert!(tokio::time::Instant::now() < deadline, "it did not come to that");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Real time on both databases: processes of one machine share its boot clock, whatever the wall clock shows.
macro_rules! on_one_machine {
    ($($(#[$attribute:meta])* async fn $name:ident($fixture:ident) $body:block)+) => {$(
        mod $name {
            use super::*;

            async fn check($fixture: Fixture) $body

            $(#[$attribute])*
            #[test]
            fn on_sqlite() {
                databases::run_with_clock(Dialect::Sqlite, Clock::system(), check);
            }

            $(#[$attribute])*
            #[test]
            fn on_postgres() {
                databases::run_with_clock(Dialect::Postgres, Clock::system(), check);
            }
        }
    )+};
}

on_one_machine! {
    async fn a_mail_under_way_is_not_taken_from_its_sender_by_a_process_whose_clock_was_set(fixture) {
        for set in SET {
            let server = SmtpServer::start().await.unwrap();
            let config = mail_to(&server, "");
            let first = start(&fixture, &config, Clock::system()).await;
            let id = first.add("mail", &set.to_string(), &news(1)).await[0];
            server.next(Phase::Kept, Trouble::Wait);
            let sending = first.start_sending();
            until(async || !server.mails().is_empty()).await;
            let held = first.row(id).await;
            let second = start(&fixture, &config, Clock::set_ahead(set)).await;
            for _ in 0..3 {
                let report = second.send().await;
                assert_eq!(SendReport { next_at: None, ..report }, SendReport::default(), "{set}");
                // Deferred messages are due by then, if there are any.
                second.channel_env.clock.advance(Duration::from_secs(600));
            }
            assert_eq!(first.row(id).await, held, "{set}: somebody has touched it");
            server.release();
            assert_eq!(sending.await.unwrap().sent, 1, "{set}");
            let report = second.send().await;
            assert_eq!(report, SendReport::default(), "{set}");
            let row = first.row(id).await;
            assert_eq!((row.state, row.attempts, row.resent_at), (State::Sent, 1, None), "{set}");
            assert_eq!(server.mails().len(), 1, "{set}");
        }
    }

    /// A mail server takes longer than a lease: it is renewed, whatever the clock shows by then.
    async fn a_sender_keeps_its_mail_when_the_clock_is_set_while_it_waits(fixture) {
        for set in [DAY, SignedDuration::from_hours(-24)] {
            let server = SmtpServer::start().await.unwrap();
            let config = mail_to(&server, "timeout = \"4s\"");
            let clock = Clock::set_ahead(SignedDuration::ZERO);
            let first = start(&fixture, &config, clock.clone()).await;
            let second = start(&fixture, &config, clock.clone()).await;
            let id = first.add("mail", &set.to_string(), &news(1)).await[0];
            server.next(Phase::Kept, Trouble::Wait);
            let sending = first.start_sending();
            until(async || !server.mails().is_empty()).await;
            let lease = first.row(id).await.lease_uptime.unwrap();
            clock.set(tsuzuki::time::Timestamp::from_millis(
                clock.now().as_millis() + i64::try_from(set.as_millis()).unwrap(),
            ));
            until(async || {
                second.send().await;
                let row = first.row(id).await;
                assert_eq!(row.state, State::Sending, "{set}: it was taken for lost");
                row.lease_uptime.is_some_and(|renewed| renewed.millis_after(&lease).is_some_and(|more| more > 0))
            })
            .await;
            server.release();
            assert_eq!(sending.await.unwrap().sent, 1, "{set}");
            assert_eq!((first.row(id).await.attempts, server.mails().len()), (1, 1), "{set}");
        }
    }

    /// Neither a clock that is behind nor one that is ahead keeps a message with a sender that died.
    async fn a_mail_of_a_dead_sender_is_taken_over_in_time_whatever_the_clock_says(fixture) {
        for set in SET.into_iter().chain([SignedDuration::ZERO]) {
            let server = SmtpServer::start().await.unwrap();
            let config = mail_to(&server, "timeout = \"600ms\"");
            let first = start(&fixture, &config, Clock::system()).await;
            let id = first.add("mail", &set.to_string(), &news(1)).await[0];
            server.next(Phase::Kept, Trouble::Hang);
            let sending = first.start_sending();
            until(async || !server.mails().is_empty()).await;
            sending.abort();
            let _ = sending.await;
            let second = start(&fixture, &config, Clock::set_ahead(set)).await;
            until(async || {
                second.send().await;
                first.row(id).await.state == State::Sent
            })
            .await;
            // A mail server cannot be queried for a mail.
            assert_eq!((first.row(id).await.attempts, server.mails().len()), (2, 2), "{set}");
        }
    }

    async fn a_look_under_way_is_not_taken_over_by_a_process_whose_clock_was_set(fixture) {
        for set in SET {
            let server = MastodonServer::start(Clock::system()).await.unwrap();
            let config = mastodon(&server, "");
            let first = start(&fixture, &config, Clock::system()).await;
            let id = first.add("toot", &set.to_string(), &news(1)).await[0];
            // It waited when the backup was made that is in use now.
            let long_ago = "2001-01-01T00:00:00Z".parse().unwrap();
            let suspect = move |tx: &mut tsuzuki::db::Tx<'_>| outbox::suspect(tx, outbox::Suspicion::Restored, long_ago);
            assert_eq!(fixture.db.write(suspect).await.unwrap(), 1);
            server.reads.next(Fault::Hang);
            let looking = first.start_sending();
            until(async || first.row(id).await.lease_until.is_some()).await;
            let held = first.row(id).await;
            let second = start(&fixture, &config, Clock::set_ahead(set)).await;
            let report = second.send().await;
            assert_eq!(SendReport { next_at: None, ..report }, SendReport::default(), "{set}");
            assert_eq!(first.row(id).await, held, "{set}: it resolve_attempts, too");
            looking.abort();
            let _ = looking.await;
            first.clear("toot").await;
        }
    }
}
