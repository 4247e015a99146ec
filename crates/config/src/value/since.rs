//! A date or time from which on something is included.

use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use stdx::phrase;
use stdx::time::Timestamp;

use super::BadValue;

/// From when on: a day or a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// From midnight in the requested time zone.
    Day(Date),
    Moment(Timestamp),
}

impl Since {
    /// The time that it means in `zone`.
    pub fn moment(self, zone: &TimeZone) -> Timestamp {
        match self {
            Since::Day(day) => {
                day.to_zoned(zone.clone()).map_or(Timestamp::MIN, |start| start.timestamp().into())
            }
            Since::Moment(at) => at,
        }
    }
}

impl FromStr for Since {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let day = (text.len() == 10).then(|| text.parse().ok()).flatten().map(Since::Day);
        day.or_else(|| text.parse().ok().map(Since::Moment)).ok_or_else(|| {
            BadValue::new(phrase!(
                "`{text}` is not a day such as 2024-01-01 or a moment such as 2024-01-01T00:00:00Z",
                "`{text}` は日付（例：2024-01-01）でも日時（例：2024-01-01T00:00:00Z）でもありません"
            ))
        })
    }
}

impl<'de> Deserialize<'de> for Since {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(|bad: BadValue| serde::de::Error::custom(bad.for_serde()))
    }
}

impl JsonSchema for Since {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Since".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["2024-01-01", "2024-01-01T00:00:00Z"] })
    }
}
