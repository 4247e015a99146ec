//! The process is killed at every point of a run; the next run neither loses nor repeats a notification.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use tsuzuki::channel::outbox;
use tsuzuki::demo::site::Site;
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::time::Clock;

use super::{HOUR, World, config_text, feed_only, name_of, site};
use crate::test_env::{TestEnv, ends_with, output_beside};

const SITES: usize = 6;

/// Every place in a run where something could get lost between two steps, and how often it is passed before.
const POINTS: [&str; 10] = [
    "blogs.seen",
    "blogs.writing",
    "blogs.writing:1",
    "blogs.writing:5",
    "blogs.written",
    "outbox.adding",
    "blogs.queueing:1",
    "blogs.queued",
    "blogs.seen:1",
    "blogs.written:1",
];

/// The program itself, on the database of the test.
struct Program {
    test_env: TestEnv,
    clock: Clock,
}

impl Program {
    /// It runs the job an hour later than before.
    fn command(&self) -> Command {
        self.clock.advance(HOUR);
        self.test_env.command(&["run", "blogs"])
    }

    /// Runs the job to its end.
    async fn run(&self) {
        ends_with(&output_beside(self.command()).await, 0);
    }

    /// Runs the job and dies at `point`; `false` if it was never reached.
    async fn die_at(&self, point: &str) -> bool {
        let mut command = self.command();
        command.env("TSUZUKI_FAIL_AT", point);
        output_beside(command).await.status.code().is_none()
    }

    /// Runs the job and kills it after `span`, wherever it is.
    async fn kill_after(&self, span: Duration) {
        let mut command = self.command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = tokio::process::Command::from(command).spawn().unwrap();
        if tokio::time::timeout(span, child.wait()).await.is_err() {
            child.kill().await.unwrap();
        }
    }
}

/// How often each title is in changes and in messages.
async fn count_announced(world: &World, published: &[String]) -> BTreeMap<String, (usize, usize)> {
    let changes = world.changes().await;
    let messages: Vec<outbox::Row> = world.messages().await;
    let titles: Vec<String> = changes.iter().flat_map(|change| &change.detail.entries).map(name_of).collect();
    published
        .iter()
        .map(|title| {
            let in_changes = titles.iter().filter(|announced| *announced == title).count();
            let in_messages =
                messages.iter().map(|row| row.payload.matches(&format!("\"{title}\"")).count()).sum();
            (title.clone(), (in_changes, in_messages))
        })
        .collect()
}

on_both_databases! {
    async fn a_kill_at_any_point_neither_loses_nor_repeats_a_notification(fixture) {
        let mut sites: Vec<Site> = Vec::new();
        for _ in 0..SITES {
            sites.push(site(feed_only).await);
        }
        let blogs: Vec<String> = sites.iter().enumerate().map(|(number, site)| {
            format!("id = \"blog-{number}\"\nurl = \"{0}\"\nfeed = \"{0}feed.xml\"", site.url)
        }).collect();
        let reader = WebhookServer::start().await.unwrap();
        let text = config_text("", &blogs).replace("http://127.0.0.1:9/hook", reader.url.as_str());
        let world = World::new(&fixture, &text);
        let program = Program { test_env: TestEnv::on(&fixture, &text), clock: fixture.clock.clone() };
        program.run().await;
        assert!(world.changes().await.is_empty());

        let mut published = Vec::new();
        let mut publish = |round: &str, now| {
            for (number, site) in sites.iter().enumerate() {
                let title = format!("{round} on {number}");
                site.edit(|content| {
                    content.publish(&title.replace([' ', ':'], "-"), &title, now);
                    content.articles.truncate(20);
                });
                published.push(title);
            }
        };
        let mut died = 0;
        for point in POINTS {
            publish(point, fixture.clock.now());
            died += usize::from(program.die_at(point).await);
            program.run().await;
        }
        assert!(died >= 7, "only {died} of the points were reached");
        for millis in [5, 15, 25, 35, 45, 60, 80, 100, 130, 170] {
            publish(&format!("after {millis}"), fixture.clock.now());
            program.kill_after(Duration::from_millis(millis)).await;
        }
        program.run().await;
        for (title, announced) in count_announced(&world, &published).await {
            assert_eq!(announced, (1, 1), "{title}: told in changes and in messages");
        }
    }
}
