//! Elements and text of simple XML lists (sitemaps, OPML), parsed leniently: broken parts are skipped.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;

use super::markup::unescape;

/// Attributes of one element that are read.
const MAX_ATTRIBUTES: usize = 64;

/// A piece of an XML document, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ElementPiece<'a> {
    /// An element begins; an empty one is followed by its end.
    Open(Element<'a>),
    /// An element ends; its name without prefix.
    Close(&'a str),
    /// Character data, references resolved.
    Text(Cow<'a, str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    inner: &'a str,
    name_length: usize,
}

impl<'a> Element<'a> {
    /// The name without prefix.
    pub(super) fn local(&self) -> &'a str {
        local(&self.inner[..self.name_length])
    }

    /// The prefix, empty when there is none.
    pub(super) fn prefix(&self) -> &'a str {
        self.inner[..self.name_length].split_once(':').map_or("", |(prefix, _)| prefix)
    }

    /// The first non-empty attribute with one of the names, in any case.
    pub(super) fn attribute(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| {
            let mut attributes = Attributes::html(self.inner, self.name_length);
            attributes.with_checks(false);
            attributes
                .take(MAX_ATTRIBUTES)
                .filter_map(Result::ok)
                .filter(|attribute| attribute.key.0.eq_ignore_ascii_case(name))
                .map(|attribute| unescape(&attribute.value).trim().to_owned())
                .find(|value| !value.is_empty())
        })
    }
}

/// An iterator over the pieces of a document.
pub(super) struct Pieces<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    /// Where in `text` the present reader starts.
    start: usize,
    /// The end of an empty element, to be returned next.
    closing: Option<&'a str>,
    /// Bytes that may still be read twice when recovering.
    patience: usize,
}

/// Starts reading `text`.
pub(super) fn pieces(text: &str) -> Pieces<'_> {
    // The reader skips a byte order mark without counting it.
    let text = text.trim_start_matches('\u{feff}');
    let patience = text.len().saturating_mul(4) + 65_536;
    Pieces { text, reader: lenient(text), start: 0, closing: None, patience }
}

fn lenient(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    reader
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

impl<'a> Iterator for Pieces<'a> {
    type Item = ElementPiece<'a>;

    fn next(&mut self) -> Option<ElementPiece<'a>> {
        if let Some(name) = self.closing.take() {
            return Some(ElementPiece::Close(name));
        }
        loop {
            match self.reader.read_event() {
                Ok(Event::Start(tag)) if is_name(tag.name().0) => {
                    return self.element(&tag, tag.name().0, ">").map(ElementPiece::Open);
                }
                Ok(Event::Empty(tag)) if is_name(tag.name().0) => {
                    let element = self.element(&tag, tag.name().0, "/>")?;
                    self.closing = Some(element.local());
                    return Some(ElementPiece::Open(element));
                }
                Ok(Event::End(tag)) => {
                    let element = self.element(&tag, tag.name().0, ">")?;
                    return Some(ElementPiece::Close(element.local()));
                }
                Ok(Event::Text(text)) => return Some(ElementPiece::Text(text.into_inner())),
                Ok(Event::CData(text)) => return Some(ElementPiece::Text(text.into_inner())),
                Ok(Event::GeneralRef(name)) => {
                    return Some(ElementPiece::Text(Cow::Owned(
                        unescape(&format!("&{};", &*name)).into_owned(),
                    )));
                }
                Ok(Event::Eof) => return None,
                // A `<` that is not a tag: there may be a tag after it.
                Ok(Event::Start(tag) | Event::Empty(tag)) => {
                    let begin = self.read_to().saturating_sub(tag.len() + 1);
                    self.restart_behind(begin)?;
                }
                Ok(_) => {}
                Err(_) => {
                    let error =
                        self.start + usize::try_from(self.reader.error_position()).unwrap_or(usize::MAX);
                    self.restart_behind(error)?;
                }
            }
        }
    }
}

impl<'a> Pieces<'a> {
    /// The tag just read, borrowed from the document instead of the event; `tail` closes it.
    fn element(&self, inner: &str, name: &str, tail: &str) -> Option<Element<'a>> {
        let end = self.read_to().checked_sub(tail.len())?;
        let inner = self.text.get(end.checked_sub(inner.len())?..end)?;
        Some(Element { inner, name_length: name.len().min(inner.len()) })
    }

    fn read_to(&self) -> usize {
        self.start + usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    /// Restarts the reader at the next `<` after `place`.
    fn restart_behind(&mut self, place: usize) -> Option<()> {
        let seen = self.read_to().min(self.text.len());
        let from = self.text.ceil_char_boundary(place.min(seen).saturating_add(1).min(self.text.len()));
        let next = from + self.text[from..].find('<')?;
        self.patience = self.patience.checked_sub(seen.saturating_sub(next) + 16)?;
        self.start = next;
        self.reader = lenient(&self.text[next..]);
        Some(())
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && !text.contains('<')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(text: &str) -> String {
        pieces(text)
            .map(|piece| match piece {
                ElementPiece::Open(element) => format!("<{}>", element.local()),
                ElementPiece::Close(name) => format!("</{name}>"),
                ElementPiece::Text(text) => text.into_owned(),
            })
            .collect()
    }

    #[test]
    fn elements_text_and_references_come_in_order() {
        assert_eq!(
            shape("<?xml version='1.0'?><!-- c --><a:b x='1'>t&amp;<![CDATA[<&]]>&#x3042;&nope;<c/></a:b>"),
            "<b>t&<&あ&nope;<c></c></b>"
        );
    }

    #[test]
    fn what_is_broken_is_stepped_over() {
        assert_eq!(shape("<a>x & y</b></a>"), "<a>x & y</b></a>");
        assert_eq!(shape("<a><!-- open <b>1</b>"), "<a><b>1</b>");
        assert_eq!(shape("<a><b>1"), "<a><b>1");
        assert_eq!(shape("a < b <c>"), "a <c>");
        assert_eq!(shape("\u{feff}\u{feff}<a><!-- open>\u{feff}日<b>本</b>"), "<a><b>本</b>");
    }

    #[test]
    fn attributes_are_found_in_any_case_and_resolved() {
        let Some(ElementPiece::Open(element)) = pieces("<o XMLURL='a?x=1&y=&lt;' title=\"\" Text=t/>").next()
        else {
            panic!("no element")
        };
        assert_eq!(element.attribute(&["xmlUrl"]).as_deref(), Some("a?x=1&y=<"));
        assert_eq!(element.attribute(&["title", "text"]).as_deref(), Some("t"));
        assert_eq!(element.attribute(&["url"]), None);
    }

    #[test]
    fn broken_documents_end_in_time() {
        for text in [
            "<!--".repeat(200_000),
            "<a ".repeat(300_000),
            "<![CDATA[".repeat(100_000),
            "<".repeat(1_000_000),
        ] {
            assert!(pieces(&text).count() < 1_000_000);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "([<>&;/'\"= ab]|<a|</a>|<!--|<!-- x>|-->|<!\\[CDATA\\[|]]>|<\\?|&#|\u{feff}|[\u{1}\u{85}]|\\PC){0,80}") {
            for piece in pieces(&text) {
                if let ElementPiece::Open(element) = piece {
                    let _ = (element.local(), element.prefix(), element.attribute(&["a"]));
                }
            }
        }
    }
}
