//! One check of one blog: fetches and parses its documents. Writes nothing.

mod feed;
mod page;
mod search;
mod sitemap;

use bytes::Bytes;
use jiff::tz::TimeZone;

use self::page::PageRead;
use super::config::{Blog, Probe};
use super::decide::{self, Target};
use super::home::Home;
use super::model::{
    CheckFailure, CheckFailureKind, Detector, DetectorResult, KnownDocument, Sighting, State,
};
use crate::fetch::error::Why;
use crate::fetch::{Error, Fetcher, Head, Request, Response};
use crate::parse::url::Url;
use crate::phrase;
use crate::phrase::Phrase;
use crate::text;
use crate::time::Timestamp;

const FEED_TYPES: &str = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, \
    text/xml;q=0.9, application/json;q=0.8, */*;q=0.5";
const PAGE_TYPES: &str = "text/html, application/xhtml+xml, */*;q=0.5";
const ANY_TYPE: &str = "*/*";
/// Larger documents are parsed on a separate thread, so that other checks continue.
const LARGE: usize = 256 * 1024;
/// Columns of an error message that are kept.
const MESSAGE_COLUMNS: usize = 500;

/// Checks blogs; cheap to clone.
#[derive(Clone, Debug)]
pub struct Prober {
    /// HTTP.
    pub fetcher: Fetcher,
    /// The kind of request.
    pub probe: Probe,
    /// Our user agent for robots.txt.
    pub agent: String,
    /// The zone of dates without one.
    pub zone: TimeZone,
}

/// Why a document could not be used.
struct Miss {
    trouble: CheckFailure,
    status: Option<u16>,
    /// Whether it may be temporary.
    is_passing: bool,
}

/// A document that was read or is unchanged.
struct Read {
    head: Head,
    reading: DetectorResult,
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
    beside: Option<DetectorResult>,
    still_stopped: bool,
    page: Option<PageRead>,
    /// Why the document that decided before was lost; reported if nothing else can be read.
    miss: Option<Miss>,
    robots: Option<crate::parse::robots::Robots>,
}

impl Prober {
    /// Checks a blog.
    pub async fn check(&self, blog: &Blog, state: &State, now: Timestamp) -> Sighting {
        let mut probe = ProbeRun {
            prober: self,
            blog,
            state,
            now,
            feed_search: None,
            other_feeds: Vec::new(),
            sitemap_search: None,
            beside: None,
            still_stopped: false,
            page: None,
            miss: None,
            robots: None,
        };
        let seen = probe.run().await;
        let ProbeRun { feed_search, other_feeds, sitemap_search, beside, still_stopped, .. } = probe;
        let (http_status, moved_to, outcome) = match seen {
            Ok(read) => (Some(read.head.status), read.head.permanent_url, Ok(read.reading)),
            Err(miss) => (miss.status, None, Err(miss.trouble)),
        };
        Sighting {
            checked_at: now,
            http_status,
            outcome,
            feed_search,
            other_feeds,
            sitemap_search,
            moved_to,
            beside,
            still_stopped,
        }
    }
}

impl ProbeRun<'_> {
    /// Tries the detectors in their order; the first that has a document decides.
    async fn run(&mut self) -> Result<Read, Miss> {
        for detector in self.blog.detectors() {
            let mut target = decide::target(self.blog, self.state, *detector, self.now);
            if let Target::At(url) = &target {
                match self.read(*detector, url).await {
                    Err(miss) if decide::is_lost(self.blog, self.state, *detector) => {
                        self.miss.get_or_insert(miss);
                        continue;
                    }
                    // A feed or sitemap that is gone may be found elsewhere; the blog itself cannot.
                    Err(miss) if miss.status == Some(410) && !self.is_named(*detector) => {
                        self.miss.get_or_insert(miss);
                        target = Target::Search;
                    }
                    // A stopped feed is checked from time to time; it is used again when it has something newer.
                    read if *detector == Detector::Feed && self.state.feed_stopped_at.is_some() => match read
                    {
                        Ok(read) if decide::has_resumed(self.state, &read.reading, self.now) => {
                            return Ok(read);
                        }
                        _ => {
                            self.still_stopped = true;
                            continue;
                        }
                    },
                    Ok(read) => {
                        self.cross_check(*detector, &read).await;
                        return Ok(read);
                    }
                    Err(miss) => return Err(self.miss.take().filter(|_| miss.is_vague()).unwrap_or(miss)),
                }
            }
            if target == Target::Search
                && let Some(read) = self.search(*detector).await?
            {
                self.cross_check(*detector, &read).await;
                return Ok(read);
            }
        }
        if let Some(miss) = self.miss.take() {
            return Err(miss);
        }
        let words: Vec<_> = self.blog.detectors().iter().map(|detector| detector.word()).collect();
        Err(Miss::other(phrase!(
            "no {words} was found for {url}",
            "{url} に {words} が見つかりません",
            words = words.join(" and no "),
            url = self.blog.url.as_str()
        )))
    }

    /// Reads the sitemap in addition to a stopped feed: the site may continue without it.
    async fn cross_check(&mut self, detector: Detector, read: &Read) {
        let sitemap = Detector::Sitemap;
        if detector != Detector::Feed
            || !decide::should_cross_check(self.blog, self.state, &read.reading, self.now)
        {
            return;
        }
        let found = match decide::target(self.blog, self.state, sitemap, self.now) {
            Target::At(url) => Box::pin(self.read_sitemap(&url, false)).await.ok(),
            Target::Search => self.search(sitemap).await.ok().flatten(),
            Target::Nowhere => None,
        };
        self.beside = found.map(|read| read.reading);
    }

    /// Whether the document of `detector` is configured and not discovered.
    fn is_named(&self, detector: Detector) -> bool {
        match detector {
            Detector::Feed => self.blog.feed.is_some(),
            Detector::Sitemap => self.blog.sitemap.is_some(),
            Detector::Html => true,
        }
    }

    /// Reads a document. The futures of other documents than feeds are boxed: a thousand concurrent checks are mostly
    /// of feeds.
    async fn read(&mut self, detector: Detector, url: &Url) -> Result<Read, Miss> {
        match detector {
            Detector::Feed => self.read_feed(url).await,
            Detector::Sitemap => Box::pin(self.read_sitemap(url, true)).await,
            Detector::Html => Box::pin(self.read_links(url)).await,
        }
    }

    /// The stored validators of the document of `detector`, if a conditional request is allowed.
    fn known(&self, detector: Detector, may_skip: bool) -> Option<&KnownDocument> {
        if !may_skip || !decide::may_skip(self.blog, self.state, detector, self.now) {
            return None;
        }
        self.state.known.iter().find(|known| known.detector == detector)
    }

    async fn ask(
        &self,
        detector: Detector,
        url: &Url,
        known: Option<&KnownDocument>,
        accept: &str,
    ) -> Result<Response, Miss> {
        let miss = |error: Error| self.miss(detector, url, &error);
        let prepared = |request: Request| {
            let request = request.accept(accept).allow_private(&self.blog.reachable);
            let request = match known {
                Some(known) => request.validators(&known.validators()),
                None => request,
            };
            self.blog.authorized(request, url).map_err(|missing| Miss::other(missing.phrase()))
        };
        if self.prober.probe == Probe::Head && known.is_some() {
            match self.prober.fetcher.fetch(&prepared(Request::head(url.clone()))?).await {
                Ok(Response::Unchanged(head)) => return Ok(Response::Unchanged(head)),
                Err(error) if error.is_retryable() => return Err(miss(error)),
                // Changed, or a server that does not support HEAD: send the GET.
                Ok(Response::Fetched(..)) | Err(_) => {}
            }
        }
        self.prober.fetcher.fetch(&prepared(Request::get(url.clone()))?).await.map_err(miss)
    }

    fn miss(&self, detector: Detector, url: &Url, error: &Error) -> Miss {
        let kind = match error {
            Error::Gone if self.is_named(detector) => CheckFailureKind::Gone,
            Error::Gone | Error::NotFound if detector != Detector::Html => CheckFailureKind::Lost(detector),
            Error::Later { after, why: Why::Asked(_), .. } => CheckFailureKind::Later(*after),
            error if error.needs_config() => CheckFailureKind::Blocked,
            _ => CheckFailureKind::Other,
        };
        let why = match error {
            Error::Refused { status: 401 } => self.locked(),
            error => error.describe(),
        };
        let trouble = CheckFailure { kind, message: describe(detector, url, why) };
        Miss { trouble, status: error.status(), is_passing: error.is_retryable() }
    }

    /// The message when the server requires authentication.
    fn locked(&self) -> Phrase {
        if self.blog.access.is_some() {
            phrase!(
                "HTTP 401: the server does not accept the `login`, `headers` or `cookies` of this blog",
                "このブログの `login`・`headers`・`cookies` では認証できません（HTTP 401）"
            )
        } else {
            phrase!(
                "HTTP 401: the server wants a login: give this blog a `login`, `headers` or `cookies`",
                "認証が必要です（HTTP 401）。このブログに `login`・`headers`・`cookies` のいずれかを指定してください"
            )
        }
    }
}

impl Miss {
    fn other(message: Phrase) -> Self {
        Self {
            trouble: CheckFailure { kind: CheckFailureKind::Other, message },
            status: None,
            is_passing: false,
        }
    }

    /// Whether it is unspecific, so that another reason is reported instead.
    fn is_vague(&self) -> bool {
        !matches!(self.trouble.kind, CheckFailureKind::Later(_) | CheckFailureKind::Gone)
    }

    fn lost(detector: Detector, url: &Url, status: Option<u16>, why: Phrase) -> Self {
        let trouble =
            CheckFailure { kind: CheckFailureKind::Lost(detector), message: describe(detector, url, why) };
        Self { trouble, status, is_passing: false }
    }
}

fn describe(detector: Detector, url: &Url, why: Phrase) -> Phrase {
    let what = match detector {
        Detector::Feed => phrase!("feed", "フィード"),
        Detector::Sitemap => phrase!("sitemap", "サイトマップ"),
        Detector::Html => phrase!("page", "ページ"),
    };
    // A private feed may carry its token in the query, and this text goes to channels.
    let at = text::shorten(&text::one_line(&url[..url::Position::AfterPath]), MESSAGE_COLUMNS);
    phrase!("{what} {at}: {why}", "{what} {at}：{why}")
}

/// The error for a 304 to an unconditional request.
fn nothing_asked() -> Phrase {
    phrase!("an unsolicited \"not modified\"", "要求していない応答です")
}

fn unchanged(head: Head, detector: Detector) -> Read {
    let known = KnownDocument::new(detector, &head.validators).into_iter().collect();
    Read { head, reading: DetectorResult::Unchanged { detector, known } }
}

/// Parses a document in place, or on a separate thread when it is large.
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
