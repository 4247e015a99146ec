//! Reads the feed of a blog.

use bytes::Bytes;
use jiff::tz::TimeZone;

use super::{FEED_TYPES, Miss, ProbeRun, Read, apart, unchanged};
use crate::blogs::config::Blog;
use crate::blogs::detect;
use crate::blogs::model::{Detector, DetectorResult, KnownDocument};
use crate::fetch::{Head, Response};
use crate::parse::feed;
use crate::parse::url::Url;

impl ProbeRun<'_> {
    pub(super) async fn read_feed(&self, url: &Url) -> Result<Read, Miss> {
        let known = self.known(Detector::Feed, true);
        match self.ask(Detector::Feed, url, known, FEED_TYPES).await? {
            Response::Unchanged(head) => Ok(unchanged(head, Detector::Feed)),
            Response::Fetched(head, body) => {
                self.parse_feed(url, head, body, |_, _| true).await.map(|(read, _)| read)
            }
        }
    }

    /// Parses a fetched feed, and returns whether it `fits`, given where it was found.
    pub(super) async fn parse_feed(
        &self,
        url: &Url,
        head: Head,
        body: Bytes,
        fits: impl FnOnce(&feed::Feed, &Url) -> bool + Send + 'static,
    ) -> Result<(Read, bool), Miss> {
        let (blog, context, at) =
            (self.blog.clone(), feed_context(&head, &self.prober.zone), head.final_url.clone());
        let read = apart(body, move |body| {
            let feed = parse(body, &context, &blog)?;
            let (is_fitting, total, cut) = (fits(&feed, &at), feed.entries.len(), feed.cut);
            Ok::<_, feed::FeedError>((is_fitting, total, cut, detect::feed_entries(feed, &blog)))
        });
        let (is_fitting, total, cut, entries) = read
            .await
            .map_err(|refused| Miss::lost(Detector::Feed, url, Some(head.status), refused.phrase()))?;
        let known = KnownDocument::new(Detector::Feed, &head.validators).into_iter().collect();
        let reading = DetectorResult::Entries { detector: Detector::Feed, entries, known, total, cut };
        Ok((Read { reading, head }, is_fitting))
    }
}

/// Parses a feed, with texts if the blog needs them or if notes have no titles.
pub(super) fn parse(
    body: &[u8],
    context: &feed::Context,
    blog: &Blog,
) -> Result<feed::Feed, feed::FeedError> {
    if !detect::wants_texts(blog) {
        let feed = feed::parse_heads(body, context)?;
        if feed.entries.iter().all(|entry| entry.title.is_some()) {
            return Ok(feed);
        }
    }
    feed::parse(body, context)
}

pub(super) fn feed_context(head: &Head, zone: &TimeZone) -> feed::Context {
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    feed::Context {
        url: Some(head.final_url.clone()),
        content_type: header("content-type"),
        content_location: header("content-location"),
        content_language: header("content-language"),
        zone: Some(zone.clone()),
    }
}
