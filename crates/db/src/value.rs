//! Parameters of statements, and cells of rows.

use std::borrow::Cow;

use memchr::memchr;

use super::{Error, Result};
use stdx::id::{JobName, Owner, RunId};
use stdx::phrase::Phrase;
use stdx::time::Timestamp;

/// A parameter of a statement, or a cell of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// An integer; flags are 0 and 1.
    Int(i64),
    /// A floating point number.
    Real(f64),
    /// Text without NUL, which PostgreSQL cannot store.
    Text(Cow<'a, str>),
}

impl Value<'_> {
    /// The number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn describe(&self) -> String {
        match self {
            Value::Null => "NULL".into(),
            Value::Int(value) => value.to_string(),
            Value::Real(_) => "a fraction".into(),
            Value::Text(text) => stdx::text::shorten(&format!("`{}`", stdx::text::one_line(text)), 60),
        }
    }
}

/// A type that can be a parameter.
pub trait ToValue {
    fn to_value(&self) -> Value<'_>;
}

fn text(text: &str) -> Value<'_> {
    if memchr(0, text.as_bytes()).is_none() {
        Value::Text(Cow::Borrowed(text))
    } else {
        Value::Text(Cow::Owned(text.replace('\0', "")))
    }
}

macro_rules! as_text {
    ($($kind:ty => $get:expr;)+) => {$(
        impl ToValue for $kind {
            fn to_value(&self) -> Value<'_> {
                text($get(self))
            }
        }
    )+};
}

as_text! {
    str => std::convert::identity;
    String => String::as_str;
    Cow<'_, str> => Cow::as_ref;
    JobName => JobName::as_str;
    Owner => Owner::as_str;
}

macro_rules! as_int {
    ($($kind:ty)+) => {$(
        impl ToValue for $kind {
            fn to_value(&self) -> Value<'_> {
                Value::Int(i64::from(*self))
            }
        }
    )+};
}

as_int!(i64 i32 u32 u16 u8 bool);

impl ToValue for usize {
    fn to_value(&self) -> Value<'_> {
        Value::Int(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

impl ToValue for u64 {
    fn to_value(&self) -> Value<'_> {
        Value::Int(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

impl ToValue for f64 {
    fn to_value(&self) -> Value<'_> {
        Value::Real(*self)
    }
}

impl ToValue for Timestamp {
    fn to_value(&self) -> Value<'_> {
        Value::Text(Cow::Owned(self.to_text()))
    }
}

/// As text in the stored form, which has both languages.
impl ToValue for Phrase {
    fn to_value(&self) -> Value<'_> {
        Value::Text(Cow::Owned(self.to_stored().replace('\0', "")))
    }
}

impl ToValue for RunId {
    fn to_value(&self) -> Value<'_> {
        Value::Text(Cow::Owned(self.to_string()))
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, T::to_value)
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

/// A type that can be read from a cell.
pub trait FromCell: Sized {
    /// What is expected, for the error message.
    const WANTED: &'static str;

    /// The value, or `None` if the cell contains something else.
    fn from_cell(cell: &Value<'_>) -> Option<Self>;

    /// The value, or an error with the position of the column.
    fn read(cell: &Value<'_>, column: usize) -> Result<Self> {
        Self::from_cell(cell).ok_or_else(|| Error::Unexpected {
            column,
            wanted: Self::WANTED,
            found: cell.describe(),
        })
    }
}

macro_rules! from_int {
    ($($kind:ty)+) => {$(
        impl FromCell for $kind {
            const WANTED: &'static str = "a number";
            fn from_cell(cell: &Value<'_>) -> Option<Self> {
                Self::try_from(cell.as_int()?).ok()
            }
        }
    )+};
}

from_int!(i64 i32 u32 u64 usize);

impl FromCell for bool {
    const WANTED: &'static str = "0 or 1";
    fn from_cell(cell: &Value<'_>) -> Option<Self> {
        cell.as_int().map(|value| value != 0)
    }
}

impl FromCell for f64 {
    const WANTED: &'static str = "a fraction";
    fn from_cell(cell: &Value<'_>) -> Option<Self> {
        match cell {
            Value::Real(value) => Some(*value),
            cell => cell.as_int().map(|value| value as f64),
        }
    }
}

impl FromCell for Phrase {
    const WANTED: &'static str = "text";
    fn from_cell(cell: &Value<'_>) -> Option<Self> {
        cell.as_text().map(Phrase::from_stored)
    }
}

impl FromCell for String {
    const WANTED: &'static str = "text";
    fn from_cell(cell: &Value<'_>) -> Option<Self> {
        cell.as_text().map(str::to_owned)
    }
}

/// Implements [`FromCell`] for types that can be parsed from text: `from_text!(State = "a state")`. A text that cannot
/// be parsed is an error.
#[macro_export]
macro_rules! from_text {
    ($($kind:ty = $wanted:literal)+) => {$(
        impl $crate::FromCell for $kind {
            const WANTED: &'static str = $wanted;
            fn from_cell(cell: &$crate::Value<'_>) -> Option<Self> {
                cell.as_text()?.parse().ok()
            }
        }
    )+};
}

/// The same for enums of words (`stdx::word_enum!`) that are stored by their numbers, counted from 0.
#[macro_export]
macro_rules! from_code {
    ($($kind:ident = $wanted:literal)+) => {$(
        impl $kind {
            pub const fn code(self) -> i64 {
                self as i64
            }

            /// The word with this number in the database.
            pub fn from_code(code: i64) -> Option<Self> {
                Self::ALL.get(usize::try_from(code).ok()?).copied()
            }

            /// Parses a word or a number.
            pub fn parse(text: &str) -> Result<Self, <Self as std::str::FromStr>::Err> {
                let by_code = || text.parse().ok().and_then(Self::from_code);
                text.parse().or_else(|unknown| by_code().ok_or(unknown))
            }
        }

        impl $crate::FromCell for $kind {
            const WANTED: &'static str = $wanted;
            fn from_cell(cell: &$crate::Value<'_>) -> Option<Self> {
                Self::from_code(cell.as_int()?)
            }
        }
    )+};
}

from_text!(Timestamp = "a time" JobName = "a job name" RunId = "a run id");

impl<T: FromCell> FromCell for Option<T> {
    const WANTED: &'static str = T::WANTED;
    fn from_cell(cell: &Value<'_>) -> Option<Self> {
        match cell {
            Value::Null => Some(None),
            cell => T::from_cell(cell).map(Some),
        }
    }
}

/// An owned value of a row, for copying tables.
impl FromCell for Value<'static> {
    const WANTED: &'static str = "a value";
    fn from_cell(cell: &Value<'_>) -> Option<Self> {
        Some(match cell {
            Value::Null => Value::Null,
            Value::Int(value) => Value::Int(*value),
            Value::Real(value) => Value::Real(*value),
            Value::Text(value) => Value::Text(Cow::Owned(value.clone().into_owned())),
        })
    }
}

impl ToValue for Value<'_> {
    fn to_value(&self) -> Value<'_> {
        match self {
            Value::Text(value) => Value::Text(Cow::Borrowed(value)),
            other => other.clone(),
        }
    }
}
