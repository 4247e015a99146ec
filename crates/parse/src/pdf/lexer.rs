//! Splits a PDF into tokens: numbers, names, strings, brackets and keywords, from any bytes.

#[derive(Clone, Debug, PartialEq)]
pub(super) enum PdfToken<'a> {
    Number(f64),
    Name(Vec<u8>),
    Text(Vec<u8>),
    ArrayOpen,
    ArrayClose,
    DictOpen,
    DictClose,
    Word(&'a [u8]),
}

/// An iterator over tokens.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0x0C | b'\r' | b' ')
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !is_delimiter(byte)
}

fn hex(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at: at.min(bytes.len()) }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The remaining bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take_while(&mut self, fits: impl Fn(u8) -> bool) -> &'a [u8] {
        let from = self.at;
        while self.peek().is_some_and(&fits) {
            self.at += 1;
        }
        &self.bytes[from..self.at]
    }

    /// Skips white space and comments.
    pub(super) fn skip_space(&mut self) {
        loop {
            self.take_while(is_space);
            if self.peek() != Some(b'%') {
                return;
            }
            self.take_while(|byte| byte != b'\n' && byte != b'\r');
        }
    }

    /// The next token, or `None` at the end.
    pub(super) fn token(&mut self) -> Option<PdfToken<'a>> {
        loop {
            self.skip_space();
            let byte = self.peek()?;
            return Some(match byte {
                b'0'..=b'9' | b'+' | b'-' | b'.' => match self.number() {
                    Some(number) => PdfToken::Number(number),
                    None => continue,
                },
                b'/' => {
                    self.at += 1;
                    PdfToken::Name(self.name())
                }
                b'(' => {
                    self.at += 1;
                    PdfToken::Text(self.literal())
                }
                b'<' => {
                    self.at += 1;
                    if self.peek() == Some(b'<') {
                        self.at += 1;
                        PdfToken::DictOpen
                    } else {
                        PdfToken::Text(self.hexadecimal())
                    }
                }
                b'>' => {
                    self.at += 1;
                    if self.peek() != Some(b'>') {
                        continue;
                    }
                    self.at += 1;
                    PdfToken::DictClose
                }
                b'[' => self.single(PdfToken::ArrayOpen),
                b']' => self.single(PdfToken::ArrayClose),
                b'{' | b'}' | b')' => {
                    self.at += 1;
                    continue;
                }
                _ => PdfToken::Word(self.take_while(is_regular)),
            });
        }
    }

    fn single(&mut self, token: PdfToken<'a>) -> PdfToken<'a> {
        self.at += 1;
        token
    }

    /// A number; doubled signs and missing digits are common mistakes.
    fn number(&mut self) -> Option<f64> {
        let signs = self.take_while(|byte| matches!(byte, b'+' | b'-'));
        let whole = self.take_while(|byte| byte.is_ascii_digit());
        let mut number = whole.iter().fold(0.0, |number, digit| number * 10.0 + f64::from(digit - b'0'));
        let mut digits = whole.len();
        if self.peek() == Some(b'.') {
            self.at += 1;
            let mut scale = 0.1;
            for digit in self.take_while(|byte| byte.is_ascii_digit()) {
                number += f64::from(digit - b'0') * scale;
                scale /= 10.0;
                digits += 1;
            }
        }
        // `12-34` is parsed as 12.
        self.take_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.'));
        if digits == 0 && signs.is_empty() {
            return None;
        }
        Some(if signs.contains(&b'-') { -number } else { number })
    }

    fn name(&mut self) -> Vec<u8> {
        let written = self.take_while(is_regular);
        let mut name = Vec::with_capacity(written.len());
        let mut rest = written;
        while let Some((&byte, after)) = rest.split_first() {
            match (byte, after) {
                (b'#', [high, low, tail @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                    name.push(hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0));
                    rest = tail;
                }
                _ => {
                    name.push(byte);
                    rest = after;
                }
            }
        }
        name
    }

    fn literal(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut depth = 0_usize;
        while let Some(byte) = self.take() {
            match byte {
                b'(' => {
                    depth += 1;
                    text.push(byte);
                }
                b')' if depth == 0 => break,
                b')' => {
                    depth -= 1;
                    text.push(byte);
                }
                b'\\' => self.escape(&mut text),
                b'\r' => {
                    if self.peek() == Some(b'\n') {
                        self.at += 1;
                    }
                    text.push(b'\n');
                }
                _ => text.push(byte),
            }
        }
        text
    }

    fn escape(&mut self, text: &mut Vec<u8>) {
        let Some(byte) = self.take() else { return };
        match byte {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' => text.push(8),
            b'f' => text.push(0x0C),
            b'\n' => {}
            b'\r' => {
                if self.peek() == Some(b'\n') {
                    self.at += 1;
                }
            }
            b'0'..=b'7' => {
                let mut value = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else { break };
                    value = value * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                text.push((value & 0xFF) as u8);
            }
            _ => text.push(byte),
        }
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut high = None;
        while let Some(byte) = self.take() {
            if byte == b'>' {
                break;
            }
            let Some(digit) = hex(byte) else { continue };
            match high.take() {
                Some(high) => text.push(high << 4 | digit),
                None => high = Some(digit),
            }
        }
        if let Some(high) = high {
            text.push(high << 4);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &[u8]) -> Vec<PdfToken<'_>> {
        let mut lexer = Lexer::new(text, 0);
        std::iter::from_fn(|| lexer.token()).collect()
    }

    #[test]
    fn words_are_told_apart() {
        assert_eq!(
            tokens(b"<</A#42 -1.5[(a\\(b\\051(c)\\101\\\n)<4 1 4>]>>% no\nBT 12-3 --4 ."),
            [
                PdfToken::DictOpen,
                PdfToken::Name(b"AB".to_vec()),
                PdfToken::Number(-1.5),
                PdfToken::ArrayOpen,
                PdfToken::Text(b"a(b)(c)A".to_vec()),
                PdfToken::Text(b"A@".to_vec()),
                PdfToken::ArrayClose,
                PdfToken::DictClose,
                PdfToken::Word(b"BT"),
                PdfToken::Number(12.0),
                PdfToken::Number(-4.0),
            ]
        );
    }

    #[test]
    fn what_is_never_closed_ends_with_the_bytes() {
        for text in [&b"(((("[..], b"<41", b"/", b"\\", b"(\\", b">", b"%", b"}{)"] {
            assert!(tokens(text).len() <= 1, "{text:?}");
        }
    }
}
