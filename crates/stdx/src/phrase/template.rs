//! The text of a phrase in both languages.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The text of a phrase, with `{name}` for values.
#[derive(Debug)]
pub struct Template {
    /// In English; `{name thing}` is a number of things.
    pub en: &'static str,
    /// In Japanese.
    pub ja: &'static str,
}

/// Every template of the program, gathered by the linker.
#[allow(unsafe_code, reason = "linkme puts the statics into a section of their own, nothing else")]
#[linkme::distributed_slice]
pub static TEMPLATES: [Template];

impl Template {
    /// The template with this English text.
    pub(super) fn find(en: &str) -> Option<&'static Template> {
        static BY_ENGLISH: LazyLock<HashMap<&'static str, &'static Template>> =
            LazyLock::new(|| TEMPLATES.iter().map(|template| (template.en, template)).collect());
        BY_ENGLISH.get(en).copied()
    }
}
