//! A restored backup: what was sent since it was made is not sent again, and new things are.

use std::time::Duration;

use tsuzuki::channel::outbox::{self, Answer, State};
use tsuzuki::demo::gemini::Gemini;
use tsuzuki::demo::mastodon::MastodonServer;
use tsuzuki::demo::ministry::Ministry;
use tsuzuki::demo::site::{Content, Site};
use tsuzuki::demo::smtp::SmtpServer;
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::time::Clock;

use crate::databases::test_start;
use crate::press::{More, config_text, files};
use crate::test_env::{TestEnv, ends_with, out, output_beside};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The program in its own directory, at a time that advances with every command.
struct Office {
    test_env: TestEnv,
    clock: Clock,
}

/// How a backup is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Command,
    ByHand,
}

impl Office {
    fn new(config: &str) -> Self {
        Self { test_env: TestEnv::new(config), clock: Clock::manual(test_start()) }
    }

    async fn run(&self, args: &[&str], code: i32) -> String {
        self.clock.advance(HOUR);
        let mut command = self.test_env.command(args);
        command.env("TSUZUKI_NOW", self.clock.now().to_string());
        ends_with(&output_beside(command).await, code)
    }

    async fn json(&self, args: &[&str]) -> serde_json::Value {
        let mut command = self.test_env.command(&[&["--json"], args].concat());
        command.env("TSUZUKI_NOW", self.clock.now().to_string());
        serde_json::from_str(&out(&output_beside(command).await)).unwrap()
    }

    /// `why` about the newest message that announces something.
    async fn newest(&self) -> serde_json::Value {
        let all = self.json(&["delivery", "ls"]).await;
        let id = all[0]["id"].to_string();
        self.json(&["delivery", "show", &id]).await
    }

    async fn restore(&self, way: Way) {
        self.clock.advance(3 * DAY);
        match way {
            Way::Command => drop(self.run(&["db", "restore", "b.db", "--yes"], 0).await),
            Way::ByHand => {
                for name in ["tsuzuki.db-wal", "tsuzuki.db-shm"] {
                    let _ = std::fs::remove_file(self.test_env.file(name));
                }
                std::fs::copy(self.test_env.file("b.db"), self.test_env.file("tsuzuki.db")).unwrap();
            }
        }
    }
}

/// The codes of a message's story.
fn story(message: &serde_json::Value) -> Vec<&str> {
    message["events"].as_array().unwrap().iter().map(|event| event["code"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn posts_that_were_made_after_the_backup_are_found_and_not_made_again() {
    for way in [Way::Command, Way::ByHand] {
        let (ministry, gemini) = (Ministry::start().await.unwrap(), Gemini::start().await.unwrap());
        let clock = Clock::manual(test_start());
        let mastodon = MastodonServer::start(clock.clone()).await.unwrap();
        let office = Office {
            clock: clock.clone(),
            ..Office::new(&config_text(&ministry, &gemini, &mastodon, &More::default()))
        };
        let publish = |slug: &str| ministry.publish(slug, slug, Some(clock.now()), files(&[2000]));
        let run = async || office.run(&["run", "mic"], 0).await;
        run().await;
        // One is known when the backup is made and posted afterwards, one is found afterwards.
        publish("known");
        run().await;
        office.run(&["db", "backup", "b.db"], 0).await;
        publish("found");
        let mut printed = String::new();
        for _ in 0..3 {
            printed += &run().await;
        }
        assert_eq!(mastodon.toots().len(), 2, "{way:?}: {printed} {}", office.run(&["item", "ls"], 0).await);
        office.restore(way).await;
        for _ in 0..4 {
            run().await;
        }
        assert_eq!(mastodon.toots().len(), 2, "{way:?}: a post was made a second time");
        for (slug, toot) in ["known", "found"].into_iter().zip(mastodon.toots()) {
            let url = ministry.page(slug);
            let item = office.json(&["item", "show", &url]).await;
            assert_eq!(
                (item["status"].as_str(), item["reason"].as_str()),
                (Some("processed"), Some("none")),
                "{way:?} {slug}: {item}"
            );
            let why = office.run(&["why", &url], 0).await;
            assert!(why.contains("it was there already"), "{way:?} {slug}: {why}");
            let all = office.json(&["delivery", "ls"]).await;
            let message = all.as_array().unwrap().iter().find(|one| one["subject"] == url.as_str()).unwrap();
            assert_eq!(message["state"], "sent");
            assert_eq!(message["remote_id"], toot.id.to_string(), "{way:?} {slug}");
            let shown = office.run(&["delivery", "show", &message["id"].to_string()], 0).await;
            assert!(shown.contains("sent between the backup and its restore"), "{shown}");
        }
        publish("new");
        for _ in 0..2 {
            run().await;
        }
        assert_eq!(mastodon.toots().len(), 3, "{way:?}: what is new is posted");
        assert_eq!(story(&office.newest().await), ["ready", "sent"], "{way:?}: and nobody doubts it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_is_not_there_is_made_after_the_restore() {
    let (ministry, gemini) = (Ministry::start().await.unwrap(), Gemini::start().await.unwrap());
    let clock = Clock::manual(test_start());
    let mastodon = MastodonServer::start(clock.clone()).await.unwrap();
    let office = Office {
        clock: clock.clone(),
        ..Office::new(&config_text(&ministry, &gemini, &mastodon, &More::default()))
    };
    office.run(&["run", "mic"], 0).await;
    office.run(&["db", "backup", "b.db"], 0).await;
    office.restore(Way::Command).await;
    ministry.publish("late", "late", Some(clock.now()), files(&[2000]));
    for _ in 0..3 {
        office.run(&["run", "mic"], 0).await;
    }
    assert_eq!(mastodon.toots().len(), 1);
    assert_eq!(
        story(&office.newest().await),
        ["unknown", "cleared", "sent"],
        "the feed may have had it before"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_are_held_once_or_sent_again_as_the_channel_says() {
    for (on_unknown, copies) in [("hold", 1), ("resend", 2)] {
        let (ministry, gemini) = (Ministry::start().await.unwrap(), Gemini::start().await.unwrap());
        let clock = Clock::manual(test_start());
        let mastodon = MastodonServer::start(clock.clone()).await.unwrap();
        let server = SmtpServer::start().await.unwrap();
        let channel = format!(
            "[channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nfrom = \"bot@example.com\"\n\
             to = [\"reader@example.com\"]\nallow_private = [\"127.0.0.1\"]\non_unknown = \"{on_unknown}\"\n",
            server.address
        );
        let more =
            More { tables: &channel, job: "deliver = [\"mail\"]\nitems_per_run = 2", ..More::default() };
        let office = Office {
            clock: clock.clone(),
            ..Office::new(&config_text(&ministry, &gemini, &mastodon, &more))
        };
        let publish = |slug: &str| ministry.publish(slug, slug, Some(clock.now()), files(&[2000]));
        office.run(&["run", "mic"], 0).await;
        office.run(&["db", "backup", "b.db"], 0).await;
        publish("one");
        office.run(&["run", "mic"], 0).await;
        assert_eq!(server.mails().len(), 1);
        office.restore(Way::Command).await;
        office.run(&["run", "mic"], 0).await;
        assert_eq!(server.mails().len(), copies, "{on_unknown}");
        let message = office.newest().await;
        match on_unknown {
            "hold" => assert_eq!(story(&message), ["unknown", "held"]),
            _ => assert_eq!(story(&message), ["unknown", "cleared", "sent"]),
        }
        publish("two");
        office.run(&["run", "mic"], 0).await;
        assert_eq!(server.mails().len(), copies + 1, "{on_unknown}: later news are sent");
        assert_eq!(story(&office.newest().await), ["ready", "sent"], "{on_unknown}");
        if on_unknown == "hold" {
            office.run(&["delivery", "skip", &message["id"].to_string()], 0).await;
            let item = office.json(&["item", "show", &ministry.page("one")]).await;
            assert_eq!(item["status"], "processed", "{item}");
        }
    }
}

/// A blog that cannot be read keeps a job from ever ending well; that must not keep the others in doubt.
#[tokio::test(flavor = "multi_thread")]
async fn a_digest_never_gets_the_name_of_another_however_often_a_backup_is_put_back() {
    for way in [Way::Command, Way::ByHand] {
        let clock = Clock::manual(test_start());
        let site = Site::start(Content::with_articles(2, clock.now())).await.unwrap();
        let hook = WebhookServer::start().await.unwrap();
        let config = format!(
            "[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = [\"127.0.0.1\"]\n\
             [[job]]\nname = \"blogs\"\nkind = \"blogs\"\ndeliver = [\"hook\"]\nallow_private = [\"127.0.0.0/8\"]\n\
             blog = [{{ id = \"site\", url = \"{}\" }}]\n",
            hook.url, site.url
        );
        let office = Office { clock: clock.clone(), ..Office::new(&config) };
        office.run(&["run", "blogs"], 0).await;
        office.run(&["db", "backup", "b.db"], 0).await;
        // Restored without the command, nothing shows the last number of the lost copy.
        let times = if way == Way::Command { 3 } else { 1 };
        let mut names = std::collections::BTreeSet::new();
        for number in 0..=times {
            site.edit(|content| content.publish(&format!("n{number}"), "news", clock.now()));
            office.run(&["run", "blogs"], 0).await;
            let message = office.newest().await;
            let subject = message["subject"].as_str().unwrap().to_owned();
            assert!(names.insert(subject), "{way:?}: {message} has the name of another; known: {names:?}");
            if number < times {
                office.restore(way).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn news_of_a_blog_is_doubted_until_that_blog_was_read_again() {
    let clock = Clock::manual(test_start());
    let site = Site::start(Content::with_articles(3, test_start().minus(DAY))).await.unwrap();
    let hook = WebhookServer::start().await.unwrap();
    let config = format!(
        "[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = [\"127.0.0.1\"]\non_unknown = \"hold\"\n\
         [[job]]\nname = \"blogs\"\nkind = \"blogs\"\ndeliver = [\"hook\"]\nallow_private = [\"127.0.0.0/8\"]\n\
         blog = [{{ id = \"site\", url = \"{}\" }}, {{ id = \"dead\", url = \"http://127.0.0.1:9/\" }}]\n",
        hook.url, site.url
    );
    let office = Office { clock: clock.clone(), ..Office::new(&config) };
    let publish = |slug: &str| site.edit(|content| content.publish(slug, slug, clock.now()));
    office.run(&["run", "blogs"], 3).await;
    office.run(&["db", "backup", "b.db"], 0).await;
    publish("one");
    office.run(&["run", "blogs"], 3).await;
    assert_eq!(hook.posts().len(), 1);
    office.restore(Way::Command).await;
    office.run(&["run", "blogs"], 3).await;
    assert_eq!(hook.posts().len(), 1);
    assert_eq!(story(&office.newest().await), ["unknown", "held"]);
    publish("two");
    office.run(&["run", "blogs"], 3).await;
    assert_eq!(story(&office.newest().await), ["ready", "sent"]);
    let of_news = hook.posts().iter().filter(|post| !format!("{post:?}").contains("dead")).count();
    assert_eq!(of_news, 2);
}

on_both_databases! {
    /// It may have been approved, and sent, after the backup was made.
    async fn what_a_backup_holds_is_looked_into_when_it_is_approved(fixture) {
        let server = WebhookServer::start().await.unwrap();
        let channels = crate::outbox::channels(&crate::outbox::hook("hook", &server));
        let sender = outbox::Sender::new(
            fixture.db.clone(), channels, crate::outbox::clients(), fixture.clock.clone(), outbox::Topics::new(),
        );
        let send = async || sender.send_due(&tokio_util::sync::CancellationToken::new()).await.unwrap();
        let id = fixture.db.write(|tx| {
            let (job, now) = ("blogs".parse().unwrap(), tx.now());
            let message = outbox::NewMessage {
                job: &job, channel: "hook", recipient: "webhook", topic: "test", subject: "a", generation: 0,
                payload: "{}", hold: true, not_before: None, found: outbox::Provenance::Since(Some(now)),
            };
            let outbox::Added::Added(id) = outbox::add(tx, &message, now)? else { panic!("it is new") };
            // As written by a restored backup.
            tx.execute(tsuzuki::sql!("INSERT INTO restores (made_at) VALUES (?1)"), tsuzuki::params![now])?;
            Ok(id)
        }).await.unwrap();
        let approve = async || fixture.db.write(move |tx| outbox::approve(tx, id, tx.now())).await.unwrap();
        fixture.db.write(|tx| outbox::notice_restore(tx, tx.now())).await.unwrap();
        assert_eq!(approve().await, Answer::Done { id, state: State::Unknown });
        assert_eq!(send().await.held, 1);
        let row = fixture.db.read(move |tx| outbox::find(tx, id)).await.unwrap().unwrap();
        assert!(row.last_error.unwrap().to_string().contains("may have been sent already"));
        assert!(server.posts().is_empty());
        assert_eq!(approve().await, Answer::Done { id, state: State::Ready }, "now a person has decided");
        assert_eq!(send().await.sent, 1);
    }
}
