//! Sitemaps as XML, plain text or a feed, each optionally compressed.

mod error;

use std::io::Read;

use super::Cut;
use super::decode;
use super::elements::{Element, ElementPiece, pieces};
use super::feed;
use super::resolver::{Resolver, is_usable_base};
use super::url::{self, Url};
use stdx::time::Timestamp;

pub use self::error::SitemapError;

/// The content of a sitemap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// In order.
    pub urls: Vec<Location>,
    /// In order.
    pub children: Vec<Location>,
    /// Why it was read only in part.
    pub cut: Option<Cut>,
}

/// One address in a sitemap.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Location {
    /// Absolute if the address of the sitemap is known.
    pub loc: String,
    /// When it last changed, if the site says so in a valid form.
    pub lastmod: Option<Timestamp>,
    /// Its title in a news sitemap.
    #[serde(skip)]
    pub title: Option<Box<str>>,
}

/// The limits of a sitemap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitemapLimits {
    /// Pages and further sitemaps together.
    pub max_urls: usize,
    /// Bytes after decompression.
    pub max_decoded_bytes: u64,
    /// The compression ratio, above the first mebibyte.
    pub max_ratio: u64,
}

impl Default for SitemapLimits {
    fn default() -> Self {
        Self { max_urls: 50_000, max_decoded_bytes: 64 * 1024 * 1024, max_ratio: 100 }
    }
}

/// Parses a sitemap fetched from `base`.
pub fn parse(
    bytes: &[u8],
    content_type: Option<&str>,
    base: Option<&Url>,
    limits: &SitemapLimits,
) -> Result<Sitemap, SitemapError> {
    if bytes.starts_with(b"\x1f\x8b") {
        let (plain, is_whole) = decompress(bytes, limits)?;
        // The media type is that of the compressed file.
        let mut sitemap = parse_plain(&plain, None, base, limits)?;
        sitemap.cut = sitemap.cut.or((!is_whole).then_some(Cut::End));
        return Ok(sitemap);
    }
    parse_plain(bytes, content_type, base, limits)
}

/// The decompressed bytes, and whether they are complete.
fn decompress(bytes: &[u8], limits: &SitemapLimits) -> Result<(Vec<u8>, bool), SitemapError> {
    const FREE_BYTES: u64 = 1024 * 1024;
    let by_ratio = (bytes.len() as u64).saturating_mul(limits.max_ratio).max(FREE_BYTES);
    let limit = limits.max_decoded_bytes.min(by_ratio);
    let mut plain = Vec::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(bytes).take(limit + 1);
    let is_whole = decoder.read_to_end(&mut plain).is_ok();
    if plain.len() as u64 > limit {
        return Err(SitemapError::TooLarge { limit });
    }
    if plain.is_empty() && !is_whole {
        return Err(SitemapError::Damaged);
    }
    Ok((plain, is_whole))
}

fn parse_plain(
    bytes: &[u8],
    content_type: Option<&str>,
    base: Option<&Url>,
    limits: &SitemapLimits,
) -> Result<Sitemap, SitemapError> {
    let text = decode::decode(bytes, content_type, decode::Kind::Xml).text;
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let base = base.filter(|base| is_usable_base(base));
    let resolver = Resolver::default();
    let mut list = SitemapBuilder { base, resolver, max_urls: limits.max_urls, found: Sitemap::default() };
    if start.is_empty() {
        return Err(SitemapError::Empty);
    }
    if !start.starts_with('<') {
        return list.read_lines(start);
    }
    match root(start) {
        Root::Feed => from_feed(bytes, content_type, base, limits),
        Root::Html => Err(SitemapError::Html),
        Root::Other(root) => {
            list.read_elements(start);
            // Some sites use another name for the root; the content decides.
            let lists_something = !(list.found.urls.is_empty() && list.found.children.is_empty());
            if lists_something { Ok(list.found) } else { Err(SitemapError::OtherXml { root }) }
        }
        Root::Sitemap => {
            list.read_elements(start);
            Ok(list.found)
        }
    }
}

enum Root {
    Sitemap,
    Feed,
    Html,
    Other(String),
}

fn root(text: &str) -> Root {
    let name = pieces(text).find_map(|piece| match piece {
        ElementPiece::Open(element) => Some(element.local().to_owned()),
        _ => None,
    });
    let name = name.unwrap_or_default();
    match name.to_ascii_lowercase().as_str() {
        "urlset" | "sitemapindex" => Root::Sitemap,
        "rss" | "feed" | "rdf" => Root::Feed,
        "html" | "head" | "body" => Root::Html,
        _ => Root::Other(name.chars().take(64).collect()),
    }
}

/// The entries of a feed as addresses of a sitemap.
fn from_feed(
    bytes: &[u8],
    content_type: Option<&str>,
    base: Option<&Url>,
    limits: &SitemapLimits,
) -> Result<Sitemap, SitemapError> {
    let context = feed::Context {
        url: base.cloned(),
        content_type: content_type.map(str::to_owned),
        ..feed::Context::default()
    };
    let feed = feed::parse(bytes, &context).map_err(|_| SitemapError::NotASitemap)?;
    let mut found = Sitemap::default();
    let resolver = Resolver::default();
    for entry in feed.entries {
        let Some(loc) = entry.link.as_deref().and_then(|link| address(&resolver, base, link)) else {
            continue;
        };
        if found.urls.len() >= limits.max_urls {
            found.cut = Some(Cut::Addresses);
            break;
        }
        let title = entry.title.map(String::into_boxed_str);
        found.urls.push(Location { loc, lastmod: entry.updated.or(entry.published), title });
    }
    found.cut = found.cut.or(feed.cut);
    Ok(found)
}

/// Collects addresses up to the limit.
struct SitemapBuilder<'a> {
    base: Option<&'a Url>,
    resolver: Resolver,
    max_urls: usize,
    found: Sitemap,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Page,
    Sitemap,
}

/// The open entry: the name of its element, its prefix, and the fields read so far.
struct SitemapEntry<'a> {
    holds: Holds,
    prefix: &'a str,
    loc: String,
    lastmod: String,
    /// For news: publication date and title.
    published: String,
    title: String,
    field: Option<EntryField>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryField {
    Loc,
    Lastmod,
    Published,
    Title,
}

impl SitemapEntry<'_> {
    /// Appends to the open field, without leading space, so that a field of white space stays empty and is not searched
    /// again.
    fn push(&mut self, text: &str) {
        let place = match self.field {
            Some(EntryField::Loc) => &mut self.loc,
            Some(EntryField::Lastmod) => &mut self.lastmod,
            Some(EntryField::Published) => &mut self.published,
            Some(EntryField::Title) => &mut self.title,
            None => return,
        };
        place.push_str(if place.is_empty() { text.trim_start() } else { text });
    }

    /// Drops the incomplete field of an entry at the end of a truncated document.
    fn cut_off(self) -> Option<Self> {
        match self.field {
            Some(EntryField::Loc) => None,
            Some(EntryField::Lastmod) => Some(Self { lastmod: String::new(), ..self }),
            Some(EntryField::Published) => Some(Self { published: String::new(), ..self }),
            Some(EntryField::Title) => Some(Self { title: String::new(), ..self }),
            None => Some(self),
        }
    }

    /// The field of an element inside the entry.
    ///
    /// `image:loc` and `video:…` have other prefixes than the entry and are not its fields.
    fn field_of(&self, element: &Element<'_>) -> Option<EntryField> {
        let is_own = element.prefix().is_empty() || element.prefix() == self.prefix;
        let is_news = element.prefix().eq_ignore_ascii_case("news");
        match element.local().to_ascii_lowercase().as_str() {
            "loc" if is_own && self.loc.is_empty() => Some(EntryField::Loc),
            "lastmod" if is_own && self.lastmod.is_empty() => Some(EntryField::Lastmod),
            "publication_date" if is_news && self.published.is_empty() => Some(EntryField::Published),
            "title" if is_news && self.title.is_empty() => Some(EntryField::Title),
            _ => None,
        }
    }
}

impl SitemapBuilder<'_> {
    fn read_elements(&mut self, text: &str) {
        let mut entry: Option<SitemapEntry<'_>> = None;
        let mut is_closed = false;
        for piece in pieces(text) {
            match piece {
                ElementPiece::Open(element) => match holds(element.local()) {
                    Some(holds) => {
                        // An entry that was not closed ends where the next begins.
                        self.close(entry.take());
                        if self.is_full() {
                            return;
                        }
                        let prefix = element.prefix();
                        entry = Some(SitemapEntry {
                            holds,
                            prefix,
                            loc: String::new(),
                            lastmod: String::new(),
                            published: String::new(),
                            title: String::new(),
                            field: None,
                        });
                    }
                    None => {
                        if let Some(entry) = &mut entry {
                            entry.field = entry.field_of(&element);
                        }
                    }
                },
                ElementPiece::Close(name) if holds(name).is_some() => self.close(entry.take()),
                ElementPiece::Close(name) => {
                    is_closed |= is_root(name);
                    if let Some(entry) = &mut entry {
                        entry.field = None;
                    }
                }
                ElementPiece::Text(text) => {
                    if let Some(entry) = &mut entry {
                        entry.push(&text);
                    }
                }
            }
        }
        if !is_closed && entry.is_some() {
            self.found.cut.get_or_insert(Cut::End);
            entry = entry.and_then(SitemapEntry::cut_off);
        }
        self.close(entry);
    }

    fn read_lines(mut self, text: &str) -> Result<Sitemap, SitemapError> {
        let mut wrong = 0;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if self.is_full() {
                break;
            }
            if line.contains(char::is_whitespace) || url::resolve_web(None, line).is_none() {
                wrong += 1;
                // Stop: this is prose, code or JSON.
                if wrong > 20 + self.found.urls.len() {
                    break;
                }
                continue;
            }
            let Some(loc) = address(&self.resolver, self.base, line) else { continue };
            self.found.urls.push(Location { loc, lastmod: None, title: None });
        }
        if wrong > self.found.urls.len() || self.found.urls.is_empty() {
            return Err(SitemapError::NotASitemap);
        }
        Ok(self.found)
    }

    fn close(&mut self, entry: Option<SitemapEntry<'_>>) {
        if let Some(entry) = entry {
            self.add(&entry);
        }
    }

    fn is_full(&mut self) -> bool {
        let is_full = self.found.urls.len() + self.found.children.len() >= self.max_urls;
        if is_full {
            self.found.cut = Some(Cut::Addresses);
        }
        is_full
    }

    fn add(&mut self, entry: &SitemapEntry<'_>) {
        let Some(loc) = address(&self.resolver, self.base, &entry.loc) else { return };
        let lastmod = feed::date::parse(&entry.lastmod).or_else(|| feed::date::parse(&entry.published));
        let title = Some(entry.title.trim_end()).filter(|title| !title.is_empty()).map(Box::from);
        let location = Location { loc, lastmod, title };
        match entry.holds {
            Holds::Page => self.found.urls.push(location),
            Holds::Sitemap => self.found.children.push(location),
        }
    }
}

fn holds(name: &str) -> Option<Holds> {
    if name.eq_ignore_ascii_case("url") {
        Some(Holds::Page)
    } else if name.eq_ignore_ascii_case("sitemap") {
        Some(Holds::Sitemap)
    } else {
        None
    }
}

fn is_root(name: &str) -> bool {
    name.eq_ignore_ascii_case("urlset") || name.eq_ignore_ascii_case("sitemapindex")
}

/// A listed address without white space; a relative one is made absolute.
fn address(resolver: &Resolver, base: Option<&Url>, loc: &str) -> Option<String> {
    let written: String = loc.trim().chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    if written.is_empty() {
        return None;
    }
    match url::resolve(None, &written) {
        Some(absolute) => (url::is_web(&absolute) && resolver.admits(written.len(), 0)).then_some(written),
        None => resolver.resolve(base, &written).filter(url::is_web).map(String::from),
    }
}

#[cfg(test)]
mod tests;
