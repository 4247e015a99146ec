//! The values of config keys: durations, sizes, zones, times of day, schedules, addresses.

mod address;
mod cron;
mod first_run;
mod hours;
pub mod listen;
mod network;
mod pattern;
mod several;
mod since;
mod size;
mod span;
mod zone;

use stdx::phrase;
use stdx::phrase::Phrase;

pub use address::HttpUrl;
pub use cron::Cron;
pub use first_run::FirstRun;
pub use hours::{QuietHours, TimeOfDay};
pub use network::Network;
pub use pattern::{Pattern, Patterns};
pub use several::Several;
pub use since::Since;
pub use size::ByteSize;
pub use span::Span;
pub use zone::Zone;

/// Separates message and hint in the text of a serde error.
const HINT: &str = "\nhint: ";

/// An invalid value: why, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadValue {
    message: Phrase,
    hint: Option<Phrase>,
}

impl BadValue {
    /// The message is one sentence without a full stop.
    pub fn new(message: Phrase) -> Self {
        Self { message, hint: None }
    }

    /// Adds what to write instead.
    pub fn with_hint(mut self, hint: Phrase) -> Self {
        self.hint = Some(hint);
        self
    }

    /// In one sentence.
    pub fn message(&self) -> &Phrase {
        &self.message
    }

    /// What to write instead.
    pub fn hint(&self) -> Option<&Phrase> {
        self.hint.as_ref()
    }

    /// Message and hint in the form that `from_serde` splits again: serde errors are plain text.
    pub fn for_serde(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}{HINT}{}", self.message.to_stored(), hint.to_stored()),
            None => self.message.to_stored(),
        }
    }

    /// Splits the result of [`BadValue::for_serde`]; other texts are messages of a library.
    pub(super) fn from_serde(text: &str) -> Self {
        let (message, hint) = text.split_once(HINT).map_or((text, None), |(text, hint)| (text, Some(hint)));
        Self { message: Phrase::from_stored(message), hint: hint.map(Phrase::from_stored) }
    }
}

/// For `#[serde(deserialize_with)]`: a value validated by `check`; an error is reported at the position of the value.
pub fn checked<'de, D: serde::Deserializer<'de>, T: serde::Deserialize<'de>>(
    deserializer: D,
    check: impl FnOnce(&T) -> Result<(), BadValue>,
) -> Result<T, D::Error> {
    let value = T::deserialize(deserializer)?;
    check(&value).map_err(|bad| serde::de::Error::custom(bad.for_serde()))?;
    Ok(value)
}

/// A suggestion.
fn did_you_mean(value: &str) -> Phrase {
    phrase!("did you mean \"{value}\"?", "\"{value}\" ではありませんか？")
}

/// A description of a value, with an example.
fn such_as(what: Phrase, example: &str) -> Phrase {
    phrase!("{what} such as \"{example}\"", "{what}（例：\"{example}\"）")
}

/// Implements serde, the schema and `Debug` for a type with `FromStr` and `Display`.
macro_rules! text_value {
    ($type:ident, $what:literal, $ja:literal, $example:literal) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct TextVisitor;
                impl serde::de::Visitor<'_> for TextVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(&$crate::value::such_as(phrase!($what, $ja), $example).to_stored())
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(|err: $crate::value::BadValue| E::custom(err.for_serde()))
                    }
                }
                deserializer.deserialize_str(TextVisitor)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": $what, "examples": [$example] })
            }
        }
    };
}
pub(super) use text_value;
