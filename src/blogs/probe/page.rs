//! Reads the page of a blog: its links, and the feeds that it names.

use std::collections::HashSet;

use bytes::Bytes;

use super::feed::{feed_context, parse as parse_feed};
use super::{Miss, PAGE_TYPES, ProbeRun, Read, apart, unchanged};
use crate::blogs::detect;
use crate::blogs::model::{Detector, DetectorResult, FoundEntry, KnownDocument};
use crate::fetch::{Head, Response};
use crate::parse::Cut;
use crate::parse::html::Html;
use crate::parse::url::{Url, resolve_web};
use crate::phrase;
use crate::phrase::Phrase;

/// The parsed content of a page.
pub(super) struct PageRead {
    pub(super) head: Head,
    pub(super) feeds: Vec<Url>,
    /// Its canonical address.
    pub(super) canonical: Option<Url>,
    /// Keys of the addresses that it links to, if needed to judge the feeds that it names.
    pub(super) linked: HashSet<String>,
    pub(super) as_feed: Option<(Vec<FoundEntry>, Option<Cut>)>,
    pub(super) entries: Vec<FoundEntry>,
    /// Why links may be missing among them.
    pub(super) cut: Option<Cut>,
    /// Why it may have no links, if known.
    pub(super) emptiness: Option<Phrase>,
}

impl ProbeRun<'_> {
    pub(super) async fn read_links(&mut self, url: &Url) -> Result<Read, Miss> {
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
        if let (true, Some(why)) = (page.entries.is_empty(), page.emptiness) {
            return Err(Miss { status: Some(page.head.status), ..Miss::other(why) });
        }
        let known = KnownDocument::new(Detector::Html, &page.head.validators).into_iter().collect();
        let (entries, total) = (page.entries.clone(), page.entries.len());
        let (detector, cut) = (Detector::Html, page.cut);
        let reading = DetectorResult::Entries { detector, entries, known, total, cut };
        Ok(Read { head: page.head, reading })
    }

    pub(super) async fn read_page(&self, head: Head, body: Bytes) -> Result<PageRead, Miss> {
        let (blog, context, at) =
            (self.blog.clone(), feed_context(&head, &self.prober.zone), head.final_url.clone());
        let read = apart(body, move |body| {
            // Some configs give the address of the feed itself as that of the blog.
            let as_feed = if may_be_feed(body, context.content_type.as_deref()) {
                let feed = parse_feed(body, &context, &blog).ok();
                feed.map(|feed| (feed.cut, feed)).map(|(cut, feed)| (detect::feed_entries(feed, &blog), cut))
            } else {
                None
            };
            let html = Html::read(body, context.content_type.as_deref(), Some(&at));
            let feeds = html.feeds().iter().filter(|feed| !is_about_comments(feed));
            let feeds: Vec<Url> = feeds.filter_map(|feed| resolve_web(Some(&at), &feed.href)).collect();
            let linked = if feeds.is_empty() { HashSet::new() } else { detect::linked_keys(&html, &blog) };
            let (entries, cut) = if blog.uses(Detector::Html) && as_feed.is_none() {
                (detect::page_entries(&html, &blog)?, html.cut())
            } else {
                (Vec::new(), None)
            };
            let (canonical, emptiness) = (html.canonical().cloned(), emptiness(&html, body, feeds.first()));
            Ok::<_, crate::parse::html::BadSelector>(PageRead {
                head,
                feeds,
                canonical,
                linked,
                as_feed,
                entries,
                cut,
                emptiness,
            })
        });
        read.await.map_err(|error| Miss::other(error.phrase()))
    }
}

/// Why a page may have no links: it forwards, or is rendered by a script; or what may be read instead.
fn emptiness(html: &Html, body: &[u8], feed: Option<&Url>) -> Option<Phrase> {
    if let Some(to) = html.refresh().and_then(|refresh| refresh.url.as_ref()) {
        return Some(phrase!(
            "the page has no link that counts and forwards to {to}: write that address as `url`",
            "ページに対象となるリンクがなく、{to} へ転送されます。そのアドレスを `url` に書いてください",
            to = to.as_str()
        ));
    }
    if let Some(feed) = feed {
        return Some(phrase!(
            "the page has no link that counts, and the feed that it names cannot be read or is not this blog's; if it is the right one, write `feed = \"{feed}\"`",
            "ページに対象となるリンクがなく、ページが示すフィードは読めないか、このブログのものではありません。正しければ `feed = \"{feed}\"` と書いてください",
            feed = feed.as_str()
        ));
    }
    let has_script = body.windows(7).any(|part| part.eq_ignore_ascii_case(b"<script"));
    has_script.then(|| {
        phrase!(
            "the page has no link that counts; if it is drawn by JavaScript, which is not run, name its `feed` or `sitemap`",
            "ページに対象となるリンクがありません。JavaScript で描画されるページなら（実行しません）、`feed` か `sitemap` を指定してください"
        )
    })
}

/// Whether the document may be a feed: by its first tag, or by its media type when a comment or a doctype comes first.
fn may_be_feed(body: &[u8], content_type: Option<&str>) -> bool {
    let start = body.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let has_mark =
        |mark: &[u8]| start.get(..mark.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(mark));
    let media_type = content_type.unwrap_or_default().to_ascii_lowercase();
    [b"<?xml".as_slice(), b"<rss", b"<feed", b"<rdf", b"{"].into_iter().any(has_mark)
        || (["xml", "rss", "atom"].iter().any(|word| media_type.contains(word))
            && !media_type.contains("xhtml"))
}

fn is_about_comments(feed: &crate::parse::html::FeedLink) -> bool {
    let title = feed.title.as_deref().unwrap_or_default().to_lowercase();
    feed.href.contains("/comments/") || title.contains("comments") || title.contains("コメント")
}
