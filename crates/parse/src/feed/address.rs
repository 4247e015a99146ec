//! Addresses in feeds: made absolute if possible, and dropped if a reader must not follow them.

use std::borrow::Cow;
use std::sync::Arc;

use url::Url;

use super::Link;
use crate::resolver::Resolver;

/// A link to a page.
pub(super) fn alternate(href: String) -> Link {
    Link { href, rel: "alternate".into(), kind: Some("text/html".into()), ..Link::default() }
}

/// Adds the host to an id that is only a path; other ids stay.
pub(super) fn rooted(resolver: &Resolver, base: Option<&Arc<Url>>, id: String) -> String {
    if id.starts_with(['/', '.'])
        && let Some(absolute) = address(resolver, base, &id)
    {
        return absolute;
    }
    id
}

/// An absolute address as written, or a resolved one; `None` if a reader must not follow it, or if it is too long.
pub(super) fn address(resolver: &Resolver, base: Option<&Arc<Url>>, href: &str) -> Option<String> {
    let href = href.trim();
    if href.is_empty() {
        return None;
    }
    let compact: Cow<'_, str> = if href.contains(['\n', '\r', '\t']) {
        Cow::Owned(href.chars().filter(|c| !matches!(c, '\n' | '\r' | '\t')).collect())
    } else {
        Cow::Borrowed(href)
    };
    let scheme = compact.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    const UNSAFE: [&str; 8] =
        ["javascript", "vbscript", "data", "file", "livescript", "mocha", "about", "blob"];
    match scheme {
        Some(scheme) if UNSAFE.iter().any(|known| known.eq_ignore_ascii_case(scheme)) => None,
        None if base.is_some() => resolver.resolve(base.map(|base| &**base), &compact).map(String::from),
        Some(_) | None => resolver.admits(compact.len(), 0).then(|| compact.into_owned()),
    }
}

/// The link to the page: the first alternate one that is HTML or of unknown type.
pub(super) fn chosen_link(links: &[Link]) -> Option<String> {
    let alternates = || links.iter().filter(|link| link.rel == "alternate");
    let page = |link: &&Link| link.kind.as_deref().is_none_or(|kind| kind.contains("html"));
    alternates().find(page).or_else(|| alternates().next()).map(|link| link.href.clone())
}
