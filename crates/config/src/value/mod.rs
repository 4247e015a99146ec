//! The values that config keys take: spans, sizes, zones, times of day, schedules, addresses.

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

/// A text that is not a value of the wanted kind, why, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadValue {
    message: String,
    hint: Option<String>,
}

impl BadValue {
    /// What is wrong, in one sentence without a full stop.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// The same with what to write instead.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What is wrong, in one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to write instead.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Message and hint in the form that config diagnostics take apart again.
    pub fn for_serde(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\nhint: {hint}", self.message),
            None => self.message.clone(),
        }
    }
}

/// For `#[serde(deserialize_with)]`: a value that `check` takes; its error is told at the place of the value.
///
/// The words of an error may end in a hint after `"\nhint: "`.
pub fn checked<'de, D: serde::Deserializer<'de>, T: serde::Deserialize<'de>, E: std::fmt::Display>(
    deserializer: D,
    check: impl FnOnce(&T) -> Result<(), E>,
) -> Result<T, D::Error> {
    let value = T::deserialize(deserializer)?;
    check(&value).map_err(serde::de::Error::custom)?;
    Ok(value)
}

/// Gives a type that is read from text with `FromStr` and printed with `Display` its serde and schema.
macro_rules! text_value {
    ($type:ident, $what:literal, $example:literal) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct TextVisitor;
                impl serde::de::Visitor<'_> for TextVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!($what, " such as \"", $example, "\""))
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
