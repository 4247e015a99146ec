//! Bytes to text: byte order mark, then HTTP label, then the document's own declaration, then detection.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use memchr::memchr;

use super::codepage::{self, CodePage};

/// The kind of document that is expected, which determines the form of its own declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Feeds, sitemaps, OPML: `<?xml … encoding="…"?>`.
    Xml,
    /// Pages: `<meta charset>` and `<meta http-equiv>`.
    Html,
    /// Anything else, such as JSON, robots.txt and text sitemaps.
    Plain,
}

/// A document as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text, without byte order mark and without NUL.
    pub text: String,
    /// The encoding that was used, by its WHATWG name in lower case.
    pub encoding: String,
}

/// How much of a document is searched for its declaration.
const DECLARATION_BYTES: usize = 4096;

/// How much of a document is passed to the detector; more does not change the result.
const DETECTION_BYTES: usize = 256 * 1024;

/// Decodes `bytes` like WHATWG decoders; invalid sequences become U+FFFD.
///
/// A label is used only if the bytes agree with it: valid UTF-8 is never decoded as windows-1252, and if bytes are
/// invalid in the declared encoding, the next label is tried, then detection.
pub fn decode(bytes: &[u8], content_type: Option<&str>, kind: Kind) -> Decoded {
    let (text, encoding) = decode_in_place(bytes, content_type, kind);
    Decoded { text: text.into_owned(), encoding }
}

/// Like [`decode`], but does not copy bytes that are valid UTF-8 already.
pub fn decode_in_place<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    kind: Kind,
) -> (Cow<'a, str>, String) {
    let (text, encoding) = read(bytes, content_type, kind);
    let text = if memchr(0, text.as_bytes()).is_some() { Cow::Owned(text.replace('\0', "")) } else { text };
    (text, encoding.to_ascii_lowercase())
}

fn read<'a>(bytes: &'a [u8], content_type: Option<&str>, kind: Kind) -> (Cow<'a, str>, &'static str) {
    if let Some(answer) = by_mark(bytes) {
        return answer;
    }
    if let Some(answer) = by_zero_bytes(bytes) {
        return answer;
    }
    let valid_utf8 = simdutf8::basic::from_utf8(bytes).ok();
    let beyond_ascii = !bytes.is_ascii();
    let looks_jis = looks_iso_2022_jp(bytes);
    let labels = [content_type.and_then(charset_of), declared(bytes, kind)];
    for label in labels.into_iter().flatten() {
        let Some(named) = Decoder::find(&label) else { continue };
        match named {
            Decoder::Page(page) if valid_utf8.is_none() => {
                return (Cow::Owned(page.decode(bytes)), page.name);
            }
            Decoder::Page(page) if !beyond_ascii => return (Cow::Owned(page.decode(bytes)), page.name),
            Decoder::Page(_) => {}
            Decoder::Standard(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => {
                if kind == Kind::Plain && bytes.len().is_multiple_of(2) && valid_utf8.is_none() {
                    return (encoding.decode_without_bom_handling(bytes).0, encoding.name());
                }
            }
            Decoder::Standard(encoding) => {
                if looks_jis && (encoding == UTF_8 || encoding == WINDOWS_1252) {
                    break;
                }
                if let Some(text) = believed(encoding, bytes, valid_utf8, beyond_ascii) {
                    return (text, encoding.name());
                }
            }
        }
    }
    if looks_jis {
        return (ISO_2022_JP.decode_without_bom_handling(bytes).0, ISO_2022_JP.name());
    }
    if let Some(text) = valid_utf8 {
        return (Cow::Borrowed(text), "utf-8");
    }
    if mostly_utf8(bytes) {
        return (String::from_utf8_lossy(bytes), "utf-8");
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes[..bytes.len().min(DETECTION_BYTES)], true);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    (encoding.decode_without_bom_handling(bytes).0, encoding.name())
}

/// The decoder for a label.
enum Decoder {
    Standard(&'static Encoding),
    Page(CodePage),
}

impl Decoder {
    fn find(label: &str) -> Option<Decoder> {
        let label = label.trim().to_ascii_lowercase();
        let hyphened = label.replace(['_', ' '], "-");
        // Old code pages first: the standard has no "mac" prefixes and bare numbers.
        CodePage::for_label(&hyphened)
            .map(Decoder::Page)
            .or_else(|| {
                Encoding::for_label_no_replacement(label.as_bytes())
                    .or_else(|| Encoding::for_label_no_replacement(hyphened.as_bytes()))
                    .or_else(|| {
                        codepage::whatwg_label(&hyphened).and_then(|l| Encoding::for_label(l.as_bytes()))
                    })
                    .map(Decoder::Standard)
            })
            .or_else(|| {
                let wide = matches!(
                    hyphened.as_str(),
                    "utf-32" | "utf-32le" | "utf-32be" | "ucs-4" | "iso-10646-ucs-4" | "utf32" | "utf16"
                );
                wide.then_some(Decoder::Standard(UTF_16LE))
            })
    }
}

/// Decodes with this label, unless the bytes contradict it.
fn believed<'a>(
    encoding: &'static Encoding,
    bytes: &'a [u8],
    valid_utf8: Option<&'a str>,
    beyond_ascii: bool,
) -> Option<Cow<'a, str>> {
    if encoding == UTF_8 {
        return match valid_utf8 {
            Some(text) => Some(Cow::Borrowed(text)),
            None => mostly_utf8(bytes).then(|| String::from_utf8_lossy(bytes)),
        };
    }
    if encoding.is_single_byte() && beyond_ascii && valid_utf8.is_some() {
        return None;
    }
    let (text, malformed) = encoding.decode_without_bom_handling(bytes);
    if !malformed {
        return Some(text);
    }
    let lost = text.matches('\u{fffd}').count();
    let kept = text.chars().filter(|c| !c.is_ascii()).count() - lost;
    (valid_utf8.is_none() && lost * 32 <= kept + 31).then_some(text)
}

/// Few invalid sequences among many valid ones mean truncation or a broken paste, not another encoding.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good >= bad.saturating_mul(8) && good > 0
}

fn by_mark(bytes: &[u8]) -> Option<(Cow<'_, str>, &'static str)> {
    Some(match bytes {
        [0xff, 0xfe, 0, 0, rest @ ..] => (Cow::Owned(utf_32(rest, u32::from_le_bytes)), "utf-32le"),
        [0, 0, 0xfe, 0xff, rest @ ..] => (Cow::Owned(utf_32(rest, u32::from_be_bytes)), "utf-32be"),
        [0xff, 0xfe, rest @ ..] => (UTF_16LE.decode_without_bom_handling(rest).0, "utf-16le"),
        [0xfe, 0xff, rest @ ..] => (UTF_16BE.decode_without_bom_handling(rest).0, "utf-16be"),
        [0xef, 0xbb, 0xbf, rest @ ..] if std::str::from_utf8(rest).is_ok() || mostly_utf8(rest) => {
            (String::from_utf8_lossy(rest), "utf-8")
        }
        _ => return None,
    })
}

/// UTF-16 and UTF-32 without a byte order mark: the markup or JSON at the start is ASCII, so zero bytes form a pattern.
fn by_zero_bytes(bytes: &[u8]) -> Option<(Cow<'_, str>, &'static str)> {
    Some(match *bytes.get(..4)? {
        [0, 0, 0, 1..0x80] => (Cow::Owned(utf_32(bytes, u32::from_be_bytes)), "utf-32be"),
        [1..0x80, 0, 0, 0] => (Cow::Owned(utf_32(bytes, u32::from_le_bytes)), "utf-32le"),
        [0, 1..0x80, 0, 1..0x80] => (UTF_16BE.decode_without_bom_handling(bytes).0, "utf-16be"),
        [1..0x80, 0, 1..0x80, 0] => (UTF_16LE.decode_without_bom_handling(bytes).0, "utf-16le"),
        _ => return None,
    })
}

fn utf_32(bytes: &[u8], read: fn([u8; 4]) -> u32) -> String {
    let (units, _) = bytes.as_chunks::<4>();
    units.iter().map(|unit| char::from_u32(read(*unit)).unwrap_or('\u{fffd}')).collect()
}

/// An escape to a Japanese character set, which XML and plain text do not contain otherwise.
fn looks_iso_2022_jp(bytes: &[u8]) -> bool {
    memchr(0x1b, bytes).is_some()
        && bytes.is_ascii()
        && bytes
            .windows(3)
            .any(|w| w[0] == 0x1b && matches!(w[1..], [b'$', b'B' | b'@'] | [b'(', b'J' | b'I']))
}

/// The `charset` parameter of a `Content-Type`.
fn charset_of(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        if !name.trim().eq_ignore_ascii_case("charset") {
            return None;
        }
        let value = value.trim().trim_matches(['"', '\'']).trim();
        // ASCII as a label means nothing: servers send it by default.
        (!value.is_empty() && !is_ascii_label(value)).then(|| value.to_owned())
    })
}

fn is_ascii_label(label: &str) -> bool {
    matches!(label.to_ascii_lowercase().as_str(), "us-ascii" | "ascii" | "ansi_x3.4-1968" | "iso646-us")
}

/// The encoding declared in the document.
fn declared(bytes: &[u8], kind: Kind) -> Option<String> {
    let head = &bytes[..bytes.len().min(DECLARATION_BYTES)];
    let label = match kind {
        Kind::Plain => None,
        Kind::Xml => xml_label(head),
        Kind::Html => meta_label(head).or_else(|| xml_label(head)),
    };
    label.filter(|label| !is_ascii_label(label))
}

fn xml_label(head: &[u8]) -> Option<String> {
    let start = find(head, b"<?xml")?;
    let end = start + find(&head[start..], b">")?;
    value_after(&head[start..end], b"encoding")
}

fn meta_label(head: &[u8]) -> Option<String> {
    let mut rest = head;
    while let Some(open) = rest.iter().position(|byte| *byte == b'<') {
        rest = &rest[open..];
        if rest.starts_with(b"<!--") {
            rest = &rest[4 + find(&rest[4..], b"-->")?..];
        } else if rest.len() > 5 && rest[1..5].eq_ignore_ascii_case(b"meta") {
            let end = find(rest, b">").unwrap_or(rest.len());
            if let Some(label) = value_after(&rest[..end], b"charset") {
                return Some(label);
            }
            rest = &rest[5..];
        } else {
            rest = &rest[1..];
        }
    }
    None
}

/// The value in `name = "value"`, with or without quotes.
fn value_after(text: &[u8], name: &[u8]) -> Option<String> {
    let at = text.windows(name.len()).position(|window| window.eq_ignore_ascii_case(name))?;
    let rest = text[at + name.len()..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\'' | b';' | b'>' | b'?') || byte.is_ascii_whitespace())
        .unwrap_or(rest.len());
    let label = String::from_utf8_lossy(&rest[..end]).into_owned();
    (!label.is_empty()).then_some(label)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
