//! CMaps: how strings are split into codes, and the characters of the codes.

use std::collections::HashMap;

use super::lexer::{Lexer, PdfToken};

/// The most entries of one CMap.
const MAX_ENTRIES: usize = 100_000;
/// The longest text of one code, in bytes of UTF-16.
const MAX_TARGET: usize = 64;

/// A CMap of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CMap {
    /// Number of bytes, first and last code.
    spaces: Vec<(usize, u32, u32)>,
    singles: HashMap<u32, Box<str>>,
    /// First and last code, and the text of the first; sorted.
    ranges: Vec<(u32, u32, Box<str>)>,
    pub(super) is_vertical: bool,
}

impl CMap {
    /// Parses a CMap; anything unknown is skipped.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut map = Self::default();
        let mut lexer = Lexer::new(bytes, 0);
        let mut last_name = Vec::new();
        let mut last_number = 0.0;
        while let Some(token) = lexer.token() {
            match token {
                PdfToken::Word(b"begincodespacerange") => map.read_spaces(&mut lexer),
                PdfToken::Word(b"beginbfchar") => map.read_singles(&mut lexer),
                PdfToken::Word(b"beginbfrange") => map.read_ranges(&mut lexer),
                PdfToken::Word(b"def") if last_name == b"WMode" => map.is_vertical = last_number == 1.0,
                PdfToken::Name(name) => last_name = name,
                PdfToken::Number(number) => last_number = number,
                _ => {}
            }
        }
        // A stable sort: of equal ranges, `text` uses the last one.
        map.ranges.sort_by_key(|range| range.0);
        map
    }

    fn read_spaces(&mut self, lexer: &mut Lexer<'_>) {
        while let (Some(PdfToken::Text(low)), Some(PdfToken::Text(high))) = (lexer.token(), lexer.token()) {
            if self.spaces.len() < 100 && (1..=4).contains(&low.len()) {
                self.spaces.push((low.len(), code(&low), code(&high)));
            }
        }
    }

    fn read_singles(&mut self, lexer: &mut Lexer<'_>) {
        while let Some(PdfToken::Text(from)) = lexer.token() {
            match lexer.token() {
                Some(PdfToken::Text(to)) => self.put(code(&from), &to),
                Some(PdfToken::Name(_)) => {}
                _ => return,
            }
        }
    }

    fn read_ranges(&mut self, lexer: &mut Lexer<'_>) {
        while let (Some(PdfToken::Text(low)), Some(PdfToken::Text(high))) = (lexer.token(), lexer.token()) {
            let (low, high) = (code(&low), code(&high));
            match lexer.token() {
                Some(PdfToken::Text(to)) if low == high => self.put(low, &to),
                Some(PdfToken::Text(to)) => {
                    if let Some(text) = utf16(&to)
                        && self.ranges.len() < MAX_ENTRIES
                        && low < high
                    {
                        self.ranges.push((low, high, text));
                    }
                }
                Some(PdfToken::ArrayOpen) => {
                    let mut next = low;
                    while let Some(PdfToken::Text(to)) = lexer.token() {
                        if next <= high {
                            self.put(next, &to);
                            next = next.saturating_add(1);
                        }
                    }
                }
                _ => return,
            }
        }
    }

    fn put(&mut self, code: u32, to: &[u8]) {
        if let Some(text) = utf16(to)
            && self.singles.len() < MAX_ENTRIES
        {
            self.singles.insert(code, text);
        }
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.singles.len() + self.ranges.len()
    }

    /// Appends the text of a code.
    pub(super) fn text(&self, code: u32, into: &mut String) -> Option<()> {
        if let Some(text) = self.singles.get(&code) {
            into.push_str(text);
            return Some(());
        }
        let after = self.ranges.partition_point(|range| range.0 <= code);
        let (low, _, text) = self.ranges[..after].last().filter(|range| code <= range.1)?;
        let mut characters = text.chars();
        let last = u32::from(characters.next_back()?).checked_add(code - low).and_then(char::from_u32)?;
        into.push_str(characters.as_str());
        into.push(last);
        Some(())
    }

    /// How many bytes the next code has, if the map defines it.
    pub(super) fn code_length(&self, bytes: &[u8]) -> Option<usize> {
        let fits = |&(length, low, high): &(usize, u32, u32)| {
            let shifts = (0..length).map(|at| 8 * (length - 1 - at));
            bytes.len() >= length
                && shifts.zip(bytes).all(|(shift, byte)| {
                    (low >> shift & 0xFF..=high >> shift & 0xFF).contains(&u32::from(*byte))
                })
        };
        self.spaces.iter().filter(|space| fits(space)).map(|space| space.0).min()
    }

    /// How many ranges are compared for each code.
    pub(super) fn spaces(&self) -> usize {
        self.spaces.len()
    }

    /// The length in bytes of codes outside of all ranges.
    pub(super) fn usual_length(&self) -> Option<usize> {
        self.spaces.iter().map(|space| space.0).min()
    }
}

/// The bytes as a number, truncated to its size.
pub(super) fn code(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |code, byte| code << 8 | u32::from(*byte))
}

/// Decodes UTF-16 without byte order mark; `None` if the text is empty.
fn utf16(bytes: &[u8]) -> Option<Box<str>> {
    if bytes.len() > MAX_TARGET {
        return None;
    }
    // A single byte is a common mistake.
    let text = match bytes {
        [byte] => char::from(*byte).to_string(),
        _ => {
            let units = bytes.as_chunks().0.iter().map(|pair| u16::from_be_bytes(*pair));
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
    };
    let says_something = text.chars().any(|character| character != '\0' && character != '\u{FFFD}');
    says_something.then(|| text.into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(map: &CMap, code: u32) -> Option<String> {
        let mut text = String::new();
        map.text(code, &mut text).map(|()| text)
    }

    #[test]
    fn codes_become_characters() {
        let map = CMap::read(
            b"/WMode 1 def 2 begincodespacerange <00><7F> <8140><9FFC> endcodespacerange
              3 beginbfchar <01> <0041> <02> <D83DDE00> <03> <006600660069> endbfchar
              3 beginbfrange <10> <12> <3042> <20> <22> [<0061> <D842DFB7> <0000>]
              <30> <31> <00660068> <40> <41> <D83DDE00> endbfrange",
        );
        for (code, wanted) in [
            (1, Some("A")),
            (2, Some("😀")),
            (3, Some("ffi")),
            (0x12, Some("い")),
            (0x13, None),
            (0x20, Some("a")),
            (0x21, Some("𠮷")),
            (0x22, None),
            (0x31, Some("fi")),
            (0x41, Some("😁")),
        ] {
            assert_eq!(text(&map, code).as_deref(), wanted, "{code:x}");
        }
        assert!(map.is_vertical);
        assert_eq!(map.code_length(b"\x20\x20"), Some(1));
        assert_eq!(map.code_length(b"\x81\x40"), Some(2));
        assert_eq!(map.code_length(b"\x81\x20"), None);
        assert_eq!(map.code_length(b"\x81"), None);
    }

    #[test]
    fn endless_ranges_and_lists_cost_little() {
        let map = CMap::read(b"beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange");
        assert_eq!((map.len(), text(&map, 2).as_deref()), (1, Some("C")));
        assert_eq!(text(&map, 0xFFFF_FFFF), None);
        let many = format!("beginbfrange <0000> <0001> [{}]", "<0041>".repeat(200_000));
        assert_eq!(CMap::read(many.as_bytes()).len(), 2);
        for broken in
            ["beginbfchar", "beginbfrange <00>", "beginbfrange <00> <01> [", "begincodespacerange <>"]
        {
            CMap::read(broken.as_bytes());
        }
    }
}
