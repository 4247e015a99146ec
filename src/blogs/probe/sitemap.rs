//! Reads the sitemap of a blog, and the sitemaps inside it.

use std::collections::VecDeque;

use bytes::Bytes;

use super::nothing_asked;
use super::{ANY_TYPE, Miss, ProbeRun, Read, apart, in_background, unchanged};
use crate::blogs::detect;
use crate::blogs::model::{CheckFailureKind, Detector, DetectorResult, KnownDocument};
use crate::fetch::{Head, Response};
use crate::parse::url::{Url, resolve_web};
use crate::parse::{Cut, sitemap};

/// How many sitemaps of a list are read at its beginning and at its end.
const CHILDREN_AT_EACH_END: usize = 16;
/// The most addresses of one site that are read.
const MAX_ADDRESSES: usize = 50_000;
/// The most sitemaps of one site that are read.
const MAX_SITEMAPS: usize = 64;

/// Whether a sitemap is in the list itself or in a nested list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    First,
    Nested,
}

impl ProbeRun<'_> {
    pub(super) async fn read_sitemap(&self, url: &Url, may_skip: bool) -> Result<Read, Miss> {
        let detector = Detector::Sitemap;
        let root = self.known(detector, may_skip);
        let (head, body) = match self.ask(detector, url, root, ANY_TYPE).await? {
            Response::Fetched(head, body) => (head, body),
            Response::Unchanged(head) => {
                if let Some(known) = self.unchanged_children().await? {
                    let mut read = unchanged(head, detector);
                    if let DetectorResult::Unchanged { known: of_root, .. } = &mut read.reading {
                        of_root.extend(known);
                    }
                    return Ok(read);
                }
                match self.ask(detector, url, None, ANY_TYPE).await? {
                    Response::Fetched(head, body) => (head, body),
                    Response::Unchanged(_) => return Err(Miss::other(nothing_asked())),
                }
            }
        };
        let status = head.status;
        let read = parse_sitemap(&head, body).await;
        let root = read.map_err(|refused| Miss::lost(detector, url, Some(status), refused.phrase()))?;
        let mut known: Vec<KnownDocument> =
            KnownDocument::new(detector, &head.validators).into_iter().collect();
        let (mut locations, mut cut) = (root.urls, root.cut);
        if root.children.len() > 2 * CHILDREN_AT_EACH_END {
            cut.get_or_insert(Cut::Sitemaps);
        }
        // A nested list violates the protocol, but some sites have one; deeper lists are not followed.
        let mut children: VecDeque<(sitemap::Location, Depth)> =
            ends(&root.children).map(|child| (child.clone(), Depth::First)).collect();
        let mut read_count = 0;
        while let Some((child, depth)) = children.pop_front() {
            let Some(at) = resolve_web(Some(&head.final_url), &child.loc) else { continue };
            let (child_head, body) = match self.ask(detector, &at, None, ANY_TYPE).await {
                Ok(Response::Fetched(head, body)) => (head, body),
                Ok(Response::Unchanged(_)) => continue,
                // A missing one is no failure; one that does not respond hides addresses.
                Err(miss)
                    if matches!(miss.trouble.kind, CheckFailureKind::Lost(_) | CheckFailureKind::Gone) =>
                {
                    continue;
                }
                Err(miss) => return Err(miss),
            };
            let fallback =
                KnownDocument { detector, url: at, etag: None, last_modified: None, lastmod: None };
            let of_child = KnownDocument::new(detector, &child_head.validators).unwrap_or(fallback);
            known.push(KnownDocument { lastmod: child.lastmod, ..of_child });
            if let Ok(child) = parse_sitemap(&child_head, body).await {
                locations.extend(child.urls);
                cut = cut.or(child.cut);
                if depth == Depth::First {
                    children.extend(ends(&child.children).map(|inner| (inner.clone(), Depth::Nested)));
                }
            }
            read_count += 1;
            let is_full = locations.len() > MAX_ADDRESSES;
            if is_full || (read_count >= MAX_SITEMAPS && !children.is_empty()) {
                cut = Some(if is_full { Cut::Addresses } else { Cut::Sitemaps });
                locations.truncate(MAX_ADDRESSES);
                break;
            }
        }
        let (blog, total) = (self.blog.clone(), locations.len());
        let entries = in_background(total > 2_000, move || detect::sitemap_entries(&locations, &blog)).await;
        Ok(Read { reading: DetectorResult::Entries { detector, entries, known, total, cut }, head })
    }

    /// The validators of the nested sitemaps, if all of them are unchanged.
    async fn unchanged_children(&self) -> Result<Option<Vec<KnownDocument>>, Miss> {
        let children = self.state.known.iter().filter(|known| known.detector == Detector::Sitemap).skip(1);
        let mut still = Vec::new();
        for child in children {
            if child.validators().is_empty() {
                return Ok(None);
            }
            match self.ask(Detector::Sitemap, &child.url, Some(child), ANY_TYPE).await {
                Ok(Response::Unchanged(head)) => {
                    let renewed = KnownDocument::new(Detector::Sitemap, &head.validators)
                        .unwrap_or_else(|| child.clone());
                    still.push(KnownDocument { lastmod: child.lastmod, ..renewed });
                }
                Ok(Response::Fetched(..)) => return Ok(None),
                Err(miss)
                    if matches!(miss.trouble.kind, CheckFailureKind::Lost(_) | CheckFailureKind::Gone) =>
                {
                    return Ok(None);
                }
                Err(miss) => return Err(miss),
            }
        }
        Ok(Some(still))
    }
}

async fn parse_sitemap(head: &Head, body: Bytes) -> Result<sitemap::Sitemap, sitemap::SitemapError> {
    let (content_type, at) = (head.content_type().map(str::to_owned), head.final_url.clone());
    apart(body, move |body| {
        sitemap::parse(body, content_type.as_deref(), Some(&at), &sitemap::SitemapLimits::default())
    })
    .await
}

/// The first and the last: a site adds at one end of its list, so only new sitemaps enter the window.
fn ends(children: &[sitemap::Location]) -> impl Iterator<Item = &sitemap::Location> {
    let first = children.len().min(CHILDREN_AT_EACH_END);
    let last = children.len().saturating_sub(CHILDREN_AT_EACH_END).max(first);
    children[..first].iter().chain(&children[last..])
}
