//! A lenient pull parser for XML: recovers from broken nesting, stray `<` and `&`, unclosed tags and truncation, and
//! tracks `xml:base`, `xml:lang` and namespaces.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::{memchr, memchr2};
use quick_xml::Reader;
use quick_xml::events::Event;
use url::Url;

use super::address;
use super::recover::{starts_name, stray_bracket};
use super::scope::Scopes;
pub(super) use super::tag::Tag;
use crate::markup::{self, Reference};
use crate::resolver::Resolver;

/// How deep elements may nest; of deeper ones only the text is reported.
pub const DEPTH_LIMIT: usize = 512;
/// Start tags beyond the depth limit after which the tokenizer is replaced, because it keeps all of them.
const RENEW_AFTER: usize = 4096;

/// A token.
#[derive(Debug)]
pub(super) enum XmlToken<'a> {
    /// An element starts; an empty one is followed by its `End` immediately.
    Start(Tag<'a>),
    /// The innermost open element ends.
    End,
    /// Character data with references resolved.
    Text(Cow<'a, str>),
    /// A CDATA section.
    Cdata(&'a str),
    /// The document is over.
    Eof,
}

/// An open element.
#[derive(Debug)]
pub(super) struct Open<'a> {
    pub(super) name: &'a str,
}

/// The parser.
#[derive(Debug)]
pub(super) struct Xml<'a> {
    pub(super) text: &'a str,
    reader: Reader<&'a [u8]>,
    /// Offset of the tokenizer's position: where it was started, and how much it was moved on.
    start: usize,
    pub(super) open: Vec<Open<'a>>,
    /// Ends still to be reported: an end tag may close several elements.
    pub(super) closing: usize,
    /// Open elements beyond the depth limit, and their total number.
    beyond: usize,
    beyond_total: usize,
    scopes: Scopes<'a>,
    pub(super) resolver: Resolver,
    /// Bytes and names that may still be processed twice while recovering.
    patience: usize,
    /// Whether anything was repaired or left out.
    pub(super) damaged: bool,
    /// Whether elements beyond the depth limit were left out.
    pub(super) too_deep: bool,
    unread: Option<Tag<'a>>,
    pub(super) over: bool,
}

impl<'a> Xml<'a> {
    pub(super) fn new(text: &'a str, base: Option<Arc<Url>>) -> Self {
        let start = behind_marks(text, 0);
        Self {
            text,
            reader: tokenizer(&text[start..]),
            start,
            open: Vec::with_capacity(16),
            closing: 0,
            beyond: 0,
            beyond_total: 0,
            scopes: Scopes::new(base),
            resolver: Resolver::default(),
            patience: text.len().saturating_mul(8).saturating_add(1 << 20),
            damaged: false,
            too_deep: false,
            unread: None,
            over: false,
        }
    }

    /// How many elements are open, including the one just started.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The present base of relative addresses.
    pub(super) fn base(&self) -> Option<&Arc<Url>> {
        self.scopes.base()
    }

    /// Resolves an address against the present base.
    pub(super) fn address(&self, href: &str) -> Option<String> {
        address::address(&self.resolver, self.base(), href)
    }

    /// The present language of `xml:lang`; empty if it was reset.
    pub(super) fn language(&self) -> Option<&'a str> {
        self.scopes.language()
    }

    /// Reports `tag` again as the next token.
    pub(super) fn unread(&mut self, tag: Tag<'a>) {
        self.unread = Some(tag);
    }

    /// Moves the innermost element to `depth`, whose element was not closed.
    pub(super) fn replace(&mut self, depth: usize) {
        let last = self.open.len();
        if depth == 0 || depth >= last {
            return;
        }
        self.damaged = true;
        self.open.drain(depth - 1..last - 1);
        self.scopes.replace(depth, last);
    }

    /// Skips to the end tag of the element just started if it contains only one text or CDATA section; returns whether
    /// it did.
    pub(super) fn step_over_text(&mut self, tag: Tag<'a>) -> bool {
        let from = self.position();
        let ahead = self.text.get(from..).unwrap_or_default();
        let length = match ahead.strip_prefix("<![CDATA[") {
            Some(inside) => match inside.find("]]>") {
                Some(length) => "<![CDATA[".len() + length + "]]>".len(),
                None => return false,
            },
            None => self.text_ahead(),
        };
        let ends = ahead[length..].strip_prefix("</").and_then(|end| end.strip_prefix(tag.name()));
        if self.closing > 0 || !ends.is_some_and(|rest| rest.starts_with('>')) {
            return false;
        }
        self.pass(length);
        true
    }

    /// The text of the element just started if it contains nothing else: read as a whole, up to its end tag.
    pub(super) fn plain_text(&mut self, tag: Tag<'a>) -> Option<&'a str> {
        let ahead = self.text.get(self.position()..)?;
        let length = memchr2(b'<', b'&', ahead.as_bytes())?;
        let ends = ahead[length..].strip_prefix("</")?.strip_prefix(tag.name())?;
        if self.closing > 0 || !ends.starts_with('>') {
            return None;
        }
        self.pass(length);
        self.next();
        Some(&ahead[..length])
    }

    /// Skips a part of a text without the tokenizer.
    fn pass(&mut self, length: usize) {
        let rest = self.reader.get_mut();
        *rest = &rest[length..];
        self.start += length;
    }

    /// The number of bytes before the next tag.
    pub(super) fn text_ahead(&self) -> usize {
        let ahead = self.text.get(self.position()..).unwrap_or_default();
        memchr(b'<', ahead.as_bytes()).unwrap_or(ahead.len())
    }

    pub(super) fn position(&self) -> usize {
        self.start + usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    /// Restarts the tokenizer at `position`, after it has read up to `seen`.
    pub(super) fn restart(&mut self, position: usize, seen: usize) {
        if !self.waste(seen.saturating_sub(position) + 16) {
            return;
        }
        self.start = behind_marks(self.text, self.text.ceil_char_boundary(position.min(self.text.len())));
        self.reader = tokenizer(&self.text[self.start..]);
    }

    /// Counts repeated work; `false` if it was too much, and parsing stops.
    fn waste(&mut self, work: usize) -> bool {
        let left = self.patience.checked_sub(work);
        self.patience = left.unwrap_or_default();
        self.over |= left.is_none();
        self.damaged |= left.is_none();
        left.is_some()
    }

    /// The next token. Never fails; at the end it returns `Eof` forever.
    pub(super) fn next(&mut self) -> XmlToken<'a> {
        if let Some(tag) = self.unread.take() {
            return XmlToken::Start(tag);
        }
        loop {
            if self.closing > 0 {
                self.closing -= 1;
                self.pop();
                return XmlToken::End;
            }
            if self.over {
                return self.finish();
            }
            let from = self.position();
            match self.reader.read_event() {
                Ok(Event::Text(text)) => match text.into_inner() {
                    Cow::Borrowed("") => {}
                    text => return XmlToken::Text(text),
                },
                Ok(Event::CData(_)) => {
                    let to = self.position();
                    return XmlToken::Cdata(self.text.get(from + 9..to - 3).unwrap_or_default());
                }
                Ok(Event::GeneralRef(_)) => {
                    let whole = &self.text[from..self.position()];
                    let name = whole.trim_start_matches('&').trim_end_matches(';');
                    return XmlToken::Text(match markup::reference(name) {
                        Some(Reference::Text(value)) => Cow::Borrowed(value),
                        Some(Reference::Char(value)) => Cow::Owned(value.to_string()),
                        Some(Reference::Pair(first, second)) => {
                            Cow::Owned(String::from_iter([first, second]))
                        }
                        None => Cow::Borrowed(whole),
                    });
                }
                Ok(Event::Start(_)) => {
                    let to = self.position();
                    if let Some(token) = self.start_tag(from, to, TagShape::Open) {
                        return token;
                    }
                }
                Ok(Event::Empty(_)) => {
                    let to = self.position();
                    if let Some(token) = self.start_tag(from, to, TagShape::Empty) {
                        return token;
                    }
                }
                Ok(Event::End(_)) => {
                    let to = self.position();
                    self.end_tag(from, to);
                }
                Ok(Event::Eof) => self.over = true,
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_)) => {}
                Err(error) => {
                    if let Some(token) = self.recover(from, &error) {
                        return token;
                    }
                }
            }
        }
    }

    /// Closes the open elements, one per call.
    fn finish(&mut self) -> XmlToken<'a> {
        if self.open.is_empty() {
            return XmlToken::Eof;
        }
        self.damaged = true;
        self.pop();
        XmlToken::End
    }

    fn pop(&mut self) {
        self.open.pop();
        self.scopes.leave(self.open.len());
    }

    fn start_tag(&mut self, from: usize, to: usize, shape: TagShape) -> Option<XmlToken<'a>> {
        let text = self.text;
        let whole = &text[from..to];
        if let Some(stray) = stray_bracket(whole) {
            self.damaged = true;
            if !starts_name(whole) {
                // A lone `<`: everything up to the next bracket is text.
                self.restart(from + stray, to);
                return Some(XmlToken::Text(Cow::Borrowed(&text[from..from + stray])));
            }
            // The tag was not closed before the next one began.
            self.restart(from + stray, to);
            return self.enter(&text[from + 1..from + stray], TagShape::Open);
        }
        if !starts_name(whole) {
            self.damaged = true;
            return Some(XmlToken::Text(Cow::Borrowed(whole)));
        }
        let inner = &whole[1..whole.len() - 1];
        let inner = match shape {
            TagShape::Empty => inner.strip_suffix('/').unwrap_or(inner),
            TagShape::Open => inner,
        };
        self.enter(inner, shape)
    }

    /// Opens the element of the tag `inner`.
    pub(super) fn enter(&mut self, inner: &'a str, shape: TagShape) -> Option<XmlToken<'a>> {
        let inner = inner.trim_ascii_end();
        if self.open.len() >= DEPTH_LIMIT {
            (self.damaged, self.too_deep) = (true, true);
            if shape == TagShape::Open {
                self.beyond += 1;
                self.beyond_total += 1;
                if self.beyond_total.is_multiple_of(RENEW_AFTER) {
                    let here = self.position();
                    self.restart(here, here);
                }
            }
            return None;
        }
        let name_length =
            inner.find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '=').unwrap_or(inner.len());
        let name = &inner[..name_length];
        self.open.push(Open { name });
        if shape == TagShape::Empty {
            self.closing = 1;
        }
        if name_length < inner.len() && inner.contains("xml") {
            let depth = self.open.len();
            self.damaged |= !self.scopes.enter(depth, inner, name_length, &self.resolver);
        }
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let space = self.scopes.space_of(prefix);
        Some(XmlToken::Start(Tag { space, local, inner, name_length }))
    }

    fn end_tag(&mut self, from: usize, to: usize) {
        let text = self.text;
        let whole = &text[from..to];
        let mut name = &whole[2..whole.len() - 1];
        if let Some(stray) = name.find('<') {
            self.damaged = true;
            name = &name[..stray];
            self.restart(from + 2 + stray, to);
        }
        let name = name.trim_ascii();
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        let matching = self
            .open
            .iter()
            .rposition(|open| open.name == name)
            .or_else(|| self.open.iter().rposition(|open| open.name.eq_ignore_ascii_case(name)));
        match matching {
            Some(at) => {
                self.closing = self.open.len() - at;
                self.damaged |= self.closing > 1;
            }
            None => {
                self.damaged = true;
                self.waste(self.open.len() * name.len().div_ceil(64));
            }
        }
    }
}

/// The form of a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TagShape {
    Open,
    Empty,
}

/// The position to start at: the tokenizer drops a byte order mark at its start without counting it.
fn behind_marks(text: &str, position: usize) -> usize {
    text.len() - text[position..].trim_start_matches('\u{feff}').len()
}

fn tokenizer(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    config.check_comments = false;
    reader
}
