//! Finding the feed and the sitemap of a blog: what its page and robots.txt name, then where they usually are.

use super::{ANY_TYPE, Detector, FEED_TYPES, Look, Miss, PAGE_TYPES, PageRead, Read};
use crate::blogs::decide::SURE_AFTER;
use crate::blogs::model::{Known, Reading};
use crate::fetch::Response;
use crate::parse::html::well_known_feed_paths;
use crate::parse::robots::{self, Robots};
use crate::parse::url::{Url, resolve_web};

/// Feeds that a page names and that are tried.
const NAMED: usize = 4;
/// Usual places that are tried.
const USUAL: usize = 12;
/// Where sitemaps usually are.
const SITEMAP_PATHS: [&str; 3] = ["/sitemap.xml", "/sitemap_index.xml", "/wp-sitemap.xml"];

impl Look<'_> {
    /// Searches for the document of `detector` and reads it; `None` when there is none.
    pub(super) async fn search(&mut self, detector: Detector) -> Result<Option<Read>, Miss> {
        match detector {
            Detector::Feed => self.search_feed().await,
            Detector::Sitemap => self.search_sitemap().await,
            Detector::Html => Ok(None),
        }
    }

    async fn search_feed(&mut self) -> Result<Option<Read>, Miss> {
        let page = self.page_for_search().await?;
        if let Some(entries) = &page.as_feed {
            let (entries, total) = (entries.clone(), entries.len());
            let known = Known::new(Detector::Feed, &page.head.validators).into_iter().collect();
            let reading = Reading::Entries { detector: Detector::Feed, entries, known, total };
            let read = Read { head: page.head.clone(), reading };
            self.feed_search = Some(Some(self.blog.url.clone()));
            return Ok(Some(read));
        }
        let named: Vec<Url> = page.feeds.iter().take(NAMED).cloned().collect();
        let at = page.head.final_url.clone();
        let mut candidates = named.clone();
        if named.is_empty() {
            let robots = self.robots().await?;
            let usual = well_known_feed_paths(&at).into_iter();
            candidates
                .extend(usual.filter(|url| robots.allows(&self.prober.agent, url.as_str())).take(USUAL));
        }
        for url in candidates {
            match self.read_feed(&url, false).await {
                Ok(read) => {
                    self.feed_search = Some(Some(read.head.permanent_url.clone().unwrap_or(url)));
                    return Ok(Some(read));
                }
                Err(miss) if self.is_worth_waiting(&miss) => return Err(miss),
                Err(_) => {}
            }
        }
        self.feed_search = Some(None);
        Ok(None)
    }

    async fn search_sitemap(&mut self) -> Result<Option<Read>, Miss> {
        let robots = self.robots().await?;
        let named = robots.sitemaps().iter().filter_map(|text| resolve_web(Some(&self.blog.url), text));
        let usual = SITEMAP_PATHS.iter().filter_map(|path| self.blog.url.join(path).ok());
        let usual = usual.filter(|url| robots.allows(&self.prober.agent, url.as_str()));
        let mut candidates: Vec<Url> = named.take(NAMED).chain(usual).collect();
        let mut tried = std::collections::HashSet::new();
        candidates.retain(|url| tried.insert(url.clone()));
        for url in candidates {
            match self.read_sitemap(&url, false).await {
                Ok(read) if matches!(&read.reading, Reading::Entries { entries, .. } if !entries.is_empty()) =>
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

    /// Whether the trouble will pass: then nothing was found out, and the search is not over.
    ///
    /// One that lasts is no reason to look nowhere else.
    fn is_worth_waiting(&self, miss: &Miss) -> bool {
        miss.is_passing && self.state.failures_in_a_row < SURE_AFTER
    }

    /// The page, read anew and kept for the detector that reads links.
    async fn page_for_search(&mut self) -> Result<&PageRead, Miss> {
        if self.page.is_none() {
            let accept = format!("{PAGE_TYPES}, {FEED_TYPES}");
            let page = match self.ask(Detector::Html, &self.blog.url, None, &accept).await? {
                Response::Fetched(head, body) => self.read_page(head, body).await?,
                Response::Unchanged(_) => return Err(Miss::other("an answer to nothing asked".into())),
            };
            self.page = Some(page);
        }
        self.page.as_ref().ok_or_else(|| Miss::other("the page was not read".into()))
    }

    /// The robots.txt of the site; one that is missing or refused allows everything.
    async fn robots(&mut self) -> Result<Robots, Miss> {
        if self.robots.is_none() {
            let url = self.blog.url.join("/robots.txt").map_err(|error| Miss::other(error.to_string()))?;
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
