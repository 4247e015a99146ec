//! A key that takes one value or a list of them.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{SeqAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use stdx::phrase;

/// One value, or a list with at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Several<T>(Vec<T>);

impl<T> Several<T> {
    /// The values, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Several<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMore<T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&phrase!("a text or a list of texts", "文字列または文字列の配列").to_stored())
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
                T::deserialize(StrDeserializer::new(text)).map(|one| vec![one])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list))
            }
        }
        let values = deserializer.deserialize_any(OneOrMore(PhantomData))?;
        if values.is_empty() {
            return Err(D::Error::custom(
                phrase!("the list is empty; name at least one", "空の配列です。1 つ以上指定してください")
                    .to_stored(),
            ));
        }
        Ok(Self(values))
    }
}

impl<T> schemars::JsonSchema for Several<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Several".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["string", "array"],
            "items": { "type": "string" },
            "minItems": 1,
            "description": "a text, or a list of texts"
        })
    }
}
