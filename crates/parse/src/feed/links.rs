//! Elements of a feed that lead elsewhere: links, pictures, attached files.

use std::borrow::Cow;

use super::address::{address, alternate};
use super::atom::{self, Default as TextDefault};
use super::fields::push_some;
use super::names::{Field, field};
use super::reader::FeedReader;
use super::xml::{Tag as XmlTag, XmlToken};
use super::{Enclosure, LIST_LIMIT, Link};

impl<'a> FeedReader<'a> {
    /// A picture: its address is in a child, an attribute, or its text.
    pub(super) fn image(&mut self, tag: XmlTag<'a>) {
        let from_attribute = tag
            .attribute("resource")
            .or_else(|| tag.attribute("href"))
            .or_else(|| tag.attribute("url"))
            .and_then(|href| self.xml.address(&href));
        let depth = self.xml.depth();
        let (mut url, mut own, mut in_url) = (None, String::new(), None);
        loop {
            match self.xml.next() {
                XmlToken::Eof => break,
                XmlToken::End => {
                    if self.xml.depth() < depth {
                        break;
                    }
                    if in_url.is_some_and(|at| self.xml.depth() < at) {
                        in_url = None;
                    }
                }
                XmlToken::Start(tag) => match field(tag.space, tag.local) {
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
                XmlToken::Text(text) => {
                    push_part(&mut url, &mut own, in_url.is_some(), self.xml.depth() == depth, &text);
                }
                XmlToken::Cdata(text) => {
                    push_part(&mut url, &mut own, in_url.is_some(), self.xml.depth() == depth, text);
                }
            }
        }
        let text = url.filter(|url| !url.trim().is_empty()).or_else(|| own.contains("://").then_some(own));
        let href = text.and_then(|href| self.xml.address(&href)).or(from_attribute);
        self.put_image(href);
    }

    pub(super) fn put_image(&mut self, href: Option<String>) {
        let place = match &mut self.entry {
            Some((_, entry)) => &mut entry.image,
            None => &mut self.feed.image,
        };
        if place.is_none() {
            *place = href;
        }
    }

    pub(super) fn thumbnail(&mut self, tag: XmlTag<'a>) {
        let url = tag.attribute("url").and_then(|url| self.xml.address(&url));
        self.put_image(url);
    }

    pub(super) fn media_content(&mut self, tag: XmlTag<'a>) {
        let Some((_, entry)) = &mut self.entry else { return };
        let Some(url) = tag.attribute("url").and_then(|url| self.xml.address(&url)) else { return };
        if entry.enclosures.len() >= LIST_LIMIT || entry.enclosures.iter().any(|known| known.url == url) {
            return;
        }
        let kind = tag.attribute("type").map(Cow::into_owned).filter(|kind| !kind.is_empty());
        let length = tag.attribute("fileSize").map(Cow::into_owned).filter(|length| !length.is_empty());
        entry.enclosures.push(Enclosure { url, kind, length });
    }

    pub(super) fn enclosure(&mut self, tag: XmlTag<'a>) {
        let href =
            tag.attribute("url").or_else(|| tag.attribute("href")).or_else(|| tag.attribute("resource"));
        let Some(url) = href.and_then(|url| self.xml.address(&url)) else { return };
        let kind = tag.attribute("type").filter(|kind| !kind.is_empty());
        let kind = kind.map(|kind| kind.into_owned().into());
        let length = tag.attribute("length").map(Cow::into_owned).filter(|length| !length.is_empty());
        self.add_link(Link { href: url, rel: "enclosure".into(), kind, length, ..Link::default() });
    }

    pub(super) fn link(&mut self, tag: XmlTag<'a>) {
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
        let Some(href) = address(&self.xml.resolver, base.as_ref(), &text) else { return };
        let (known, strong, links) = match &mut self.entry {
            Some((_, entry)) => (&mut entry.link, &mut self.strong.entry_link, &mut entry.links),
            None => (&mut self.feed.link, &mut self.strong.feed_link, &mut self.feed.links),
        };
        if known.is_none() || (in_place && !*strong) {
            *known = Some(href.clone());
        }
        *strong |= in_place;
        if links.is_empty() {
            links.reserve_exact(1);
        }
        push_some(links, alternate(href));
    }

    fn add_link(&mut self, link: Link) {
        let links = match &mut self.entry {
            Some((_, entry)) => {
                if link.rel == "enclosure" && entry.enclosures.len() < LIST_LIMIT {
                    entry.enclosures.retain(|known| known.url != link.href);
                    entry.enclosures.push(Enclosure {
                        url: link.href.clone(),
                        kind: link.kind.as_deref().map(str::to_owned),
                        length: link.length.clone(),
                    });
                }
                &mut entry.links
            }
            None => &mut self.feed.links,
        };
        push_some(links, link);
    }
}

fn push_part(url: &mut Option<String>, own: &mut String, in_url: bool, outside: bool, text: &str) {
    match url {
        Some(url) if in_url => url.push_str(text),
        _ if outside => own.push_str(text),
        _ => {}
    }
}
