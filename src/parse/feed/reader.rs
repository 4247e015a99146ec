//! Builds a feed from XML of any dialect; elements count by what they mean, wherever a publisher put them.

use std::borrow::Cow;
use std::sync::Arc;

use url::Url;

use super::atom::{self, Default as TextDefault};
use super::names::{Field, Space, field};
use super::xml::{Tag as XmlTag, Token, Xml};
use super::{
    Content, Context, ENTRY_LIMIT, Enclosure, Entry, Feed, Format, Link, Person, Refused, Tag, base_of, date,
    rss,
};
use crate::parse::markup::{single_spaced, text_of};
use crate::parse::url::resolve;
use crate::time::Timestamp;

/// Reads `text` as XML.
pub(super) fn read(text: &str, encoding: &'static str, context: &Context) -> Result<Feed, Refused> {
    let mut xml = Xml::new(text, base_of(context));
    let root = find_root(&mut xml)?;
    let mut reader = Reader {
        feed: Feed::new(root.format, encoding),
        default: if root.format.is_atom() { TextDefault::Text } else { TextDefault::Html },
        root_depth: xml.depth(),
        channel_depth: xml.depth(),
        entry: None,
        strong: Strong::default(),
        xml,
    };
    reader.root(root.tag);
    reader.run();
    let mut feed = reader.feed;
    feed.damaged = reader.xml.damaged;
    finish_feed(&mut feed);
    Ok(feed)
}

struct Root<'a> {
    tag: XmlTag<'a>,
    format: Format,
}

/// The element that makes the document a feed; junk before it is passed over.
fn find_root<'a>(xml: &mut Xml<'a>) -> Result<Root<'a>, Refused> {
    let mut first: Option<&str> = None;
    loop {
        let tag = match xml.next() {
            Token::Start(tag) => tag,
            Token::Eof => {
                return Err(match first {
                    Some(name) => Refused::OtherXml { root: name.chars().take(60).collect() },
                    None => Refused::NotAFeed,
                });
            }
            _ => continue,
        };
        if let Some(format) = format_of(tag) {
            return Ok(Root { tag, format });
        }
        if first.is_none() || xml.depth() == 1 {
            match tag.local.to_ascii_lowercase().as_str() {
                "html" | "head" | "body" => return Err(Refused::Html),
                "urlset" | "sitemapindex" => return Err(Refused::Sitemap),
                "opml" => return Err(Refused::Opml),
                _ => {}
            }
        }
        first = first.or(Some(tag.local));
    }
}

fn format_of(tag: XmlTag<'_>) -> Option<Format> {
    let name = tag.local.to_ascii_lowercase();
    Some(match (tag.space, name.as_str()) {
        (Space::Core | Space::Atom | Space::Other, "rss") => {
            match tag.attribute("version").as_deref().map(str::trim) {
                Some("0.90" | "0.9") => Format::Rss090,
                Some("0.91") => Format::Rss091,
                Some("0.92") => Format::Rss092,
                Some("0.93") => Format::Rss093,
                Some("0.94") => Format::Rss094,
                Some("1.0") => Format::Rss10,
                Some(version) if version.starts_with("2.") || version == "2" => Format::Rss20,
                _ => Format::Rss,
            }
        }
        (_, "rdf") => {
            let simple = tag.attributes().any(|(_, value)| value.contains("rdf/simple/0.9"));
            if simple { Format::Rss090 } else { Format::Rss10 }
        }
        (Space::Core | Space::Atom, "feed") => match tag.attribute("version").as_deref().map(str::trim) {
            Some("0.3" | "0.1" | "0.2") => Format::Atom03,
            _ if tag.attributes().any(|(_, value)| value.contains("2005/Atom")) => Format::Atom10,
            _ if tag.attributes().any(|(_, value)| value.contains("purl.org/atom")) => Format::Atom03,
            _ => Format::Atom,
        },
        (Space::Core, "channel") if tag.attribute("href").is_some() || tag.local == "CHANNEL" => Format::Cdf,
        (Space::Core, "channel") => Format::Rss,
        (Space::Atom, "entry") => Format::Atom10,
        _ => return None,
    })
}

/// Which texts were set by an element in its proper place; a stray one does not replace them.
#[derive(Default)]
struct Strong {
    feed_title: bool,
    entry_title: bool,
    entry_id: bool,
    entry_link: bool,
    feed_link: bool,
}

struct Reader<'a> {
    xml: Xml<'a>,
    feed: Feed,
    default: TextDefault,
    root_depth: usize,
    channel_depth: usize,
    entry: Option<(usize, Entry)>,
    strong: Strong,
}

impl<'a> Reader<'a> {
    fn root(&mut self, tag: XmlTag<'a>) {
        if tag.local.eq_ignore_ascii_case("entry") {
            self.start_entry(tag);
            return;
        }
        self.container(tag);
    }

    /// What a `feed`, `rss` or `channel` tag itself says.
    fn container(&mut self, tag: XmlTag<'a>) {
        if let Some(language) = self.xml.language().filter(|language| !language.is_empty()) {
            self.feed.language = Some(language.replace('_', "-"));
        }
        if tag.is_bare() {
            return;
        }
        if self.feed.id.is_none()
            && let Some(about) = tag.attribute("about")
        {
            self.feed.id = non_empty(&about);
        }
        if self.feed.format == Format::Cdf {
            if let Some(href) = tag.attribute("href").and_then(|href| address(self.xml.base(), &href)) {
                self.feed.links.push(alternate(href.clone()));
                self.feed.link = Some(href);
            }
            self.feed.updated =
                tag.attribute("lastmod").and_then(|at| date::parse(&at)).or(self.feed.updated);
        }
    }

    fn run(&mut self) {
        loop {
            match self.xml.next() {
                Token::Eof => break,
                Token::Start(tag) => {
                    if !self.start(tag) {
                        break;
                    }
                }
                Token::End => {
                    if self.entry.as_ref().is_some_and(|(depth, _)| self.xml.depth() < *depth) {
                        self.finish_entry();
                    }
                }
                Token::Text(_) | Token::Cdata(_) => {}
            }
        }
        self.finish_entry();
    }

    /// Reads an element; `false` when nothing more needs to be read.
    fn start(&mut self, tag: XmlTag<'a>) -> bool {
        let field = field(tag.space, tag.local);
        match field {
            Field::Entry => {
                if let Some((depth, _)) = &self.entry {
                    let depth = *depth;
                    self.xml.replace(depth);
                    self.finish_entry();
                }
                if self.feed.entries.len() >= ENTRY_LIMIT {
                    self.feed.truncated = true;
                    return false;
                }
                self.start_entry(tag);
            }
            Field::Root | Field::Channel => {
                if self.entry.is_none() {
                    self.channel_depth = self.xml.depth();
                    self.container(tag);
                }
            }
            Field::Image => self.image(tag),
            Field::TextInput | Field::Source => self.skip(),
            Field::MediaGroup
            | Field::Unknown
            | Field::Name
            | Field::Email
            | Field::PersonUrl
            | Field::Url => {}
            Field::MediaContent => self.media_content(tag),
            Field::MediaThumbnail => self.thumbnail(tag),
            Field::Enclosure => self.enclosure(tag),
            Field::Link => self.link(tag),
            Field::ItunesImage => {
                let href = tag.attribute("href").or_else(|| tag.attribute("url"));
                let href = href.and_then(|href| address(self.xml.base(), &href));
                self.put_image(href);
            }
            Field::ItunesCategory => {
                if let Some(term) = tag.attribute("text") {
                    self.add_tag(Tag {
                        term: single_spaced(&term),
                        scheme: Some("http://www.itunes.com/".to_owned()),
                        label: None,
                    });
                }
            }
            Field::Category => self.category(tag),
            Field::Author | Field::Creator | Field::ManagingEditor => {
                let person = atom::read_person(&mut self.xml);
                self.add_author(person, field);
            }
            Field::Contributor | Field::WebMaster => {
                let person = atom::read_person(&mut self.xml);
                if field == Field::Contributor && !person.is_empty() {
                    match &mut self.entry {
                        Some((_, entry)) => entry.contributors.push(person),
                        None => self.feed.contributors.push(person),
                    }
                }
            }
            _ => self.text_field(field, tag),
        }
        true
    }

    /// Whether this element is where its dialect puts it.
    fn in_place(&self) -> bool {
        let depth = self.xml.depth();
        match &self.entry {
            Some((at, _)) => depth == at + 1,
            None => depth == self.channel_depth + 1 || depth == self.root_depth + 1,
        }
    }

    fn start_entry(&mut self, tag: XmlTag<'a>) {
        let mut entry = Entry::default();
        self.strong.entry_title = false;
        self.strong.entry_id = false;
        self.strong.entry_link = false;
        entry.language = self.xml.language().filter(|l| !l.is_empty()).map(|l| l.replace('_', "-"));
        if !tag.is_bare() {
            entry.id = tag.attribute("about").and_then(|about| non_empty(&about));
            if let Some(href) = tag.attribute("href").and_then(|href| address(self.xml.base(), &href)) {
                entry.links.push(alternate(href.clone()));
                entry.link = Some(href);
            }
            entry.updated = tag.attribute("lastmod").and_then(|at| date::parse(&at));
        }
        self.entry = Some((self.xml.depth(), entry));
    }

    fn finish_entry(&mut self) {
        let Some((_, mut entry)) = self.entry.take() else { return };
        if entry.link.is_none() {
            entry.link = chosen_link(&entry.links);
        }
        self.feed.entries.push(entry);
    }

    fn skip(&mut self) {
        let depth = self.xml.depth();
        loop {
            match self.xml.next() {
                Token::Eof => return,
                Token::End if self.xml.depth() < depth => return,
                Token::Start(tag) if field(tag.space, tag.local) == Field::Entry && tag.local.len() == 4 => {
                    // An `item` inside: the end tag is missing.
                    self.xml.replace(depth);
                    self.xml.unread(tag);
                    return;
                }
                _ => {}
            }
        }
    }

    /// A picture: its address is in a child, an attribute, or its text.
    fn image(&mut self, tag: XmlTag<'a>) {
        let from_attribute = tag
            .attribute("resource")
            .or_else(|| tag.attribute("href"))
            .or_else(|| tag.attribute("url"))
            .and_then(|href| address(self.xml.base(), &href));
        let depth = self.xml.depth();
        let (mut url, mut own, mut in_url) = (None, String::new(), None);
        loop {
            match self.xml.next() {
                Token::Eof => break,
                Token::End => {
                    if self.xml.depth() < depth {
                        break;
                    }
                    if in_url.is_some_and(|at| self.xml.depth() < at) {
                        in_url = None;
                    }
                }
                Token::Start(tag) => match field(tag.space, tag.local) {
                    Field::Url => {
                        in_url = Some(self.xml.depth());
                        url = Some(String::new());
                    }
                    Field::Entry if tag.local.len() == 4 => {
                        self.xml.replace(depth);
                        self.xml.unread(tag);
                        break;
                    }
                    _ => {}
                },
                Token::Text(text) => {
                    push_part(&mut url, &mut own, in_url.is_some(), self.xml.depth() == depth, &text)
                }
                Token::Cdata(text) => {
                    push_part(&mut url, &mut own, in_url.is_some(), self.xml.depth() == depth, text)
                }
            }
        }
        let text = url.filter(|url| !url.trim().is_empty()).or_else(|| own.contains("://").then_some(own));
        let href = text.and_then(|href| address(self.xml.base(), &href)).or(from_attribute);
        self.put_image(href);
    }

    fn put_image(&mut self, href: Option<String>) {
        let place = match &mut self.entry {
            Some((_, entry)) => &mut entry.image,
            None => &mut self.feed.image,
        };
        if place.is_none() {
            *place = href;
        }
    }

    fn thumbnail(&mut self, tag: XmlTag<'a>) {
        let url = tag.attribute("url").and_then(|url| address(self.xml.base(), &url));
        self.put_image(url);
    }

    fn media_content(&mut self, tag: XmlTag<'a>) {
        let Some((_, entry)) = &mut self.entry else { return };
        let Some(url) = tag.attribute("url").and_then(|url| address(self.xml.base(), &url)) else { return };
        if entry.enclosures.iter().any(|known| known.url == url) {
            return;
        }
        let kind = tag.attribute("type").map(Cow::into_owned).filter(|kind| !kind.is_empty());
        let length = tag.attribute("fileSize").map(Cow::into_owned).filter(|length| !length.is_empty());
        entry.enclosures.push(Enclosure { url, kind, length });
    }

    fn enclosure(&mut self, tag: XmlTag<'a>) {
        let href =
            tag.attribute("url").or_else(|| tag.attribute("href")).or_else(|| tag.attribute("resource"));
        let Some(url) = href.and_then(|url| address(self.xml.base(), &url)) else { return };
        let kind = tag.attribute("type").map(Cow::into_owned).filter(|kind| !kind.is_empty());
        let length = tag.attribute("length").map(Cow::into_owned).filter(|length| !length.is_empty());
        self.add_link(Link { href: url, rel: "enclosure".to_owned(), kind, length, ..Link::default() });
    }

    fn link(&mut self, tag: XmlTag<'a>) {
        if !tag.is_bare() && tag.attribute("href").is_some() {
            if let Some(link) = atom::read_link(&self.xml, tag) {
                self.add_link(link);
            }
            return;
        }
        let in_place = self.in_place();
        let base = self.xml.base().cloned();
        let resource = tag.attribute("resource");
        let content = atom::read_text(&mut self.xml, tag, TextDefault::Html);
        let text = if content.value.trim().is_empty() {
            resource.unwrap_or_default().into_owned()
        } else {
            content.value
        };
        let Some(href) = address(base.as_ref(), &text) else { return };
        let (known, strong, links) = match &mut self.entry {
            Some((_, entry)) => (&mut entry.link, &mut self.strong.entry_link, &mut entry.links),
            None => (&mut self.feed.link, &mut self.strong.feed_link, &mut self.feed.links),
        };
        if known.is_none() || (in_place && !*strong) {
            *known = Some(href.clone());
        }
        *strong |= in_place;
        links.push(alternate(href));
    }

    fn add_link(&mut self, link: Link) {
        let links = match &mut self.entry {
            Some((_, entry)) => {
                if link.rel == "enclosure" {
                    entry.enclosures.retain(|known| known.url != link.href);
                    entry.enclosures.push(Enclosure {
                        url: link.href.clone(),
                        kind: link.kind.clone(),
                        length: link.length.clone(),
                    });
                }
                &mut entry.links
            }
            None => &mut self.feed.links,
        };
        links.push(link);
    }

    fn category(&mut self, tag: XmlTag<'a>) {
        let of = |name: &str| {
            tag.attribute(name).map(|value| single_spaced(&value)).filter(|value| !value.is_empty())
        };
        let scheme = of("scheme").or_else(|| of("domain"));
        let (term, label) = (of("term"), of("label"));
        let text = self.own_text();
        let Some(term) = term.or(text).or_else(|| label.clone()) else { return };
        self.add_tag(Tag { term, scheme, label });
    }

    /// The text of this element alone, without that of its children, on one line.
    fn own_text(&mut self) -> Option<String> {
        let depth = self.xml.depth();
        let mut own = String::new();
        loop {
            match self.xml.next() {
                Token::Eof => break,
                Token::End if self.xml.depth() < depth => break,
                Token::Text(text) if self.xml.depth() == depth => own.push_str(&text),
                Token::Cdata(text) if self.xml.depth() == depth => own.push_str(text),
                Token::Start(tag) if field(tag.space, tag.local) == Field::Entry => {
                    self.xml.replace(depth);
                    self.xml.unread(tag);
                    break;
                }
                _ => {}
            }
        }
        let own = text_of(&rss::unmangled(own));
        (!own.is_empty()).then_some(own)
    }

    fn add_tag(&mut self, tag: Tag) {
        match &mut self.entry {
            Some((_, entry)) => entry.tags.push(tag),
            None => self.feed.tags.push(tag),
        }
    }

    fn add_author(&mut self, person: Person, field: Field) {
        if person.is_empty() {
            return;
        }
        let authors = match &mut self.entry {
            Some((_, entry)) => &mut entry.authors,
            None => &mut self.feed.authors,
        };
        let same = |known: &Person| {
            (&known.name, &known.email, &known.url) == (&person.name, &person.email, &person.url)
        };
        if authors.iter().any(same) {
            return;
        }
        // An explicit author goes before editors and the creators of other vocabularies.
        if field == Field::Author
            && authors.first().is_some_and(|first| first.text.is_some())
            && person.text.is_none()
        {
            authors.insert(0, person);
        } else {
            authors.push(person);
        }
    }

    /// Elements whose content is one text.
    fn text_field(&mut self, field: Field, tag: XmlTag<'a>) {
        let in_place = self.in_place();
        let permalink = field == Field::Id
            && tag.attribute("isPermaLink").is_none_or(|value| !value.trim().eq_ignore_ascii_case("false"));
        let default = match tag.space {
            Space::Atom => TextDefault::Text,
            _ if matches!(field, Field::Encoded | Field::MediaDescription | Field::MediaTitle) => {
                TextDefault::Html
            }
            _ => self.default,
        };
        let content = atom::read_text(&mut self.xml, tag, default);
        if content.is_empty() {
            return;
        }
        match &mut self.entry {
            Some(_) => self.entry_text(field, content, in_place, permalink),
            None => self.feed_text(field, content, in_place),
        }
    }

    fn entry_text(&mut self, field: Field, content: Content, in_place: bool, permalink: bool) {
        let Some((_, entry)) = &mut self.entry else { return };
        match field {
            Field::Title if in_place || !self.strong.entry_title => {
                entry.title = Some(content.text());
                self.strong.entry_title |= in_place;
            }
            Field::MediaTitle if entry.title.is_none() => entry.title = Some(content.text()),
            Field::Id if in_place || !self.strong.entry_id => {
                self.strong.entry_id |= in_place;
                let id = single_spaced(&content.value);
                if permalink
                    && entry.link.is_none()
                    && (id.starts_with("http://") || id.starts_with("https://"))
                {
                    let stated = self.feed.format.is_atom();
                    if !stated {
                        entry.link = Some(id.clone());
                    }
                }
                entry.id = Some(rooted(content.base.as_ref(), id));
            }
            Field::Description | Field::Summary => match entry.summary {
                None => entry.summary = Some(content),
                Some(_) if !in_place => {}
                Some(_) => entry.content.push(content),
            },
            Field::ItunesSummary | Field::MediaDescription | Field::Subtitle => {
                if entry.summary.is_none() {
                    entry.summary = Some(content);
                }
            }
            Field::Content | Field::Encoded => entry.content.push(content),
            Field::Published => put_date(&mut entry.published, &content),
            Field::Updated | Field::LastBuild => put_date(&mut entry.updated, &content),
            Field::Created => put_date(&mut entry.created, &content),
            Field::Comments => {
                entry.comments = address(content.base.as_ref(), &content.value).or(entry.comments.take())
            }
            Field::Rights => entry.rights = Some(content),
            Field::Language => entry.language = non_empty(&content.value),
            Field::Subject => entry.tags.push(Tag { term: content.text(), ..Tag::default() }),
            Field::Keywords => entry.tags.extend(keywords(&content)),
            _ => {}
        }
    }

    fn feed_text(&mut self, field: Field, content: Content, in_place: bool) {
        let feed = &mut self.feed;
        match field {
            Field::Title if in_place || !self.strong.feed_title => {
                feed.title = Some(content.text());
                self.strong.feed_title |= in_place;
            }
            Field::MediaTitle if feed.title.is_none() => feed.title = Some(content.text()),
            Field::Id if in_place || feed.id.is_none() => {
                feed.id = Some(rooted(content.base.as_ref(), single_spaced(&content.value)));
            }
            Field::Description | Field::Subtitle if in_place || feed.description.is_none() => {
                feed.description = Some(content);
            }
            Field::Summary | Field::ItunesSummary if feed.description.is_none() => {
                feed.description = Some(content)
            }
            Field::Info => feed.info = Some(content),
            Field::Published => put_date(&mut feed.published, &content),
            Field::Updated | Field::LastBuild => put_date(&mut feed.updated, &content),
            Field::Rights => feed.rights = Some(content),
            Field::Language => feed.language = non_empty(&content.value),
            Field::Generator => feed.generator = Some(content.text()),
            Field::Ttl => feed.ttl = non_empty(&content.value),
            Field::Icon => feed.icon = address(content.base.as_ref(), &content.value),
            Field::Logo => feed.image = address(content.base.as_ref(), &content.value),
            Field::Subject => feed.tags.push(Tag { term: content.text(), ..Tag::default() }),
            Field::Keywords => feed.tags.extend(keywords(&content)),
            _ => {}
        }
    }
}

fn push_part(url: &mut Option<String>, own: &mut String, in_url: bool, outside: bool, text: &str) {
    match url {
        Some(url) if in_url => url.push_str(text),
        _ if outside => own.push_str(text),
        _ => {}
    }
}

fn put_date(place: &mut Option<Timestamp>, content: &Content) {
    if let Some(at) = date::parse(&content.value) {
        *place = Some(at);
    }
}

fn keywords(content: &Content) -> Vec<Tag> {
    let words = content.text();
    words
        .split([',', '、'])
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(|word| Tag { term: word.to_owned(), ..Tag::default() })
        .collect()
}

fn non_empty(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

pub(super) fn alternate(href: String) -> Link {
    Link { href, rel: "alternate".to_owned(), kind: Some("text/html".to_owned()), ..Link::default() }
}

/// An id that is only a path gets its host; every other id is kept as it stands.
fn rooted(base: Option<&Arc<Url>>, id: String) -> String {
    if id.starts_with(['/', '.'])
        && let Some(absolute) = address(base, &id)
    {
        return absolute;
    }
    id
}

/// An address as written when it is absolute, else resolved; `None` for what a reader must not follow.
pub(super) fn address(base: Option<&Arc<Url>>, href: &str) -> Option<String> {
    let href = href.trim();
    if href.is_empty() {
        return None;
    }
    let compact: Cow<'_, str> = if href.contains(['\n', '\r', '\t']) {
        Cow::Owned(href.chars().filter(|c| !matches!(c, '\n' | '\r' | '\t')).collect())
    } else {
        Cow::Borrowed(href)
    };
    let scheme = compact.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    match scheme.map(str::to_ascii_lowercase).as_deref() {
        Some("javascript" | "vbscript" | "data" | "file" | "livescript" | "mocha" | "about" | "blob") => None,
        Some(_) => Some(compact.into_owned()),
        None => match base {
            Some(base) => resolve(Some(base), &compact).map(String::from),
            None => Some(compact.into_owned()),
        },
    }
}

/// The link that leads to the page: the first alternate one that is HTML as far as anybody knows.
pub(super) fn chosen_link(links: &[Link]) -> Option<String> {
    let alternates = || links.iter().filter(|link| link.rel == "alternate");
    let page = |link: &&Link| link.kind.as_deref().is_none_or(|kind| kind.contains("html"));
    alternates().find(page).or_else(|| alternates().next()).map(|link| link.href.clone())
}

fn finish_feed(feed: &mut Feed) {
    if feed.link.is_none() {
        feed.link = chosen_link(&feed.links);
    }
}
