//! Values of the wrong type count as absent instead of spoiling the whole document.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::feed::LIST_LIMIT;
use crate::markup::single_spaced;

/// A text; numbers and flags are converted, everything else is absent.
#[derive(Default)]
pub(super) struct LenientText(pub(super) Option<String>);

impl LenientText {
    pub(super) fn line(&self) -> Option<String> {
        self.0.as_deref().map(single_spaced).filter(|line| !line.is_empty())
    }
}

/// An array up to a limit, and whether it was longer; everything else is an empty array.
pub(super) struct LenientList<T, const LIMIT: usize = LIST_LIMIT>(pub(super) Vec<T>, pub(super) bool);

impl<T, const LIMIT: usize> Default for LenientList<T, LIMIT> {
    fn default() -> Self {
        Self(Vec::new(), false)
    }
}

/// Visitor methods that treat most types as absent.
macro_rules! otherwise_absent {
    ($($kind:ident($from:ty)),*) => {
        $(fn $kind<E>(self, _: $from) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        })*
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

macro_rules! ignore_map {
    () => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

macro_rules! ignore_seq {
    () => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

impl<'de> Deserialize<'de> for LenientText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = LenientText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_str<E>(self, text: &str) -> Result<LenientText, E> {
                Ok(LenientText(Some(text.replace('\0', ""))))
            }
            fn visit_u64<E>(self, number: u64) -> Result<LenientText, E> {
                Ok(LenientText(Some(number.to_string())))
            }
            fn visit_i64<E>(self, number: i64) -> Result<LenientText, E> {
                Ok(LenientText(Some(number.to_string())))
            }
            fn visit_f64<E>(self, number: f64) -> Result<LenientText, E> {
                Ok(LenientText(Some(number.to_string())))
            }
            otherwise_absent!(visit_bool(bool));
            ignore_map!();
            ignore_seq!();
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

impl<'de, T: Deserialize<'de>, const LIMIT: usize> Deserialize<'de> for LenientList<T, LIMIT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T, const LIMIT: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const LIMIT: usize> Visitor<'de> for ListVisitor<T, LIMIT> {
            type Value = LenientList<T, LIMIT>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while list.len() < LIMIT {
                    match seq.next_element()? {
                        Some(element) => list.push(element),
                        None => return Ok(LenientList(list, false)),
                    }
                }
                let mut more = false;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    more = true;
                }
                Ok(LenientList(list, more))
            }
            otherwise_absent!(
                visit_bool(bool),
                visit_str(&str),
                visit_u64(u64),
                visit_i64(i64),
                visit_f64(f64)
            );
            ignore_map!();
        }
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

/// A struct that is read from an object; every other value is absent.
macro_rules! lenient_object {
    ($name:ident { $($field:ident),* }, $($text:ident)?) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct ObjectVisitor;
                impl<'de> Visitor<'de> for ObjectVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut object = $name::default();
                        while let Some(key) = map.next_key::<String>()? {
                            match key.as_str() {
                                $(stringify!($field) => object.$field = map.next_value()?,)*
                                _ => {
                                    map.next_value::<IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(object)
                    }
                    fn visit_str<E>(self, text: &str) -> Result<$name, E> {
                        let _ = text;
                        #[allow(unused_mut, reason = "only some objects may stand as a text")]
                        let mut object = $name::default();
                        $(object.$text = LenientText(Some(text.to_owned()));)?
                        Ok(object)
                    }
                    otherwise_absent!(visit_bool(bool), visit_u64(u64), visit_i64(i64), visit_f64(f64));
                    ignore_seq!();
                }
                deserializer.deserialize_any(ObjectVisitor)
            }
        }
    };
}
