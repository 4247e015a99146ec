//! Deserialises a table of the tree without copying it, and records the positions of wrong values.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use stdx::phrase;
use toml::de::DeValue;

use super::lookup::Surroundings;
use super::mask;
use super::secret::{Hides, SECRET, SECRET_URL, Secret, SecretParts};
use super::tree::{Data, TomlEntry, TomlTable, TomlValue};

/// serde's error about a value, and its position.
#[derive(Debug)]
pub(super) struct Misfit {
    message: String,
    span: Option<Range<usize>>,
    /// The position of the key or list item that has to be skipped in order to parse the rest.
    skip: Option<Range<usize>>,
    /// The struct that contains it; `None` for the table itself.
    of: Option<&'static str>,
}

impl Misfit {
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Whether a key is missing; if so, of which struct inside the table, or of the table itself.
    pub(super) fn lacking(&self) -> Option<Option<&'static str>> {
        self.message.starts_with("missing field ").then_some(self.of)
    }

    pub(super) fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    /// What to skip in order to parse the rest; `None` if the table cannot be parsed at all.
    pub(super) fn skip(self) -> Option<Range<usize>> {
        self.skip
    }

    /// Sets the position to `span` unless a more precise one is known.
    fn within(mut self, span: &Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }

    /// Sets what to skip to `skip` unless something inside it is enough.
    fn without(mut self, skip: &Range<usize>) -> Self {
        self.skip.get_or_insert_with(|| skip.clone());
        self
    }
}

impl serde::de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), span: None, skip: None, of: None }
    }
}

impl std::error::Error for Misfit {}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The state of parsing a table, with the secrets found in it.
pub(super) struct Reading<'a> {
    pub(super) context: &'a Surroundings,
    /// The positions of keys and list items that are skipped: they were reported already.
    pub(super) skipped: &'a [Range<usize>],
    pub(super) secrets: RefCell<Vec<SeenSecret>>,
    /// Whether a list item was skipped, so that the indexes of later ones have changed.
    pub(super) is_shifted: Cell<bool>,
}

/// A secret and its position.
pub(super) struct SeenSecret {
    pub(super) span: Range<usize>,
    /// Whether it is written in the file itself.
    pub(super) literal: bool,
    pub(super) secret: Secret,
}

impl Reading<'_> {
    fn is_skipped(&self, span: &Range<usize>) -> bool {
        self.skipped.contains(span)
    }

    /// Parses and records the secret in `value`.
    fn find_secret(&self, value: &TomlValue, name: &str) -> Result<SecretParts, Misfit> {
        let text = match &value.data {
            Data::Text(text) => text,
            Data::Plain(_) => {
                return Err(Misfit::custom(
                    phrase!(
                        "a secret is a text: put it in quotes",
                        "秘密情報は文字列です。引用符で囲んでください"
                    )
                    .to_stored(),
                ));
            }
            _ => {
                let found = value.type_name();
                return Err(Misfit::custom(
                    phrase!(
                        "expected a secret in quotes, found {found}",
                        "引用符で囲んだ秘密情報が必要ですが、{found}が書かれています"
                    )
                    .to_stored(),
                ));
            }
        };
        let found = SecretParts::parse(text, self.context).map_err(|err| Misfit::custom(err.for_serde()))?;
        let is_url = name == SECRET_URL;
        let hides = if is_url { Hides::Password } else { Hides::Whole };
        let secret = Secret::of(found.parts.clone(), hides);
        let literal = if is_url { mask::blot_secrets(text) != **text } else { secret.is_literal() };
        self.secrets.borrow_mut().push(SeenSecret { span: value.span.clone(), literal, secret });
        Ok(found)
    }
}

/// The pairs of a table in order, without those that are read elsewhere.
pub(super) struct Pairs<'a> {
    rest: std::slice::Iter<'a, TomlEntry>,
    taken: &'a [&'a str],
    reading: &'a Reading<'a>,
    entry: Option<&'a TomlEntry>,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(table: &'a TomlTable, taken: &'a [&'a str], reading: &'a Reading<'a>) -> Self {
        Self { rest: table.list().iter(), taken, reading, entry: None }
    }
}

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let (taken, reading) = (self.taken, self.reading);
        let is_read =
            |entry: &&TomlEntry| !taken.contains(&&*entry.key) && !reading.is_skipped(&entry.key_span);
        let Some(entry) = self.rest.by_ref().find(is_read) else { return Ok(None) };
        self.entry = Some(entry);
        let key = seed.deserialize(StrDeserializer::<Misfit>::new(&entry.key));
        key.map(Some).map_err(|misfit| misfit.within(&entry.key_span).without(&entry.key_span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let TomlEntry { key_span, value, .. } =
            self.entry.take().expect("serde asks for a value after its key");
        let at = ValueAt { value, reading: self.reading };
        seed.deserialize(at).map_err(|misfit| misfit.within(&value.span).without(key_span))
    }
}

/// The items of an array, one after the other.
struct Items<'a> {
    rest: std::slice::Iter<'a, TomlValue>,
    reading: &'a Reading<'a>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        let reading = self.reading;
        let item = self.rest.by_ref().find(|item| {
            let is_skipped = reading.is_skipped(&item.span);
            reading.is_shifted.set(reading.is_shifted.get() || is_skipped);
            !is_skipped
        });
        let read = |value: &'de TomlValue| {
            seed.deserialize(ValueAt { value, reading })
                .map_err(|misfit| misfit.within(&value.span).without(&value.span))
        };
        item.map(read).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A value for serde.
#[derive(Clone, Copy)]
struct ValueAt<'a> {
    value: &'a TomlValue,
    reading: &'a Reading<'a>,
}

impl<'de> Deserializer<'de> for ValueAt<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let reading = self.reading;
        match &self.value.data {
            Data::TomlTable(table) => visitor.visit_map(Pairs::new(table, &[], reading)),
            Data::Array(items) => visitor.visit_seq(Items { rest: items.iter(), reading }),
            Data::Text(text) => visitor.visit_borrowed_str(text),
            Data::Plain(text) => {
                let value = DeValue::parse(text).map_err(|err| Misfit::custom(err.message()))?;
                // Dates and times are texts for every key; without quotes TOML has its own type for them.
                if matches!(value.get_ref(), DeValue::Datetime(_)) {
                    return visitor.visit_str(text);
                }
                value
                    .into_deserializer()
                    .deserialize_any(visitor)
                    .map_err(|err: toml::de::Error| Misfit::custom(err.message()))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        if name != SECRET && name != SECRET_URL {
            return visitor.visit_newtype_struct(self);
        }
        let found = serde_json::to_value(self.reading.find_secret(self.value, name)?);
        found.and_then(|found| visitor.visit_newtype_struct(found)).map_err(Misfit::custom)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_any(visitor).map_err(|mut misfit| {
            if misfit.span.is_none() {
                misfit.of = Some(name);
            }
            misfit
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let text = String::deserialize(self)?;
        visitor.visit_enum(text.into_deserializer())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}
