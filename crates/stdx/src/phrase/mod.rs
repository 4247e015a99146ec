//! Messages as data: text in English and Japanese with typed values in it.
//!
//! A [`Phrase`] is rendered where people read it, in their language and time zone. It can also be stored, as its
//! English text and its values; the Japanese text is found by the English one.
//!
//! ```
//! use tsuzuki_stdx::phrase;
//! use tsuzuki_stdx::text::Language;
//! use tsuzuki_stdx::phrase::{Phrase, Speech};
//!
//! let said = phrase!("first run: {count existing entry} recorded", "初回：既存の {count} 件を記録", count = 29);
//! assert_eq!(said.to_string(), "first run: 29 existing entries recorded");
//! let japanese = Speech { language: Language::Ja, ..Speech::default() };
//! assert_eq!(japanese.phrase(&Phrase::from_stored(&said.to_stored())), "初回：既存の 29 件を記録");
//! ```

mod speech;
mod template;
mod value;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::speech::{Piece, Speech};
pub use self::template::{TEMPLATES, Template};
pub use self::value::{AsValue, Value};

/// A sentence or a word, with its values.
#[derive(Clone, PartialEq, Eq)]
pub struct Phrase {
    en: Cow<'static, str>,
    /// The Japanese text; `None` for text written by others, such as a server's answer.
    ja: Option<&'static str>,
    values: Vec<(Cow<'static, str>, Value)>,
}

/// Creates a [`Phrase`] from the English text, the Japanese text, and the values named in them.
///
/// `{name}` is the variable of that name, as in `format!`, unless `name = value` follows the texts. `{count entry}` in
/// the English text is a number of things: `1 entry`, `2 entries`. A name that is missing in one of the two languages
/// does not compile:
///
/// ```compile_fail
/// tsuzuki_stdx::phrase!("{count} new", "新着", count = 1);
/// ```
///
/// Neither does a value that is not named:
///
/// ```compile_fail
/// tsuzuki_stdx::phrase!("nothing new", "新着なし", count = 1);
/// ```
#[macro_export]
macro_rules! phrase {
    (@ $en:literal, $ja:literal $(, $name:ident = $value:expr)*) => {{
        #[allow(unsafe_code, reason = "linkme puts the static into a section of its own, nothing else")]
        #[$crate::linkme::distributed_slice($crate::phrase::TEMPLATES)]
        #[linkme(crate = $crate::linkme)]
        static TEMPLATE: $crate::phrase::Template = $crate::phrase::Template { en: $en, ja: $ja };
        $crate::phrase::Phrase::new(
            &TEMPLATE,
            [$((stringify!($name), $crate::phrase::Value::from($value))),*],
        )
    }};
    ($($words:tt)+) => {
        $crate::macros::name_values! { $crate::phrase, $($words)+ }
    };
}

/// Implements `Display` by the English text of an error's `phrase()`, for logs and programs, and `AsValue`, so that the
/// error can be part of another phrase.
#[macro_export]
macro_rules! error_in_english {
    ($type:ty) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.phrase(), f)
            }
        }

        impl std::error::Error for $type {}

        impl $crate::phrase::AsValue for $type {
            fn as_value(&self) -> $crate::phrase::Value {
                self.phrase().into()
            }
        }
    };
}

impl Phrase {
    /// Use [`phrase!`](crate::phrase!), which checks the names of the values.
    pub fn new<const N: usize>(template: &'static Template, values: [(&'static str, Value); N]) -> Self {
        let values = values.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect();
        Self { en: Cow::Borrowed(template.en), ja: Some(template.ja), values }
    }

    /// A constant text in both languages without values. When stored, it is kept only in English.
    pub const fn of_words(en: &'static str, ja: &'static str) -> Self {
        Self { en: Cow::Borrowed(en), ja: Some(ja), values: Vec::new() }
    }

    /// Text written by others, such as a server or a library: the same in every language.
    pub fn verbatim(text: impl Into<String>) -> Self {
        Self {
            en: Cow::Borrowed("{text}"),
            ja: None,
            values: vec![("text".into(), Value::Text(text.into()))],
        }
    }

    /// Several sentences in a row.
    pub fn list(phrases: impl IntoIterator<Item = Phrase>) -> Self {
        let list = Value::Sentences(phrases.into_iter().map(Value::from).collect());
        Self { en: Cow::Borrowed("{text}"), ja: None, values: vec![("text".into(), list)] }
    }

    /// The text in `language`, with `{name}` for values.
    fn words(&self, language: crate::text::Language) -> &str {
        match (language, self.ja) {
            (crate::text::Language::Ja, Some(ja)) => ja,
            _ => &self.en,
        }
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.to_string().is_empty()
    }

    /// The text, if all of it was written by others.
    fn as_verbatim(&self) -> Option<&str> {
        match self.values.as_slice() {
            [(_, Value::Text(text))] if self.en == "{text}" => Some(text),
            _ => None,
        }
    }

    /// The form in which it is stored.
    pub fn to_stored(&self) -> String {
        match self.as_verbatim() {
            Some(text) if !text.starts_with(STORED) => text.to_owned(),
            _ => serde_json::to_string(&StoredPhrase::from(self)).expect("text keys and plain values"),
        }
    }

    /// Parses the stored form. Any other text, such as imported data, is taken verbatim.
    pub fn from_stored(text: &str) -> Self {
        let stored =
            text.starts_with(STORED).then(|| serde_json::from_str::<StoredPhrase>(text).ok()).flatten();
        stored.map_or_else(|| Self::verbatim(text), Self::from)
    }
}

/// The beginning of every stored phrase.
const STORED: &str = "{\"en\":";

#[derive(Serialize, Deserialize)]
struct StoredPhrase {
    en: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    with: Vec<(String, Value)>,
}

impl From<&Phrase> for StoredPhrase {
    fn from(phrase: &Phrase) -> Self {
        let value = |(name, value): &(Cow<'_, str>, Value)| (name.to_string(), value.clone());
        Self { en: phrase.en.to_string(), with: phrase.values.iter().map(value).collect() }
    }
}

impl From<StoredPhrase> for Phrase {
    fn from(stored: StoredPhrase) -> Self {
        let ja = Template::find(&stored.en).map(|template| template.ja);
        let values = stored.with.into_iter().map(|(name, value)| (Cow::Owned(name), value)).collect();
        Self { en: Cow::Owned(stored.en), ja, values }
    }
}

/// Serde functions for a phrase within stored JSON: `#[serde(with = "phrase::stored")]`.
pub mod stored {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Phrase, StoredPhrase};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum TextOrPhrase {
        Text(String),
        Phrase(StoredPhrase),
    }

    /// Text of others as a string, our own as text and values.
    pub fn serialize<S: Serializer>(phrase: &Phrase, to: S) -> Result<S::Ok, S::Error> {
        match phrase.as_verbatim().filter(|text| !text.starts_with(super::STORED)) {
            Some(text) => to.serialize_str(text),
            None => TextOrPhrase::Phrase(phrase.into()).serialize(to),
        }
    }

    /// What was stored.
    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Phrase, D::Error> {
        Ok(match TextOrPhrase::deserialize(from)? {
            TextOrPhrase::Text(text) => Phrase::from_stored(&text),
            TextOrPhrase::Phrase(stored) => stored.into(),
        })
    }
}

/// In English, with times as they are stored.
impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Speech::default().phrase(self))
    }
}

/// The English text, which is easiest to read when debugging.
impl fmt::Debug for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// As English text: programs use codes and fields, and only show the text.
impl Serialize for Phrase {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Compares the English text.
impl PartialEq<str> for Phrase {
    fn eq(&self, text: &str) -> bool {
        Speech::default().phrase(self) == text
    }
}

impl PartialEq<&str> for Phrase {
    fn eq(&self, text: &&str) -> bool {
        *self == **text
    }
}

impl PartialEq<String> for Phrase {
    fn eq(&self, text: &String) -> bool {
        *self == **text
    }
}

impl From<String> for Phrase {
    fn from(text: String) -> Self {
        Self::verbatim(text)
    }
}

impl From<&String> for Phrase {
    fn from(text: &String) -> Self {
        Self::verbatim(text)
    }
}

impl From<&Phrase> for Phrase {
    fn from(phrase: &Phrase) -> Self {
        phrase.clone()
    }
}

impl From<&str> for Phrase {
    fn from(text: &str) -> Self {
        Self::verbatim(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Language;
    use crate::time::Timestamp;

    fn at() -> Timestamp {
        "2026-01-15T00:02:11.123Z".parse().unwrap()
    }

    fn tokyo(language: Language) -> Speech {
        Speech { language, zone: Some(jiff::tz::TimeZone::get("Asia/Tokyo").unwrap()) }
    }

    #[test]
    fn a_phrase_is_rendered_in_both_languages_with_moments_in_the_zone_of_the_reader() {
        let until = at();
        let said = phrase!("{count blog} paused until {until}", "{until} まで {count} 件を停止", count = 2);
        assert_eq!(said.to_string(), "2 blogs paused until 2026-01-15T00:02:11.123Z");
        assert_eq!(tokyo(Language::En).phrase(&said), "2 blogs paused until 2026-01-15 09:02 +09:00");
        assert_eq!(tokyo(Language::Ja).phrase(&said), "2026-01-15 09:02 +09:00 まで 2 件を停止");
    }

    #[test]
    fn what_is_stored_comes_back_in_both_languages() {
        let inner = phrase!("HTTP {status}", "HTTP {status}", status = 503);
        let said = phrase!(
            "{host}: {why}; again {at}",
            "{host}：{why}。次回 {at}",
            host = "a.example",
            why = inner,
            at = at()
        );
        let stored = said.to_stored();
        assert_eq!(Phrase::from_stored(&stored).to_string(), said.to_string());
        assert_eq!(
            tokyo(Language::Ja).phrase(&Phrase::from_stored(&stored)),
            "a.example：HTTP 503。次回 2026-01-15 09:02 +09:00"
        );
    }

    #[test]
    fn text_of_others_is_stored_as_it_is_and_never_taken_for_words_of_ours() {
        for text in ["", "plain", "{count}", "{\"en\":\"x\"}", "{\"en\":", "続き {text}"] {
            let stored = Phrase::verbatim(text).to_stored();
            assert_eq!(Phrase::from_stored(&stored).to_string(), text);
        }
        assert_eq!(Phrase::verbatim("plain").to_stored(), "plain");
    }

    #[test]
    fn words_of_a_later_version_are_shown_in_english() {
        let said = Phrase::from_stored(r#"{"en":"not {what} here","with":[["what",{"text":"known"}]]}"#);
        assert_eq!(tokyo(Language::Ja).phrase(&said), "not known here");
    }
}
