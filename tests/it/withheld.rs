//! `--no-deliver`, for all four kinds: findings are saved and not announced, and the next ordinary run announces them
//! once.

use std::collections::BTreeMap;

use tsuzuki::channel::outbox::{self, DeliveryFilter};
use tsuzuki::demo::gemini::{self, Gemini};
use tsuzuki::demo::gitlab::GitLab;
use tsuzuki::demo::google_books::{GoogleBooks, volumes};
use tsuzuki::demo::ministry::{Ministry, Shape};
use tsuzuki::demo::site::{Content, Site};
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::time::Timestamp;

use crate::databases::Fixture;
use crate::test_env::TestEnv;

const ALLOW: &str = "allow_private = [\"127.0.0.1\"]";

/// One source of each kind, and a receiver.
struct World {
    google: GoogleBooks,
    ministry: Ministry,
    gemini: Gemini,
    site: Site,
    gitlab: GitLab,
    reader: WebhookServer,
}

impl World {
    async fn start() -> Self {
        let gitlab = GitLab::start().await.unwrap();
        gitlab.add_synthetic(1, "team/app", 12);
        Self {
            google: GoogleBooks::start(volumes(0, 3)).await.unwrap(),
            ministry: Ministry::start().await.unwrap(),
            gemini: Gemini::start().await.unwrap(),
            site: Site::start(Content::with_articles(3, day(1))).await.unwrap(),
            gitlab,
            reader: WebhookServer::start().await.unwrap(),
        }
    }

    fn config(&self) -> String {
        let job = |name: &str, kind: &str, keys: &str| {
            format!("[[job]]\nname = \"{name}\"\nkind = \"{kind}\"\ndeliver = [\"hook\"]\n{ALLOW}\n{keys}\n")
        };
        format!(
            "[app]\nlanguage = \"en\"\n[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\n{ALLOW}\n\
             [llm.gemini]\nkind = \"gemini\"\napi_key = \"{}\"\nbase_url = \"{}\"\n{ALLOW}\n",
            self.reader.url,
            gemini::KEY,
            self.gemini.url
        ) + &job(
            "shelf",
            "books",
            &format!(
                "queries = [\"rust\"]\ngoogle_books = {{ api_url = \"{}\" }}\nfallback_limit = 0",
                self.google.url
            ),
        ) + &job(
            "mic",
            "press",
            &format!("feed = \"{}\"\ncontent = \".contentsBody\"\nitems_per_run = 10", self.ministry.feed()),
        ) + &job("mine", "blogs", &format!("blog = [{{ id = \"mine\", url = \"{}\" }}]", self.site.url))
            + &job("code", "commits", &format!("gitlab = \"{}\"\ngroup = \"team\"", self.gitlab.url()))
    }
}

fn day(number: u32) -> Timestamp {
    format!("2026-01-{number:02}T00:00:00Z").parse().unwrap()
}

/// The number of messages of each job, in any state.
async fn messages(fixture: &Fixture) -> BTreeMap<String, usize> {
    let rows = fixture.db.read(|tx| outbox::list(tx, &DeliveryFilter::default(), 100)).await.unwrap();
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row.job_name.to_string()).or_default() += 1;
    }
    counts
}

on_both_databases! {
    async fn what_is_found_without_delivery_is_told_once_by_the_next_ordinary_run(fixture) {
        let world = World::start().await;
        let test_env = TestEnv::on(&fixture, &world.config());
        let run_on = |number, line: &str| {
            fixture.clock.set(day(number));
            test_env.ends(line, 0)
        };
        run_on(2, "run mic mine --no-deliver");
        for slug in ["one", "two"] {
            world.ministry.publish(slug, &format!("Release {slug}"), Some(day(3)), Shape::WithFiles(vec![("a.pdf".into(), 2000)]));
            world.site.edit(|content| content.publish(slug, &format!("Post {slug}"), day(3)));
        }
        for number in [4, 5] {
            let printed = run_on(number, "run shelf mic mine code --no-deliver");
            assert!(printed.contains("bottleneck: --no-deliver, 3 wait for a run that delivers"), "{printed}");
            assert!(printed.contains("2 pending, not posted (--no-deliver)"), "{printed}");
            assert!(printed.contains("1 change not sent (--no-deliver)"), "{printed}");
            assert_eq!(printed.contains("12 new commits; not sent (--no-deliver)"), number == 4, "{printed}");
            assert_eq!(messages(&fixture).await, BTreeMap::new());
        }
        assert_eq!(world.gemini.questions().len(), 2, "two screenings, and no summary that nobody may read");
        assert_eq!(world.reader.posts().len(), 0);

        run_on(6, "run shelf mic mine code");
        let expected: BTreeMap<String, usize> =
            [("shelf", 1), ("mic", 2), ("mine", 1), ("code", 1)].map(|(job, count)| (job.to_owned(), count)).into();
        assert_eq!(messages(&fixture).await, expected);
        let posts: Vec<String> = world.reader.posts().iter().map(|post| post.body.clone()).collect();
        for words in ["headline\":\"Release one", "headline\":\"Release two", "Post one", "Post two", "12 new"] {
            assert_eq!(posts.iter().map(|post| post.matches(words).count()).sum::<usize>(), 1, "{words}: {posts:?}");
        }
        run_on(7, "run shelf mic mine code");
        assert_eq!(messages(&fixture).await, expected);
        assert_eq!(world.reader.posts().len(), 5);
    }
}
