//! The demo world: every server that the four pipelines connect to, on fixed ports, with a saved history.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use super::gemini::{self, Gemini};
use super::gitlab::{GitLab, History};
use super::google_books::GoogleBooks;
use super::journal::{Entry, Journal, Memory, Record};
use super::mastodon::{self, MastodonServer, Toot};
use super::ministry::Ministry;
use super::site::Site;
use super::smtp::{Kept, SmtpServer};
use super::story;
use crate::config::value::Zone;
use crate::phrase::Phrase;
use crate::text::Language;
use crate::time::{Clock, Timestamp};

/// The valid token of the GitLab.
const GITLAB_TOKEN: &str = "loopback-gitlab-token";
const CONFIG: &str = include_str!("tsuzuki.toml");
/// Keys and tokens by the names of their files in the config.
pub const KEYS: [(&str, &str); 3] =
    [("gemini", gemini::KEY), ("mastodon", mastodon::TOKEN), ("gitlab", GITLAB_TOKEN)];

/// The ports of the servers. They are the same when a world is continued, because items, blogs and projects are
/// identified by address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    ministry: u16,
    books: u16,
    feed_blog: u16,
    sitemap_blog: u16,
    page_blog: u16,
    gitlab: u16,
    gemini: u16,
    mastodon: u16,
    smtp: u16,
}

/// Why the world could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A port of an existing world is in use.
    #[error("port {port}, on which the made-up {what} of this demo listens, is taken: {why}")]
    Taken {
        /// The server.
        what: &'static str,
        port: u16,
        why: io::Error,
    },
    /// The journal does not begin with a world.
    #[error("{0} does not begin with the beginning of a world")]
    NoBeginning(std::path::PathBuf),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// All servers. They stop when dropped, and can be continued.
pub struct World {
    pub(super) ministry: Ministry,
    pub(super) feed_blog: Site,
    pub(super) sitemap_blog: Site,
    pub(super) page_blog: Site,
    pub(super) app: History,
    pub(super) site: History,
    books: GoogleBooks,
    gitlab: GitLab,
    gemini: Gemini,
    mastodon: MastodonServer,
    smtp: SmtpServer,
    journal: Arc<Journal>,
    clock: Clock,
    steps: AtomicUsize,
    moving: Mutex<()>,
}

impl World {
    /// Opens the world of `directory`, a new or an existing one.
    pub async fn open(directory: &Path, clock: Clock) -> Result<Self, Error> {
        let (journal, past) = Journal::open(directory)?;
        let journal = Arc::new(journal);
        let (began_at, ports) = match past.first() {
            Some(Entry::Began { at, ports }) => (*at, *ports),
            Some(_) => return Err(Error::NoBeginning(journal.path().to_owned())),
            None => (clock.now(), Ports::default()),
        };
        let mut listening = ports;
        let ministry = Ministry::start_on(listen("ministry", &mut listening.ministry).await?)?;
        let volumes = story::volumes();
        let books = GoogleBooks::start_on(listen("Google Books", &mut listening.books).await?, volumes)?;
        let [feed, sitemap, page] = story::blogs(began_at);
        let feed_blog = Site::start_on(listen("blog", &mut listening.feed_blog).await?, feed)?;
        let sitemap_blog = Site::start_on(listen("blog", &mut listening.sitemap_blog).await?, sitemap)?;
        let page_blog = Site::start_on(listen("blog", &mut listening.page_blog).await?, page)?;
        let gitlab = GitLab::start_on(listen("GitLab", &mut listening.gitlab).await?)?;
        gitlab.set_token(GITLAB_TOKEN);
        let (app, site) = story::histories(began_at);
        gitlab.add_history(1, "team/app", app.clone());
        gitlab.add_history(2, "team/site", site.clone());
        let gemini = Gemini::start_on(listen("Gemini", &mut listening.gemini).await?)?;
        let posts = remembered(&past, &journal, as_post, Entry::Post);
        let toots = listen("Mastodon", &mut listening.mastodon).await?;
        let mastodon = MastodonServer::start_on(toots, clock.clone(), posts)?;
        let mails = remembered(&past, &journal, as_mail, Entry::Mail);
        let smtp = SmtpServer::start_on(listen("mail server", &mut listening.smtp).await?, mails)?;
        if past.is_empty() {
            journal.add(&Entry::Began { at: began_at, ports: listening })?;
        }
        let world = Self {
            ministry,
            feed_blog,
            sitemap_blog,
            page_blog,
            app,
            site,
            books,
            gitlab,
            gemini,
            mastodon,
            smtp,
            journal,
            clock,
            steps: AtomicUsize::new(0),
            moving: Mutex::new(()),
        };
        story::begin(&world, began_at);
        for entry in past {
            if let Entry::Step { at } = entry {
                world.replay(at);
            }
        }
        Ok(world)
    }

    /// The number of steps so far.
    pub fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }

    /// Performs one step of the story and describes it.
    pub fn step(&self) -> io::Result<Phrase> {
        let _alone = self.moving.lock();
        let at = self.clock.now();
        self.journal.add(&Entry::Step { at })?;
        Ok(self.replay(at))
    }

    fn replay(&self, at: Timestamp) -> Phrase {
        let number = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        story::step(self, number, at)
    }

    /// Every received post, oldest first.
    pub fn posts(&self) -> Vec<Toot> {
        self.mastodon.toots()
    }

    /// Every received mail, oldest first.
    pub fn mails(&self) -> Vec<Kept> {
        self.smtp.mails()
    }

    /// A config file for all four pipelines in this world, with prompt pages at `listen`.
    pub fn render_config(&self, listen: SocketAddr, language: Language, zone: &Zone) -> String {
        [
            ("{language}", language.word().to_owned()),
            ("{zone}", zone.name().to_owned()),
            ("{listen}", listen.to_string()),
            ("{ministry}", self.ministry.feed()),
            ("{books}", self.books.url.to_string()),
            ("{feed_blog}", self.feed_blog.url.to_string()),
            ("{sitemap_blog}", self.sitemap_blog.url.to_string()),
            ("{page_blog}", self.page_blog.url.to_string()),
            ("{gitlab}", self.gitlab.url()),
            ("{gemini}", self.gemini.url.to_string()),
            ("{mastodon}", self.mastodon.url.to_string()),
            ("{smtp}", self.smtp.address.to_string()),
        ]
        .into_iter()
        .fold(CONFIG.to_owned(), |text, (mark, value)| text.replace(mark, &value))
    }
}

/// Replaces port 0 by a port that is free now.
pub fn free_address(address: SocketAddr) -> io::Result<SocketAddr> {
    match address.port() {
        0 => std::net::TcpListener::bind(address)?.local_addr(),
        _ => Ok(address),
    }
}

/// Listens on `port`, or on a free one if it is 0, which is stored in it.
async fn listen(what: &'static str, port: &mut u16) -> Result<TcpListener, Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await.map_err(|why| match *port {
        0 => Error::Io(why),
        port => Error::Taken { what, port, why },
    })?;
    *port = listener.local_addr()?.port();
    Ok(listener)
}

/// What was received before, and the record of what will be.
fn remembered<T: Clone + Send + Sync + 'static>(
    past: &[Entry],
    journal: &Arc<Journal>,
    pick: fn(&Entry) -> Option<&T>,
    entry: fn(T) -> Entry,
) -> Memory<T> {
    let journal = Arc::clone(journal);
    Memory {
        before: past.iter().filter_map(pick).cloned().collect(),
        record: Record::new(move |received: &T| journal.add(&entry(received.clone()))),
    }
}

fn as_post(entry: &Entry) -> Option<&Toot> {
    match entry {
        Entry::Post(toot) => Some(toot),
        _ => None,
    }
}

fn as_mail(entry: &Entry) -> Option<&Kept> {
    match entry {
        Entry::Mail(mail) => Some(mail),
        _ => None,
    }
}
