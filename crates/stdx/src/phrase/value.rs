//! A value of a phrase, a fact or a cell: typed, so that each face can show it as it likes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Phrase;
use crate::id::JobName;
use crate::time::Timestamp;

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// Text, whoever wrote it.
    Text(String),
    /// A number of things, or a number that is a name.
    Count(i64),
    Moment(Timestamp),
    /// How long.
    Duration(Duration),
    /// How large.
    Bytes(u64),
    /// An address, and what to call it.
    Link {
        href: String,
        /// What to call it, if not by its address.
        text: Option<String>,
    },
    /// Words of ours.
    #[serde(with = "super::stored")]
    Phrase(Phrase),
    /// Nothing is known.
    Nothing,
    /// Several things.
    List(Vec<Value>),
    /// Several sentences.
    Sentences(Vec<Value>),
}

impl Value {
    /// An address.
    pub fn link(href: impl Into<String>) -> Self {
        Self::Link { href: href.into(), text: None }
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

macro_rules! from {
    ($($kind:ty => |$value:ident| $made:expr;)+) => {$(
        impl From<$kind> for Value {
            fn from($value: $kind) -> Self {
                $made
            }
        }
    )+};
}

from! {
    &str => |text| Self::Text(text.to_owned());
    &&str => |text| Self::Text((*text).to_owned());
    String => |text| Self::Text(text);
    &String => |text| Self::Text(text.clone());
    &JobName => |name| Self::Text(name.to_string());
    i32 => |count| Self::Count(count.into());
    i64 => |count| Self::Count(count);
    &i64 => |count| Self::Count(*count);
    u16 => |count| Self::Count(count.into());
    u32 => |count| Self::Count(count.into());
    &u32 => |count| Self::from(*count);
    u64 => |count| Self::Count(i64::try_from(count).unwrap_or(i64::MAX));
    usize => |count| Self::Count(i64::try_from(count).unwrap_or(i64::MAX));
    &usize => |count| Self::from(*count);
    Timestamp => |at| Self::Moment(at);
    &Timestamp => |at| Self::Moment(*at);
    Duration => |duration| Self::Duration(duration);
    Phrase => |phrase| Self::Phrase(phrase);
    &Phrase => |phrase| Self::Phrase(phrase.clone());
    Vec<Value> => |values| Self::List(values);
}
