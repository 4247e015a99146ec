//! The made-up outside of `scripts/torture`: servers that publish on request and keep what reaches them.
//!
//! One JSON array a line on standard input (`["publish", "press", 3]`), one JSON line back. It ends with its input.

use std::io::{BufRead as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};
use tsuzuki::demo::gemini::{self, Gemini};
use tsuzuki::demo::gitlab::{Change, GitLab, History};
use tsuzuki::demo::google_books::{self, GoogleBooks};
use tsuzuki::demo::mastodon::{self, MastodonServer, Toot};
use tsuzuki::demo::ministry::{Ministry, Shape};
use tsuzuki::demo::site::{Content, Site};
use tsuzuki::demo::smtp::{Kept, SmtpServer};
use tsuzuki::time::Clock;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const GITLAB_TOKEN: &str = "loopback-gitlab-token";
const HELLO: &[u8] = b"GET /api/v2/instance HTTP/1.1\r\nhost: loopback\r\nconnection: close\r\n\r\n";
/// Entries that feeds have from the start, so that a few more are never most of them.
const BASELINE: u32 = 30;

struct World {
    clock: Clock,
    ministry: Ministry,
    gemini: Gemini,
    site: Site,
    books: GoogleBooks,
    gitlab: GitLab,
    history: History,
    keys: MastodonServer,
    no_keys: MastodonServer,
    smtp: SmtpServer,
    published: u32,
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut world = World::start().await?;
    for line in std::io::stdin().lock().lines() {
        let order: Value = serde_json::from_str(&line?)?;
        let answer = world.obey(&order).await?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

impl World {
    async fn start() -> Result<Self> {
        let clock = Clock::system();
        let content = Content { sitemap: None, links: false, ..Content::with_articles(0, clock.now()) };
        let mut world = Self {
            ministry: Ministry::start().await?,
            gemini: Gemini::start().await?,
            site: Site::start(content).await?,
            books: GoogleBooks::start(Vec::new()).await?,
            gitlab: GitLab::start().await?,
            history: History::new(1),
            keys: MastodonServer::start(clock.clone()).await?,
            no_keys: MastodonServer::start(clock.clone()).await?,
            smtp: SmtpServer::start().await?,
            published: 0,
            clock,
        };
        world.no_keys.ignore_keys();
        world.gitlab.set_token(GITLAB_TOKEN);
        world.gitlab.add_history(1, "team/app", world.history.clone());
        for kind in ["press", "blogs", "commits"] {
            world.publish(kind, BASELINE)?;
        }
        Ok(world)
    }

    async fn obey(&mut self, order: &Value) -> Result<Value> {
        let word = |at: usize| order[at].as_str().unwrap_or_default();
        let number =
            |at: usize| order[at].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        Ok(match word(0) {
            "addresses" => self.addresses(),
            "publish" => json!(self.publish(word(1), number(2))?),
            "withdraw" => {
                self.withdraw(word(1));
                Value::Null
            }
            "posts" => {
                let toots = [self.keys.toots(), self.no_keys.toots()].concat();
                json!(toots.iter().map(show_toot).collect::<Vec<_>>())
            }
            "mails" => json!(self.smtp.mails().iter().map(show_mail).collect::<Vec<_>>()),
            "settle" => {
                self.settle().await?;
                Value::Null
            }
            other => return Err(format!("the world knows no order `{other}`").into()),
        })
    }

    fn addresses(&self) -> Value {
        json!({
            "feed": self.ministry.feed(),
            "gemini": self.gemini.url,
            "gemini_key": gemini::KEY,
            "site": self.site.url,
            "books": self.books.url,
            "gitlab": self.gitlab.url(),
            "gitlab_token": GITLAB_TOKEN,
            "keys": self.keys.url,
            "no_keys": self.no_keys.url,
            "mastodon_token": mastodon::TOKEN,
            "smtp": self.smtp.address.to_string(),
        })
    }

    /// Publishes `count` things; answers what a message about each of them has to hold.
    fn publish(&mut self, kind: &str, count: u32) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let first = self.published + 1;
        for number in first..first + count {
            let (slug, at) = (format!("n{number}n"), self.clock.now());
            match kind {
                "press" => {
                    let shape = Shape::WithFiles(vec![(format!("{slug}.pdf"), 2000)]);
                    self.ministry.publish(&slug, &format!("調査の結果（第{number}報）"), Some(at), shape);
                    names.push(slug);
                }
                "blogs" => {
                    self.site.edit(|site| site.publish(&slug, &format!("Entry {number}"), at));
                    names.push(slug);
                }
                "commits" => {
                    let title = format!("Change {number}");
                    self.history.commit("main", Change { author: "Elena Marsh", title, at, lines: (3, 1) });
                }
                "books" => names.push(google_books::isbn(number)),
                other => return Err(format!("nothing is published for `{other}`").into()),
            }
        }
        if kind == "books" {
            self.books.set_volumes(google_books::volumes(first, count));
        }
        self.published += count;
        Ok(names)
    }

    /// Takes everything but the newest entries out of the feeds, so that they do not grow for ever.
    fn withdraw(&self, kind: &str) {
        let keep = BASELINE as usize;
        match kind {
            "press" => {
                for number in 1..self.published.saturating_sub(BASELINE) {
                    self.ministry.withdraw(&format!("n{number}n"));
                }
            }
            _ => self.site.edit(|site| site.articles.truncate(keep)),
        }
    }

    /// Waits until the servers have dealt with everything that dead senders sent.
    async fn settle(&self) -> Result<()> {
        let at = |url: &url::Url| SocketAddr::from((Ipv4Addr::LOCALHOST, url.port().unwrap_or(0)));
        let all = async {
            self.keys.open.drain(at(&self.keys.url), HELLO).await?;
            self.no_keys.open.drain(at(&self.no_keys.url), HELLO).await?;
            self.smtp.open.drain(self.smtp.address, b"").await
        };
        Ok(tokio::time::timeout(Duration::from_secs(60), all).await??)
    }
}

fn show_toot(toot: &Toot) -> Value {
    json!({ "key": toot.key, "text": toot.request["status"] })
}

fn show_mail(mail: &Kept) -> Value {
    json!({ "id": mail.header("Message-ID"), "data": mail.data })
}
