//! HTML as a flat list of pieces without a tree: for the plain text of a fragment, and to check limits before a tree is
//! built.

mod elements;
mod references;

pub(super) use elements::{Role, element, kept_elements};
pub(super) use references::{Reference, c1_as_windows_1252, reference};
pub use references::{escape_into, unescape};

/// A piece of an HTML fragment, without comments, declarations and processing instructions.
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
        /// The number of attributes.
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

/// Splits a fragment into pieces in one pass, finding the ends of tags like browsers.
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

    /// Skips the content of a raw-text element such as `<script>`, and its end tag.
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
                        // Never closed: browsers drop the rest, but a title such as "a <b" should keep it.
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

/// The length of a comment, declaration or processing instruction at the start of `text`; 0 if it is not closed.
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

/// The length of a tag, and the number of attributes; quotes count only at the start of a value.
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

/// The plain text of an HTML fragment on one line: without tags, with references resolved and single spaces.
///
/// Text that only resembles a tag (`Vec<String>`) stays.
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
                    text.push(' ');
                }
                _ => {}
            },
        }
    }
    single_spaced(&text)
}

/// `text` with single spaces, and none at the ends.
pub fn single_spaced(text: &str) -> String {
    if stdx::text::is_plain_line(text) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

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
