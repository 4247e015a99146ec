//! Patterns of rules, and the normal form in which they and addresses are compared.

use std::fmt::Write as _;

use crate::url::{escaped_byte, is_unreserved};

/// A path pattern with `*` for any text and `$` for the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// The texts between `*`, in normal form.
    pieces: Vec<String>,
    anchored: bool,
    /// How specific the pattern is: its length as written.
    pub(super) weight: usize,
}

impl Pattern {
    pub(super) fn read(value: &[u8]) -> Pattern {
        let anchored = value.last() == Some(&b'$');
        let body = if anchored { &value[..value.len() - 1] } else { value };
        let pieces: Vec<String> =
            body.split(|byte| *byte == b'*').map(|piece| comparable(piece, Marks::Literal)).collect();
        let weight = comparable(value, Marks::Special).len();
        Pattern { pieces, anchored, weight }
    }

    /// Finds each piece at its first position after the previous one: linear in the path for every piece.
    pub(super) fn matches(&self, path: &str) -> bool {
        let Some((first, others)) = self.pieces.split_first() else { return true };
        let Some(mut rest) = path.strip_prefix(first.as_str()) else { return false };
        let Some((last, middle)) = others.split_last() else { return !self.anchored || rest.is_empty() };
        for piece in middle {
            let Some(at) = rest.find(piece.as_str()) else { return false };
            rest = &rest[at + piece.len()..];
        }
        if self.anchored { rest.ends_with(last.as_str()) } else { rest.contains(last.as_str()) }
    }
}

/// Whether `*` and `$` are part of an address or wildcards of a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    Literal,
    Special,
}

/// The normal form: non-ASCII escaped, unreserved ASCII unescaped, hex digits in upper case.
///
/// A literal `*` or `$` is escaped, since rules can only express it in this way.
pub(super) fn comparable(bytes: &[u8], marks: Marks) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        let escaped = if byte == b'%' { escaped_byte(&bytes[at..]) } else { None };
        match escaped {
            Some(octet) if is_unreserved(octet) => text.push(char::from(octet)),
            Some(octet) => escape(&mut text, octet),
            None if !byte.is_ascii() => escape(&mut text, byte),
            None if marks == Marks::Literal && matches!(byte, b'*' | b'$') => escape(&mut text, byte),
            None => text.push(char::from(byte)),
        }
        if escaped.is_some() {
            at += 2;
        }
    }
    text
}

fn escape(text: &mut String, byte: u8) {
    let _ = write!(text, "%{byte:02X}");
}
