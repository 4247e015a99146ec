//! The channels against servers with their protocols: what is sent, found again and refused.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::channel::outbox::{self, Row, SendReport, Sender, State, Topics};
use tsuzuki::channel::{ChannelEnv, ChannelSet, MailBody, News, Notice, NoticeEntry};
use tsuzuki::db::{Db, Tx};
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::mastodon::{MastodonServer, TOKEN};
use tsuzuki::demo::smtp::{Phase, SmtpServer, Trouble, USER};
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::ledger::{Subject, pause};
use tsuzuki::text::Language;
use tsuzuki::time::{Clock, Timestamp};

use crate::databases::Fixture;
use crate::outbox::{add_rendered, channels_at, clients, hook};
use crate::test_env::{Daemon, TestEnv, code, err, out, send_signal};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A set of channels with a sender.
pub(crate) struct Post {
    db: Db,
    channels: Arc<ChannelSet>,
    pub(crate) channel_env: ChannelEnv,
    sender: Sender,
}

pub(crate) fn post_office(fixture: &Fixture, config: &str) -> Post {
    let channels = channels_at(&fixture.dir.path().join("tsuzuki.toml"), config);
    Post::new(fixture.db.clone(), fixture.clock.clone(), channels)
}

impl Post {
    pub(crate) fn new(db: Db, clock: Clock, channels: Arc<ChannelSet>) -> Self {
        let channel_env = ChannelEnv { clients: clients(), clock: clock.clone() };
        let sender = Sender::new(db.clone(), Arc::clone(&channels), clients(), clock, Topics::new());
        Post { db, channels, channel_env, sender }
    }

    /// Renders and adds; returns the numbers, one per recipient.
    pub(crate) async fn add(&self, channel: &str, subject: &str, news: &News) -> Vec<i64> {
        let rendered = self.channels.find(channel).unwrap().render(&self.channel_env, news).await.unwrap();
        let subject = subject.to_owned();
        let add_all =
            move |tx: &mut Tx<'_>| rendered.iter().map(|one| add_rendered(tx, one, &subject)).collect();
        self.db.write(add_all).await.unwrap()
    }

    pub(crate) async fn send(&self) -> SendReport {
        self.sender.send_due(&CancellationToken::new()).await.unwrap()
    }

    pub(crate) fn start_sending(&self) -> tokio::task::JoinHandle<SendReport> {
        let sender = self.sender.clone();
        tokio::spawn(async move { sender.send_due(&CancellationToken::new()).await.unwrap() })
    }

    /// Deletes every message, and the pause of a channel, for the next case.
    pub(crate) async fn clear(&self, channel: &'static str) {
        let clear = move |tx: &mut Tx<'_>| {
            outbox::resume_channel(tx, channel, tx.now())?;
            tx.execute(tsuzuki::sql!("DELETE FROM outbox"), tsuzuki::params![])
        };
        self.db.write(clear).await.unwrap();
    }

    pub(crate) async fn row(&self, id: i64) -> Row {
        self.db.read(move |tx| outbox::find(tx, id)).await.unwrap().unwrap()
    }

    pub(crate) async fn rest(&self, channel: &str, now: Timestamp) -> Option<pause::Pause> {
        let name = Subject::channel(channel);
        self.db.read(move |tx| pause::find(tx, &name, now)).await.unwrap()
    }
}

pub(crate) fn news(number: u32) -> News {
    Notice {
        summary: "総務省は、電波法の改正案を公表しました。意見を募集しています。".into(),
        link: Some(format!("https://www.example.go.jp/news/{number}.html").parse().unwrap()),
        tags: vec!["総務省".into()],
        ..Notice::new(format!("報道発表 {number}"), Language::Ja)
    }
    .into()
}

pub(crate) fn mastodon(server: &MastodonServer, more: &str) -> String {
    format!(
        "[channel.toot]\nkind = \"mastodon\"\ninstance = \"{}\"\ntoken = \"{TOKEN}\"\nallow_private = [\"127.0.0.1\"]\n{more}",
        server.url
    )
}

pub(crate) fn email(server: &SmtpServer, more: &str) -> String {
    format!(
        "[channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nfrom = \"続き <bot@example.com>\"\n\
         allow_private = [\"127.0.0.1\"]\n{more}",
        server.address
    )
}

pub(crate) const TO_ONE: &str = "to = [\"reader@example.com\"]";

/// A Mastodon server, and the channel `toot` to it.
async fn toots(fixture: &Fixture, more: &str) -> (MastodonServer, Post) {
    let server = MastodonServer::start(fixture.clock.clone()).await.unwrap();
    let post = post_office(fixture, &mastodon(&server, more));
    (server, post)
}

/// A mail server, and the channel `mail` to it.
async fn mails(fixture: &Fixture, more: &str) -> (SmtpServer, Post) {
    let server = SmtpServer::start().await.unwrap();
    let post = post_office(fixture, &email(&server, more));
    (server, post)
}

on_both_databases! {
    async fn a_post_reaches_mastodon_once_with_everything_it_needs(fixture) {
        let (server, post) = toots(&fixture, "hashtags = [\"報道\"]\ncontent_warning = \"自動投稿\"").await;
        let ids = post.add("toot", "u1", &news(1)).await;
        assert_eq!(post.send().await.sent, 1);
        let toots = server.toots();
        assert_eq!(toots.len(), 1);
        let request = &toots[0].request;
        assert_eq!(
            request["status"],
            "報道発表 1\n\n総務省は、電波法の改正案を公表しました。意見を募集しています。\n\n\
             https://www.example.go.jp/news/1.html\n\n#報道 #総務省"
        );
        assert_eq!((&request["visibility"], &request["language"]), (&"unlisted".into(), &"ja".into()));
        assert_eq!(request["spoiler_text"], "自動投稿");
        assert!(request.get("link").is_none());
        let row = post.row(ids[0]).await;
        assert_eq!(toots[0].key.as_deref(), Some(row.key.as_str()));
        assert_eq!(row.remote_id.as_deref(), Some("1"));
    }

    async fn the_limit_of_the_instance_is_read_and_kept(fixture) {
        let (server, post) = toots(&fixture, "").await;
        server.allow_characters(60);
        post.add("toot", "u1", &news(1)).await;
        assert_eq!(post.send().await.sent, 1);
        let text = server.toots()[0].request["status"].as_str().unwrap().to_owned();
        assert!(text.contains("公表しました。\n\nhttps://") && !text.contains("意見"), "{text}");
    }

    /// For every way in which a post can end without an answer: it is there exactly once.
    async fn a_post_without_an_answer_is_looked_up_before_it_is_sent_again(fixture) {
        for honours_keys in [true, false] {
            for fault in [Fault::DoneThenCut, Fault::DoneBut(500), Fault::DoneBut(200), Fault::Cut, Fault::Status(500, vec![])] {
                let server = MastodonServer::start(fixture.clock.clone()).await.unwrap();
                if !honours_keys {
                    server.ignore_keys();
                }
                let post = post_office(&fixture, &mastodon(&server, ""));
                let what = format!("{fault:?} {honours_keys}");
                let ids = post.add("toot", &what, &news(1)).await;
                server.posts.next(fault);
                assert_eq!(post.send().await.unknown, 1, "{what}");
                assert_eq!(post.send().await, SendReport { next_at: Some(fixture.clock.now().plus(MINUTE)), ..SendReport::default() }, "{what}");
                fixture.clock.advance(MINUTE);
                assert_eq!(post.send().await.sent, 1, "{what}");
                assert_eq!(server.toots().len(), 1, "{what}");
                assert_eq!(post.row(ids[0]).await.remote_id.as_deref(), Some("1"), "{what}");
                // The next server starts counting again, and so must the outbox.
                post.clear("toot").await;
            }
        }
    }

    async fn a_post_that_cannot_be_looked_up_is_covered_by_its_key_for_an_hour_and_then_held(fixture) {
        let (server, post) = toots(&fixture, "").await;
        let ids = [post.add("toot", "u1", &news(1)).await[0], post.add("toot", "u2", &news(2)).await[0]];
        server.posts.next(Fault::DoneThenCut);
        server.posts.next(Fault::DoneThenCut);
        assert_eq!(post.send().await.unknown, 2);
        server.reads.always(Some(Fault::Status(403, vec![])));
        fixture.clock.advance(MINUTE);
        // Only the first is due now: the second is deferred explicitly, as after a long outage.
        let second = ids[1];
        let late = fixture.clock.now().plus(HOUR);
        fixture.db.write(move |tx| tx.execute(tsuzuki::sql!("UPDATE outbox SET not_before = ?2 WHERE id = ?1"), tsuzuki::params![second, late])).await.unwrap();
        assert_eq!(post.send().await.sent, 1);
        fixture.clock.advance(HOUR);
        assert_eq!(post.send().await.held, 1);
        assert_eq!(server.toots().len(), 2, "neither was made twice");
    }

    async fn a_digest_is_looked_up_by_the_first_of_its_links(fixture) {
        for fault in [Fault::DoneThenCut, Fault::Status(503, vec![])] {
            let (server, post) = toots(&fixture, "").await;
            server.ignore_keys();
            let entries = ["a", "b"].map(|name| NoticeEntry {
                title: format!("記事 {name}"),
                link: format!("https://blog.example/{name}").parse().ok(),
                date: None,
                note: None,
            });
            let digest = Notice { entries: entries.into(), ..Notice::new("新着 2 件", Language::Ja) };
            let id = post.add("toot", "digest", &digest.into()).await[0];
            server.posts.next(fault.clone());
            assert_eq!(post.send().await.unknown, 1, "{fault:?}");
            fixture.clock.advance(HOUR * 2);
            assert_eq!(post.send().await.sent, 1, "{fault:?}: {:?}", post.row(id).await.last_error);
            assert_eq!(server.toots().len(), 1, "{fault:?}");
            post.clear("toot").await;
        }
    }

    async fn looking_that_fails_is_repeated_and_nothing_is_sent_meanwhile(fixture) {
        let (server, post) = toots(&fixture, "").await;
        let ids = post.add("toot", "u1", &news(1)).await;
        server.posts.next(Fault::DoneThenCut);
        post.send().await;
        server.reads.always(Some(Fault::Status(500, vec![])));
        fixture.clock.advance(HOUR * 2);
        assert_eq!(post.send().await.unknown, 1);
        server.reads.always(None);
        fixture.clock.advance(HOUR * 2);
        assert_eq!(post.send().await.sent, 1);
        assert_eq!((server.toots().len(), post.row(ids[0]).await.attempts), (1, 1));
    }

    async fn an_instance_that_cannot_post_for_an_hour_costs_no_post(fixture) {
        let (server, post) = toots(&fixture, "").await;
        let id = post.add("toot", "u1", &news(1)).await[0];
        server.posts.always(Some(Fault::Status(503, vec![])));
        for _ in 0..60 {
            post.send().await;
            fixture.clock.advance(MINUTE);
        }
        let row = post.row(id).await;
        assert!(matches!(row.state, State::Ready | State::Unknown), "{:?}", row.last_error);
        assert!(row.attempts < 6, "tried {} times within an hour", row.attempts);
        server.posts.always(None);
        for _ in 0..120 {
            post.send().await;
            fixture.clock.advance(MINUTE);
        }
        assert_eq!((post.row(id).await.state, server.toots().len()), (State::Sent, 1));
    }

    async fn looks_at_an_instance_that_never_answers_grow_rare_and_end_with_a_person(fixture) {
        let (server, post) = toots(&fixture, "max_attempts = 4").await;
        let id = post.add("toot", "u1", &news(1)).await[0];
        server.posts.next(Fault::DoneThenCut);
        post.send().await;
        server.reads.always(Some(Fault::Status(502, vec![])));
        let mut resolve_attempts = 0;
        let mut minutes = 0;
        while post.row(id).await.state == State::Unknown {
            assert!(minutes < 60, "{:?}", post.row(id).await);
            fixture.clock.advance(MINUTE);
            minutes += 1;
            let report = post.send().await;
            resolve_attempts += report.unknown + report.held;
        }
        let row = post.row(id).await;
        assert_eq!((row.state, resolve_attempts, row.attempts), (State::Held, 4, 1));
        assert!(minutes >= 16, "four looks within {minutes} minutes");
        assert!(row.last_error.is_some_and(|why| why.to_string().contains("looking failed 4 times")));
        assert_eq!(server.toots().len(), 1);
    }

    async fn two_posts_with_the_same_link_are_told_apart(fixture) {
        let (server, post) = toots(&fixture, "").await;
        server.ignore_keys();
        post.add("toot", "u1", &news(1)).await;
        let ids = post.add("toot", "u2", &news(1)).await;
        server.posts.next_well();
        server.posts.next(Fault::Cut);
        let report = post.send().await;
        assert_eq!((report.sent, report.unknown), (1, 1));
        fixture.clock.advance(MINUTE);
        assert_eq!(post.send().await.sent, 1);
        assert_eq!(server.toots().len(), 2, "the post of the first is not taken for that of the second");
        assert_eq!(post.row(ids[0]).await.remote_id.as_deref(), Some("2"));
    }

    async fn what_mastodon_answers_decides_what_happens_next(fixture) {
        let reset = fixture.clock.now().plus(MINUTE * 7);
        for (status, headers, state, attempts, rest) in [
            (401, vec![], State::Ready, 0, Some(None)),
            (403, vec![], State::Ready, 0, Some(None)),
            (404, vec![], State::Ready, 1, None),
            (422, vec![], State::Failed, 1, None),
            (429, vec![("x-ratelimit-reset", reset.to_string())], State::Ready, 0, Some(Some(reset))),
            (502, vec![], State::Unknown, 1, None),
        ] {
            let (server, post) = toots(&fixture, "").await;
            let ids = post.add("toot", &status.to_string(), &news(1)).await;
            server.posts.next(Fault::Status(status, headers));
            post.send().await;
            let row = post.row(ids[0]).await;
            assert_eq!((row.state, row.attempts), (state, attempts), "{status}");
            let now = fixture.clock.now();
            assert_eq!(post.rest("toot", now).await.map(|rest| rest.paused_until), rest, "{status}");
            post.clear("toot").await;
        }
    }

    /// Every point of the dialogue, and everything that can happen there.
    async fn the_phase_in_which_smtp_ends_decides_what_that_means(fixture) {
        use State::{Failed, Ready, Unknown};
        for (phase, trouble, state, attempts, kept) in [
            (Phase::Greeting, Trouble::Say("554 no service"), Ready, 1, 0),
            (Phase::Greeting, Trouble::Cut, Ready, 1, 0),
            (Phase::Hello, Trouble::Say("421 too busy"), Ready, 1, 0),
            (Phase::Hello, Trouble::Cut, Ready, 1, 0),
            (Phase::Auth, Trouble::Say("454 4.7.0 later"), Ready, 1, 0),
            (Phase::Auth, Trouble::Say("535 5.7.8 no"), Ready, 0, 0),
            (Phase::Auth, Trouble::Cut, Ready, 1, 0),
            (Phase::Mail, Trouble::Say("451 4.3.0 later"), Ready, 1, 0),
            (Phase::Mail, Trouble::Say("553 5.7.1 not your address"), Ready, 0, 0),
            (Phase::Mail, Trouble::Say("550 5.4.5 Daily sending quota exceeded."), Ready, 0, 0),
            (Phase::Mail, Trouble::Cut, Ready, 1, 0),
            (Phase::Rcpt, Trouble::Say("450 4.2.0 greylisted"), Ready, 1, 0),
            (Phase::Rcpt, Trouble::Say("550 5.1.1 no such user"), Failed, 1, 0),
            (Phase::Rcpt, Trouble::Say("553 5.7.1 <bot@example.com>: Sender address rejected: no"), Ready, 0, 0),
            (Phase::Rcpt, Trouble::Cut, Ready, 1, 0),
            (Phase::Data, Trouble::Say("451 4.3.0 later"), Ready, 1, 0),
            (Phase::Data, Trouble::Say("554 5.6.0 no"), Failed, 1, 0),
            (Phase::Data, Trouble::Cut, Ready, 1, 0),
            (Phase::End, Trouble::Say("452 4.3.1 disk full"), Ready, 1, 0),
            (Phase::End, Trouble::Say("554 5.7.1 spam"), Failed, 1, 0),
            (Phase::End, Trouble::Cut, Unknown, 1, 0),
            (Phase::Kept, Trouble::Cut, Unknown, 1, 1),
        ] {
            let server = SmtpServer::start().await.unwrap();
            server.need_auth();
            let (user, password) = USER;
            let config = email(&server, &format!("{TO_ONE}\nuser = \"{user}\"\npassword = \"{password}\""));
            let post = post_office(&fixture, &config);
            let what = format!("{phase:?} {trouble:?}");
            let ids = post.add("mail", &what, &news(1)).await;
            server.next(phase, trouble);
            post.send().await;
            let row = post.row(ids[0]).await;
            assert_eq!((row.state, row.attempts), (state, attempts), "{what}: {:?}", row.last_error);
            assert_eq!(server.mails().len(), kept, "{what}");
            post.clear("mail").await;
        }
    }

    /// Gmail calls it a permanent failure of the mail; it passes, and it is about every mail.
    async fn an_account_that_has_sent_all_that_it_may_pauses_the_channel_and_loses_no_mail(fixture) {
        let (server, post) = mails(&fixture, TO_ONE).await;
        let first = post.add("mail", "first", &news(1)).await[0];
        post.add("mail", "second", &news(2)).await;
        server.next(Phase::End, Trouble::Say("550 5.4.5 Daily user sending limit exceeded."));
        let report = post.send().await;
        assert_eq!((report.failed, server.mails().len()), (0, 0), "the second is not even tried");
        let rest = post.rest("mail", fixture.clock.now()).await.unwrap();
        assert_eq!(rest.paused_until, Some(fixture.clock.now().plus(HOUR * 3)));
        assert!(rest.reason.to_string().contains("5.4.5"), "{}", rest.reason);
        assert_eq!(post.row(first).await.attempts, 0);
        fixture.clock.advance(HOUR * 3);
        assert_eq!(post.send().await.sent, 2);
    }

    async fn a_channel_that_was_locked_for_its_encryption_goes_on_when_that_is_mended(fixture) {
        let server = SmtpServer::start().await.unwrap();
        let plain = email(&server, TO_ONE);
        let encrypted = plain.replace("tls = \"none\"", "tls = \"starttls\"");
        let post = post_office(&fixture, &plain);
        let id = post.add("mail", "u1", &news(1)).await[0];
        server.next(Phase::Mail, Trouble::Say("530 5.7.0 Must issue a STARTTLS command first"));
        post.send().await;
        assert_eq!(post.rest("mail", fixture.clock.now()).await.unwrap().paused_until, None, "locked");
        let mended = post_office(&fixture, &encrypted);
        mended.send().await;
        let rest = mended.rest("mail", fixture.clock.now()).await.unwrap();
        assert!(rest.paused_until.is_some(), "tried again, and this server has no STARTTLS: {}", rest.reason);
        assert!(rest.reason.to_string().contains("`tls = \"none\"`"), "{}", rest.reason);
        assert_eq!(post.row(id).await.state, State::Ready);
    }

    async fn a_mail_that_may_have_arrived_is_sent_again_with_the_same_message_id(fixture) {
        let (server, post) = mails(&fixture, TO_ONE).await;
        post.add("mail", "u1", &news(1)).await;
        server.next(Phase::Kept, Trouble::Cut);
        assert_eq!(post.send().await.unknown, 1);
        fixture.clock.advance(MINUTE);
        assert_eq!(post.send().await.sent, 1);
        let mails = server.mails();
        assert_eq!(mails.len(), 2);
        assert!(mails[0].header("Message-ID").is_some_and(|id| id.ends_with("@example.com>")));
        assert_eq!(mails[0], mails[1], "byte for byte the same mail");
    }

    /// RFC 5321 allows a server ten minutes to answer the end of the text: a client that gives up earlier causes
    /// copies.
    async fn a_mail_server_that_thinks_for_long_gets_a_mail_once(fixture) {
        let (server, post) = mails(&fixture, &format!("{TO_ONE}\ntimeout = \"600ms\"")).await;
        let ids = post.add("mail", "u1", &news(1)).await;
        server.next(Phase::Kept, Trouble::Wait);
        let sending = post.start_sending();
        // The lease is renewed three times in 900 ms: more than `timeout` has passed then.
        let mut lease = None;
        for renewal in 0..4 {
            loop {
                let row = post.row(ids[0]).await;
                assert!(matches!(row.state, State::Ready | State::Sending), "{renewal}: {:?}", row.last_error);
                if row.lease_until > lease {
                    lease = row.lease_until;
                    break;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            fixture.clock.advance(Duration::from_millis(300));
        }
        assert_eq!(post.send().await, SendReport { next_at: lease, ..SendReport::default() }, "nobody else takes it");
        server.release();
        assert_eq!(sending.await.unwrap().sent, 1);
        let row = post.row(ids[0]).await;
        assert_eq!((row.state, row.attempts, row.resent_at), (State::Sent, 1, None));
        assert_eq!(server.mails().len(), 1);
    }

    async fn a_mail_that_never_gets_an_answer_is_sent_twice_and_then_left_to_a_person(fixture) {
        let (server, post) = mails(&fixture, TO_ONE).await;
        let id = post.add("mail", "u1", &news(1)).await[0];
        for (copies, state) in [(1, State::Unknown), (2, State::Unknown), (2, State::Held), (2, State::Held)] {
            server.next(Phase::Kept, Trouble::Cut);
            post.send().await;
            let row = post.row(id).await;
            assert_eq!((server.mails().len(), row.state), (copies, state), "{:?}", row.last_error);
            fixture.clock.advance(MINUTE * 10);
        }
        let row = post.row(id).await;
        assert!(row.last_error.is_some_and(|why| why.to_string().contains("it was sent again, and no answer came either time")));
        // A person's command resets the count.
        fixture.db.write(move |tx| outbox::approve(tx, id, tx.now())).await.unwrap();
        assert_eq!(post.row(id).await.resent_at, None);
        assert_eq!(post.send().await.unknown, 1);
        fixture.clock.advance(MINUTE * 10);
        assert_eq!(post.send().await.unknown, 1);
        fixture.clock.advance(MINUTE * 10);
        assert_eq!(post.send().await.held, 1);
    }

    /// The clock is set, or the machine slept, while the server thought: it has accepted, and that is the last word.
    async fn a_mail_that_is_accepted_after_its_lease_is_written_down_as_sent(fixture) {
        for is_given_up in [false, true] {
            let (server, post) = mails(&fixture, TO_ONE).await;
            let id = post.add("mail", &is_given_up.to_string(), &news(1)).await[0];
            server.next(Phase::Kept, Trouble::Wait);
            let sending = post.start_sending();
            while server.mails().is_empty() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            // The lease ends after 45 seconds; the next check is a minute later.
            fixture.clock.advance(if is_given_up { Duration::from_secs(46) } else { HOUR });
            if is_given_up {
                // Another sender takes the first one for dead.
                post.send().await;
                assert_eq!(post.row(id).await.state, State::Unknown);
            }
            server.release();
            assert_eq!(sending.await.unwrap().sent, 1, "{is_given_up}");
            fixture.clock.advance(HOUR);
            assert_eq!(post.send().await, SendReport::default(), "{is_given_up}");
            let row = post.row(id).await;
            assert_eq!((row.state, row.attempts, row.last_error), (State::Sent, 1, None), "{is_given_up}");
            assert_eq!(server.mails().len(), 1, "{is_given_up}");
        }
    }

    async fn a_sender_whose_mail_was_taken_over_writes_nothing(fixture) {
        let (server, post) = mails(&fixture, TO_ONE).await;
        let id = post.add("mail", "u1", &news(1)).await[0];
        server.next(Phase::Kept, Trouble::Wait);
        let sending = post.start_sending();
        while server.mails().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        fixture.clock.advance(HOUR);
        assert_eq!(post.send().await.sent, 1, "a mail server cannot be asked, so it is sent again");
        let taken = post.row(id).await;
        server.release();
        let report = sending.await.unwrap();
        assert_eq!((report.sent, report.lost), (0, 1));
        assert_eq!(post.row(id).await, taken, "the first sender wrote something");
        assert_eq!(taken.remote_id.as_deref(), Some("2.0.0 kept as 2"));
    }

    /// Whatever our clock showed when the post was made: it is found, and not made again.
    async fn a_post_of_a_clock_that_was_ahead_is_found_again(fixture) {
        for (ahead, is_set_back) in [(HOUR * 3, true), (HOUR * 3, false), (HOUR * 24, true), (HOUR * 24, false), (HOUR * 24 * 400, true)] {
            let what = format!("{ahead:?} {is_set_back}");
            let real = Clock::manual(fixture.clock.now());
            let server = MastodonServer::start(real.clone()).await.unwrap();
            server.ignore_keys();
            let post = post_office(&fixture, &mastodon(&server, ""));
            fixture.clock.advance(ahead);
            let id = post.add("toot", &what, &news(1)).await[0];
            server.posts.next(Fault::DoneThenCut);
            assert_eq!(post.send().await.unknown, 1, "{what}");
            if is_set_back {
                fixture.clock.set(real.now());
            }
            for clock in [&real, &fixture.clock] {
                clock.advance(ahead.min(HOUR * 24) + MINUTE);
            }
            post.send().await;
            assert_eq!((post.row(id).await.state, server.toots().len()), (State::Sent, 1), "{what}");
            post.clear("toot").await;
        }
    }

    async fn a_link_calls_nobody_and_its_post_is_found_again(fixture) {
        let (server, post) = toots(&fixture, "").await;
        server.ignore_keys();
        let entry = |link: &str| NoticeEntry { title: "題".into(), link: Some(link.parse().unwrap()), date: None, note: None };
        let notice = Notice {
            link: Some("https://evil.example/x)@victim@mastodon.social".parse().unwrap()),
            entries: vec![entry("https://evil.example/y)@victim@mastodon.social")],
            ..Notice::new("題名", Language::Ja)
        };
        let id = post.add("toot", "u1", &notice.into()).await[0];
        server.posts.next(Fault::DoneThenCut);
        assert_eq!(post.send().await.unknown, 1);
        let text = server.toots()[0].request["status"].as_str().unwrap().to_owned();
        assert!(!text.contains('@') && text.contains("/x%29%40victim") && text.contains("/y%29%40victim"), "{text}");
        fixture.clock.advance(MINUTE);
        assert_eq!(post.send().await.sent, 1);
        assert_eq!((server.toots().len(), post.row(id).await.attempts), (1, 1), "it was found by its link");
    }

    async fn one_bad_recipient_does_not_keep_the_mail_from_the_others(fixture) {
        let (server, post) = mails(&fixture, "to = [\"a@example.com\", \"b@example.com\", \"C <c@example.com>\"]").await;
        let ids = post.add("mail", "u1", &news(1)).await;
        assert_eq!(ids.len(), 3);
        server.next(Phase::Rcpt, Trouble::Say("550 5.1.1 no such user"));
        let report = post.send().await;
        assert_eq!((report.sent, report.failed), (2, 1));
        let to: Vec<_> = server.mails().into_iter().flat_map(|mail| mail.to).collect();
        assert_eq!(to, ["b@example.com", "c@example.com"]);
        assert_eq!(server.connections(), 1, "one connection carries them all");
    }

    async fn a_connection_that_dies_between_two_mails_costs_nothing(fixture) {
        for trouble in [Trouble::Say("421 4.4.2 idle for too long"), Trouble::Cut] {
            let (server, post) = mails(&fixture, "to = [\"a@example.com\", \"b@example.com\", \"c@example.com\"]").await;
            server.next(Phase::Mail, Trouble::Say("250 2.1.0 ok"));
            server.next(Phase::Mail, trouble.clone());
            let ids = post.add("mail", &format!("{trouble:?}"), &news(1)).await;
            assert_eq!(post.send().await.sent, 3, "{trouble:?}");
            for id in ids {
                assert_eq!(post.row(id).await.attempts, 1, "{trouble:?}");
            }
            assert_eq!((server.mails().len(), server.connections()), (3, 2), "{trouble:?}");
        }
    }

    async fn a_first_connection_that_is_closed_at_once_is_not_opened_again_at_once(fixture) {
        let (server, post) = mails(&fixture, TO_ONE).await;
        server.next(Phase::Mail, Trouble::Say("421 4.3.2 closing"));
        let ids = post.add("mail", "u1", &news(1)).await;
        assert_eq!(post.send().await.deferred, 1);
        assert_eq!((post.row(ids[0]).await.attempts, server.connections()), (1, 1));
    }

    async fn a_wrong_password_locks_the_channel_and_loses_nothing(fixture) {
        let server = SmtpServer::start().await.unwrap();
        server.need_auth();
        let with = |password: &str| email(&server, &format!("{TO_ONE}\nuser = \"{}\"\npassword = \"{password}\"", USER.0));
        let post = post_office(&fixture, &with("wrong-password"));
        let ids = post.add("mail", "u1", &news(1)).await;
        post.send().await;
        assert_eq!((post.row(ids[0]).await.state, post.row(ids[0]).await.attempts), (State::Ready, 0));
        assert!(post.rest("mail", fixture.clock.now()).await.is_some());
        assert!(!format!("{:?}", post.row(ids[0]).await).contains("wrong-password"));
        let post = post_office(&fixture, &with(USER.1));
        assert_eq!(post.send().await.sent, 1);
    }

    async fn a_slack_message_is_posted_as_it_was_rendered(fixture) {
        let server = WebhookServer::start().await.unwrap();
        let post = post_office(&fixture, &format!("[channel.slack]\nkind = \"slack\"\nurl = \"{}\"\nallow_private = [\"127.0.0.1\"]", server.url));
        let ids = post.add("slack", "u1", &news(1)).await;
        assert_eq!(post.send().await.sent, 1);
        assert_eq!(server.posts()[0].body, post.row(ids[0]).await.payload);
    }

    async fn messages_wait_while_a_slack_webhook_is_revoked(fixture) {
        let server = WebhookServer::start().await.unwrap();
        let with = |path: &str| {
            format!("[channel.slack]\nkind = \"slack\"\nurl = \"{}{path}\"\nallow_private = [\"127.0.0.1\"]", server.url)
        };
        for status in [404, 410] {
            let post = post_office(&fixture, &with(&format!("?{status}")));
            server.script.next(Fault::Status(status, vec![]));
            let id = post.add("slack", &status.to_string(), &news(1)).await[0];
            post.send().await;
            assert_eq!((post.row(id).await.state, post.row(id).await.attempts), (State::Ready, 0));
            assert!(post.rest("slack", fixture.clock.now()).await.is_some());
        }
        assert_eq!(server.posts().len(), 0);
        assert_eq!(post_office(&fixture, &with("?new")).send().await.sent, 2, "a new address ends the pause");
    }
}

/// The daemon reloads its config while a mail server is slow: that mail is completed, and others do not wait for it.
#[test]
fn saving_the_config_cuts_off_no_message_and_holds_up_no_channel() {
    let sqlite = tsuzuki::db::Dialect::Sqlite;
    crate::databases::run_with_clock(sqlite, Clock::system(), async |fixture: Fixture| {
        let (smtp, reader) = (SmtpServer::start().await.unwrap(), WebhookServer::start().await.unwrap());
        let before = format!("[store]\nurl = \"{}\"\n{}\n", fixture.address(), email(&smtp, TO_ONE));
        let after = format!("{before}{}", hook("hook", &reader));
        let post = post_office(&fixture, &after);
        let mail = post.add("mail", "u1", &news(1)).await[0];
        smtp.next(Phase::Kept, Trouble::Wait);
        let test_env = TestEnv::new(&before);
        let mut serve = test_env.command(&["serve"]);
        let mut daemon = Daemon(serve.stderr(std::process::Stdio::null()).spawn().unwrap());
        let deadline = tokio::time::Instant::now() + MINUTE;
        let pause = async || {
            assert!(tokio::time::Instant::now() < deadline, "{:?}", post.row(mail).await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        while smtp.mails().is_empty() {
            pause().await;
        }
        test_env.write("tsuzuki.toml", &after);
        post.add("hook", "u1", &news(1)).await;
        while reader.posts().is_empty() {
            pause().await;
        }
        assert_eq!(post.row(mail).await.state, State::Sending, "it was cut off, or the other waited for it");
        // Longer than the grace of a message after a stop; the daemon uses the real clock.
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(post.row(mail).await.state, State::Sending, "it was cut off");
        smtp.release();
        while post.row(mail).await.state == State::Sending {
            pause().await;
        }
        assert_eq!((post.row(mail).await.state, smtp.mails().len()), (State::Sent, 1));
        send_signal(daemon.0.id(), rustix::process::Signal::TERM);
        assert_eq!(daemon.0.wait().unwrap().code(), Some(0));
    });
}

/// The address guard applies to every channel.
#[test]
fn private_places_need_allow_private() {
    crate::databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture: Fixture| {
        let hook = WebhookServer::start().await.unwrap();
        let smtp = SmtpServer::start().await.unwrap();
        let config = format!(
            "[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\n\
             [channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nfrom = \"a@example.com\"\n{TO_ONE}",
            hook.url, smtp.address
        );
        let post = post_office(&fixture, &config);
        post.add("hook", "u1", &news(1)).await;
        post.add("mail", "u1", &news(1)).await;
        let report = post.send().await;
        assert_eq!((report.sent, report.deferred), (0, 2));
        assert!(hook.posts().is_empty() && smtp.connections() == 0);
    });
}

/// `doctor` checks and sends nothing.
#[test]
fn checks_tell_what_is_wrong_and_send_nothing() {
    crate::databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture: Fixture| {
        let toots = MastodonServer::start(fixture.clock.clone()).await.unwrap();
        let smtp = SmtpServer::start().await.unwrap();
        let hook = WebhookServer::start().await.unwrap();
        let config = format!(
            "{}{}\n[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = [\"127.0.0.1\"]\nsecret = \"whsec_%%%\"\n\
             [channel.lost]\nkind = \"slack\"\nurl = \"${{NO_SUCH_VARIABLE_HERE}}\"",
            mastodon(&toots, ""),
            email(&smtp, TO_ONE),
            hook.url
        );
        let post = post_office(&fixture, &config);
        let mut rendered = Vec::new();
        for channel in post.channels.iter() {
            for check in channel.check(&post.channel_env).await {
                rendered.push(format!("{} {} {}: {}", channel.name, check.is_fine, check.what, check.detail));
            }
        }
        let address = smtp.address.to_string();
        let rendered = rendered.join("\n").replace(&address, "ADDRESS");
        assert_eq!(
            rendered,
            "hook true address: 127.0.0.1\n\
             hook false signature: what follows `whsec_` in `secret` is not Base64\n\
             lost false address: NO_SUCH_VARIABLE_HERE is not set\n\
             mail true server: ADDRESS takes mail, not encrypted, without signing in\n\
             toot true instance: posts of 500 characters\n\
             toot true token: posts as @bot\n\
             toot true lookup: can find its own posts after a crash"
        );
        assert!(toots.toots().is_empty() && smtp.mails().is_empty() && hook.posts().is_empty());
    });
}

/// The mail is read back by Python's parser, which shares no code with the library that made it.
#[test]
fn mails_are_what_an_independent_parser_expects() {
    crate::databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture: Fixture| {
        let config = "[channel.mail]\nkind = \"email\"\nsmtp = \"file:.\"\nfrom = \"続き <bot@example.com>\"\n\
                      to = [\"読者 <reader@example.com>\"]\nreply_to = \"desk@example.com\"\nlist_id = \"books.example.com\"\n\
                      list_unsubscribe = \"https://example.com/leave\"";
        let post = post_office(&fixture, config);
        let entry = NoticeEntry {
            title: "一冊目 <script>alert(1)</script>".into(),
            link: Some("https://books.example.com/1?a=1&b=2".parse().unwrap()),
            date: Some(fixture.clock.now()),
            note: Some("著者 & 訳者".into()),
        };
        let notice = Notice {
            summary: format!("{}\n.\n..先頭の点\nFrom here", "長い行".repeat(700)),
            entries: vec![entry],
            ..Notice::new(
                "新刊のお知らせ\r\nBcc: victim@example.com =?utf-8?q?x?= とても長い題名が続きます。"
                    .repeat(2),
                Language::Ja,
            )
        };
        let first = post.add("mail", "u1", &notice.clone().into()).await[0];
        let own = MailBody {
            subject: "AI books".into(),
            text: "plain only ascii\n".into(),
            html: "<p>x</p>".into(),
            list_id: None,
        };
        let second = post.add("mail", "u2", &News { notice, mail: Some(own) }).await[0];
        assert_eq!(post.send().await.sent, 2);
        for (name, id) in [("first.eml", first), ("second.eml", second)] {
            let written = post.row(id).await.remote_id.unwrap();
            std::fs::rename(written, fixture.dir.path().join(name)).unwrap();
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/parse_mail.py");
        let out = std::process::Command::new("python3").arg(script).arg(fixture.dir.path()).output().unwrap();
        assert!(
            out.status.success(),
            "{}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
    });
}

/// `file:` writes one file per message into a directory beside the config file.
#[test]
fn mails_can_be_written_to_files() {
    crate::databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture: Fixture| {
        let folder = fixture.dir.path().join("mails");
        let config = format!(
            "[channel.mail]\nkind = \"email\"\nsmtp = \"file:mails\"\nfrom = \"a@example.com\"\n{TO_ONE}"
        );
        let post = post_office(&fixture, &config);
        post.add("mail", "u1", &news(1)).await;
        assert_eq!(post.send().await.sent, 1);
        let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 1);
        assert!(files[0].extension().is_some_and(|extension| extension == "eml"));
    });
}

/// Mistakes in a channel's table are found when the file is read.
#[test]
fn bad_channel_tables_are_refused_with_a_reason() {
    let read = |text: &str| {
        let path = std::path::Path::new("tsuzuki.toml");
        let config = tsuzuki::config::parse(text, path, tsuzuki::app::kinds(), &tsuzuki::config::Env::of([]));
        let problems = match config {
            Err(problems) => problems,
            Ok(config) => match ChannelSet::read(&config.channels, &config.app.timezone) {
                Ok(_) => return String::new(),
                Err(problems) => problems,
            },
        };
        problems.render(tsuzuki::config::Colour::Never)
    };
    let mastodon = "[channel.a]\nkind = \"mastodon\"\ninstance = \"https://m.example\"\ntoken = \"${T}\"\n";
    let long = "x".repeat(2000);
    let mail = "[channel.a]\nkind = \"email\"\nsmtp = \"smtp.example.com:25\"\nfrom = \"a@example.com\"\n";
    for (text, expected) in [
        (format!("{mastodon}template = \"{{{{ headline }}}}\""), "no `{{ link }}`"),
        (format!("{mastodon}template = \"{{{{ headlin }}}} {{{{ link }}}}\""), "undefined"),
        (format!("{mastodon}template = \"{{% include 'x' %}} {{{{ link }}}}\""), "template"),
        (format!("{mastodon}visibility = \"secret\""), "visibility"),
        (format!("{mastodon}max_attempts = 0"), "0 would send nothing"),
        (format!("{mastodon}allow_private = [\"nonsense/99\"]"), "nonsense/99"),
        (format!("{mail}to = []"), "`to` is empty: there is no recipient"),
        (
            format!("{mail}to = [\"a@example.com\", \"not an address\"]"),
            "`not an address` is not a mail address",
        ),
        (format!("{mail}{TO_ONE}\ntls = \"none\"\nuser = \"u\"\npassword = \"${{P}}\""), "unencrypted"),
        (format!("{mail}{TO_ONE}\nuser = \"u\""), "`user` is set, but `password` is not"),
        (format!("{mail}{TO_ONE}\npassword = \"${{P}}\""), "`password` is set, but `user` is not"),
        (format!("{mail}{TO_ONE}\nsmpt = \"x\""), "smpt"),
        // A line that cannot be folded cannot be sent.
        (
            format!("{}{TO_ONE}", mail.replace("a@example.com", &format!("{long} <a@example.com>"))),
            "at most 998",
        ),
        (format!("{mail}to = [\"{long} <a@example.com>\"]"), "at most 998"),
        (format!("{mail}{TO_ONE}\nreply_to = \"{long} <a@example.com>\""), "at most 998"),
        (format!("{mail}{TO_ONE}\nlist_id = \"{long}\""), "at most 998"),
        (format!("{mail}{TO_ONE}\nlist_unsubscribe = \"https://example.com/{long}\""), "at most 998"),
        (format!("{mail}{TO_ONE}\nlist_unsubscribe = \"leave@example.com\""), "neither a web nor"),
        (format!("{mail}{TO_ONE}\nlist_id = \"Books <books.example.com>\""), ""),
        ("[channel.a]\nkind = \"mastodn\"".to_owned(), "mastodon"),
        (mastodon.to_owned(), ""),
        (format!("{mail}{TO_ONE}"), ""),
    ] {
        let rendered = read(&text);
        assert!(
            rendered.contains(expected) && rendered.is_empty() == expected.is_empty(),
            "{text}\n{rendered}"
        );
    }
}

/// The commands that people decide with, as they run them.
#[test]
fn deliveries_are_listed_shown_and_decided_on_the_command_line() {
    crate::databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture: Fixture| {
        let hook = WebhookServer::start().await.unwrap();
        let smtp = SmtpServer::start().await.unwrap();
        let toots = MastodonServer::start(fixture.clock.clone()).await.unwrap();
        let config = format!(
            "{}\n{}\n[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = [\"127.0.0.1\"]\n",
            mastodon(&toots, ""),
            email(&smtp, TO_ONE),
            hook.url
        );
        let test_env = TestEnv::on(&fixture, &config);
        let post = post_office(&fixture, &config);
        hook.script.next(Fault::Status(400, vec![]));
        let failed = post.add("hook", "https://example.com/<evil>", &news(1)).await[0];
        post.send().await;
        let run = |line: &str| {
            let output = test_env.run(&line.split(' ').collect::<Vec<_>>());
            (code(&output), out(&output), err(&output))
        };

        let listed = test_env.json("delivery ls --state failed");
        assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&failed.into(), &"failed".into()));
        let (_, table, words) = run("delivery ls");
        assert!(table.contains("failed") && words.contains("delivery retry"), "{table}{words}");
        for (line, code, words) in [
            (format!("delivery show {failed}"), 0, "last error      HTTP 400 from the webhook"),
            ("delivery show 999".into(), 1, "hint:"),
            (format!("delivery approve {failed}"), 1, "only a held message"),
            (format!("delivery retry {failed}"), 0, ": queued"),
            (format!("delivery skip {failed}"), 0, ": discarded"),
            ("delivery ls --state fialed".into(), 2, "did you mean `failed`?"),
            ("delivery retry --channel hok".into(), 2, "did you mean `hook`?"),
            ("delivery retry --channel hook".into(), 0, "was not paused"),
            ("post preview --title T".into(), 2, "--channel NAME"),
        ] {
            let rendered = test_env.ends(&line, code);
            assert!(rendered.contains(words), "{line}: {rendered}");
        }

        let (code, rendered, words) = run("mail test");
        let sent = "sent a test message to mail (reader@example.com); the server answered: 2.0.0 kept as 1\n";
        assert_eq!((code, rendered.as_str()), (0, sent), "{words}");
        assert_eq!(smtp.mails().len(), 1);
        let (code, rendered, words) =
            run("post preview --channel toot --title T --summary S --link https://example.com/");
        assert_eq!((code, rendered.as_str()), (0, "T\n\nS\n\nhttps://example.com/\n"), "{words}");
        assert!(words.contains("29 of 500 characters"), "{words}");
        let rendered = test_env.ends("doctor", 0);
        assert!(rendered.contains("posts as @bot") && rendered.contains("takes mail"), "{rendered}");
        assert!(toots.toots().is_empty() && hook.posts().is_empty());
        assert!([TOKEN, "s3cret"].iter().all(|secret| !rendered.contains(secret)), "{rendered}");
    });
}

/// A mail server with its own certificate; dropped with this value.
struct TlsServer {
    process: std::process::Child,
    rendered: std::io::BufReader<std::process::ChildStdout>,
    port: u16,
}

impl TlsServer {
    fn start(folder: &std::path::Path, mode: &str) -> Self {
        use std::io::BufRead as _;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/smtp_tls.py");
        let mut process = std::process::Command::new("python3")
            .arg(script)
            .args([folder.join("cert.pem"), folder.join("key.pem")])
            .arg(mode)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut rendered = std::io::BufReader::new(process.stdout.take().unwrap());
        let mut port = String::new();
        rendered.read_line(&mut port).unwrap();
        Self { process, rendered, port: port.trim().parse().unwrap() }
    }

    /// The commands it received.
    fn finish(mut self) -> Vec<String> {
        use std::io::BufRead as _;
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.rendered.lines().map(Result::unwrap).collect()
    }
}

/// Writes a certificate for `localhost` and its key into `folder`.
pub(crate) fn make_certificate(folder: &std::path::Path) {
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(folder.join("key.pem"))
        .arg("-out")
        .arg(folder.join("cert.pem"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Encrypted from the start or from STARTTLS on, only to a server whose certificate is trusted, or not at all.
#[test]
fn mail_goes_out_encrypted_or_not_at_all() {
    crate::databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture: Fixture| {
        let folder = fixture.dir.path();
        make_certificate(folder);
        for (offers, wants, trusts, sent) in [
            ("tls", "tls", true, true),
            ("starttls", "starttls", true, true),
            ("tls", "tls", false, false),
            ("starttls", "starttls", false, false),
            // Nothing is sent to a server, or an attacker, that offers no encryption.
            ("plain", "starttls", true, false),
        ] {
            let server = TlsServer::start(folder, offers);
            // Relative to the config file, which is beside it.
            let ca = "ca_file = \"cert.pem\"";
            let config = format!(
                "[channel.mail]\nkind = \"email\"\nsmtp = \"localhost:{}\"\ntls = \"{wants}\"\nfrom = \"a@example.com\"\n\
                 {TO_ONE}\nallow_private = [\"localhost\"]\n{}",
                server.port,
                if trusts { ca } else { "" }
            );
            let post = post_office(&fixture, &config);
            let what = format!("{offers} {wants} {trusts}");
            let ids = post.add("mail", &what, &news(1)).await;
            let report = post.send().await;
            let why = post.row(ids[0]).await.last_error;
            assert_eq!(report.sent, u64::from(sent), "{what}: {why:?}");
            let rendered = server.finish();
            let (clear, hidden): (Vec<_>, Vec<_>) = rendered
                .iter()
                .filter(|line| !line.starts_with("broken"))
                .partition(|line| line.starts_with("clear"));
            assert_eq!(hidden.iter().any(|line| *line == "tls DATA"), sent, "{what}: {rendered:?}");
            assert!(
                clear
                    .iter()
                    .all(|line| ["clear EHLO", "clear STARTTLS", "clear QUIT"].contains(&line.as_str())),
                "{what}: {rendered:?}"
            );
            post.clear("mail").await;
        }
    });
}

/// A long text that breaks off before its end was certainly not accepted, so it costs no doubt.
#[test]
fn a_mail_that_breaks_off_in_its_text_is_simply_tried_again() {
    crate::databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture: Fixture| {
        let (server, post) = mails(&fixture, TO_ONE).await;
        let body = MailBody {
            subject: "long".into(),
            text: "x".repeat(20_000_000),
            html: "<p>".into(),
            list_id: None,
        };
        let ids = post.add("mail", "u1", &News { mail: Some(body), ..news(1) }).await;
        server.next(Phase::Text, Trouble::Cut);
        post.send().await;
        let row = post.row(ids[0]).await;
        assert_eq!(row.state, State::Ready, "{:?}", row.last_error);
        assert!(server.mails().is_empty());
    });
}

#[test]
fn the_documentation_promises_what_each_kind_promises() {
    let page = std::fs::read_to_string(crate::architecture::root().join("docs/channels.md")).unwrap();
    for kind in tsuzuki::channel::KINDS {
        let row = format!("\n| {} | {}", kind.keys.name, kind.promise);
        assert!(page.contains(&row), "docs/channels.md has no row{row}");
    }
}
