//! The encodings that a PDF refers to by name: those of Western fonts, and the CMaps of East Asian ones.

use std::collections::HashMap;
use std::sync::LazyLock;

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GB18030, MACINTOSH, SHIFT_JIS, WINDOWS_1252};

/// The characters of the codes of a simple font.
pub(super) type Table = [Option<char>; 256];

/// The encodings of simple fonts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    WinAnsi,
    MacRoman,
    Standard,
    Symbol,
}

/// The upper half of the standard encoding, from 0xA1 on; spaces are undefined codes.
const STANDARD: &str = "¡¢£⁄¥ƒ§¤'“«‹›\u{FB01}\u{FB02} –†‡· ¶•‚„”»…‰ ¿ `´ˆ˜¯˘˙¨ ˚¸ ˝˛ˇ—                Æ ª    ŁØŒº     æ   ı  łøœß";
/// The letters of the Symbol font in place of A–Z and a–z.
const SYMBOL_UPPER: &str = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ";
const SYMBOL_LOWER: &str = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ";

pub(super) fn table(base: Base) -> Table {
    let mut table = [None; 256];
    for code in 0x20..=0xFF_u8 {
        table[usize::from(code)] = match base {
            Base::WinAnsi if code == 0xAD => Some('-'),
            Base::WinAnsi => single(WINDOWS_1252, code),
            Base::MacRoman => single(MACINTOSH, code),
            Base::Standard => standard(code),
            Base::Symbol => symbol(code),
        };
    }
    table
}

fn single(encoding: &'static Encoding, code: u8) -> Option<char> {
    encoding.decode_without_bom_handling(&[code]).0.chars().next().filter(|character| !character.is_control())
}

fn standard(code: u8) -> Option<char> {
    match code {
        b'\'' => Some('’'),
        b'`' => Some('‘'),
        0x20..=0x7E => Some(char::from(code)),
        0xA1.. => STANDARD.chars().nth(usize::from(code - 0xA1)).filter(|character| *character != ' '),
        _ => None,
    }
}

fn symbol(code: u8) -> Option<char> {
    match code {
        b'A'..=b'Z' => SYMBOL_UPPER.chars().nth(usize::from(code - b'A')),
        b'a'..=b'z' => SYMBOL_LOWER.chars().nth(usize::from(code - b'a')),
        b'*' => Some('∗'),
        b'-' => Some('−'),
        0x20..=0x7E => Some(char::from(code)),
        0xA3 => Some('≤'),
        0xB0 => Some('°'),
        0xB1 => Some('±'),
        0xB3 => Some('≥'),
        0xB4 => Some('×'),
        0xB7 => Some('•'),
        0xB8 => Some('÷'),
        0xB9 => Some('≠'),
        0xBB => Some('≈'),
        0xBC => Some('…'),
        0xE5 => Some('∑'),
        _ => None,
    }
}

/// `name character(s)` per line: letters by their accents, and signs.
static GLYPHS: LazyLock<HashMap<&'static str, &'static str>> =
    LazyLock::new(|| include_str!("glyphs.txt").lines().filter_map(|line| line.split_once(' ')).collect());

/// The characters of a glyph name.
pub(super) fn glyph(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let stem = name.split('.').next().filter(|stem| !stem.is_empty())?;
    let mut text = String::new();
    for part in stem.split('_').take(8) {
        component(part, &mut text)?;
    }
    Some(text)
}

fn component(name: &str, text: &mut String) -> Option<()> {
    if let [letter @ (b'A'..=b'Z' | b'a'..=b'z')] = name.as_bytes() {
        text.push(char::from(*letter));
        return Some(());
    }
    if let Some(known) = GLYPHS.get(name) {
        text.push_str(known);
        return Some(());
    }
    let is_hex = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if let Some(digits) = name.strip_prefix("uni").filter(|digits| digits.len() >= 4 && is_hex(digits)) {
        for four in digits.as_bytes().as_chunks::<4>().0.iter().take(8) {
            let four = u32::from_str_radix(std::str::from_utf8(four).ok()?, 16).ok()?;
            text.push(char::from_u32(four)?);
        }
        return Some(());
    }
    let digits = name.strip_prefix('u').filter(|digits| (4..=6).contains(&digits.len()) && is_hex(digits))?;
    text.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
    Some(())
}

/// The encoding of the strings of an East Asian font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wide {
    /// Glyph numbers of two bytes, whose characters are unknown.
    Glyphs,
    Utf8,
    Utf16,
    Utf32,
    /// Rows and cells of JIS X 0208.
    Jis,
    Charset(&'static Encoding),
}

/// The encoding of a CMap by its name without `-H` or `-V`.
pub(super) fn wide(name: &str) -> Option<Wide> {
    if name == "Identity" {
        return Some(Wide::Glyphs);
    }
    if name.starts_with("Uni") {
        let form = name.split('-').nth(1).unwrap_or_default();
        return match form {
            "UTF8" => Some(Wide::Utf8),
            "UTF32" => Some(Wide::Utf32),
            "UTF16" | "UCS2" => Some(Wide::Utf16),
            _ => None,
        };
    }
    Some(match name {
        "" => Wide::Jis,
        "EUC" => Wide::Charset(EUC_JP),
        _ if name.contains("RKSJ") => Wide::Charset(SHIFT_JIS),
        "GB-EUC" | "GBpc-EUC" | "GBK-EUC" | "GBKp-EUC" | "GBK2K" => Wide::Charset(GB18030),
        "B5pc" | "HKscs-B5" | "ETen-B5" | "ETenms-B5" => Wide::Charset(BIG5),
        "KSC-EUC" | "KSCpc-EUC" | "KSCms-UHC" | "KSCms-UHC-HW" => Wide::Charset(EUC_KR),
        _ => return None,
    })
}

impl Wide {
    /// The length of the first code in bytes; at least one, at most all.
    pub(super) fn code_length(self, bytes: &[u8]) -> usize {
        let first = bytes.first().copied().unwrap_or(0);
        let second = bytes.get(1).copied().unwrap_or(0);
        let length = match self {
            Wide::Glyphs | Wide::Jis => 2,
            Wide::Utf32 => 4,
            Wide::Utf16 if (0xD8..0xDC).contains(&first) => 4,
            Wide::Utf16 => 2,
            Wide::Utf8 => match first {
                0xC0..0xE0 => 2,
                0xE0..0xF0 => 3,
                0xF0.. => 4,
                _ => 1,
            },
            Wide::Charset(encoding) if encoding == SHIFT_JIS => match first {
                0x81..0xA0 | 0xE0..0xFD => 2,
                _ => 1,
            },
            Wide::Charset(encoding) if encoding == EUC_JP && first == 0x8F => 3,
            Wide::Charset(encoding) if encoding == GB18030 && first > 0x80 && second.is_ascii_digit() => 4,
            Wide::Charset(encoding) if encoding == EUC_JP && first < 0xA1 && first != 0x8E => 1,
            Wide::Charset(_) => 1 + usize::from((0x81..0xFF).contains(&first)),
        };
        length.clamp(1, bytes.len().max(1))
    }

    /// The character of one code.
    pub(super) fn decode(self, code: &[u8], into: &mut String) -> Option<()> {
        let character = match (self, code) {
            (Wide::Glyphs, _) => None,
            (Wide::Utf8, _) => std::str::from_utf8(code).ok()?.chars().next(),
            (Wide::Utf16, _) => {
                let units = code.as_chunks().0.iter().map(|pair| u16::from_be_bytes(*pair));
                char::decode_utf16(units).next()?.ok()
            }
            (Wide::Utf32, [a, b, c, d]) => char::from_u32(u32::from_be_bytes([*a, *b, *c, *d])),
            (Wide::Jis, [row, cell]) => one(EUC_JP, &[row | 0x80, cell | 0x80]),
            // The fonts of these CMaps show a yen sign, as on Japanese keyboards.
            (Wide::Charset(encoding), b"\\") if encoding == SHIFT_JIS => Some('¥'),
            (Wide::Charset(encoding), _) => one(encoding, code),
            _ => None,
        };
        into.push(character.filter(|character| *character != '\0')?);
        Some(())
    }
}

fn one(encoding: &'static Encoding, code: &[u8]) -> Option<char> {
    let (text, had_errors) = encoding.decode_without_bom_handling(code);
    text.chars().next().filter(|_| !had_errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_encodings_differ_where_they_should() {
        for (base, code, wanted) in [
            (Base::WinAnsi, 0x92, Some('’')),
            (Base::WinAnsi, 0x81, None),
            (Base::WinAnsi, 0xE9, Some('é')),
            (Base::MacRoman, 0x8E, Some('é')),
            (Base::Standard, 0x27, Some('’')),
            (Base::Standard, 0xAE, Some('\u{FB01}')),
            (Base::Standard, 0xB1, Some('–')),
            (Base::Standard, 0xB7, Some('•')),
            (Base::Standard, 0xCF, Some('ˇ')),
            (Base::Standard, 0xD0, Some('—')),
            (Base::Standard, 0xE1, Some('Æ')),
            (Base::Standard, 0xE8, Some('Ł')),
            (Base::Standard, 0xF1, Some('æ')),
            (Base::Standard, 0xF5, Some('ı')),
            (Base::Standard, 0xFB, Some('ß')),
            (Base::Standard, 0xFF, None),
            (Base::Symbol, b'p', Some('π')),
            (Base::Symbol, 0xB7, Some('•')),
        ] {
            assert_eq!(table(base)[usize::from(code)], wanted, "{base:?} {code:x}");
        }
    }

    #[test]
    fn glyphs_are_known_by_their_names() {
        for (name, wanted) in [
            ("A", Some("A")),
            ("Aacute", Some("Á")),
            ("germandbls", Some("ß")),
            ("scaron", Some("š")),
            ("f_f_i", Some("ffi")),
            ("a.sc", Some("a")),
            ("uni3042", Some("あ")),
            ("uni30423044", Some("あい")),
            ("u20BB7", Some("𠮷")),
            ("uniD800", None),
            ("u110000", None),
            ("g12", None),
            (".notdef", None),
            ("", None),
        ] {
            assert_eq!(glyph(name.as_bytes()).as_deref(), wanted, "{name}");
        }
    }

    #[test]
    fn named_cmaps_decode() {
        let decoded = |name: &str, mut bytes: &[u8]| {
            let wide = wide(name).unwrap();
            let mut text = String::new();
            while !bytes.is_empty() {
                let (code, rest) = bytes.split_at(wide.code_length(bytes));
                if wide.decode(code, &mut text).is_none() {
                    text.push('?');
                }
                bytes = rest;
            }
            text
        };
        for (name, bytes, wanted) in [
            ("90ms-RKSJ", &b"A\x82\xa0\xb1\\"[..], "Aあｱ¥"),
            ("90msp-RKSJ", b"\x93\xfa\x96\x7b", "日本"),
            ("EUC", b"A\xc6\xfc\x8e\xb1\x8f\xb0\xa1", "A日ｱ丂"),
            ("", b"\x46\x7c\x4b\x5c", "日本"),
            ("UniJIS-UCS2", b"\x65\xe5\x67\x2c", "日本"),
            ("UniJIS-UTF16", b"\xd8\x42\xdf\xb7\x65\xe5", "𠮷日"),
            ("UniJIS-UTF8", "日a𠮷".as_bytes(), "日a𠮷"),
            ("UniJIS2004-UTF32", b"\0\x02\x0b\xb7", "𠮷"),
            ("GBK-EUC", b"\xc8\xd5a", "日a"),
            ("ETen-B5", b"\xa4\xe9a", "日a"),
            ("KSCms-UHC", b"\xc7\xd1a", "한a"),
            ("Identity", b"\0\x01", "?"),
            ("UniJIS-UTF16", b"\xd8", "?"),
            ("90ms-RKSJ", b"\x82", "?"),
        ] {
            assert_eq!(decoded(name, bytes), wanted, "{name}");
        }
        assert_eq!(wide("Nonsense"), None);
    }
}
