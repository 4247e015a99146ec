//! A parsed feed as JSON: the output of `inspect feed`.

use serde_json::{Value, json};

use super::{Content, Entry, Feed, Person, TextKind};
use crate::Cut;
use crate::sanitize::Sanitizer;

/// A parsed feed as JSON.
pub fn shown(feed: &Feed) -> Value {
    let mut sanitizer = Sanitizer::default();
    let mut html =
        |content: &Option<Content>| content.as_ref().map(|content| content.html_with(&mut sanitizer));
    let about = json!({
        "title": feed.title,
        "link": feed.link,
        "id": feed.id,
        "description": html(&feed.description),
        "info": html(&feed.info),
        "language": feed.language,
        "updated": feed.updated,
        "published": feed.published,
        "rights": html(&feed.rights),
        "generator": feed.generator,
        "image": feed.image,
        "icon": feed.icon,
        "ttl": feed.ttl,
        "author": feed.authors.first().map(Person::line),
        "authors": feed.authors,
        "contributors": feed.contributors,
        "links": feed.links,
        "tags": feed.tags,
    });
    json!({
        "format": feed.format,
        "encoding": feed.encoding,
        "truncated": feed.cut == Some(Cut::Entries),
        "damaged": feed.damaged,
        "feed": about,
        "entries": feed.entries.iter().map(|entry| shown_entry(entry, &mut sanitizer)).collect::<Vec<_>>(),
    })
}

fn shown_entry(entry: &Entry, sanitizer: &mut Sanitizer) -> Value {
    let mut shown_content = |content: &Content| {
        json!({
            "value": content.html_with(sanitizer),
            "type": match content.kind {
                TextKind::Text => "text/plain",
                TextKind::Html => "text/html",
            },
            "language": content.language,
            "src": content.src,
        })
    };
    let content: Vec<Value> = entry.content.iter().map(&mut shown_content).collect();
    let summary = match &entry.summary {
        Some(summary) => summary.html_with(sanitizer).into(),
        None => content.first().map(|first| first["value"].clone()).unwrap_or_default(),
    };
    json!({
        "key": entry.key(),
        "id": entry.id,
        "title": entry.title,
        "link": entry.link,
        "published": entry.published,
        "updated": entry.updated,
        "created": entry.created,
        "summary": summary,
        "content": content,
        "author": entry.authors.first().map(Person::line),
        "authors": entry.authors,
        "contributors": entry.contributors,
        "links": entry.links,
        "tags": entry.tags,
        "enclosures": entry.enclosures,
        "rights": entry.rights.as_ref().map(|rights| rights.html_with(sanitizer)),
        "image": entry.image,
        "language": entry.language,
        "comments": entry.comments,
    })
}
