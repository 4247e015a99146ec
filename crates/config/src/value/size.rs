//! Sizes such as `50 MiB`, `16MB`, or plain bytes.

use std::fmt;
use std::str::FromStr;

use super::{BadValue, such_as};
use stdx::phrase;
use stdx::phrase::Phrase;

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1000),
    ("B", 1),
];

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// That many bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// That many MiB.
    pub const fn mib(mib: u32) -> Self {
        Self((mib as u64) << 20)
    }

    /// The number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = |why: Phrase| {
            BadValue::new(phrase!("`{text}` is not a size: {why}", "`{text}` はサイズではありません：{why}"))
                .with_hint(phrase!(
                    "write \"50 MiB\" (1024 × 1024), \"16MB\" (1000 × 1000) or a number of bytes",
                    "\"50 MiB\"（1024 × 1024）、\"16MB\"（1000 × 1000）、またはバイト数を書きます"
                ))
        };
        let too_large = || bad(phrase!("it is too large", "大きすぎます"));
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let unit = unit.trim();
        let bytes = match unit {
            "" => 1,
            unit => UNITS
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(unit))
                .map(|(_, bytes)| *bytes)
                .ok_or_else(|| bad(phrase!("`{unit}` is no unit", "`{unit}` という単位はありません")))?,
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || (number.contains('.') && part.is_empty()) {
            return Err(bad(phrase!("a number is missing", "数値がありません")));
        }
        if part.len() > 3 || part.contains('.') {
            return Err(bad(phrase!("a fraction has at most three digits", "小数は 3 桁までです")));
        }
        let thousandths: u128 = format!("{whole}{part:0<3}").parse().map_err(|_| too_large())?;
        let bytes = thousandths.checked_mul(u128::from(bytes)).map(|total| total / 1000);
        // Databases and schedules use signed 64-bit integers.
        match bytes.and_then(|bytes| i64::try_from(bytes).ok()) {
            Some(bytes) => Ok(Self(bytes.unsigned_abs())),
            None => Err(too_large()),
        }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = UNITS
            .iter()
            .find(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit))
            .unwrap_or(&("B", 1));
        write!(f, "{} {name}", self.0 / unit)
    }
}

impl fmt::Debug for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'de> serde::Deserialize<'de> for ByteSize {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Size;
        impl serde::de::Visitor<'_> for Size {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&such_as(phrase!("a size", "サイズ"), "50 MiB").to_stored())
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(|err: BadValue| E::custom(err.for_serde()))
            }

            fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
                u64::try_from(bytes).map(ByteSize).map_err(|_| {
                    E::custom(
                        phrase!("a size cannot be negative", "サイズに負の値は指定できません").to_stored(),
                    )
                })
            }

            fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<ByteSize, E> {
                Err(E::custom(phrase!("the size is too large", "サイズが大きすぎます").to_stored()))
            }
        }
        deserializer.deserialize_any(Size)
    }
}

impl serde::Serialize for ByteSize {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl schemars::JsonSchema for ByteSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "integer"], "description": "a size", "examples": ["50 MiB"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        for (text, bytes) in [
            ("50 MiB", 52_428_800),
            ("16MB", 16_000_000),
            ("1024", 1024),
            ("1.5 GiB", 1_610_612_736),
            ("0", 0),
            ("64 kib", 65_536),
            ("2 B", 2),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap().as_u64(), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_size_says_why() {
        for (text, why) in [
            ("", "a number is missing"),
            ("MiB", "a number is missing"),
            ("5.", "a number is missing"),
            ("50M", "`M` is no unit"),
            ("-1", "`-1` is no unit"),
            ("1.2345 MB", "a fraction has at most three digits"),
            ("1.2.3", "a fraction has at most three digits"),
            ("9999999 TiB", "it is too large"),
            ("99999999999999999999999999999999999999999999", "it is too large"),
        ] {
            let message = text.parse::<ByteSize>().unwrap_err().message().to_owned();
            assert!(message.to_string().ends_with(why), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_size_reads_back(bytes in 0..i64::MAX as u64) {
            let size = ByteSize::bytes(bytes);
            prop_assert_eq!(size.to_string().parse::<ByteSize>().unwrap(), size);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,12}") {
            let _ = text.parse::<ByteSize>();
        }
    }
}
