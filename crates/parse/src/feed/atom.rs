//! Parts of Atom: typed texts, links with relations, structured persons.

use std::sync::Arc;

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use url::Url;

use super::names::{Field, Space, field};
use super::rss;
use super::xml::{Tag, Xml, XmlToken};
use super::{Content, Link, Person, TEXT_LIMIT, TextKind};
use crate::markup::{escape_into, single_spaced, unescape};

/// Initial capacity of a text.
const TEXT_AT_ONCE: usize = 16 * 1024;

/// The type of a text without a `type` attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Default {
    /// RSS: HTML.
    Html,
    /// Atom: plain text, unless it contains elements.
    Text,
}

/// Reads the text of an element and everything in it, up to its end.
pub(super) fn read_text<'a>(xml: &mut Xml<'a>, tag: Tag<'a>, default: Default) -> Content {
    let stated = tag.attribute("type").map(|stated| stated.trim().to_ascii_lowercase());
    let mode = tag.attribute("mode").map(|mode| mode.trim().to_ascii_lowercase());
    let src = tag.attribute("src").and_then(|src| xml.address(&src));
    let base = xml.base().cloned();
    let language = xml.language().filter(|language| !language.is_empty()).map(str::to_owned);
    let inline =
        stated.as_deref().is_some_and(|stated| stated.contains("xhtml")) || mode.as_deref() == Some("xml");
    let (mut value, has_elements) = collect(xml, tag, inline, base.as_ref());
    let binary = stated.as_deref().is_some_and(|stated| {
        stated.contains('/')
            && !stated.starts_with("text/")
            && !stated.contains("xml")
            && !stated.contains("html")
    });
    let encoded = mode.as_deref() == Some("base64") || (binary && !has_elements && default == Default::Text);
    if encoded {
        // Invalid base64 of a binary type cannot be shown.
        value = from_base64(&value).or_else(|| (!binary).then_some(value)).unwrap_or_default();
    }
    let kind = match stated.as_deref() {
        _ if has_elements || encoded => TextKind::Html,
        Some("text" | "text/plain" | "plain") => TextKind::Text,
        Some(stated) if stated.contains("xhtml") => TextKind::Text,
        Some(stated) if stated.contains("html") => TextKind::Html,
        _ if mode.as_deref() == Some("escaped") && stated.is_some() => TextKind::Html,
        _ if default == Default::Text => TextKind::Text,
        _ => TextKind::Html,
    };
    if value.trim().len() != value.len() {
        value = value.trim().to_owned();
    }
    Content { value: rss::unmangled(value), kind, base, language, src }
}

/// The content of an element, and whether it contains elements, which are written as HTML.
fn collect<'a>(xml: &mut Xml<'a>, leaf: Tag<'a>, inline: bool, base: Option<&Arc<Url>>) -> (String, bool) {
    if let Some(text) = xml.plain_text(leaf) {
        xml.damaged |= text.len() > TEXT_LIMIT;
        return (text[..text.floor_char_boundary(TEXT_LIMIT)].to_owned(), false);
    }
    let depth = xml.depth();
    // Most texts end at the next tag, and are then copied only once.
    let mut out = String::with_capacity(xml.text_ahead().min(TEXT_AT_ONCE));
    let mut names: Vec<&'a str> = Vec::new();
    let (mut has_elements, mut has_cdata) = (false, false);
    loop {
        match xml.next() {
            XmlToken::Eof => break,
            XmlToken::Text(_) | XmlToken::Cdata(_) if out.len() >= TEXT_LIMIT => xml.damaged = true,
            XmlToken::Text(text) if has_elements => escape_into(&mut out, &text),
            XmlToken::Text(text) => out.push_str(&text),
            XmlToken::Cdata(text) => {
                has_cdata = true;
                if has_elements && inline { escape_into(&mut out, text) } else { out.push_str(text) }
            }
            XmlToken::Start(tag) => {
                if interrupts(leaf, tag, inline) {
                    xml.replace(depth);
                    xml.unread(tag);
                    break;
                }
                if !has_elements {
                    has_elements = true;
                    if !has_cdata && out.contains(['<', '&']) {
                        let text = std::mem::take(&mut out);
                        escape_into(&mut out, &text);
                    }
                }
                names.push(tag.local);
                if out.len() < TEXT_LIMIT {
                    write_tag(&mut out, xml, tag, base);
                }
            }
            XmlToken::End => {
                if xml.depth() < depth {
                    break;
                }
                if let Some(name) = names.pop()
                    && !is_void(name)
                {
                    out.push_str("</");
                    out.push_str(name);
                    out.push('>');
                }
            }
        }
    }
    if out.len() > TEXT_LIMIT {
        xml.damaged = true;
        out.truncate(out.floor_char_boundary(TEXT_LIMIT));
    }
    (out, has_elements)
}

/// Whether `child` cannot be inside `leaf`, because an end tag is missing.
fn interrupts(leaf: Tag<'_>, child: Tag<'_>, inline: bool) -> bool {
    if inline || !matches!(child.space, Space::Core | Space::Atom) {
        return false;
    }
    let name = child.local;
    let one_of = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    match field(leaf.space, leaf.local) {
        Field::Content | Field::Encoded => child.space == Space::Core && one_of(&["item", "guid", "pubDate"]),
        Field::Description | Field::Summary => one_of(&["item", "entry", "guid", "pubDate", "enclosure"]),
        _ => one_of(&["item", "entry", "guid", "pubDate", "enclosure", "description", "link", "category"]),
    }
}

fn write_tag(out: &mut String, xml: &Xml<'_>, tag: Tag<'_>, base: Option<&Arc<Url>>) {
    out.push('<');
    out.push_str(tag.local);
    let moved = xml.base() != base;
    for (key, value) in tag.attributes() {
        if key.starts_with("xml") {
            continue;
        }
        out.push(' ');
        out.push_str(key);
        out.push_str("=\"");
        let absolute = (moved && matches!(key, "href" | "src" | "cite" | "poster"))
            .then(|| xml.address(&unescape(value)))
            .flatten();
        match absolute {
            Some(absolute) => out.push_str(&absolute.replace('&', "&amp;").replace('"', "%22")),
            None if value.contains('"') => out.push_str(&value.replace('"', "&quot;")),
            None => out.push_str(value),
        }
        out.push('"');
    }
    out.push('>');
}

fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area" | "br" | "col" | "hr" | "img" | "input" | "source" | "track" | "wbr" | "param" | "embed"
    )
}

fn from_base64(text: &str) -> Option<String> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    String::from_utf8(LENIENT.decode(compact).ok()?).ok()
}

/// A link with its address in an attribute.
pub(super) fn read_link(xml: &Xml<'_>, tag: Tag<'_>) -> Option<Link> {
    let href = tag.attribute("href")?;
    // An empty address is the document itself.
    let href = match (href.trim(), xml.base().map(|base| base.as_str())) {
        ("", Some(base)) => xml.resolver.admits(base.len(), base.len()).then(|| base.to_owned())?,
        (href, _) => xml.address(href)?,
    };
    let text =
        |name: &str| tag.attribute(name).map(|value| single_spaced(&value)).filter(|value| !value.is_empty());
    Some(Link {
        href,
        rel: text("rel").map_or("alternate".into(), |rel| short_relation(&rel).to_owned().into()),
        kind: text("type").map(Into::into),
        title: text("title"),
        language: text("hreflang"),
        length: text("length"),
    })
}

/// The short form of a registered relation given as a full address.
fn short_relation(rel: &str) -> &str {
    rel.strip_prefix("http://www.iana.org/assignments/relation/").unwrap_or(rel)
}

/// Reads a person up to the end of its element: structured, or as one text.
pub(super) fn read_person(xml: &mut Xml<'_>) -> Person {
    let depth = xml.depth();
    let mut person = Person::default();
    let mut own = String::new();
    let mut part: Option<(usize, Field, String)> = None;
    loop {
        match xml.next() {
            XmlToken::Eof => break,
            XmlToken::Start(tag) => {
                let field = match field(tag.space, tag.local) {
                    Field::Url => Field::PersonUrl,
                    field => field,
                };
                if part.is_none() && matches!(field, Field::Name | Field::Email | Field::PersonUrl) {
                    part = Some((xml.depth(), field, String::new()));
                } else if field == Field::Entry {
                    xml.replace(depth);
                    xml.unread(tag);
                    break;
                }
            }
            XmlToken::End => {
                if xml.depth() < depth {
                    break;
                }
                if part.as_ref().is_some_and(|(at, ..)| xml.depth() < *at)
                    && let Some((_, field, value)) = part.take()
                {
                    let value = single_spaced(&value);
                    if value.is_empty() {
                        continue;
                    }
                    match field {
                        Field::Name => person.name = Some(rss::unmangled(value)),
                        Field::Email => person.email = Some(value),
                        _ => person.url = xml.address(&value),
                    }
                }
            }
            XmlToken::Text(text) => part.as_mut().map_or(&mut own, |(_, _, value)| value).push_str(&text),
            XmlToken::Cdata(text) => part.as_mut().map_or(&mut own, |(_, _, value)| value).push_str(text),
        }
    }
    if person.is_empty() { rss::person(&single_spaced(&own)) } else { person }
}
