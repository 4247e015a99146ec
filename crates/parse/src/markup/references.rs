//! Character and entity references: resolving and escaping.

use std::borrow::Cow;

use html5ever::data::NAMED_ENTITIES;

/// Resolves character and entity references; anything else stays.
pub fn unescape(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('&') else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(after) = rest.strip_prefix('&') {
        let length = after
            .bytes()
            .take(33)
            .position(|byte| !(byte.is_ascii_alphanumeric() || byte == b'#'))
            .unwrap_or(after.len().min(33));
        let name = &after[..length];
        let closed = after.as_bytes().get(length) == Some(&b';');
        let mut behind = &after[length + usize::from(closed)..];
        match if closed { reference(name) } else { unclosed_reference(name) } {
            Some(Reference::Text(value)) => out.push_str(value),
            Some(Reference::Char(value)) => out.push(value),
            Some(Reference::Pair(first, second)) => out.extend([first, second]),
            None => match surrogate_pair(name, behind).filter(|_| closed) {
                Some((value, rest)) => {
                    out.push(value);
                    behind = rest;
                }
                None => {
                    out.push('&');
                    out.push_str(name);
                    if closed {
                        out.push(';');
                    }
                }
            },
        }
        let next = behind.find('&').unwrap_or(behind.len());
        out.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    Cow::Owned(out)
}

/// The replacement of a reference.
pub(crate) enum Reference {
    Text(&'static str),
    Char(char),
    Pair(char, char),
}

/// Resolves the name between `&` and `;`.
pub(crate) fn reference(name: &str) -> Option<Reference> {
    if name.starts_with('#') {
        return Some(Reference::Char(numbered(number(name)?)?));
    }
    Some(Reference::Text(match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        "nbsp" => "\u{a0}",
        _ => return named(name),
    }))
}

fn number(name: &str) -> Option<u32> {
    let number = name.strip_prefix('#')?;
    match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    }
}

/// The character of two references that form a surrogate pair, as written by programs that use UTF-16, and the rest.
fn surrogate_pair<'a>(first: &str, behind: &'a str) -> Option<(char, &'a str)> {
    const LONGEST: usize = "&#xDE00;".len();
    let end = behind.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let second = behind[..end].strip_prefix('&')?;
    let units = [u16::try_from(number(first)?).ok()?, u16::try_from(number(second)?).ok()?];
    let mut characters = char::decode_utf16(units);
    match (characters.next()?.ok()?, characters.next()) {
        (character, None) => Some((character, &behind[end + 1..])),
        _ => None,
    }
}

/// A less common HTML entity.
fn named(name: &str) -> Option<Reference> {
    let mut buffer = [0_u8; 34];
    let key = buffer.get_mut(..=name.len())?;
    key[..name.len()].copy_from_slice(name.as_bytes());
    key[name.len()] = b';';
    let (first, second) = *NAMED_ENTITIES.get(std::str::from_utf8(key).ok()?)?;
    let first = char::from_u32(first).filter(|c| *c != '\0')?;
    match char::from_u32(second).filter(|c| *c != '\0') {
        Some(second) => Some(Reference::Pair(first, second)),
        None => Some(Reference::Char(first)),
    }
}

/// References that browsers accept without a semicolon, as far as that is safe in addresses.
fn unclosed_reference(name: &str) -> Option<Reference> {
    match name {
        "amp" | "lt" | "gt" | "quot" | "nbsp" => reference(name),
        _ if name.len() > 2 && name.starts_with('#') => reference(name),
        _ => None,
    }
}

/// The character of a number; the C1 range means windows-1252, as in browsers.
fn numbered(number: u32) -> Option<char> {
    match number {
        0x80..=0x9f => Some(c1_as_windows_1252(number)),
        0x09 | 0x0a | 0x0d | 0x20.. => char::from_u32(number),
        _ => None,
    }
}

/// The character that stands at a C1 position in windows-1252.
pub(crate) fn c1_as_windows_1252(number: u32) -> char {
    const TABLE: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    TABLE.get((number as usize).wrapping_sub(0x80)).copied().unwrap_or('\u{fffd}')
}

/// Escapes `text`, so that it is text in HTML.
pub fn escape_into(out: &mut String, text: &str) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let reference = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(reference);
        from = at + 1;
    }
    out.push_str(&text[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_references_to_halves_of_a_character_are_one() {
        for (text, expected) in [
            ("&#55357;&#56832; a", "😀 a"),
            ("&#xD83D;&#xDE00;&#xd83d;&#56832;", "😀😀"),
            ("&#55357; &#56832;", "&#55357; &#56832;"),
            ("&#55357;", "&#55357;"),
            ("&#56832;&#55357;", "&#56832;&#55357;"),
            ("&#55357;&amp;", "&#55357;&"),
            ("&#55357;日本", "&#55357;日本"),
            ("&#1;&#2;", "&#1;&#2;"),
        ] {
            assert_eq!(unescape(text), expected, "{text}");
        }
    }
}
