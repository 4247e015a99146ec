//! The links of a page, and those to files.

use std::collections::HashSet;

use dom_query::{Document, Matcher, NodeRef};

use super::text;
use crate::markup::single_spaced;
use crate::resolver::Resolver;
use crate::url::{self, Url};

/// A link of a page.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PageLink {
    /// As written if the address of the page is unknown.
    pub href: String,
    /// Its text or a substitute: the `alt` text of an image, a title, a label.
    pub text: String,
}

/// A file linked by a page.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Attachment {
    pub href: String,
    /// The text of the link, or the name of the file if it has none.
    pub title: String,
    /// The file extension, in lower case.
    pub extension: String,
}

/// The longest text of a link.
const MAX_TEXT_CHARS: usize = 1000;

pub(super) fn links(tree: &Document, base: Option<&Url>, scope: Option<&Matcher>) -> Vec<PageLink> {
    let mut found = Vec::new();
    let resolver = Resolver::default();
    let Some(scope) = scope else {
        found.extend(tree.root().descendants_it().filter_map(|node| link(&node, base, &resolver)));
        return found;
    };
    let mut seen = HashSet::new();
    for chosen in tree.select_matcher(scope).nodes() {
        // A match may be inside another.
        if chosen.ancestors_it(None).any(|above| seen.contains(&above.id)) {
            continue;
        }
        seen.insert(chosen.id);
        found.extend(link(chosen, base, &resolver));
        found.extend(chosen.descendants_it().filter_map(|node| link(&node, base, &resolver)));
    }
    found
}

fn link(node: &NodeRef<'_>, base: Option<&Url>, resolver: &Resolver) -> Option<PageLink> {
    if !node.is_element() || !(node.has_name("a") || node.has_name("area")) {
        return None;
    }
    let href = node.attr("href")?;
    let href = href.trim_matches(|c: char| c.is_ascii_whitespace());
    if href.is_empty() || href.starts_with('#') {
        return None;
    }
    let href = match resolver.resolve(base, href) {
        Some(address) => url::is_web(&address).then(|| String::from(address))?,
        None if base.is_none() && href.len() <= url::MAX_BYTES => href.to_owned(),
        None => return None,
    };
    Some(PageLink { href, text: link_text(node) })
}

fn link_text(node: &NodeRef<'_>) -> String {
    let seen = text::line_of(node, MAX_TEXT_CHARS);
    if !seen.is_empty() {
        return seen;
    }
    let own = ["aria-label", "title", "alt"].into_iter().filter_map(|name| node.attr(name));
    let images =
        node.descendants_it().filter(|below| below.has_name("img")).filter_map(|image| image.attr("alt"));
    let stands_for_it = own.chain(images).map(|text| single_spaced(&text)).find(|text| !text.is_empty());
    text::first_chars(&stands_for_it.unwrap_or_default(), MAX_TEXT_CHARS)
}

pub(super) fn attachments(links: Vec<PageLink>, extensions: &[impl AsRef<str>]) -> Vec<Attachment> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for link in links {
        let Ok(address) = Url::parse(&link.href) else { continue };
        let Some((name, extension)) = file_name(&address) else { continue };
        let wanted = extensions
            .iter()
            .any(|wanted| wanted.as_ref().trim_start_matches('.').eq_ignore_ascii_case(&extension));
        if wanted && seen.insert(url::comparison_key(&address)) {
            let title = if link.text.is_empty() { name } else { link.text };
            found.push(Attachment { href: link.href, title, extension });
        }
    }
    found
}

/// The name and the extension of the file in a path.
fn file_name(address: &Url) -> Option<(String, String)> {
    let last = address.path_segments()?.next_back()?;
    let name = percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned();
    let (stem, extension) = name.rsplit_once('.')?;
    if stem.is_empty() || extension.is_empty() {
        return None;
    }
    let extension = extension.to_ascii_lowercase();
    Some((name, extension))
}
