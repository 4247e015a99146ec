//! Lets serde read a table of the tree where it stands, without a copy, and keeps the place of what does not fit.

use std::fmt;
use std::ops::Range;

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::tree::{Data, Entry, Table, Value};

/// What serde says about a value that does not fit, and where that value stands.
#[derive(Debug)]
pub(super) struct Misfit {
    message: String,
    span: Option<Range<usize>>,
}

impl Misfit {
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The key that is missing, if that is what does not fit.
    pub(super) fn missing_key(&self) -> Option<&str> {
        self.message.strip_prefix("missing field `")?.strip_suffix('`')
    }

    pub(super) fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    /// The same, standing at `span` unless a place inside it is known.
    fn within(mut self, span: &Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }
}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), span: None }
    }
}

impl std::error::Error for Misfit {}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<toml::de::Error> for Misfit {
    fn from(err: toml::de::Error) -> Self {
        Self { message: err.message().to_owned(), span: err.span() }
    }
}

/// A table as serde sees it: all its keys but those that someone else reads.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    table: &'a Table,
    span: &'a Range<usize>,
    taken: &'a [&'a str],
}

impl<'a> Reading<'a> {
    pub(super) fn new(table: &'a Table, span: &'a Range<usize>, taken: &'a [&'a str]) -> Self {
        Self { table, span, taken }
    }
}

impl<'de> Deserializer<'de> for Reading<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let pairs = Pairs { rest: self.table.list().iter(), taken: self.taken, value: None };
        visitor.visit_map(pairs).map_err(|misfit| misfit.within(self.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

/// The pairs of a table, one after the other.
struct Pairs<'a> {
    rest: std::slice::Iter<'a, Entry>,
    taken: &'a [&'a str],
    value: Option<&'a Value>,
}

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let Some(entry) = self.rest.by_ref().find(|entry| !self.taken.contains(&&*entry.key)) else {
            return Ok(None);
        };
        self.value = Some(&entry.value);
        let key = Spanned::new(entry.key_span.clone(), DeValue::String((&*entry.key).into()));
        Ok(Some(seed.deserialize(ValueDeserializer::from(key))?))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let value = self.value.take().expect("serde asks for a value after its key");
        seed.deserialize(value).map_err(|misfit| misfit.within(&value.span))
    }
}

/// The items of an array, one after the other.
struct Items<'a>(std::slice::Iter<'a, Value>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }
}

/// Tables and arrays are walked here; a single value, and what is rare, is left to the `toml` crate.
impl<'de> Deserializer<'de> for &'de Value {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let outcome = match &self.data {
            Data::Table(table) => Reading::new(table, &self.span, &[]).deserialize_any(visitor),
            Data::Array(items) => visitor.visit_seq(Items(items.iter())),
            Data::Text(_) | Data::Plain(_) => self.as_single().deserialize_any(visitor).map_err(Misfit::from),
        };
        outcome.map_err(|misfit| misfit.within(&self.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_some(self).map_err(|misfit| misfit.within(&self.span))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self).map_err(|misfit| misfit.within(&self.span))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match &self.data {
            Data::Text(_) | Data::Plain(_) => {
                Ok(self.as_single().deserialize_struct(name, fields, visitor)?)
            }
            Data::Array(_) | Data::Table(_) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        Ok(self.as_single().deserialize_enum(name, variants, visitor)?)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

impl<'de> Value {
    fn as_single(&'de self) -> ValueDeserializer<'de> {
        self.to_parsed().into_deserializer()
    }
}
