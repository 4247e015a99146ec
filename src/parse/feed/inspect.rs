//! What we read from a feed, as JSON for people and programs: the answer of `inspect feed`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Content, Context, Entry, Feed, Link, Person, Refused, Tag, TextKind, parse};
use crate::parse::sanitize::Sanitizer;
use crate::parse::url::resolve;

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
pub fn inspect(bytes: &[u8], url: Option<&str>, headers: Headers) -> Result<Value, Refused> {
    let context = Context {
        url: url.and_then(|url| resolve(None, url)),
        content_type: headers.content_type,
        content_location: headers.content_location,
        content_language: headers.content_language,
    };
    parse(bytes, &context).map(|feed| shown(&feed))
}

/// Answers one line of a batch, `{id,url,http:{content-type,…},input_b64}`, by one line `{id,out}`.
pub fn inspect_line(line: &str) -> String {
    let answer = match serde_json::from_str::<Value>(line) {
        Err(error) => json!({ "id": null, "out": null, "error": format!("the line is no JSON: {error}") }),
        Ok(case) => {
            let id = case.get("id").cloned().unwrap_or(Value::Null);
            match answered(&case) {
                Ok(out) => json!({ "id": id, "out": out }),
                Err(why) => json!({ "id": id, "out": null, "error": why }),
            }
        }
    };
    answer.to_string()
}

fn answered(case: &Value) -> Result<Value, String> {
    let input = case.get("input_b64").and_then(Value::as_str).ok_or("the line has no `input_b64`")?;
    let bytes = STANDARD.decode(input).map_err(|error| format!("`input_b64` is no base64: {error}"))?;
    let header = |name: &str| {
        let headers = case.get("http")?.as_object()?;
        let found = headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(found.1.as_str()?.to_owned())
    };
    let headers = Headers {
        content_type: header("content-type"),
        content_location: header("content-location"),
        content_language: header("content-language"),
    };
    inspect(&bytes, case.get("url").and_then(Value::as_str), headers).map_err(|refused| refused.to_string())
}

/// The whole feed as JSON.
pub fn shown(feed: &Feed) -> Value {
    let mut sanitizer = Sanitizer::default();
    let mut html =
        |content: &Option<Content>| content.as_ref().map(|content| content.html_with(&mut sanitizer));
    let shown_feed = json!({
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
        "authors": people(&feed.authors),
        "contributors": people(&feed.contributors),
        "links": links(&feed.links),
        "tags": tags(&feed.tags),
    });
    let entries: Vec<Value> = feed.entries.iter().map(|entry| shown_entry(entry, &mut sanitizer)).collect();
    json!({
        "format": feed.format.name(),
        "encoding": feed.encoding,
        "truncated": feed.truncated,
        "damaged": feed.damaged,
        "feed": shown_feed,
        "entries": entries,
    })
}

fn shown_entry(entry: &Entry, sanitizer: &mut Sanitizer) -> Value {
    let content: Vec<Value> = entry
        .content
        .iter()
        .map(|content| {
            json!({
                "value": content.html_with(sanitizer),
                "type": match content.kind {
                    TextKind::Text => "text/plain",
                    TextKind::Html => "text/html",
                },
                "language": content.language,
                "src": content.src,
            })
        })
        .collect();
    let summary = match (&entry.summary, content.first()) {
        (Some(summary), _) => Value::String(summary.html_with(sanitizer)),
        (None, Some(first)) => first["value"].clone(),
        (None, None) => Value::Null,
    };
    let enclosures: Vec<Value> = entry
        .enclosures
        .iter()
        .map(|file| json!({ "url": file.url, "type": file.kind, "length": file.length }))
        .collect();
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
        "authors": people(&entry.authors),
        "contributors": people(&entry.contributors),
        "links": links(&entry.links),
        "tags": tags(&entry.tags),
        "enclosures": enclosures,
        "rights": entry.rights.as_ref().map(|rights| rights.html_with(sanitizer)),
        "image": entry.image,
        "language": entry.language,
        "comments": entry.comments,
    })
}

fn people(people: &[Person]) -> Vec<Value> {
    people
        .iter()
        .map(|person| json!({ "name": person.name, "email": person.email, "url": person.url }))
        .collect()
}

fn links(links: &[Link]) -> Vec<Value> {
    links
        .iter()
        .map(|link| {
            json!({
                "href": link.href,
                "rel": link.rel,
                "type": link.kind,
                "title": link.title,
                "hreflang": link.language,
            })
        })
        .collect()
}

fn tags(tags: &[Tag]) -> Vec<Value> {
    tags.iter().map(|tag| json!({ "term": tag.term, "scheme": tag.scheme, "label": tag.label })).collect()
}
