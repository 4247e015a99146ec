//! The outbox on both databases: what is added, sent, put off, held and told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::channel::outbox::{
    self, Added, Answer, Filter, NewMessage, Outcome, Row, Sender, State, Topics,
};
use tsuzuki::channel::{self, ChannelSet, Notice};
use tsuzuki::config::{self, Env};
use tsuzuki::db::Db;
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::fetch::{ClientConfig, Clients};
use tsuzuki::id::JobName;
use tsuzuki::ledger::{event, pause};
use tsuzuki::text::Language;

use crate::databases::Fixture;

const HOUR: Duration = Duration::from_secs(3600);

/// Channels from the text of a config file.
pub(crate) fn channels(text: &str) -> Arc<ChannelSet> {
    let path = std::path::Path::new("tsuzuki.toml");
    let config = config::parse(text, path, channel::KINDS, &Env::of_process())
        .unwrap_or_else(|problems| panic!("{}", problems.render(config::Colour::Never)));
    Arc::new(
        ChannelSet::read(&config.channels, &config.app.timezone)
            .unwrap_or_else(|problems| panic!("{}", problems.render(config::Colour::Never))),
    )
}

pub(crate) fn clients() -> Clients {
    Clients::new(ClientConfig { user_agent: "tsuzuki-test".into(), ..ClientConfig::default() }).unwrap()
}

pub(crate) fn outside(fixture: &Fixture) -> channel::Outside {
    channel::Outside { clients: clients(), clock: fixture.clock.clone() }
}

/// A server, a channel `hook` that posts to it, and a sender.
struct World {
    server: WebhookServer,
    db: Db,
    sender: Sender,
    told: Arc<AtomicU32>,
}

async fn world(fixture: &Fixture, more: &str) -> World {
    let server = WebhookServer::start().await.unwrap();
    let channels = channels(&format!(
        "[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = [\"127.0.0.1\"]\n{more}",
        server.url
    ));
    let told = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&told);
    let topics = Topics::new().on("test", move |tx, row, outcome| {
        count.fetch_add(1, Ordering::SeqCst);
        let code = match outcome {
            Outcome::Sent => "owner_sent",
            Outcome::Failed => "owner_failed",
            Outcome::Skipped => "owner_skipped",
        };
        event::add(tx, None, &format!("owner:{}", row.subject), code, &serde_json::Value::Null, tx.now())
    });
    let sender = Sender::new(fixture.db.clone(), channels, clients(), fixture.clock.clone(), topics);
    World { server, db: fixture.db.clone(), sender, told }
}

impl World {
    async fn add(&self, subject: &str) -> Added {
        self.add_with(subject, false, 0).await
    }

    async fn add_with(&self, subject: &str, hold: bool, generation: u32) -> Added {
        let subject = subject.to_owned();
        self.db
            .write(move |tx| {
                let job: JobName = "blogs".parse().unwrap();
                let message = NewMessage {
                    job: &job,
                    channel: "hook",
                    recipient: "webhook",
                    topic: "test",
                    subject: &subject,
                    generation,
                    payload: &format!("{{\"text\":\"{subject}\"}}"),
                    hold,
                    not_before: None,
                };
                outbox::add(tx, &message, tx.now())
            })
            .await
            .unwrap()
    }

    async fn send(&self) -> outbox::SendReport {
        self.sender.send_due(&CancellationToken::new()).await.unwrap()
    }

    async fn row(&self, id: i64) -> Row {
        self.db.read(move |tx| outbox::find(tx, id)).await.unwrap().unwrap()
    }

    async fn owner_story(&self, subject: &str) -> Vec<String> {
        let about = format!("owner:{subject}");
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
        assert_eq!(world.told.load(Ordering::SeqCst), 1);
    }
}
