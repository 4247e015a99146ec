//! JSON Feed 1.0 and 1.1, read leniently: a member of the wrong type counts as absent.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use url::Url;

use super::reader::{address, alternate};
use super::{
    Content, Context, ENTRY_LIMIT, Enclosure, Entry, Feed, Format, Link, Person, Refused, Tag, TextKind,
    base_of, date,
};
use crate::parse::markup::single_spaced;

/// Reads `text` as a JSON Feed.
pub(super) fn read(text: &str, encoding: &'static str, context: &Context) -> Result<Feed, Refused> {
    let document: Document =
        serde_json::from_str(text).map_err(|error| Refused::BrokenJson { why: error.to_string() })?;
    let version = document.version.0.unwrap_or_default();
    let stated = version.contains("jsonfeed.org/version/");
    let entry_like = |item: &Item| item.id.0.is_some() && (item.url.0.is_some() || item.has_content());
    if !stated && !document.items.0.iter().any(entry_like) {
        return Err(Refused::OtherJson);
    }
    let base = base_of(context);
    let format = if version.ends_with("1.1") { Format::Json11 } else { Format::Json10 };
    let mut feed = Feed::new(format, encoding);
    feed.truncated = document.items.1;
    feed.title = document.title.line();
    feed.description = document.description.0.map(|value| text_content(value, TextKind::Text, base.as_ref()));
    feed.language = document.language.line();
    feed.id = document.feed_url.line();
    feed.link = document.home_page_url.0.and_then(|href| address(base.as_ref(), &href));
    feed.links.extend(feed.link.clone().map(alternate));
    if let Some(href) = document.feed_url.0.and_then(|href| address(base.as_ref(), &href)) {
        let kind = Some("application/feed+json".to_owned());
        feed.links.push(Link { href, rel: "self".to_owned(), kind, ..Link::default() });
    }
    feed.image = document.icon.0.and_then(|href| address(base.as_ref(), &href));
    feed.icon = document.favicon.0.and_then(|href| address(base.as_ref(), &href));
    feed.authors = people(document.authors, document.author, base.as_ref());
    let items = document.items.0.into_iter().filter(|item| !item.is_empty());
    feed.entries = items.map(|item| entry(item, base.as_ref())).collect();
    Ok(feed)
}

fn entry(item: Item, base: Option<&Arc<Url>>) -> Entry {
    let mut entry = Entry {
        id: item.id.line(),
        title: item.title.line(),
        link: item.url.0.and_then(|href| address(base, &href)),
        published: item.date_published.0.and_then(|at| date::parse(&at)),
        updated: item.date_modified.0.and_then(|at| date::parse(&at)),
        summary: item.summary.0.map(|value| text_content(value, TextKind::Text, base)),
        authors: people(item.authors, item.author, base),
        language: item.language.line(),
        image: item.image.0.or(item.banner_image.0).and_then(|href| address(base, &href)),
        ..Entry::default()
    };
    entry.links.extend(entry.link.clone().map(alternate));
    if let Some(href) = item.external_url.0.and_then(|href| address(base, &href)) {
        entry.link = entry.link.or_else(|| Some(href.clone()));
        entry.links.push(Link { href, rel: "related".to_owned(), ..Link::default() });
    }
    let html = item.content_html.0.map(|value| text_content(value, TextKind::Html, base));
    let text = item.content_text.0.map(|value| text_content(value, TextKind::Text, base));
    entry.content.extend(html.into_iter().chain(text));
    let words = item.tags.0.into_iter().filter_map(|word| word.line());
    entry.tags = words.map(|term| Tag { term, ..Tag::default() }).collect();
    for attachment in item.attachments.0 {
        if let Some(url) = attachment.url.0.and_then(|href| address(base, &href)) {
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

fn people(many: List<Author>, one: Author, base: Option<&Arc<Url>>) -> Vec<Person> {
    let person = |author: Author| Person {
        name: author.name.line(),
        email: None,
        url: author.url.0.and_then(|href| address(base, &href)),
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
struct Document {
    version: Text,
    title: Text,
    home_page_url: Text,
    feed_url: Text,
    description: Text,
    icon: Text,
    favicon: Text,
    language: Text,
    author: Author,
    authors: List<Author>,
    items: Items,
}

#[derive(Default)]
struct Item {
    id: Text,
    url: Text,
    external_url: Text,
    title: Text,
    content_html: Text,
    content_text: Text,
    summary: Text,
    image: Text,
    banner_image: Text,
    date_published: Text,
    date_modified: Text,
    language: Text,
    author: Author,
    authors: List<Author>,
    tags: List<Text>,
    attachments: List<Attachment>,
}

impl Item {
    /// Whether this was no item at all.
    fn is_empty(&self) -> bool {
        self.id.0.is_none() && self.url.0.is_none() && self.summary.0.is_none() && !self.has_content()
    }

    fn has_content(&self) -> bool {
        self.title.0.is_some() || self.content_html.0.is_some() || self.content_text.0.is_some()
    }
}

#[derive(Default)]
struct Author {
    name: Text,
    url: Text,
}

#[derive(Default)]
struct Attachment {
    url: Text,
    mime_type: Text,
    size_in_bytes: Text,
}

/// A text; numbers and flags are read as text, everything else as absent.
#[derive(Default)]
struct Text(Option<String>);

impl Text {
    fn line(&self) -> Option<String> {
        self.0.as_deref().map(single_spaced).filter(|line| !line.is_empty())
    }
}

/// An array; everything else is an empty one.
struct List<T>(Vec<T>);

/// The entries up to the limit, and whether there were more.
#[derive(Default)]
struct Items(Vec<Item>, bool);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// The answers of a visitor that takes every value and counts most as absent.
macro_rules! otherwise_absent {
    ($($kind:ident($from:ty)),*) => {
        $(fn $kind<E>(self, _: $from) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        })*
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

macro_rules! ignore_map {
    () => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

macro_rules! ignore_seq {
    () => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(Some(text.replace('\0', ""))))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
                Ok(Text(Some(number.to_string())))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
                Ok(Text(Some(number.to_string())))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Text, E> {
                Ok(Text(Some(number.to_string())))
            }
            otherwise_absent!(visit_bool(bool));
            ignore_map!();
            ignore_seq!();
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
                let mut list = Vec::new();
                while list.len() < 256
                    && let Some(element) = seq.next_element()?
                {
                    list.push(element);
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(List(list))
            }
            otherwise_absent!(
                visit_bool(bool),
                visit_str(&str),
                visit_u64(u64),
                visit_i64(i64),
                visit_f64(f64)
            );
            ignore_map!();
        }
        deserializer.deserialize_any(Reader(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Items;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of items")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items, A::Error> {
                let mut items = Vec::new();
                while items.len() < ENTRY_LIMIT {
                    match seq.next_element::<Item>()? {
                        Some(item) => items.push(item),
                        None => return Ok(Items(items, false)),
                    }
                }
                let mut more = false;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    more = true;
                }
                Ok(Items(items, more))
            }
            otherwise_absent!(
                visit_bool(bool),
                visit_str(&str),
                visit_u64(u64),
                visit_i64(i64),
                visit_f64(f64)
            );
            ignore_map!();
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A struct that is read from an object and is absent for every other value.
macro_rules! lenient_object {
    ($name:ident { $($field:ident),* }, $($text:ident)?) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reader;
                impl<'de> Visitor<'de> for Reader {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut object = $name::default();
                        while let Some(key) = map.next_key::<String>()? {
                            match key.as_str() {
                                $(stringify!($field) => object.$field = map.next_value()?,)*
                                _ => {
                                    map.next_value::<IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(object)
                    }
                    fn visit_str<E>(self, text: &str) -> Result<$name, E> {
                        let _ = text;
                        #[allow(unused_mut, reason = "only some objects may stand as a text")]
                        let mut object = $name::default();
                        $(object.$text = Text(Some(text.to_owned()));)?
                        Ok(object)
                    }
                    otherwise_absent!(visit_bool(bool), visit_u64(u64), visit_i64(i64), visit_f64(f64));
                    ignore_seq!();
                }
                deserializer.deserialize_any(Reader)
            }
        }
    };
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
