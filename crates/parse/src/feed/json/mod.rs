//! JSON Feed 1.0 and 1.1, read leniently: a member of the wrong type counts as absent.

#[macro_use]
mod lenient;

use std::fmt;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use url::Url;

use self::lenient::{LenientList, LenientText};
use super::address::{address, alternate};
use super::{
    Content, Context, ENTRY_LIMIT, Enclosure, Entry, Feed, FeedError, Format, Link, Person, Tag, TextKind,
    base_of, date,
};
use crate::Cut;
use crate::resolver::Resolver;

/// Reads `text` as a JSON Feed.
pub(super) fn read(text: &str, context: &Context) -> Result<Feed, FeedError> {
    let document: JsonFeed =
        serde_json::from_str(text).map_err(|error| FeedError::BrokenJson { why: error.to_string() })?;
    let version = document.version.0.unwrap_or_default();
    let stated = version.contains("jsonfeed.org/version/");
    let entry_like = |item: &Item| item.id.0.is_some() && (item.url.0.is_some() || item.has_content());
    if !stated && !document.items.0.iter().any(entry_like) {
        return Err(FeedError::OtherJson);
    }
    let base = base_of(context);
    let resolver = Resolver::default();
    let absolute = |href: String| address(&resolver, base.as_ref(), &href);
    let format = if version.ends_with("1.1") { Format::Json11 } else { Format::Json10 };
    let mut feed = Feed { format, ..Feed::default() };
    feed.cut = document.items.1.then_some(Cut::Entries);
    feed.title = document.title.line();
    feed.description = document.description.0.map(|value| text_content(value, TextKind::Text, base.as_ref()));
    feed.language = document.language.line();
    feed.id = document.feed_url.line();
    feed.link = document.home_page_url.0.and_then(absolute);
    feed.links.extend(feed.link.clone().map(alternate));
    if let Some(href) = document.feed_url.0.and_then(absolute) {
        let kind = Some("application/feed+json".into());
        feed.links.push(Link { href, rel: "self".into(), kind, ..Link::default() });
    }
    feed.image = document.icon.0.and_then(absolute);
    feed.icon = document.favicon.0.and_then(absolute);
    feed.authors = people(document.authors, document.author, absolute);
    let items = document.items.0.into_iter().filter(|item| !item.is_empty());
    feed.entries = items.map(|item| entry(item, base.as_ref(), context.zone.as_ref(), absolute)).collect();
    feed.damaged = resolver.has_refused();
    Ok(feed)
}

fn entry(
    item: Item,
    base: Option<&Arc<Url>>,
    zone: Option<&TimeZone>,
    absolute: impl Fn(String) -> Option<String> + Copy,
) -> Entry {
    let mut entry = Entry {
        id: item.id.line(),
        title: item.title.line(),
        link: item.url.0.and_then(absolute),
        published: item.date_published.0.and_then(|at| date::parse_in(&at, zone)),
        updated: item.date_modified.0.and_then(|at| date::parse_in(&at, zone)),
        summary: item.summary.0.map(|value| text_content(value, TextKind::Text, base)),
        authors: people(item.authors, item.author, absolute),
        language: item.language.line(),
        image: item.image.0.or(item.banner_image.0).and_then(absolute),
        ..Entry::default()
    };
    entry.links.extend(entry.link.clone().map(alternate));
    if let Some(href) = item.external_url.0.and_then(absolute) {
        entry.link = entry.link.or_else(|| Some(href.clone()));
        entry.links.push(Link { href, rel: "related".into(), ..Link::default() });
    }
    let html = item.content_html.0.map(|value| text_content(value, TextKind::Html, base));
    let text = item.content_text.0.map(|value| text_content(value, TextKind::Text, base));
    entry.content.extend(html.into_iter().chain(text));
    let words = item.tags.0.into_iter().filter_map(|word| word.line());
    entry.tags = words.map(|term| Tag { term, ..Tag::default() }).collect();
    for attachment in item.attachments.0 {
        if let Some(url) = attachment.url.0.and_then(absolute) {
            entry.enclosures.push(Enclosure {
                url,
                kind: attachment.mime_type.0,
                length: attachment.size_in_bytes.0,
            });
        }
    }
    entry
}

fn text_content(value: String, kind: TextKind, base: Option<&Arc<Url>>) -> Content {
    Content { value, kind, base: base.cloned(), ..Content::default() }
}

fn people(
    many: LenientList<Author>,
    one: Author,
    absolute: impl Fn(String) -> Option<String> + Copy,
) -> Vec<Person> {
    let person = |author: Author| Person {
        name: author.name.line(),
        email: None,
        url: author.url.0.and_then(absolute),
        text: None,
    };
    let people: Vec<Person> = many.0.into_iter().map(person).filter(|person| !person.is_empty()).collect();
    if people.is_empty() {
        Some(person(one)).into_iter().filter(|person| !person.is_empty()).collect()
    } else {
        people
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonFeed {
    version: LenientText,
    title: LenientText,
    home_page_url: LenientText,
    feed_url: LenientText,
    description: LenientText,
    icon: LenientText,
    favicon: LenientText,
    language: LenientText,
    author: Author,
    authors: LenientList<Author>,
    items: LenientList<Item, ENTRY_LIMIT>,
}

#[derive(Default)]
struct Item {
    id: LenientText,
    url: LenientText,
    external_url: LenientText,
    title: LenientText,
    content_html: LenientText,
    content_text: LenientText,
    summary: LenientText,
    image: LenientText,
    banner_image: LenientText,
    date_published: LenientText,
    date_modified: LenientText,
    language: LenientText,
    author: Author,
    authors: LenientList<Author>,
    tags: LenientList<LenientText>,
    attachments: LenientList<Attachment>,
}

impl Item {
    /// Whether this was not an item at all.
    fn is_empty(&self) -> bool {
        self.id.0.is_none() && self.url.0.is_none() && self.summary.0.is_none() && !self.has_content()
    }

    fn has_content(&self) -> bool {
        self.title.0.is_some() || self.content_html.0.is_some() || self.content_text.0.is_some()
    }
}

#[derive(Default)]
struct Author {
    name: LenientText,
    url: LenientText,
}

#[derive(Default)]
struct Attachment {
    url: LenientText,
    mime_type: LenientText,
    size_in_bytes: LenientText,
}

lenient_object!(Author { name, url }, name);
lenient_object!(Attachment { url, mime_type, size_in_bytes },);
lenient_object!(Item {
    id,
    url,
    external_url,
    title,
    content_html,
    content_text,
    summary,
    image,
    banner_image,
    date_published,
    date_modified,
    language,
    author,
    authors,
    tags,
    attachments
},);
