//! Adds the content of elements to the feed or to the open entry.

use jiff::tz::TimeZone;

use super::address::{address, rooted};
use super::atom::{self, Default as TextDefault};
use super::names::{Field, Space, field};
use super::reader::FeedReader;
use super::xml::{Tag as XmlTag, XmlToken};
use super::{Content, LIST_LIMIT, Person, Tag, date, rss};
use crate::markup::{single_spaced, text_of};
use stdx::time::Timestamp;

impl<'a> FeedReader<'a> {
    pub(super) fn category(&mut self, tag: XmlTag<'a>) {
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
    pub(super) fn own_text(&mut self) -> Option<String> {
        let depth = self.xml.depth();
        let mut own = String::new();
        loop {
            match self.xml.next() {
                XmlToken::Eof => break,
                XmlToken::End if self.xml.depth() < depth => break,
                XmlToken::Text(text) if self.xml.depth() == depth => own.push_str(&text),
                XmlToken::Cdata(text) if self.xml.depth() == depth => own.push_str(text),
                XmlToken::Start(tag) if field(tag.space, tag.local) == Field::Entry => {
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

    pub(super) fn add_tag(&mut self, tag: Tag) {
        let place = match &mut self.entry {
            Some((_, entry)) => &mut entry.tags,
            None => &mut self.feed.tags,
        };
        push_some(place, tag);
    }

    pub(super) fn add_author(&mut self, person: Person, field: Field) {
        if person.is_empty() {
            return;
        }
        let authors = match &mut self.entry {
            Some((_, entry)) => &mut entry.authors,
            None => &mut self.feed.authors,
        };
        if authors.len() >= LIST_LIMIT {
            return;
        }
        let same = |known: &Person| {
            (&known.name, &known.email, &known.url) == (&person.name, &person.email, &person.url)
        };
        if authors.iter().any(same) {
            return;
        }
        // An explicit author takes precedence over editors and creators of other vocabularies.
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
    pub(super) fn text_field(&mut self, field: Field, tag: XmlTag<'a>) {
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
                entry.id = Some(rooted(&self.xml.resolver, content.base.as_ref(), id));
            }
            Field::Description | Field::Summary => match entry.summary {
                None => entry.summary = Some(content),
                Some(_) if !in_place => {}
                Some(_) => push_some(&mut entry.content, content),
            },
            Field::ItunesSummary | Field::MediaDescription | Field::Subtitle if entry.summary.is_none() => {
                entry.summary = Some(content);
            }
            Field::Content | Field::Encoded => push_some(&mut entry.content, content),
            Field::Published => put_date(&mut entry.published, &content, self.zone),
            Field::Updated | Field::LastBuild => put_date(&mut entry.updated, &content, self.zone),
            Field::Created => put_date(&mut entry.created, &content, self.zone),
            Field::Comments => {
                entry.comments = address(&self.xml.resolver, content.base.as_ref(), &content.value)
                    .or(entry.comments.take());
            }
            Field::Rights => entry.rights = Some(content),
            Field::Language => entry.language = non_empty(&content.value),
            Field::Subject => push_some(&mut entry.tags, Tag { term: content.text(), ..Tag::default() }),
            Field::Keywords if entry.tags.len() < LIST_LIMIT => entry.tags.extend(keywords(&content)),
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
                feed.id =
                    Some(rooted(&self.xml.resolver, content.base.as_ref(), single_spaced(&content.value)));
            }
            Field::Description | Field::Subtitle if in_place || feed.description.is_none() => {
                feed.description = Some(content);
            }
            Field::Summary | Field::ItunesSummary if feed.description.is_none() => {
                feed.description = Some(content);
            }
            Field::Info => feed.info = Some(content),
            Field::Published => put_date(&mut feed.published, &content, self.zone),
            Field::Updated | Field::LastBuild => put_date(&mut feed.updated, &content, self.zone),
            Field::Rights => feed.rights = Some(content),
            Field::Language => feed.language = non_empty(&content.value),
            Field::Generator => feed.generator = Some(content.text()),
            Field::Ttl => feed.ttl = non_empty(&content.value),
            Field::Icon => feed.icon = address(&self.xml.resolver, content.base.as_ref(), &content.value),
            Field::Logo => feed.image = address(&self.xml.resolver, content.base.as_ref(), &content.value),
            Field::Subject => push_some(&mut feed.tags, Tag { term: content.text(), ..Tag::default() }),
            Field::Keywords if feed.tags.len() < LIST_LIMIT => feed.tags.extend(keywords(&content)),
            _ => {}
        }
    }
}

/// Appends to a list up to a limit.
pub(super) fn push_some<T>(list: &mut Vec<T>, one: T) {
    if list.len() < LIST_LIMIT {
        list.push(one);
    }
}

fn put_date(place: &mut Option<Timestamp>, content: &Content, zone: Option<&TimeZone>) {
    if let Some(at) = date::parse_in(&content.value, zone) {
        *place = Some(at);
    }
}

fn keywords(content: &Content) -> Vec<Tag> {
    let words = content.text();
    words
        .split([',', '、'])
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .take(LIST_LIMIT)
        .map(|word| Tag { term: word.to_owned(), ..Tag::default() })
        .collect()
}

pub(super) fn non_empty(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
