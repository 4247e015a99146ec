//! The words of a phrase in both languages, checked by the compiler.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The words of a phrase, with `{name}` where a value belongs.
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
    /// The template with these English words.
    pub(super) fn find(en: &str) -> Option<&'static Template> {
        static BY_ENGLISH: LazyLock<HashMap<&'static str, &'static Template>> =
            LazyLock::new(|| TEMPLATES.iter().map(|template| (template.en, template)).collect());
        BY_ENGLISH.get(en).copied()
    }

    /// Refuses, at compile time, words whose names and values do not match.
    pub const fn new(en: &'static str, ja: &'static str, names: &[&str]) -> Self {
        assert!(!ja.is_empty(), "the Japanese words are missing");
        let mut index = 0;
        while index < names.len() {
            assert!(
                holds(en.as_bytes(), names[index].as_bytes()),
                "a value has no place in the English words"
            );
            assert!(
                holds(ja.as_bytes(), names[index].as_bytes()),
                "a value has no place in the Japanese words"
            );
            index += 1;
        }
        assert!(all_named(en.as_bytes(), names), "a place in the English words has no value");
        assert!(all_named(ja.as_bytes(), names), "a place in the Japanese words has no value");
        Self { en, ja }
    }
}

/// Whether `{name}` or `{name …}` stands in `words`.
const fn holds(words: &[u8], name: &[u8]) -> bool {
    let mut at = 0;
    while at < words.len() {
        if words[at] == b'{' && names_place(words, at + 1, name) {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether each place in `words` has one of `names`.
const fn all_named(words: &[u8], names: &[&str]) -> bool {
    let mut at = 0;
    while at < words.len() {
        if words[at] == b'{' {
            let (mut index, mut is_named) = (0, false);
            while index < names.len() {
                is_named = is_named || names_place(words, at + 1, names[index].as_bytes());
                index += 1;
            }
            if !is_named {
                return false;
            }
        }
        at += 1;
    }
    true
}

/// Whether the place that begins at `from` is that of `name`.
const fn names_place(words: &[u8], from: usize, name: &[u8]) -> bool {
    let mut index = 0;
    while index < name.len() {
        if from + index >= words.len() || words[from + index] != name[index] {
            return false;
        }
        index += 1;
    }
    from + index < words.len() && matches!(words[from + index], b'}' | b' ')
}
