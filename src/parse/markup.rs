//! HTML as a flat list of pieces, without a tree: plain text of a fragment, and the limits a tree builder needs.

use std::borrow::Cow;

use markup5ever::data::NAMED_ENTITIES;

/// One piece of an HTML fragment; comments, declarations and processing instructions are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text as written, references included.
    Text(&'a str),
    /// A start tag.
    Open {
        /// The tag's name as written.
        name: &'a str,
        /// Everything between the name and `>`.
        attributes: &'a str,
        /// How many attributes that is.
        count: usize,
        /// The whole tag as written.
        raw: &'a str,
    },
    /// An end tag.
    Close {
        /// The tag's name as written.
        name: &'a str,
        /// The whole tag as written.
        raw: &'a str,
    },
}

/// Cuts a fragment into pieces in one pass, finding the ends of tags as browsers do.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    rest: &'a str,
}

/// The pieces of `html`.
pub fn pieces(html: &str) -> Pieces<'_> {
    Pieces { rest: html }
}

impl<'a> Pieces<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Skips what a raw-text element such as `<script>` holds, with its end tag.
    pub fn skip_raw(&mut self, name: &str) {
        let mut from = 0;
        while let Some(at) = self.rest[from..].find("</") {
            let after = from + at + 2;
            let end = after + name.len();
            let named =
                self.rest.as_bytes().get(after..end).is_some_and(|n| n.eq_ignore_ascii_case(name.as_bytes()));
            if named {
                let close = self.rest[end..].find('>').map_or(self.rest.len(), |at| end + at + 1);
                self.take(close);
                return;
            }
            from = after;
        }
        self.rest = "";
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            let bytes = self.rest.as_bytes();
            if bytes.is_empty() {
                return None;
            }
            if bytes[0] != b'<' {
                let length = self.rest.find('<').unwrap_or(self.rest.len());
                return Some(Piece::Text(self.take(length)));
            }
            match bytes.get(1) {
                Some(b'!' | b'?') => {
                    let length = declaration_length(self.rest);
                    if length == 0 {
                        return Some(Piece::Text(self.take(bytes.len())));
                    }
                    self.take(length);
                }
                Some(b'/') if bytes.get(2).is_some_and(u8::is_ascii_alphabetic) => {
                    let name = name_length(&bytes[2..]);
                    let Some(end) = self.rest[2 + name..].find('>') else {
                        return Some(Piece::Text(self.take(bytes.len())));
                    };
                    let raw = self.take(2 + name + end + 1);
                    return Some(Piece::Close { name: &raw[2..2 + name], raw });
                }
                Some(b'/') => {
                    let length = self.rest.find('>').map_or(self.rest.len(), |at| at + 1);
                    self.take(length);
                }
                Some(first) if first.is_ascii_alphabetic() => {
                    let name = 1 + name_length(&bytes[1..]);
                    let Some((end, count)) = attributes_length(&bytes[name..]) else {
                        // Never closed: browsers drop the rest, a title such as "a <b" wants to keep it.
                        return Some(Piece::Text(self.take(bytes.len())));
                    };
                    let raw = self.take(name + end + 1);
                    return Some(Piece::Open {
                        name: &raw[1..name],
                        attributes: &raw[name..name + end],
                        count,
                        raw,
                    });
                }
                _ => {
                    let length = self.rest[1..].find('<').map_or(self.rest.len(), |at| at + 1);
                    return Some(Piece::Text(self.take(length)));
                }
            }
        }
    }
}

fn name_length(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| {
            byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'<' | b'"' | b'\'' | b'=')
        })
        .unwrap_or(bytes.len())
}

/// The length of a comment, declaration or processing instruction at the start of `text`; 0 when it never ends.
fn declaration_length(text: &str) -> usize {
    let all = text.len();
    if let Some(comment) = text.strip_prefix("<!--") {
        if comment.starts_with('>') {
            return 5;
        }
        if comment.starts_with("->") {
            return 6;
        }
        return comment.find("-->").map_or(all, |at| 4 + at + 3);
    }
    text.find('>').map_or(0, |at| at + 1)
}

/// Where the tag ends, and how many attributes it has; quotes count only where a value may start.
fn attributes_length(bytes: &[u8]) -> Option<(usize, usize)> {
    #[derive(Clone, Copy)]
    enum At {
        Between,
        Name,
        AfterName,
        BeforeValue,
        Bare,
        Quoted(u8),
    }
    let (mut at, mut count) = (At::Between, 0);
    for (index, &byte) in bytes.iter().enumerate() {
        at = match (at, byte) {
            (At::Quoted(quote), _) => {
                if byte == quote {
                    At::Between
                } else {
                    at
                }
            }
            (_, b'>') => return Some((index, count)),
            (At::Bare, _) if byte.is_ascii_whitespace() => At::Between,
            (At::Bare, _) => At::Bare,
            (At::BeforeValue, b'"' | b'\'') => At::Quoted(byte),
            (At::BeforeValue, _) if byte.is_ascii_whitespace() => At::BeforeValue,
            (At::BeforeValue, _) => At::Bare,
            (At::Name | At::AfterName, b'=') => At::BeforeValue,
            (_, b'/') => At::Between,
            (At::Name, _) if byte.is_ascii_whitespace() => At::AfterName,
            (At::Between | At::AfterName, _) if byte.is_ascii_whitespace() => at,
            (At::Name, _) => At::Name,
            (At::Between | At::AfterName, _) => {
                count += 1;
                At::Name
            }
        };
    }
    None
}

/// What the tree builder does with an element, as far as its depth goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Never has content.
    Void,
    /// Is reopened in the next block when it was not closed.
    Formatting,
    /// Ends tags do not reach through it.
    Boundary,
    /// Everything else that may stay.
    Plain,
    /// Goes together with what it holds.
    Raw,
    /// HTML, but only its content stays.
    Dropped,
}

/// Every element of HTML with its role, sorted by name.
const ELEMENTS: &[(&str, Role)] = {
    use Role::{Boundary, Dropped, Formatting, Plain, Raw, Void};
    &[
        ("a", Formatting),
        ("abbr", Plain),
        ("acronym", Plain),
        ("address", Plain),
        ("applet", Raw),
        ("area", Void),
        ("article", Plain),
        ("aside", Plain),
        ("audio", Plain),
        ("b", Formatting),
        ("base", Dropped),
        ("basefont", Dropped),
        ("bdi", Plain),
        ("bdo", Plain),
        ("bgsound", Dropped),
        ("big", Formatting),
        ("blink", Dropped),
        ("blockquote", Plain),
        ("body", Dropped),
        ("br", Void),
        ("button", Dropped),
        ("canvas", Dropped),
        ("caption", Boundary),
        ("center", Plain),
        ("cite", Plain),
        ("code", Formatting),
        ("col", Void),
        ("colgroup", Plain),
        ("data", Plain),
        ("datalist", Dropped),
        ("dd", Plain),
        ("del", Plain),
        ("details", Plain),
        ("dfn", Plain),
        ("dialog", Dropped),
        ("dir", Plain),
        ("div", Plain),
        ("dl", Plain),
        ("dt", Plain),
        ("em", Formatting),
        ("embed", Dropped),
        ("fieldset", Dropped),
        ("figcaption", Plain),
        ("figure", Plain),
        ("font", Formatting),
        ("footer", Plain),
        ("form", Dropped),
        ("frame", Dropped),
        ("frameset", Dropped),
        ("h1", Plain),
        ("h2", Plain),
        ("h3", Plain),
        ("h4", Plain),
        ("h5", Plain),
        ("h6", Plain),
        ("head", Dropped),
        ("header", Plain),
        ("hgroup", Plain),
        ("hr", Void),
        ("html", Dropped),
        ("i", Formatting),
        ("iframe", Dropped),
        ("image", Dropped),
        ("img", Void),
        ("input", Dropped),
        ("ins", Plain),
        ("isindex", Dropped),
        ("kbd", Plain),
        ("keygen", Dropped),
        ("label", Dropped),
        ("layer", Dropped),
        ("legend", Dropped),
        ("li", Plain),
        ("link", Dropped),
        ("listing", Dropped),
        ("main", Plain),
        ("map", Plain),
        ("mark", Plain),
        ("marquee", Dropped),
        ("math", Dropped),
        ("menu", Dropped),
        ("meta", Dropped),
        ("meter", Dropped),
        ("multicol", Dropped),
        ("nav", Plain),
        ("nobr", Dropped),
        ("noembed", Dropped),
        ("noframes", Dropped),
        ("noscript", Dropped),
        ("object", Dropped),
        ("ol", Plain),
        ("optgroup", Dropped),
        ("option", Dropped),
        ("output", Dropped),
        ("p", Plain),
        ("param", Dropped),
        ("picture", Plain),
        ("plaintext", Dropped),
        ("pre", Plain),
        ("progress", Dropped),
        ("q", Plain),
        ("rb", Plain),
        ("rp", Plain),
        ("rt", Plain),
        ("rtc", Plain),
        ("ruby", Plain),
        ("s", Formatting),
        ("samp", Plain),
        ("script", Raw),
        ("section", Plain),
        ("select", Dropped),
        ("slot", Dropped),
        ("small", Formatting),
        ("source", Void),
        ("spacer", Dropped),
        ("span", Plain),
        ("strike", Formatting),
        ("strong", Formatting),
        ("style", Raw),
        ("sub", Plain),
        ("summary", Plain),
        ("sup", Plain),
        ("svg", Dropped),
        ("table", Boundary),
        ("tbody", Plain),
        ("td", Boundary),
        ("template", Dropped),
        ("textarea", Dropped),
        ("tfoot", Plain),
        ("th", Boundary),
        ("thead", Plain),
        ("time", Plain),
        ("title", Dropped),
        ("tr", Plain),
        ("track", Void),
        ("tt", Formatting),
        ("u", Formatting),
        ("ul", Plain),
        ("var", Plain),
        ("video", Plain),
        ("wbr", Void),
        ("xml", Dropped),
        ("xmp", Dropped),
    ]
};

/// The element's name in lower case and its role; `None` when it is no HTML.
pub(super) fn element(name: &str) -> Option<(&'static str, Role)> {
    let mut buffer = [0_u8; 12];
    let lower = buffer.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let lower = std::str::from_utf8(lower).ok()?;
    let at = ELEMENTS.binary_search_by(|(known, _)| (*known).cmp(lower)).ok()?;
    Some(ELEMENTS[at])
}

/// Names of the elements that may stay after cleaning.
pub(super) fn kept_elements() -> impl Iterator<Item = &'static str> {
    ELEMENTS.iter().filter(|(_, role)| !matches!(role, Role::Raw | Role::Dropped)).map(|(name, _)| *name)
}

/// The plain text of an HTML fragment on one line: tags out, references read, white space single.
///
/// What only looks like a tag (`Vec<String>`) is no HTML and stays.
pub fn text_of(html: &str) -> String {
    if !html.contains(['<', '&']) {
        return single_spaced(html);
    }
    let mut text = String::with_capacity(html.len());
    let mut pieces = pieces(html);
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text(part) => text.push_str(&unescape(part)),
            Piece::Open { name, raw, .. } | Piece::Close { name, raw } => match element(name) {
                None if !name.contains(':') => text.push_str(&unescape(raw)),
                Some((known, Role::Raw)) if matches!(piece, Piece::Open { .. }) => pieces.skip_raw(known),
                Some(("br" | "p" | "div" | "li" | "tr" | "td" | "th" | "hr" | "dt" | "dd", _)) => {
                    text.push(' ')
                }
                _ => {}
            },
        }
    }
    single_spaced(&text)
}

/// `text` with every run of white space as one space, and none at the ends.
pub fn single_spaced(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Reads character and entity references; what is none stays as it stands.
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
        match if closed { reference(name) } else { unclosed_reference(name) } {
            Some(Reference::Text(value)) => out.push_str(value),
            Some(Reference::Char(value)) => out.push(value),
            Some(Reference::Pair(first, second)) => out.extend([first, second]),
            None => {
                out.push('&');
                out.push_str(name);
                if closed {
                    out.push(';');
                }
            }
        }
        rest = &after[length + usize::from(closed)..];
        let next = rest.find('&').unwrap_or(rest.len());
        out.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    Cow::Owned(out)
}

/// What a reference stands for.
pub(super) enum Reference {
    Text(&'static str),
    Char(char),
    Pair(char, char),
}

/// Reads what stands between `&` and `;`.
pub(super) fn reference(name: &str) -> Option<Reference> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return Some(Reference::Char(numbered(number.ok()?)?));
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

/// An entity of HTML beyond the common ones.
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

/// References that browsers read without their semicolon, as far as they are safe in addresses.
fn unclosed_reference(name: &str) -> Option<Reference> {
    match name {
        "amp" | "lt" | "gt" | "quot" | "nbsp" => reference(name),
        _ if name.len() > 2 && name.starts_with('#') => reference(name),
        _ => None,
    }
}

/// The character a number stands for; the C1 range means windows-1252, as everywhere on the web.
fn numbered(number: u32) -> Option<char> {
    match number {
        0x80..=0x9f => Some(c1_as_windows_1252(number)),
        0x09 | 0x0a | 0x0d | 0x20.. => char::from_u32(number),
        _ => None,
    }
}

/// The character that stands at a C1 position in windows-1252.
pub(super) fn c1_as_windows_1252(number: u32) -> char {
    const TABLE: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    TABLE.get((number as usize).wrapping_sub(0x80)).copied().unwrap_or('\u{fffd}')
}

/// Writes `text` so that HTML reads it back as itself.
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
    fn elements_are_sorted_so_that_they_are_found() {
        assert!(ELEMENTS.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(ELEMENTS.iter().all(|(name, _)| element(name).is_some()));
        assert_eq!(element("BlockQuote").map(|(name, _)| name), Some("blockquote"));
        assert_eq!(element("string"), None);
    }

    #[test]
    fn plain_text_of_fragments() {
        for (html, text) in [
            ("plain", "plain"),
            ("  two\n words ", "two words"),
            ("<b>bold</b> &amp; <i title='a>b'>x</i>", "bold & x"),
            ("Vec<String> and a < b", "Vec<String> and a < b"),
            ("&lt;b&gt; stays", "<b> stays"),
            ("a<!-- > -->b<!-->c", "abc"),
            ("a<script>if (1 < 2) {}</script>b<STYLE>x", "ab"),
            ("one<br/>two<p>three", "one two three"),
            ("&nbsp;&#160;x&#8230;&#x2026;&#133;&hellip;", "x…………"),
            ("AT&T &bogus; &#0; &#xd800; & &", "AT&T &bogus; &#0; &#xd800; & &"),
            ("never <b closed", "never <b closed"),
            ("日本<語>", "日本<語>"),
        ] {
            assert_eq!(text_of(html), text, "{html}");
        }
    }

    #[test]
    fn quotes_count_only_where_a_value_starts() {
        let tags: Vec<_> = pieces("<a it's x=\"1>2\" y=z\">t</a>").collect();
        assert!(matches!(tags[0], Piece::Open { name: "a", count: 3, .. }), "{tags:?}");
        assert_eq!(tags[1], Piece::Text("t"));
    }
}
