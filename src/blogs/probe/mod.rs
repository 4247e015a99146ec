//! One check of one blog: asks its server, reads what comes, and says what was seen. Writes nothing.

mod search;

use std::collections::HashSet;

use bytes::Bytes;
use jiff::tz::TimeZone;

use super::config::{Blog, Probe};
use super::decide::{self, Target};
use super::detect;
use super::home::Home;
use super::model::{Detector, Found, Known, Reading, Sighting, State, Trouble, TroubleKind};
use crate::fetch::error::Why;
use crate::fetch::{Error, Fetcher, Head, Request, Response};
use crate::parse::html::Html;
use crate::parse::url::{Url, resolve_web};
use crate::parse::{feed, sitemap};
use crate::text;
use crate::time::Timestamp;

const FEED_TYPES: &str = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, \
    text/xml;q=0.9, application/json;q=0.8, */*;q=0.5";
const PAGE_TYPES: &str = "text/html, application/xhtml+xml, */*;q=0.5";
const ANY_TYPE: &str = "*/*";
/// Larger documents are read on a thread of their own, so that other checks go on.
const LARGE: usize = 256 * 1024;
/// Of a list of sitemaps, so many are read at its beginning and so many at its end.
const CHILDREN_AT_EACH_END: usize = 16;
/// Addresses of one site that are looked at.
const MAX_ADDRESSES: usize = 50_000;
/// Columns of an error message that are kept.
const MESSAGE_COLUMNS: usize = 500;

/// Checks blogs; cheap to clone.
#[derive(Clone, Debug)]
pub struct Prober {
    /// HTTP.
    pub fetcher: Fetcher,
    /// How a check asks.
    pub probe: Probe,
    /// Our name towards robots.txt.
    pub agent: String,
    /// The zone of dates that say none.
    pub zone: TimeZone,
}

/// Why a document brought nothing.
struct Miss {
    trouble: Trouble,
    status: Option<u16>,
    /// Whether the same question may be answered later.
    is_passing: bool,
}

/// A document that was read, or did not need to be.
struct Read {
    head: Head,
    reading: Reading,
}

/// What a page holds, read once.
struct PageRead {
    head: Head,
    feeds: Vec<Url>,
    /// Keys of the addresses that it links to, where that says whose feeds it names.
    linked: HashSet<String>,
    as_feed: Option<Vec<Found>>,
    entries: Vec<Found>,
}

/// A check under way.
struct ProbeRun<'a> {
    prober: &'a Prober,
    blog: &'a Blog,
    state: &'a State,
    now: Timestamp,
    feed_search: Option<Option<Url>>,
    other_feeds: Vec<String>,
    sitemap_search: Option<Option<Url>>,
    page: Option<PageRead>,
    robots: Option<crate::parse::robots::Robots>,
}

impl Prober {
    /// Looks at a blog.
    pub async fn check(&self, blog: &Blog, state: &State, now: Timestamp) -> Sighting {
        let mut look = ProbeRun {
            prober: self,
            blog,
            state,
            now,
            feed_search: None,
            other_feeds: Vec::new(),
            sitemap_search: None,
            page: None,
            robots: None,
        };
        let seen = look.run().await;
        let ProbeRun { feed_search, other_feeds, sitemap_search, .. } = look;
        let (http_status, moved_to, outcome) = match seen {
            Ok(read) => (Some(read.head.status), read.head.permanent_url, Ok(read.reading)),
            Err(miss) => (miss.status, None, Err(miss.trouble)),
        };
        Sighting { checked_at: now, http_status, outcome, feed_search, other_feeds, sitemap_search, moved_to }
    }
}

impl ProbeRun<'_> {
    /// Tries the detectors in their order; the first that has a document decides.
    async fn run(&mut self) -> Result<Read, Miss> {
        for detector in &self.blog.detect {
            let mut target = decide::target(self.blog, self.state, *detector, self.now);
            if let Target::At(url) = &target {
                match self.read(*detector, url).await {
                    // What was removed for good may have moved elsewhere; the blog itself cannot.
                    Err(miss) if miss.status == Some(410) && !self.is_named(*detector) => {
                        target = Target::Search;
                    }
                    read => return read,
                }
            }
            if target == Target::Search
                && let Some(read) = self.search(*detector).await?
            {
                return Ok(read);
            }
        }
        let words: Vec<_> = self.blog.detect.iter().map(|detector| detector.word()).collect();
        Err(Miss::other(format!("no {} was found for {}", words.join(" and no "), self.blog.url)))
    }

    /// Whether the document of `detector` is the user's choice rather than our discovery.
    fn is_named(&self, detector: Detector) -> bool {
        match detector {
            Detector::Feed => self.blog.feed.is_some(),
            Detector::Sitemap => self.blog.sitemap.is_some(),
            Detector::Html => true,
        }
    }

    async fn read(&mut self, detector: Detector, url: &Url) -> Result<Read, Miss> {
        match detector {
            Detector::Feed => self.read_feed(url).await,
            Detector::Sitemap => self.read_sitemap(url, true).await,
            Detector::Html => self.read_links(url).await,
        }
    }

    async fn read_feed(&self, url: &Url) -> Result<Read, Miss> {
        let known = self.known(Detector::Feed, true);
        match self.ask(Detector::Feed, url, known, FEED_TYPES).await? {
            Response::Unchanged(head) => Ok(unchanged(head, Detector::Feed)),
            Response::Fetched(head, body) => {
                self.parse_feed(url, head, body, |_, _| true).await.map(|(read, _)| read)
            }
        }
    }

    /// Reads a feed that was fetched, and answers whether it `fits`, given where it was found.
    async fn parse_feed(
        &self,
        url: &Url,
        head: Head,
        body: Bytes,
        fits: impl FnOnce(&feed::Feed, &Url) -> bool + Send + 'static,
    ) -> Result<(Read, bool), Miss> {
        let (blog, context, at) =
            (self.blog.clone(), feed_context(&head, &self.prober.zone), head.final_url.clone());
        let read = apart(body, move |body| {
            let feed = feed::parse_heads(body, &context)?;
            let (is_fitting, total) = (fits(&feed, &at), feed.entries.len());
            Ok::<_, feed::Refused>((is_fitting, total, detect::feed_entries(feed, &blog)))
        });
        let (is_fitting, total, entries) =
            read.await.map_err(|refused| Miss::lost(Detector::Feed, url, Some(head.status), &refused))?;
        let known = Known::new(Detector::Feed, &head.validators).into_iter().collect();
        let reading = Reading::Entries { detector: Detector::Feed, entries, known, total };
        Ok((Read { reading, head }, is_fitting))
    }

    async fn read_links(&mut self, url: &Url) -> Result<Read, Miss> {
        let page = match self.page.take() {
            Some(page) => page,
            None => {
                let known = self.known(Detector::Html, true);
                match self.ask(Detector::Html, url, known, PAGE_TYPES).await? {
                    Response::Unchanged(head) => return Ok(unchanged(head, Detector::Html)),
                    Response::Fetched(head, body) => self.read_page(head, body).await?,
                }
            }
        };
        let known = Known::new(Detector::Html, &page.head.validators).into_iter().collect();
        let (entries, total) = (page.entries.clone(), page.entries.len());
        let reading = Reading::Entries { detector: Detector::Html, entries, known, total };
        Ok(Read { head: page.head, reading })
    }

    async fn read_page(&self, head: Head, body: Bytes) -> Result<PageRead, Miss> {
        let (blog, context, at) =
            (self.blog.clone(), feed_context(&head, &self.prober.zone), head.final_url.clone());
        let read = apart(body, move |body| {
            // Some give the address of the feed itself as that of the blog.
            let as_feed = match looks_like_xml(body) {
                true => feed::parse_heads(body, &context).ok().map(|feed| detect::feed_entries(feed, &blog)),
                false => None,
            };
            let html = Html::read(body, context.content_type.as_deref(), Some(&at));
            let feeds = html.feeds().iter().filter(|feed| !is_about_comments(feed));
            let feeds: Vec<Url> = feeds.filter_map(|feed| resolve_web(Some(&at), &feed.href)).collect();
            let linked = match feeds.is_empty() {
                true => HashSet::new(),
                false => detect::linked_keys(&html, &blog),
            };
            let entries = match blog.uses(Detector::Html) && as_feed.is_none() {
                true => detect::page_entries(&html, &blog)?,
                false => Vec::new(),
            };
            Ok::<_, crate::parse::html::BadSelector>((feeds, linked, as_feed, entries))
        });
        let (feeds, linked, as_feed, entries) = read.await.map_err(|error| Miss::other(error.to_string()))?;
        Ok(PageRead { head, feeds, linked, as_feed, entries })
    }

    async fn read_sitemap(&self, url: &Url, may_skip: bool) -> Result<Read, Miss> {
        let detector = Detector::Sitemap;
        let root = self.known(detector, may_skip);
        let (head, body) = match self.ask(detector, url, root, ANY_TYPE).await? {
            Response::Fetched(head, body) => (head, body),
            Response::Unchanged(head) => {
                if let Some(known) = self.unchanged_children().await? {
                    let mut read = unchanged(head, detector);
                    if let Reading::Unchanged { known: of_root, .. } = &mut read.reading {
                        of_root.extend(known);
                    }
                    return Ok(read);
                }
                match self.ask(detector, url, None, ANY_TYPE).await? {
                    Response::Fetched(head, body) => (head, body),
                    Response::Unchanged(_) => return Err(Miss::other("an answer to nothing asked".into())),
                }
            }
        };
        let status = head.status;
        let read = parse_sitemap(&head, body).await;
        let root = read.map_err(|refused| Miss::lost(detector, url, Some(status), &refused))?;
        let mut known: Vec<Known> = Known::new(detector, &head.validators).into_iter().collect();
        let mut locations = root.urls;
        for child in ends(&root.children) {
            let Some(at) = resolve_web(Some(&head.final_url), &child.loc) else { continue };
            let (child_head, body) = match self.ask(detector, &at, None, ANY_TYPE).await {
                Ok(Response::Fetched(head, body)) => (head, body),
                Ok(Response::Unchanged(_)) => continue,
                // One that is missing is no trouble; one that does not answer hides addresses.
                Err(miss) if matches!(miss.trouble.kind, TroubleKind::Lost(_) | TroubleKind::Gone) => {
                    continue;
                }
                Err(miss) => return Err(miss),
            };
            let fallback = Known { detector, url: at, etag: None, last_modified: None, lastmod: None };
            let of_child = Known::new(detector, &child_head.validators).unwrap_or(fallback);
            known.push(Known { lastmod: child.lastmod, ..of_child });
            if let Ok(child) = parse_sitemap(&child_head, body).await {
                locations.extend(child.urls);
            }
            if locations.len() >= MAX_ADDRESSES {
                locations.truncate(MAX_ADDRESSES);
                break;
            }
        }
        let (blog, total) = (self.blog.clone(), locations.len());
        let entries = in_background(total > 2_000, move || detect::sitemap_entries(&locations, &blog)).await;
        Ok(Read { reading: Reading::Entries { detector, entries, known, total }, head })
    }

    /// What servers say about the sitemaps inside the sitemap, if every one of them is as it was.
    async fn unchanged_children(&self) -> Result<Option<Vec<Known>>, Miss> {
        let children = self.state.known.iter().filter(|known| known.detector == Detector::Sitemap).skip(1);
        let mut still = Vec::new();
        for child in children {
            if child.validators().is_empty() {
                return Ok(None);
            }
            match self.ask(Detector::Sitemap, &child.url, Some(child), ANY_TYPE).await {
                Ok(Response::Unchanged(head)) => {
                    let renewed =
                        Known::new(Detector::Sitemap, &head.validators).unwrap_or_else(|| child.clone());
                    still.push(Known { lastmod: child.lastmod, ..renewed });
                }
                Ok(Response::Fetched(..)) => return Ok(None),
                Err(miss) if matches!(miss.trouble.kind, TroubleKind::Lost(_) | TroubleKind::Gone) => {
                    return Ok(None);
                }
                Err(miss) => return Err(miss),
            }
        }
        Ok(Some(still))
    }

    /// What the server said about the document of `detector`, if it may be asked for changes only.
    fn known(&self, detector: Detector, may_skip: bool) -> Option<&Known> {
        if !may_skip || !decide::may_skip(self.blog, self.state, detector, self.now) {
            return None;
        }
        self.state.known.iter().find(|known| known.detector == detector)
    }

    async fn ask(
        &self,
        detector: Detector,
        url: &Url,
        known: Option<&Known>,
        accept: &str,
    ) -> Result<Response, Miss> {
        let miss = |error: Error| self.miss(detector, url, &error);
        let prepared = |request: Request| {
            let request = request.accept(accept).allow_private(&self.blog.allow_private);
            match known {
                Some(known) => request.validators(&known.validators()),
                None => request,
            }
        };
        if self.prober.probe == Probe::Head && known.is_some() {
            match self.prober.fetcher.fetch(&prepared(Request::head(url.clone()))).await {
                Ok(Response::Unchanged(head)) => return Ok(Response::Unchanged(head)),
                Err(error) if error.is_retryable() => return Err(miss(error)),
                // Changed, or a server that does not know HEAD: the GET tells.
                Ok(Response::Fetched(..)) | Err(_) => {}
            }
        }
        self.prober.fetcher.fetch(&prepared(Request::get(url.clone()))).await.map_err(miss)
    }

    fn miss(&self, detector: Detector, url: &Url, error: &Error) -> Miss {
        let kind = match error {
            Error::Gone if self.is_named(detector) => TroubleKind::Gone,
            Error::Gone | Error::NotFound if detector != Detector::Html => TroubleKind::Lost(detector),
            Error::Later { after, why: Why::Asked(_), .. } => TroubleKind::Later(*after),
            _ => TroubleKind::Other,
        };
        let trouble = Trouble { kind, message: told(detector, url, &error.told()) };
        Miss { trouble, status: error.status(), is_passing: error.is_retryable() }
    }
}

impl Miss {
    fn other(message: String) -> Self {
        Self { trouble: Trouble { kind: TroubleKind::Other, message }, status: None, is_passing: false }
    }

    fn lost(detector: Detector, url: &Url, status: Option<u16>, why: &impl std::fmt::Display) -> Self {
        let trouble = Trouble { kind: TroubleKind::Lost(detector), message: told(detector, url, why) };
        Self { trouble, status, is_passing: false }
    }
}

fn told(detector: Detector, url: &Url, why: &impl std::fmt::Display) -> String {
    let what = match detector {
        Detector::Feed => "feed",
        Detector::Sitemap => "sitemap",
        Detector::Html => "page",
    };
    // A private feed may carry its token in the query, and this text goes to channels.
    let at = &url[..url::Position::AfterPath];
    text::shorten(&text::one_line(&format!("{what} {at}: {why}")), MESSAGE_COLUMNS)
}

fn unchanged(head: Head, detector: Detector) -> Read {
    let known = Known::new(detector, &head.validators).into_iter().collect();
    Read { head, reading: Reading::Unchanged { detector, known } }
}

fn feed_context(head: &Head, zone: &TimeZone) -> feed::Context {
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    feed::Context {
        url: Some(head.final_url.clone()),
        content_type: header("content-type"),
        content_location: header("content-location"),
        content_language: header("content-language"),
        zone: Some(zone.clone()),
    }
}

async fn parse_sitemap(head: &Head, body: Bytes) -> Result<sitemap::Sitemap, sitemap::Refused> {
    let (content_type, at) = (head.content_type().map(str::to_owned), head.final_url.clone());
    apart(body, move |body| {
        sitemap::parse(body, content_type.as_deref(), Some(&at), &sitemap::Limits::default())
    })
    .await
}

/// The first and the last: a site adds at one end of its list, so that only what is new moves into the window.
fn ends(children: &[sitemap::Location]) -> impl Iterator<Item = &sitemap::Location> {
    let first = children.len().min(CHILDREN_AT_EACH_END);
    let last = children.len().saturating_sub(CHILDREN_AT_EACH_END).max(first);
    children[..first].iter().chain(&children[last..])
}

fn looks_like_xml(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    [b"<?xml".as_slice(), b"<rss", b"<feed", b"<rdf", b"{"]
        .iter()
        .any(|mark| start.get(..mark.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(mark)))
}

fn is_about_comments(feed: &crate::parse::html::FeedLink) -> bool {
    let title = feed.title.as_deref().unwrap_or_default().to_lowercase();
    feed.href.contains("/comments/") || title.contains("comments") || title.contains("コメント")
}

/// Reads a document where it stands, or on a thread of its own when it is large.
async fn apart<T: Send + 'static>(body: Bytes, read: impl FnOnce(&[u8]) -> T + Send + 'static) -> T {
    in_background(body.len() > LARGE, move || read(&body)).await
}

async fn in_background<T: Send + 'static>(is_long: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
    if !is_long {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(crash) => std::panic::resume_unwind(crash.into_panic()),
    }
}
