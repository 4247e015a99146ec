//! Start tags and their attributes.

use std::borrow::Cow;

use quick_xml::events::attributes::Attributes;

use super::names::Space;
use crate::markup::unescape;

/// Attributes of one element that are read.
const ATTRIBUTE_LIMIT: usize = 256;

/// A start tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag<'a> {
    /// The namespace its prefix stands for.
    pub(super) space: Space,
    /// Its name without the prefix, as written.
    pub(super) local: &'a str,
    /// Name and attributes as written, without the brackets.
    pub(super) inner: &'a str,
    pub(super) name_length: usize,
}

impl<'a> Tag<'a> {
    /// Names and raw values of the attributes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        attributes(self.inner, self.name_length)
    }

    /// Its name as written.
    pub(super) fn name(&self) -> &'a str {
        &self.inner[..self.name_length]
    }

    /// Whether it has no attributes.
    pub(super) fn is_bare(&self) -> bool {
        self.inner.len() == self.name_length
    }

    /// The value of an attribute by its name, with or without a prefix, in any case.
    pub(super) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        if self.is_bare() {
            return None;
        }
        let mut prefixed = None;
        for (key, value) in self.attributes() {
            if key.eq_ignore_ascii_case(name) {
                return Some(unescape(value));
            }
            let local = key.split_once(':').filter(|(prefix, _)| *prefix != "xmlns").map(|(_, local)| local);
            if prefixed.is_none() && local.is_some_and(|local| local.eq_ignore_ascii_case(name)) {
                prefixed = Some(value);
            }
        }
        prefixed.map(unescape)
    }
}

/// The attributes of a tag without its brackets; its name ends at `from`.
pub(super) fn attributes(inner: &str, from: usize) -> impl Iterator<Item = (&str, &str)> {
    let mut attributes = Attributes::html(inner, from);
    attributes.with_checks(false);
    attributes.take(ATTRIBUTE_LIMIT).filter_map(|attribute| {
        let attribute = attribute.ok()?;
        let value = match attribute.value {
            Cow::Borrowed(value) => value,
            Cow::Owned(_) => return None,
        };
        Some((attribute.key.0, value))
    })
}
