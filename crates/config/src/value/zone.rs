//! Time zones by their IANA names.

use std::fmt;
use std::str::FromStr;

use jiff::tz::TimeZone;

use super::{BadValue, did_you_mean, text_value};
use stdx::phrase;

/// A named time zone: `Asia/Tokyo`, `UTC`.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

impl Zone {
    /// UTC.
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), zone: TimeZone::UTC }
    }

    /// The seeds' default zone.
    pub fn tokyo() -> Self {
        Self {
            name: "Asia/Tokyo".to_owned(),
            zone: TimeZone::get("Asia/Tokyo").expect("the time zone database is built in"),
        }
    }

    /// The name in the time zone database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// For calendar calculations.
    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }
}

impl FromStr for Zone {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text.eq_ignore_ascii_case("utc") {
            return Ok(Self::utc());
        }
        match TimeZone::get(text) {
            Ok(zone) => {
                let name = zone.iana_name().unwrap_or(text).to_owned();
                Ok(Self { name, zone })
            }
            Err(_) => Err(unknown(text)),
        }
    }
}

fn unknown(text: &str) -> BadValue {
    let bad = BadValue::new(phrase!("`{text}` is not a time zone", "`{text}` はタイムゾーンではありません"));
    let names: Vec<String> = jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    let lower = text.to_lowercase();
    let city = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let by_city = names.iter().find(|name| city(name) == lower.replace(' ', "_"));
    let near = by_abbreviation(text)
        .or_else(|| by_city.map(String::as_str))
        .or_else(|| stdx::text::nearest(text, names.iter().map(String::as_str)));
    match near {
        Some(name) => bad.with_hint(did_you_mean(name)),
        None => bad.with_hint(phrase!(
            "write an IANA name such as \"Asia/Tokyo\", \"Europe/Berlin\" or \"UTC\"",
            "IANA の名前を書きます（例：\"Asia/Tokyo\"、\"Europe/Berlin\"、\"UTC\"）"
        )),
    }
}

/// Abbreviations are ambiguous, so they are only used for suggestions.
fn by_abbreviation(text: &str) -> Option<&'static str> {
    Some(match text.to_ascii_uppercase().as_str() {
        "JST" => "Asia/Tokyo",
        "CET" | "CEST" => "Europe/Berlin",
        "BST" => "Europe/London",
        "PST" | "PDT" => "America/Los_Angeles",
        "EDT" => "America/New_York",
        "Z" => "UTC",
        _ => return None,
    })
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

text_value!(Zone, "a time zone", "タイムゾーン", "Asia/Tokyo");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_iana_names_and_read_back() {
        for (text, name) in [("Asia/Tokyo", "Asia/Tokyo"), ("asia/tokyo", "Asia/Tokyo"), ("utc", "UTC")] {
            let zone: Zone = text.parse().unwrap();
            assert_eq!(zone.to_string(), name);
            assert_eq!(zone.to_string().parse::<Zone>().unwrap(), zone);
        }
        assert_eq!(Zone::tokyo(), "Asia/Tokyo".parse().unwrap());
    }

    #[test]
    fn a_wrong_zone_suggests_the_one_that_was_meant() {
        for (text, meant) in [
            ("Asia/Tokio", "Asia/Tokyo"),
            ("Tokyo", "Asia/Tokyo"),
            ("JST", "Asia/Tokyo"),
            ("new york", "America/New_York"),
            ("Europe/Brelin", "Europe/Berlin"),
        ] {
            let err = text.parse::<Zone>().unwrap_err();
            assert_eq!(err.hint(), Some(&did_you_mean(meant)), "{text}");
        }
        for text in ["", "+09:00", "../../etc/passwd", "/etc/localtime"] {
            assert!(text.parse::<Zone>().is_err(), "{text:?}");
        }
    }
}
