//! Addresses: resolving against a base, and one normal form for comparison.

pub use ::url::Url;

/// `href` as an absolute address, read as browsers read it; `None` when it is none.
pub fn resolve(base: Option<&Url>, href: &str) -> Option<Url> {
    let href = href.trim();
    match base {
        Some(base) => base.join(href).ok(),
        None => Url::parse(href).ok(),
    }
}
