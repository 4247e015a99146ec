//! Runs that are a day apart, and copies of the database: elapsed time does not prove that another process has sent, a
//! copy does.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::channel::outbox::{Sender, State, Topics};
use tsuzuki::db::{Db, DbUrl, Dialect, Open};
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::mastodon::MastodonServer;
use tsuzuki::demo::smtp::{Phase, SmtpServer, Trouble};
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::{params, sql};

use crate::channels::{TO_ONE, email, mastodon, news, post_office};
use crate::databases::{self, Fixture};
use crate::outbox::{channels, clients, hook};

const DAY: Duration = Duration::from_secs(24 * 3600);

on_both_databases! {
    /// Two temporary refusals, one run a day: the third run delivers, on every channel, without a person.
    async fn temporary_refusals_cost_days_but_no_message(fixture) {
        for on_unknown in ["resend", "hold"] {
            let toots = MastodonServer::start(fixture.clock.clone()).await.unwrap();
            let smtp = SmtpServer::start().await.unwrap();
            let (slack, reader) = (WebhookServer::start().await.unwrap(), WebhookServer::start().await.unwrap());
            let on_unknown = format!("on_unknown = \"{on_unknown}\"\n");
            let config = [
                mastodon(&toots, ""),
                email(&smtp, &format!("{TO_ONE}\n{on_unknown}")),
                hook("slack", &slack).replace("webhook", "slack") + &on_unknown,
                hook("hook", &reader) + &on_unknown,
            ]
            .concat();
            let post = post_office(&fixture, &config);
            let mut ids = Vec::new();
            for channel in ["toot", "mail", "slack", "hook"] {
                ids.extend(post.add(channel, &format!("{channel} {on_unknown}"), &news(1)).await);
            }
            for _ in 0..2 {
                for script in [&toots.posts, &slack.script, &reader.script] {
                    script.next(Fault::Status(503, vec![]));
                }
                smtp.next(Phase::Rcpt, Trouble::Say("451 4.7.1 greylisted"));
                let report = post.send().await;
                // An instance that answers 503 may have accepted the post, so it is searched before the next attempt.
                assert_eq!(
                    (report.sent, report.deferred, report.unknown, report.held),
                    (0, 3, 1, 0),
                    "{on_unknown}"
                );
                fixture.clock.advance(DAY);
            }
            assert_eq!(post.send().await.sent, 4, "{on_unknown}");
            for id in ids {
                let row = post.row(id).await;
                assert_eq!((row.state, row.attempts), (State::Sent, 3), "{on_unknown}: {row:?}");
            }
            let arrived = (toots.toots().len(), smtp.mails().len(), slack.posts().len(), reader.posts().len());
            assert_eq!(arrived, (1, 1, 1, 1), "{on_unknown}");
        }
    }

    /// A message that waits for its day has not failed, and no other process has sent it.
    async fn mails_that_wait_for_their_day_are_sent_on_it(fixture) {
        let smtp = SmtpServer::start().await.unwrap();
        let more = format!("{TO_ONE}\non_unknown = \"hold\"\nmax_per_day = 1\n");
        let post = post_office(&fixture, &email(&smtp, &more));
        for number in 1..=3 {
            post.add("mail", &number.to_string(), &news(number)).await;
        }
        for day in 1..=3 {
            let report = post.send().await;
            assert_eq!((report.sent, report.held, smtp.mails().len()), (1, 0, day));
            fixture.clock.advance(DAY);
        }
    }

    /// No answer twice: a check finds nothing, and the post is sent in the same pass, however long ago that was.
    async fn a_look_that_finds_nothing_is_followed_by_the_send(fixture) {
        let toots = MastodonServer::start(fixture.clock.clone()).await.unwrap();
        let post = post_office(&fixture, &mastodon(&toots, ""));
        let id = post.add("toot", "u1", &news(1)).await[0];
        toots.posts.next(Fault::Status(503, vec![]));
        assert_eq!(post.send().await.unknown, 1);
        fixture.clock.advance(DAY);
        toots.posts.next(Fault::Cut);
        assert_eq!(post.send().await.unknown, 1, "{:?}", post.row(id).await);
        fixture.clock.advance(DAY);
        assert_eq!(post.send().await.sent, 1, "{:?}", post.row(id).await);
        assert_eq!(toots.toots().len(), 1);
    }
}

/// A sender over a database that was opened again.
fn hook_sender(db: &Db, fixture: &Fixture, server: &WebhookServer) -> Sender {
    Sender::new(db.clone(), channels(&hook("hook", server)), clients(), fixture.clock.clone(), Topics::new())
}

async fn pass(sender: &Sender) -> (u64, u64) {
    let report = sender.send_due(&CancellationToken::new()).await.unwrap();
    (report.sent, report.held)
}

/// The counter beside the file is ahead of an old copy of the file.
#[test]
fn an_old_copy_of_a_sqlite_file_is_recognised() {
    databases::run(Dialect::Sqlite, async |fixture: Fixture| {
        let server = WebhookServer::start().await.unwrap();
        let path = fixture.dir.path().join("work.db");
        let open = || Db::open(DbUrl::File(path.clone()), Open::Create, fixture.clock.clone());
        let add = async |db: &Db, subject: &'static str| {
            crate::outbox::add_to_hook(db, subject).await;
        };
        let copy = fixture.dir.path().join("copy.db");
        let db = open().await.unwrap();
        add(&db, "a").await;
        db.close().await;
        std::fs::copy(&path, &copy).unwrap();
        // The copy is put back before anything has left: there is nothing to suspect.
        std::fs::copy(&copy, &path).unwrap();
        let db = open().await.unwrap();
        assert_eq!(pass(&hook_sender(&db, &fixture, &server)).await, (1, 0));
        db.close().await;
        // Now something has: the copy shows it as waiting.
        std::fs::copy(&copy, &path).unwrap();
        let db = open().await.unwrap();
        assert_eq!(pass(&hook_sender(&db, &fixture, &server)).await, (0, 1));
        assert_eq!(server.posts().len(), 1, "it is not sent a second time");
        // Once that is known, it is used like any other.
        fixture.clock.advance(DAY);
        add(&db, "b").await;
        db.close().await;
        let db = open().await.unwrap();
        assert_eq!(pass(&hook_sender(&db, &fixture, &server)).await, (1, 0));
        db.close().await;
        // A new database of the same name is no copy of the old one.
        std::fs::remove_file(&path).unwrap();
        let db = open().await.unwrap();
        add(&db, "c").await;
        assert_eq!(pass(&hook_sender(&db, &fixture, &server)).await, (1, 0));
    });
}

/// A dump loaded into another cluster, a point-in-time recovery, a table that was created again.
#[test]
fn rows_that_were_put_into_another_postgres_are_recognised() {
    for part in 0..3 {
        databases::run(Dialect::Postgres, async |fixture: Fixture| {
            let server = WebhookServer::start().await.unwrap();
            crate::outbox::add_to_hook(&fixture.db, "a").await;
            fixture.open_again().await.close().await;
            fixture
                .db
                .write(move |tx| {
                    let text = sql!("SELECT identity FROM db_copy");
                    let identity: String = tx.find(text, params![], |row| row.get(0))?.unwrap();
                    let mut env: Vec<&str> = identity.split('/').collect();
                    assert!(env.len() == 3 && env.iter().all(|part| !part.is_empty()), "{identity}");
                    env[part] = "1";
                    tx.execute(sql!("UPDATE db_copy SET identity = ?1"), params![env.join("/")])
                })
                .await
                .unwrap();
            let db = fixture.open_again().await;
            assert_eq!(pass(&hook_sender(&db, &fixture, &server)).await, (0, 1), "{part}");
            fixture.clock.advance(DAY);
            crate::outbox::add_to_hook(&db, "b").await;
            let db = fixture.open_again().await;
            assert_eq!(pass(&hook_sender(&db, &fixture, &server)).await, (1, 0), "{part}");
        });
    }
}
