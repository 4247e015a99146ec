//! Scoped properties of elements: namespaces, the base of relative addresses, the language.

use std::sync::Arc;

use url::Url;

use super::names::{self, Space};
use super::tag::attributes;
use crate::markup::unescape;
use crate::resolver::{Resolver, is_usable_base};

/// Namespaces in scope: every start tag is compared with them.
const SPACE_LIMIT: usize = 256;
/// Longer values are not languages, and every text would copy them.
const LANGUAGE_LIMIT: usize = 100;

/// The scopes of the open elements, innermost last, each with the depth of the declaring element.
#[derive(Debug)]
pub(super) struct Scopes<'a> {
    spaces: Vec<(usize, &'a str, Space)>,
    bases: Vec<(usize, Arc<Url>)>,
    languages: Vec<(usize, &'a str)>,
}

impl<'a> Scopes<'a> {
    /// The scope outside of the root.
    pub(super) fn new(base: Option<Arc<Url>>) -> Self {
        Self {
            spaces: Vec::new(),
            bases: base.map(|base| (0, base)).into_iter().collect(),
            languages: Vec::new(),
        }
    }

    /// Adds the declarations of the tag at `depth`; `false` if the limit was reached.
    pub(super) fn enter(
        &mut self,
        depth: usize,
        inner: &'a str,
        name_length: usize,
        resolver: &Resolver,
    ) -> bool {
        let mut is_whole = true;
        let mut has_base = false;
        for (key, value) in attributes(inner, name_length) {
            if let Some(rest) = key.strip_prefix("xmlns") {
                let prefix = rest.strip_prefix(':').unwrap_or("");
                if self.spaces.len() < SPACE_LIMIT {
                    self.spaces.push((depth, prefix, names::space_of_uri(value)));
                } else {
                    is_whole = false;
                }
            } else if key == "xml:base" && !has_base {
                has_base = true;
                let base = resolver.resolve(self.base().map(|base| &**base), &unescape(value));
                if let Some(base) = base.filter(|base| matches!(base.scheme(), "http" | "https" | "ftp")) {
                    if is_usable_base(&base) {
                        self.bases.push((depth, Arc::new(base)));
                    } else {
                        is_whole = false;
                    }
                }
            } else if key == "xml:lang" || key == "lang" {
                if value.len() > LANGUAGE_LIMIT {
                    is_whole = false;
                    continue;
                }
                // The last one of an element counts.
                self.languages.pop_if(|(at, _)| *at == depth);
                self.languages.push((depth, value));
            }
        }
        is_whole
    }

    /// Drops the declarations of elements below `depth`.
    pub(super) fn leave(&mut self, depth: usize) {
        while self.spaces.pop_if(|(at, ..)| *at > depth).is_some() {}
        while self.bases.pop_if(|(at, _)| *at > depth).is_some() {}
        while self.languages.pop_if(|(at, _)| *at > depth).is_some() {}
    }

    /// Moves the element at `last` to `depth`, and drops those between.
    pub(super) fn replace(&mut self, depth: usize, last: usize) {
        let moved = |at: usize| if at == last { Some(depth) } else { (at < depth).then_some(at) };
        self.spaces.retain_mut(|(at, ..)| moved(*at).map(|to| *at = to).is_some());
        self.bases.retain_mut(|(at, _)| moved(*at).map(|to| *at = to).is_some());
        self.languages.retain_mut(|(at, _)| moved(*at).map(|to| *at = to).is_some());
    }

    /// The base for relative addresses.
    pub(super) fn base(&self) -> Option<&Arc<Url>> {
        self.bases.last().map(|(_, base)| base)
    }

    /// The language of `xml:lang`; empty if it was reset.
    pub(super) fn language(&self) -> Option<&'a str> {
        self.languages.last().map(|(_, language)| *language)
    }

    /// The namespace that a prefix stands for.
    pub(super) fn space_of(&self, prefix: &str) -> Space {
        if self.spaces.is_empty() && prefix.is_empty() {
            return Space::Core;
        }
        match self.spaces.iter().rev().find(|(_, known, _)| *known == prefix) {
            // Feeds may declare an unknown default namespace; treat it as ours.
            Some((_, _, Space::Other)) if prefix.is_empty() => Space::Core,
            Some((_, _, space)) => *space,
            None if prefix.is_empty() => Space::Core,
            None => names::space_of_prefix(prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_so_many_namespaces_and_one_base_and_language_for_each_element() {
        let mut scopes = Scopes::new(None);
        let resolver = Resolver::default();
        let spaces: String = (0..200).map(|n| format!(" xmlns:p{n}='u'")).collect();
        let inner = format!("a{spaces} xml:base='http://a.example/' xml:base='b/' xml:lang='en' lang='ja'");
        for depth in 1..=10 {
            assert_eq!(scopes.enter(depth, &inner, 1, &resolver), depth == 1, "{depth}");
        }
        assert_eq!((scopes.spaces.len(), scopes.bases.len(), scopes.languages.len()), (SPACE_LIMIT, 10, 10));
        assert_eq!(scopes.base().unwrap().as_str(), "http://a.example/");
        assert_eq!(scopes.language(), Some("ja"));
        scopes.leave(1);
        assert_eq!((scopes.spaces.len(), scopes.bases.len(), scopes.languages.len()), (200, 1, 1));
        scopes.leave(0);
        assert!(scopes.spaces.is_empty() && scopes.base().is_none() && scopes.language().is_none());
    }

    #[test]
    fn bases_and_languages_of_any_length_are_ignored() {
        let mut scopes = Scopes::new(None);
        let resolver = Resolver::default();
        let long = "a".repeat(5_000);
        let inner = format!("a xml:base='http://a.example/{long}/' xml:lang='{long}'");
        assert!(!scopes.enter(1, &inner, 1, &resolver));
        assert!(scopes.base().is_none() && scopes.language().is_none());
    }
}
