//! Builds a feed from XML of any dialect; elements are recognised by their meaning, wherever they are.

use jiff::tz::TimeZone;

use super::address::{alternate, chosen_link};
use super::atom::{self, Default as TextDefault};
use super::fields::{non_empty, push_some};
use super::names::{Field, field};
use super::root::find_root;
use super::xml::{Tag as XmlTag, Xml, XmlToken};
use super::{Context, ENTRY_LIMIT, Entry, Feed, FeedError, Format, Tag, Texts, base_of, date};
use crate::Cut;
use crate::markup::single_spaced;

/// Initial capacity of the list of entries, if the document is long enough.
const USUAL_ENTRIES: usize = 64;
const USUAL_ENTRY: usize = 256;

/// Reads `text` as XML.
pub(super) fn read<'a>(text: &'a str, context: &'a Context, texts: Texts) -> Result<Feed, FeedError> {
    let mut xml = Xml::new(text, base_of(context));
    let root = find_root(&mut xml)?;
    let mut feed = Feed { format: root.format, ..Feed::default() };
    feed.entries.reserve((text.len() / USUAL_ENTRY).min(USUAL_ENTRIES));
    let mut reader = FeedReader {
        feed,
        default: if root.format.is_atom() { TextDefault::Text } else { TextDefault::Html },
        root_depth: xml.depth(),
        channel_depth: xml.depth(),
        entry: None,
        strong: Strong::default(),
        texts,
        is_closed: ends_with_tag(text, root.tag.name()),
        zone: context.zone.as_ref(),
        xml,
    };
    reader.root(root.tag);
    reader.run();
    let mut feed = reader.feed;
    feed.damaged = reader.xml.damaged || reader.xml.resolver.has_refused();
    feed.cut = feed.cut.or(reader.xml.too_deep.then_some(Cut::Nesting));
    finish_feed(&mut feed);
    Ok(feed)
}

/// Texts that were set by an element in its proper place; a misplaced one does not replace them.
#[derive(Default)]
pub(super) struct Strong {
    pub(super) feed_title: bool,
    pub(super) entry_title: bool,
    pub(super) entry_id: bool,
    pub(super) entry_link: bool,
    pub(super) feed_link: bool,
}

/// The state of parsing one document.
pub(super) struct FeedReader<'a> {
    pub(super) xml: Xml<'a>,
    pub(super) feed: Feed,
    pub(super) default: TextDefault,
    pub(super) root_depth: usize,
    pub(super) channel_depth: usize,
    pub(super) entry: Option<(usize, Entry)>,
    pub(super) strong: Strong,
    texts: Texts,
    /// Whether the document ends with the end tag of its root: then it was not truncated.
    is_closed: bool,
    /// The zone of dates without one.
    pub(super) zone: Option<&'a TimeZone>,
}

impl<'a> FeedReader<'a> {
    fn root(&mut self, tag: XmlTag<'a>) {
        if tag.local.eq_ignore_ascii_case("entry") {
            self.start_entry(tag);
            return;
        }
        self.container(tag);
    }

    /// Reads the attributes of a `feed`, `rss` or `channel` tag.
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
            if let Some(href) = tag.attribute("href").and_then(|href| self.xml.address(&href)) {
                self.feed.links.push(alternate(href.clone()));
                self.feed.link = Some(href);
            }
            self.feed.updated =
                tag.attribute("lastmod").and_then(|at| date::parse_in(&at, self.zone)).or(self.feed.updated);
        }
    }

    fn run(&mut self) {
        loop {
            match self.xml.next() {
                XmlToken::Eof => break,
                XmlToken::Start(tag) => {
                    if !self.start(tag) {
                        break;
                    }
                }
                // The last entry of a truncated document may have half an address; drop it.
                XmlToken::End if self.xml.over && !self.is_closed => self.entry = None,
                XmlToken::End => {
                    if self.entry.as_ref().is_some_and(|(depth, _)| self.xml.depth() < *depth) {
                        self.finish_entry();
                    }
                }
                XmlToken::Text(_) | XmlToken::Cdata(_) => {}
            }
        }
        self.finish_entry();
    }

    /// Reads an element; `false` if nothing more needs to be read.
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
                    self.feed.cut = Some(Cut::Entries);
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
                let href = href.and_then(|href| self.xml.address(&href));
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
            Field::Description | Field::Summary | Field::Content | Field::Encoded
                if self.texts == Texts::Spared && self.entry.is_some() && self.xml.step_over_text(tag) => {}
            Field::Category => self.category(tag),
            Field::Author | Field::Creator | Field::ManagingEditor => {
                let person = atom::read_person(&mut self.xml);
                self.add_author(person, field);
            }
            Field::Contributor | Field::WebMaster => {
                let person = atom::read_person(&mut self.xml);
                if field == Field::Contributor && !person.is_empty() {
                    let place = match &mut self.entry {
                        Some((_, entry)) => &mut entry.contributors,
                        None => &mut self.feed.contributors,
                    };
                    push_some(place, person);
                }
            }
            _ => self.text_field(field, tag),
        }
        true
    }

    /// Whether this element is in its proper place.
    pub(super) fn in_place(&self) -> bool {
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
            if let Some(href) = tag.attribute("href").and_then(|href| self.xml.address(&href)) {
                entry.links.push(alternate(href.clone()));
                entry.link = Some(href);
            }
            entry.updated = tag.attribute("lastmod").and_then(|at| date::parse_in(&at, self.zone));
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
                XmlToken::Eof => return,
                XmlToken::End if self.xml.depth() < depth => return,
                XmlToken::Start(tag)
                    if field(tag.space, tag.local) == Field::Entry && tag.local.len() == 4 =>
                {
                    // A nested `item`: the end tag is missing.
                    self.xml.replace(depth);
                    self.xml.unread(tag);
                    return;
                }
                _ => {}
            }
        }
    }
}

/// Whether `text` ends with the end tag of `name`.
fn ends_with_tag(text: &str, name: &str) -> bool {
    let tag =
        text.trim_ascii_end().strip_suffix('>').and_then(|text| text.trim_ascii_end().strip_suffix(name));
    tag.is_some_and(|before| before.ends_with("</"))
}

fn finish_feed(feed: &mut Feed) {
    if feed.link.is_none() {
        feed.link = chosen_link(&feed.links);
    }
}
