//! Metadata of a page in its tags: title, base, canonical address, feeds, refresh.
//!
//! They are collected from the tags without building a tree, wherever they are in the page, because real pages put them
//! anywhere.

use std::cell::{Cell, RefCell};

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult};

use super::tree;
use crate::markup::single_spaced;
use crate::resolver::{Resolver, is_usable_base};
use crate::url::{self, Url};

/// A feed linked by a page.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FeedLink {
    /// As written if the address of the page is unknown.
    pub href: String,
    /// The media type in lower case.
    #[serde(rename = "type")]
    pub media_type: Option<String>,
    pub title: Option<String>,
}

/// A refresh to another address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    pub after_secs: u64,
    /// The address; `None` reloads the page.
    pub url: Option<Url>,
}

/// The metadata, with addresses resolved.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) title: Option<String>,
    pub(super) base: Option<Url>,
    pub(super) canonical: Option<Url>,
    pub(super) refresh: Option<Refresh>,
    pub(super) feeds: Vec<FeedLink>,
}

/// The most feeds of one page.
const MAX_FEEDS: usize = 200;

/// Reads the metadata from tidied HTML.
pub(super) fn read(html: &str, page: Option<&Url>) -> Head {
    let found = tree::tokenize(HeadCollector::default(), html).sink.found.into_inner();
    let base = found.base.and_then(|href| url::resolve(page, &href)).filter(is_usable_base);
    let resolver = Resolver::default();
    let from = base.as_ref().or(page);
    let mut feeds: Vec<FeedLink> = Vec::new();
    for mut feed in found.feeds {
        let Some(href) = feed_address(&resolver, from, &feed.href) else { continue };
        feed.href = href;
        if feeds.len() < MAX_FEEDS && !feeds.iter().any(|known| known.href == feed.href) {
            feeds.push(feed);
        }
    }
    let title = |text: Option<String>| text.map(|text| single_spaced(&text)).filter(|text| !text.is_empty());
    Head {
        title: title(found.title).or_else(|| title(found.social_title)),
        canonical: found.canonical.and_then(|href| resolver.resolve(from, &href)).filter(url::is_web),
        refresh: found.refresh.and_then(|content| read_refresh(&content, from)),
        feeds,
        base,
    }
}

fn feed_address(resolver: &Resolver, base: Option<&Url>, href: &str) -> Option<String> {
    let href = href.trim_matches(|c: char| c.is_ascii_whitespace());
    if href.is_empty() {
        return None;
    }
    // `feed:https://…` and `feed://…` are addresses for feed readers.
    let web = match href.get(..5) {
        Some(scheme) if scheme.eq_ignore_ascii_case("feed:") => match &href[5..] {
            rest if rest.starts_with("//") => format!("http:{rest}"),
            rest => rest.to_owned(),
        },
        _ => href.to_owned(),
    };
    match resolver.resolve(base, &web) {
        Some(address) => url::is_web(&address).then(|| address.into()),
        None => (base.is_none() && web.len() <= url::MAX_BYTES).then_some(web),
    }
}

/// Parses `5; url='next.html'` like browsers.
fn read_refresh(content: &str, base: Option<&Url>) -> Option<Refresh> {
    let content = content.trim_ascii_start();
    let digits = content.find(|c: char| !c.is_ascii_digit()).unwrap_or(content.len());
    if digits == 0 && !content.starts_with('.') {
        return None;
    }
    let after_secs = if digits == 0 { 0 } else { content[..digits].parse().unwrap_or(u64::MAX) };
    let rest = content[digits..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !rest.is_empty() && !rest.starts_with(|c: char| c.is_ascii_whitespace() || matches!(c, ';' | ',')) {
        return None;
    }
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_ascii_start();
    if rest.is_empty() {
        return Some(Refresh { after_secs, url: None });
    }
    let named = rest
        .get(..3)
        .filter(|name| name.eq_ignore_ascii_case("url"))
        .and_then(|_| rest[3..].trim_ascii_start().strip_prefix('=').map(str::trim_ascii_start));
    let target = named.unwrap_or(rest);
    let target = match target.chars().next() {
        Some(quote @ ('"' | '\'')) => target[1..].split(quote).next().unwrap_or_default(),
        _ => target,
    };
    url::resolve_web(base, target).map(|url| Refresh { after_secs, url: Some(url) })
}

/// The metadata as written, before the base is known.
#[derive(Debug, Default)]
struct HeadFacts {
    title: Option<String>,
    social_title: Option<String>,
    base: Option<String>,
    canonical: Option<String>,
    refresh: Option<String>,
    feeds: Vec<FeedLink>,
}

#[derive(Default)]
struct HeadCollector {
    found: RefCell<HeadFacts>,
    in_title: Cell<bool>,
    /// How many `svg` elements are open: their titles are not the page's.
    in_svg: Cell<usize>,
    in_noscript: Cell<bool>,
}

impl TokenSink for HeadCollector {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => return self.tag(&tag),
            Token::CharacterTokens(text) if self.in_title.get() => {
                if let Some(title) = &mut self.found.borrow_mut().title {
                    title.push_str(&text);
                }
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl HeadCollector {
    fn tag(&self, tag: &Tag) -> TokenSinkResult<()> {
        let is_start = tag.kind == TagKind::StartTag;
        let mut found = self.found.borrow_mut();
        match &*tag.name {
            "title" => {
                let opens = is_start && self.in_svg.get() == 0;
                self.in_title.set(opens && found.title.is_none());
                if opens {
                    found.title.get_or_insert_default();
                    return TokenSinkResult::RawData(RawKind::Rcdata);
                }
            }
            "textarea" if is_start => return TokenSinkResult::RawData(RawKind::Rcdata),
            "script" if is_start => return TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" if is_start => {
                return TokenSinkResult::RawData(RawKind::Rawtext);
            }
            "svg" => {
                let open = self.in_svg.get();
                self.in_svg.set(if is_start && !tag.self_closing {
                    open + 1
                } else {
                    open.saturating_sub(1)
                });
            }
            "noscript" => self.in_noscript.set(is_start),
            "base" if is_start && found.base.is_none() => found.base = attribute(tag, "href"),
            "meta" if is_start => self.meta(tag, &mut found),
            "link" | "a" | "area" if is_start => link(tag, &mut found),
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn meta(&self, tag: &Tag, found: &mut HeadFacts) {
        let is = |name: &str, value: &str| {
            attribute(tag, name).is_some_and(|text| text.trim().eq_ignore_ascii_case(value))
        };
        if found.refresh.is_none() && !self.in_noscript.get() && is("http-equiv", "refresh") {
            found.refresh = attribute(tag, "content");
        } else if found.social_title.is_none() && (is("property", "og:title") || is("name", "twitter:title"))
        {
            found.social_title = attribute(tag, "content");
        }
    }
}

fn link(tag: &Tag, found: &mut HeadFacts) {
    let Some(rel) = attribute(tag, "rel") else { return };
    let Some(href) = attribute(tag, "href") else { return };
    let is = |kind: &str| rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(kind));
    if is("canonical") && &*tag.name == "link" && found.canonical.is_none() {
        found.canonical = Some(href);
        return;
    }
    let media_type = attribute(tag, "type").map(|text| essence(&text)).filter(|text| !text.is_empty());
    let is_feed = match &media_type {
        Some(media_type) => (is("alternate") || is("feed")) && is_feed_type(media_type, &href),
        None => is("feed"),
    };
    if is_feed && !is("stylesheet") && found.feeds.len() < MAX_FEEDS * 4 {
        let title = attribute(tag, "title").map(|text| single_spaced(&text)).filter(|text| !text.is_empty());
        found.feeds.push(FeedLink { href, media_type, title });
    }
}

fn attribute(tag: &Tag, name: &str) -> Option<String> {
    tag.attrs
        .iter()
        .find(|attribute| &*attribute.name.local == name)
        .map(|attribute| attribute.value.to_string())
}

/// A media type without parameters, in lower case.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether it is the type of a feed; ambiguous types need an address that looks like a feed.
fn is_feed_type(media_type: &str, href: &str) -> bool {
    match media_type {
        "application/rss+xml"
        | "application/atom+xml"
        | "application/feed+json"
        | "application/rdf+xml"
        | "application/x.atom+xml"
        | "application/x-rss+xml"
        | "application/x-atom+xml"
        | "application/rss"
        | "application/atom"
        | "text/rss+xml"
        | "text/atom+xml"
        | "text/rss"
        | "text/xml"
        | "application/xml" => true,
        "application/json" => {
            let href = href.to_ascii_lowercase();
            href.contains("feed") && !href.contains("wp-json") && !href.contains("oembed")
        }
        _ => false,
    }
}
