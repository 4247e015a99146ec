//! A typed value of a phrase, a fact or a cell.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Phrase;
use crate::id::{JobName, RunId};
use crate::time::Timestamp;

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// Any text.
    Text(String),
    /// A number of things, or an id.
    Count(i64),
    Moment(Timestamp),
    /// How long.
    Duration(Duration),
    /// How large.
    Bytes(u64),
    /// An address and its label.
    Link {
        href: String,
        /// The label, if it is not the address itself.
        text: Option<String>,
    },
    /// A phrase.
    #[serde(with = "super::stored")]
    Phrase(Phrase),
    /// Unknown.
    Nothing,
    /// Several things.
    List(Vec<Value>),
    /// Several sentences.
    Sentences(Vec<Value>),
}

impl Value {
    /// An address without a label.
    pub fn link(href: impl Into<String>) -> Self {
        Self::Link { href: href.into(), text: None }
    }
}

/// A type that can be used as a value of a phrase.
pub trait AsValue {
    fn as_value(&self) -> Value;
}

impl<T: AsValue + ?Sized> From<&T> for Value {
    fn from(thing: &T) -> Self {
        thing.as_value()
    }
}

impl<T: AsValue + ?Sized> AsValue for &T {
    fn as_value(&self) -> Value {
        (**self).as_value()
    }
}

impl<T: AsValue> AsValue for Option<T> {
    fn as_value(&self) -> Value {
        self.as_ref().map_or(Value::Nothing, T::as_value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

macro_rules! as_value {
    ($($kind:ty => |$value:ident| $made:expr;)+) => {$(
        impl AsValue for $kind {
            fn as_value(&self) -> Value {
                let $value = self;
                $made
            }
        }
    )+};
}

as_value! {
    str => |text| Value::Text(text.to_owned());
    String => |text| Value::Text(text.clone());
    Cow<'_, str> => |text| Value::Text(text.clone().into_owned());
    JobName => |name| Value::Text(name.to_string());
    RunId => |id| Value::Text(id.to_string());
    Path => |path| Value::Text(path.display().to_string());
    PathBuf => |path| Value::Text(path.display().to_string());
    i32 => |count| Value::Count((*count).into());
    i64 => |count| Value::Count(*count);
    u16 => |count| Value::Count((*count).into());
    u32 => |count| Value::Count((*count).into());
    u64 => |count| Value::Count(i64::try_from(*count).unwrap_or(i64::MAX));
    usize => |count| Value::Count(i64::try_from(*count).unwrap_or(i64::MAX));
    Timestamp => |at| Value::Moment(*at);
    Duration => |duration| Value::Duration(*duration);
    Phrase => |phrase| Value::Phrase(phrase.clone());
    Value => |value| value.clone();
    Vec<Value> => |values| Value::List(values.clone());
}

macro_rules! from {
    ($($kind:ty)+) => {$(
        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                value.as_value()
            }
        }
    )+};
}

from!(i32 i64 u16 u32 u64 usize Timestamp Duration);

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Phrase> for Value {
    fn from(phrase: Phrase) -> Self {
        Self::Phrase(phrase)
    }
}

impl From<Vec<Value>> for Value {
    fn from(values: Vec<Value>) -> Self {
        Self::List(values)
    }
}
