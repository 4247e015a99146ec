//! Makes the addresses of one document absolute, within limits: a long base must not be copied into every link.

use std::cell::Cell;

use super::url::{self, Url};

/// Longer bases are ignored.
pub(super) const MAX_BASE_BYTES: usize = 4 * 1024;

/// How much bases may add to the addresses of one document.
pub(super) const MAX_ADDED_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Resolver {
    /// How much bases may still add.
    left: Cell<usize>,
    has_refused: Cell<bool>,
}

impl Default for Resolver {
    fn default() -> Self {
        Self { left: Cell::new(MAX_ADDED_BYTES), has_refused: Cell::new(false) }
    }
}

impl Resolver {
    /// `href` as an absolute address; `None` if it is invalid or exceeds the limit.
    pub(super) fn resolve(&self, base: Option<&Url>, href: &str) -> Option<Url> {
        let address = url::resolve(base, href)?;
        let length = address.as_str().len();
        // Growth by escapes alone is proportional to the document.
        let added = base.map_or(0, |base| length.saturating_sub(href.len()).min(base.as_str().len()));
        self.admits(length, added).then_some(address)
    }

    /// Whether one more address of so many bytes is within the limit, of which `added` are from its base.
    pub(super) fn admits(&self, length: usize, added: usize) -> bool {
        let left = self.left.get().checked_sub(added).filter(|_| length <= url::MAX_BYTES);
        match left {
            Some(left) => self.left.set(left),
            None => self.has_refused.set(true),
        }
        left.is_some()
    }

    /// Whether an address was dropped because of the limit.
    pub(super) fn has_refused(&self) -> bool {
        self.has_refused.get()
    }
}

/// Whether `base` can be used for relative addresses.
pub(super) fn is_usable_base(base: &Url) -> bool {
    base.as_str().len() <= MAX_BASE_BYTES && !base.cannot_be_a_base()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_adds_no_more_than_a_document_may_have() {
        let resolver = Resolver::default();
        let base: Url = format!("https://example.com/{}/", "a".repeat(3_000)).parse().unwrap();
        let all: usize = (0..100_000)
            .filter_map(|_| resolver.resolve(Some(&base), "x"))
            .map(|address| address.as_str().len())
            .sum();
        assert!(all > MAX_ADDED_BYTES / 2 && all <= MAX_ADDED_BYTES + 100_000, "{all}");
        assert!(resolver.has_refused());
        assert!(resolver.resolve(Some(&base), "https://other.example/y").is_some(), "it needs no base");
    }

    #[test]
    fn an_address_that_is_too_long_is_none() {
        let resolver = Resolver::default();
        let long = |length: usize| format!("https://example.com/{}", "a".repeat(length));
        assert!(resolver.resolve(None, &long(url::MAX_BYTES / 2)).is_some());
        assert!(!resolver.has_refused());
        assert!(resolver.resolve(None, &long(url::MAX_BYTES)).is_none());
        assert!(resolver.has_refused());
    }
}
