//! Continues after something that the tokenizer cannot read.

use std::borrow::Cow;

use quick_xml::errors::{Error, SyntaxError};

use super::xml::{TagShape, Xml, XmlToken};

impl<'a> Xml<'a> {
    pub(super) fn recover(&mut self, from: usize, error: &Error) -> Option<XmlToken<'a>> {
        self.damaged = true;
        let text = self.text;
        let seen = self.position().max(from + 1);
        let Error::Syntax(error) = error else {
            if self.position() <= from {
                self.restart((from + 1).min(text.len()), text.len());
            }
            return None;
        };
        let rest = &text[from.min(text.len())..];
        let next_bracket = rest.find('>').map(|at| from + at + 1);
        match error {
            SyntaxError::UnclosedCData | SyntaxError::InvalidBangMarkup | SyntaxError::UnclosedDoctype => {
                let cdata = rest.get(..9).is_some_and(|head| head.eq_ignore_ascii_case("<![CDATA["));
                if cdata {
                    let body = &rest[9..];
                    let length = body.find("]]>").unwrap_or(body.len());
                    self.restart((from + 9 + length + 3).min(text.len()), text.len());
                    return Some(XmlToken::Cdata(&body[..length]));
                }
                self.restart(next_bracket.unwrap_or(text.len()), text.len());
                None
            }
            SyntaxError::UnclosedComment | SyntaxError::UnclosedPI | SyntaxError::UnclosedXmlDecl => {
                self.restart(next_bracket.unwrap_or(text.len()), text.len());
                None
            }
            SyntaxError::UnclosedTag
            | SyntaxError::UnclosedSingleQuotedAttributeValue
            | SyntaxError::UnclosedDoubleQuotedAttributeValue => {
                let Some(end) = next_bracket else {
                    // A tag cut off by the end of the document; a lone bracket was text.
                    self.over = true;
                    return (!starts_name(rest) && !rest.starts_with("</"))
                        .then_some(XmlToken::Text(Cow::Borrowed(rest)));
                };
                let whole = &text[from..end];
                let stray = whole[1..].find('<').map(|at| at + 1);
                if !starts_name(whole) && !whole.starts_with("</") {
                    let length = stray.unwrap_or(whole.len());
                    self.restart(from + length, text.len().max(seen));
                    return Some(XmlToken::Text(Cow::Borrowed(&whole[..length])));
                }
                let end = stray.map_or(end, |stray| from + stray);
                self.restart(end, text.len());
                if whole.starts_with("</") {
                    let name = text[from + 2..end].trim_end_matches('>');
                    self.close_named(name);
                    return None;
                }
                self.enter(text[from + 1..end].trim_end_matches('>'), TagShape::Open)
            }
        }
    }

    fn close_named(&mut self, name: &str) {
        let name = name.trim_ascii();
        if let Some(at) = self.open.iter().rposition(|open| open.name == name) {
            self.closing = self.open.len() - at;
        }
    }
}

/// Whether `<` is followed by the possible start of a name.
pub(super) fn starts_name(whole: &str) -> bool {
    whole
        .as_bytes()
        .get(1)
        .is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':' | 0x80..))
}

/// The last `<` inside a tag and outside of quoted values, if any.
pub(super) fn stray_bracket(whole: &str) -> Option<usize> {
    let bytes = whole.as_bytes();
    if !bytes[1..].contains(&b'<') {
        return None;
    }
    if !starts_name(whole) {
        return bytes.iter().rposition(|byte| *byte == b'<').filter(|at| *at > 0);
    }
    let mut quote = None;
    let mut found = None;
    for (at, &byte) in bytes.iter().enumerate().skip(1) {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b'<') => found = found.or(Some(at)),
            _ => {}
        }
    }
    found
}
