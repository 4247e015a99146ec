//! What we read from a feed, as JSON for people and programs: the answer of `inspect feed`.

use serde::Serialize;
use serde_json::Value;

use super::{Content, Context, Entry, Feed, FeedError, Link, Person, Tag, TextKind, parse};
use crate::Cut;
use crate::sanitize::Sanitizer;
use crate::url::resolve;
use stdx::time::Timestamp;

/// The headers of an answer that matter to a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// `Content-Type` as sent.
    pub content_type: Option<String>,
    /// `Content-Location` as sent.
    pub content_location: Option<String>,
    /// `Content-Language` as sent.
    pub content_language: Option<String>,
}

/// Reads a document and shows all that was found in it.
pub fn inspect(bytes: &[u8], url: Option<&str>, headers: Headers) -> Result<Value, FeedError> {
    read(bytes, url, headers).map(|feed| shown(&feed))
}

/// The whole feed as JSON.
pub fn shown(feed: &Feed) -> Value {
    serde_json::to_value(shown_feed(feed)).unwrap_or(Value::Null)
}

fn read(bytes: &[u8], url: Option<&str>, headers: Headers) -> Result<Feed, FeedError> {
    let context = Context {
        url: url.and_then(|url| resolve(None, url)),
        content_type: headers.content_type,
        content_location: headers.content_location,
        content_language: headers.content_language,
        zone: None,
    };
    parse(bytes, &context)
}

#[derive(Serialize)]
struct ShownDocument<'a> {
    format: &'static str,
    encoding: &'static str,
    truncated: bool,
    damaged: bool,
    feed: ShownFeed<'a>,
    entries: Vec<ShownEntry<'a>>,
}

#[derive(Serialize)]
struct ShownFeed<'a> {
    title: Option<&'a str>,
    link: Option<&'a str>,
    id: Option<&'a str>,
    description: Option<String>,
    info: Option<String>,
    language: Option<&'a str>,
    updated: Option<Timestamp>,
    published: Option<Timestamp>,
    rights: Option<String>,
    generator: Option<&'a str>,
    image: Option<&'a str>,
    icon: Option<&'a str>,
    ttl: Option<&'a str>,
    author: Option<String>,
    authors: Vec<ShownPerson<'a>>,
    contributors: Vec<ShownPerson<'a>>,
    links: Vec<ShownLink<'a>>,
    tags: Vec<ShownTag<'a>>,
}

#[derive(Serialize)]
struct ShownEntry<'a> {
    key: &'a str,
    id: Option<&'a str>,
    title: Option<&'a str>,
    link: Option<&'a str>,
    published: Option<Timestamp>,
    updated: Option<Timestamp>,
    created: Option<Timestamp>,
    summary: Option<String>,
    content: Vec<ShownContent<'a>>,
    author: Option<String>,
    authors: Vec<ShownPerson<'a>>,
    contributors: Vec<ShownPerson<'a>>,
    links: Vec<ShownLink<'a>>,
    tags: Vec<ShownTag<'a>>,
    enclosures: Vec<ShownEnclosure<'a>>,
    rights: Option<String>,
    image: Option<&'a str>,
    language: Option<&'a str>,
    comments: Option<&'a str>,
}

#[derive(Serialize)]
struct ShownContent<'a> {
    value: String,
    r#type: &'static str,
    language: Option<&'a str>,
    src: Option<&'a str>,
}

#[derive(Serialize)]
struct ShownPerson<'a> {
    name: Option<&'a str>,
    email: Option<&'a str>,
    url: Option<&'a str>,
}

#[derive(Serialize)]
struct ShownLink<'a> {
    href: &'a str,
    rel: &'a str,
    r#type: Option<&'a str>,
    title: Option<&'a str>,
    hreflang: Option<&'a str>,
}

#[derive(Serialize)]
struct ShownTag<'a> {
    term: &'a str,
    scheme: Option<&'a str>,
    label: Option<&'a str>,
}

#[derive(Serialize)]
struct ShownEnclosure<'a> {
    url: &'a str,
    r#type: Option<&'a str>,
    length: Option<&'a str>,
}

fn shown_feed(feed: &Feed) -> ShownDocument<'_> {
    let mut sanitizer = Sanitizer::default();
    let mut html =
        |content: &Option<Content>| content.as_ref().map(|content| content.html_with(&mut sanitizer));
    let shown = ShownFeed {
        title: feed.title.as_deref(),
        link: feed.link.as_deref(),
        id: feed.id.as_deref(),
        description: html(&feed.description),
        info: html(&feed.info),
        language: feed.language.as_deref(),
        updated: feed.updated,
        published: feed.published,
        rights: html(&feed.rights),
        generator: feed.generator.as_deref(),
        image: feed.image.as_deref(),
        icon: feed.icon.as_deref(),
        ttl: feed.ttl.as_deref(),
        author: feed.authors.first().map(Person::line),
        authors: people(&feed.authors),
        contributors: people(&feed.contributors),
        links: links(&feed.links),
        tags: tags(&feed.tags),
    };
    ShownDocument {
        format: feed.format.word(),
        encoding: feed.encoding,
        truncated: feed.cut == Some(Cut::Entries),
        damaged: feed.damaged,
        feed: shown,
        entries: feed.entries.iter().map(|entry| shown_entry(entry, &mut sanitizer)).collect(),
    }
}

fn shown_entry<'a>(entry: &'a Entry, sanitizer: &mut Sanitizer) -> ShownEntry<'a> {
    let shown_content = |content: &'a Content, sanitizer: &mut Sanitizer| ShownContent {
        value: content.html_with(sanitizer),
        r#type: match content.kind {
            TextKind::Text => "text/plain",
            TextKind::Html => "text/html",
        },
        language: content.language.as_deref(),
        src: content.src.as_deref(),
    };
    let content: Vec<_> = entry.content.iter().map(|content| shown_content(content, sanitizer)).collect();
    let summary = match &entry.summary {
        Some(summary) => Some(summary.html_with(sanitizer)),
        None => content.first().map(|first| first.value.clone()),
    };
    let enclosures = entry.enclosures.iter().map(|file| ShownEnclosure {
        url: &file.url,
        r#type: file.kind.as_deref(),
        length: file.length.as_deref(),
    });
    ShownEntry {
        key: entry.key(),
        id: entry.id.as_deref(),
        title: entry.title.as_deref(),
        link: entry.link.as_deref(),
        published: entry.published,
        updated: entry.updated,
        created: entry.created,
        summary,
        content,
        author: entry.authors.first().map(Person::line),
        authors: people(&entry.authors),
        contributors: people(&entry.contributors),
        links: links(&entry.links),
        tags: tags(&entry.tags),
        enclosures: enclosures.collect(),
        rights: entry.rights.as_ref().map(|rights| rights.html_with(sanitizer)),
        image: entry.image.as_deref(),
        language: entry.language.as_deref(),
        comments: entry.comments.as_deref(),
    }
}

fn people(people: &[Person]) -> Vec<ShownPerson<'_>> {
    people
        .iter()
        .map(|person| ShownPerson {
            name: person.name.as_deref(),
            email: person.email.as_deref(),
            url: person.url.as_deref(),
        })
        .collect()
}

fn links(links: &[Link]) -> Vec<ShownLink<'_>> {
    links
        .iter()
        .map(|link| ShownLink {
            href: &link.href,
            rel: &link.rel,
            r#type: link.kind.as_deref(),
            title: link.title.as_deref(),
            hreflang: link.language.as_deref(),
        })
        .collect()
}

fn tags(tags: &[Tag]) -> Vec<ShownTag<'_>> {
    tags.iter()
        .map(|tag| ShownTag { term: &tag.term, scheme: tag.scheme.as_deref(), label: tag.label.as_deref() })
        .collect()
}
