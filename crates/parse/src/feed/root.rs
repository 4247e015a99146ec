//! Finds the root element of a feed and its dialect.

use super::names::Space;
use super::xml::{Tag as XmlTag, Xml, XmlToken};
use super::{FeedError, Format};

pub(super) struct Root<'a> {
    pub(super) tag: XmlTag<'a>,
    pub(super) format: Format,
}

/// The root element of a feed; anything before it is skipped.
pub(super) fn find_root<'a>(xml: &mut Xml<'a>) -> Result<Root<'a>, FeedError> {
    let mut first: Option<&str> = None;
    loop {
        let tag = match xml.next() {
            XmlToken::Start(tag) => tag,
            XmlToken::Eof => {
                return Err(match first {
                    Some(name) => FeedError::OtherXml { root: name.chars().take(60).collect() },
                    None => FeedError::NotAFeed,
                });
            }
            _ => continue,
        };
        if let Some(format) = format_of(tag) {
            return Ok(Root { tag, format });
        }
        if first.is_none() || xml.depth() == 1 {
            match tag.local.to_ascii_lowercase().as_str() {
                "html" | "head" | "body" => return Err(FeedError::Html),
                "urlset" | "sitemapindex" => return Err(FeedError::Sitemap),
                "opml" => return Err(FeedError::Opml),
                _ => {}
            }
        }
        first = first.or(Some(tag.local));
    }
}

fn format_of(tag: XmlTag<'_>) -> Option<Format> {
    let name = tag.local.to_ascii_lowercase();
    Some(match (tag.space, name.as_str()) {
        (Space::Core | Space::Atom | Space::Other, "rss") => {
            match tag.attribute("version").as_deref().map(str::trim) {
                Some("0.90" | "0.9") => Format::Rss090,
                Some("0.91") => Format::Rss091,
                Some("0.92") => Format::Rss092,
                Some("0.93") => Format::Rss093,
                Some("0.94") => Format::Rss094,
                Some("1.0") => Format::Rss10,
                Some(version) if version.starts_with("2.") || version == "2" => Format::Rss20,
                _ => Format::Rss,
            }
        }
        (_, "rdf") => {
            let simple = tag.attributes().any(|(_, value)| value.contains("rdf/simple/0.9"));
            if simple { Format::Rss090 } else { Format::Rss10 }
        }
        (Space::Core | Space::Atom, "feed") => match tag.attribute("version").as_deref().map(str::trim) {
            Some("0.3" | "0.1" | "0.2") => Format::Atom03,
            _ if tag.attributes().any(|(_, value)| value.contains("2005/Atom")) => Format::Atom10,
            _ if tag.attributes().any(|(_, value)| value.contains("purl.org/atom")) => Format::Atom03,
            _ => Format::Atom,
        },
        (Space::Core, "channel") if tag.attribute("href").is_some() || tag.local == "CHANNEL" => Format::Cdf,
        (Space::Core, "channel") => Format::Rss,
        (Space::Atom, "entry") => Format::Atom10,
        _ => return None,
    })
}
