//! Discovers the feed and the sitemap of a blog: those that its page and robots.txt name, then the usual places.

use std::collections::HashSet;

use super::nothing_asked;
use super::{ANY_TYPE, Detector, FEED_TYPES, Home, Miss, PAGE_TYPES, PageRead, ProbeRun, Read};
use crate::blogs::decide::SURE_AFTER;
use crate::blogs::model::{DetectorResult, KnownDocument};
use crate::fetch::Response;
use crate::parse::feed::Feed;
use crate::parse::robots::{self, Robots};
use crate::parse::url::{Url, resolve_web};
use crate::phrase;

/// The most documents named by a page or robots.txt that are tried; a hostile one names thousands.
const MAX_NAMED: usize = 8;
/// The most unused feeds that are reported.
const MAX_OTHER_FEEDS: usize = 20;
/// When the page cannot be read, one check in so many tries the usual places of feeds.
const TRIED_EVERY: u32 = 24;
/// The usual places of sitemaps.
const SITEMAP_PATHS: [&str; 3] = ["/sitemap.xml", "/sitemap_index.xml", "/wp-sitemap.xml"];

impl ProbeRun<'_> {
    /// Searches for the document of `detector` and reads it; `None` when there is none.
    pub(super) async fn search(&mut self, detector: Detector) -> Result<Option<Read>, Miss> {
        match detector {
            Detector::Feed => Box::pin(self.search_feed()).await,
            Detector::Sitemap => Box::pin(self.search_sitemap()).await,
            Detector::Html => Ok(None),
        }
    }

    async fn search_feed(&mut self) -> Result<Option<Read>, Miss> {
        let page = match self.page_for_search().await {
            Ok(page) => page,
            Err(miss) => {
                // A server that refuses its page to programs, or has none, may still have a feed. Search for nothing
                // else: the address may as well be misspelt.
                let is_time = self.state.failures_in_a_row.is_multiple_of(TRIED_EVERY);
                if miss.status.is_none() || !miss.is_vague() || self.is_worth_waiting(&miss) || !is_time {
                    return Err(miss);
                }
                let (home, at) = (Home::new(&self.blog.url), self.blog.url.clone().into());
                let found = self.usual_feed_of(&home, &at, &[]).await?;
                return if found.is_some() { Ok(self.note_search(found)) } else { Err(miss) };
            }
        };
        if let Some((entries, cut)) = &page.as_feed {
            let (entries, total, cut) = (entries.clone(), entries.len(), *cut);
            let known = KnownDocument::new(Detector::Feed, &page.head.validators).into_iter().collect();
            let reading = DetectorResult::Entries { detector: Detector::Feed, entries, known, total, cut };
            let read = Read { head: page.head.clone(), reading };
            self.feed_search = Some(Some(self.blog.url.clone().into()));
            return Ok(Some(read));
        }
        let (named, at) = (page.feeds.clone(), page.head.final_url.clone());
        let (linked, canonical) = (page.linked.clone(), page.canonical.clone());
        let home = Home::behind(&self.blog.url, &at);
        let own = home.clone();
        let fits = move |feed: &Feed, at: &Url| {
            own.owns(feed, at)
                || Home::is_listed(feed, at, &linked)
                || canonical.as_ref().is_some_and(|canonical| Home::is_named(feed, at, canonical))
        };
        let mut found = self.fullest_of(&named, &home, fits).await?;
        if found.is_none() {
            found = self.usual_feed_of(&home, &at, &named).await?;
        }
        let others = named.into_iter().filter(|url| found.as_ref().is_none_or(|(chosen, _)| url != chosen));
        self.other_feeds = others.take(MAX_OTHER_FEEDS).map(String::from).collect();
        Ok(self.note_search(found))
    }

    fn note_search(&mut self, found: Option<(Url, Read)>) -> Option<Read> {
        let (url, read) =
            found.map(|(url, read)| (read.head.permanent_url.clone().unwrap_or(url), read)).unzip();
        self.feed_search = Some(url);
        read
    }

    /// The first feed of this blog in the usual places, without those that were tried.
    async fn usual_feed_of(
        &mut self,
        home: &Home,
        at: &Url,
        tried: &[Url],
    ) -> Result<Option<(Url, Read)>, Miss> {
        let robots = self.robots().await?;
        for url in home.usual_feeds(at) {
            if tried.contains(&url) || !robots.allows(&self.prober.agent, url.as_str()) {
                continue;
            }
            let home = home.clone();
            if let Some(read) = self.try_feed(&url, move |feed, at| home.owns(feed, at)).await? {
                return Ok(Some((url, read)));
            }
        }
        Ok(None)
    }

    /// Of the feeds that the page names, the one with the most entries that `fits`; the first of several such.
    async fn fullest_of(
        &self,
        named: &[Url],
        home: &Home,
        fits: impl Fn(&Feed, &Url) -> bool + Clone + Send + 'static,
    ) -> Result<Option<(Url, Read)>, Miss> {
        let mut candidates: Vec<&Url> = named.iter().collect();
        candidates.sort_by_key(|url| !home.holds(url));
        let mut fullest: Option<(Url, Read)> = None;
        for url in candidates.into_iter().take(MAX_NAMED) {
            let Some(read) = self.try_feed(url, fits.clone()).await? else { continue };
            if fullest.as_ref().is_none_or(|(_, known)| count(&read) > count(known)) {
                fullest = Some((url.clone(), read));
            }
        }
        Ok(fullest)
    }

    /// Reads a possible feed of the blog; `None` when there is none, or one that does not fit.
    async fn try_feed(
        &self,
        url: &Url,
        fits: impl FnOnce(&Feed, &Url) -> bool + Send + 'static,
    ) -> Result<Option<Read>, Miss> {
        let read = match self.ask(Detector::Feed, url, None, FEED_TYPES).await {
            Ok(Response::Fetched(head, body)) => self.parse_feed(url, head, body, fits).await,
            Ok(Response::Unchanged(_)) => return Ok(None),
            Err(miss) => Err(miss),
        };
        match read {
            Ok((read, is_fitting)) => Ok(is_fitting.then_some(read)),
            Err(miss) if self.is_worth_waiting(&miss) => Err(miss),
            Err(_) => Ok(None),
        }
    }

    async fn search_sitemap(&mut self) -> Result<Option<Read>, Miss> {
        let robots = self.robots().await?;
        let named = robots.sitemaps().iter().filter_map(|text| resolve_web(Some(&self.blog.url), text));
        let usual = SITEMAP_PATHS.iter().filter_map(|path| self.blog.url.join(path).ok());
        let usual = usual.filter(|url| robots.allows(&self.prober.agent, url.as_str()));
        let mut candidates: Vec<Url> = named.take(MAX_NAMED).chain(usual).collect();
        let mut tried = HashSet::new();
        candidates.retain(|url| tried.insert(url.clone()));
        for url in candidates {
            match self.read_sitemap(&url, false).await {
                Ok(read) if matches!(&read.reading, DetectorResult::Entries { entries, .. } if !entries.is_empty()) =>
                {
                    self.sitemap_search = Some(Some(read.head.permanent_url.clone().unwrap_or(url)));
                    return Ok(Some(read));
                }
                Err(miss) if self.is_worth_waiting(&miss) => return Err(miss),
                Ok(_) | Err(_) => {}
            }
        }
        self.sitemap_search = Some(None);
        Ok(None)
    }

    /// Whether the failure is temporary: then the search has no result yet.
    ///
    /// A lasting failure does not prevent the search elsewhere.
    fn is_worth_waiting(&self, miss: &Miss) -> bool {
        miss.is_passing && self.state.failures_in_a_row < SURE_AFTER
    }

    /// The page, fetched again and kept for the detector of links.
    async fn page_for_search(&mut self) -> Result<&PageRead, Miss> {
        if self.page.is_none() {
            let accept = format!("{PAGE_TYPES}, {FEED_TYPES}");
            let page = match self.ask(Detector::Html, &self.blog.url, None, &accept).await? {
                Response::Fetched(head, body) => self.read_page(head, body).await?,
                Response::Unchanged(_) => return Err(Miss::other(nothing_asked())),
            };
            self.page = Some(page);
        }
        self.page
            .as_ref()
            .ok_or_else(|| Miss::other(phrase!("the page was not read", "ページを読み込んでいません")))
    }

    /// The robots.txt of the site; one that is missing or refused allows everything.
    async fn robots(&mut self) -> Result<Robots, Miss> {
        if self.robots.is_none() {
            let url =
                self.blog.url.join("/robots.txt").map_err(|error| Miss::other(error.to_string().into()))?;
            let rules = match self.ask(Detector::Sitemap, &url, None, ANY_TYPE).await {
                Ok(Response::Fetched(_, body)) => robots::parse(&body),
                Ok(Response::Unchanged(_)) => Robots::default(),
                Err(miss) if self.is_worth_waiting(&miss) => return Err(miss),
                Err(_) => Robots::default(),
            };
            self.robots = Some(rules);
        }
        Ok(self.robots.clone().unwrap_or_default())
    }
}

fn count(read: &Read) -> usize {
    match &read.reading {
        DetectorResult::Entries { entries, .. } => entries.len(),
        DetectorResult::Unchanged { .. } => 0,
    }
}
