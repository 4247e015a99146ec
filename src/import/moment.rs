//! Times as other programs write them: ISO 8601 with or without a zone, SQLite's and Go's formats, RFC 2822, Unix
//! numbers.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::time::Timestamp;

/// Smaller numbers are seconds since 1970, up to the year 5138; larger ones are milliseconds.
const LARGEST_SECONDS: i64 = 100_000_000_000;
/// The largest number of milliseconds that is accepted: again the year 5138.
const LARGEST_MILLIS: i64 = LARGEST_SECONDS * 1000;

/// Parses a time; `zone` applies to texts without one.
pub fn parse(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    if text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().and_then(of_number);
    }
    of_go(text)
        .or_else(|| of_clock(text, zone))
        .or_else(|| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok().map(Timestamp::from))
}

/// A number as a time: seconds or milliseconds since 1970.
pub fn of_number(number: i64) -> Option<Timestamp> {
    match number {
        0..LARGEST_SECONDS => Some(Timestamp::from_millis(number * 1000)),
        LARGEST_SECONDS..LARGEST_MILLIS => Some(Timestamp::from_millis(number)),
        _ => None,
    }
}

/// `2025-06-01 09:00:00.123456789 +0900 JST m=+0.01`: the text of Go's `time.Time`, which its SQLite drivers store.
fn of_go(text: &str) -> Option<Timestamp> {
    let mut parts = text.split_whitespace();
    let (date, time, offset) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.count() > 2 || !matches!(offset.as_bytes(), [b'+' | b'-', digits @ ..] if digits.len() == 4) {
        return None;
    }
    format!("{date}T{time}{}:{}", offset.get(..3)?, offset.get(3..)?).parse().ok()
}

/// A date and a time without a zone, or a date alone, which means its midnight.
fn of_clock(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let local: DateTime = text.parse().ok()?;
    local.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_moment_is_read() {
        let tokyo = TimeZone::get("Asia/Tokyo").unwrap();
        for (text, utc) in [
            ("2025-06-01T00:00:00Z", "2025-06-01T00:00:00.000Z"),
            ("2025-06-01T00:00:00.123456+00:00", "2025-06-01T00:00:00.123Z"),
            ("2025-06-01 09:00:00+09:00", "2025-06-01T00:00:00.000Z"),
            ("2025-06-01 09:00:00 +0900 JST", "2025-06-01T00:00:00.000Z"),
            ("2025-06-01 00:00:00 +0000 UTC", "2025-06-01T00:00:00.000Z"),
            ("2025-06-01 09:00:00.987654321 +0900 JST m=+0.012", "2025-06-01T00:00:00.987Z"),
            ("2025-06-01 09:00:00", "2025-06-01T00:00:00.000Z"),
            ("2025-06-01T09:00:00.5", "2025-06-01T00:00:00.500Z"),
            ("2025-06-01", "2025-05-31T15:00:00.000Z"),
            ("Sun, 01 Jun 2025 09:00:00 +0900", "2025-06-01T00:00:00.000Z"),
            ("1748736000", "2025-06-01T00:00:00.000Z"),
            ("1748736000123", "2025-06-01T00:00:00.123Z"),
        ] {
            assert_eq!(parse(text, &tokyo).map(|at| at.to_string()).as_deref(), Some(utc), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_not_guessed() {
        for text in [
            "",
            "soon",
            "2025-02-30T00:00:00Z",
            "2025-06-01 25:00:00",
            "-5",
            "99999999999999999",
            "now",
            "令和7年",
        ] {
            assert_eq!(parse(text, &TimeZone::UTC), None, "{text}");
        }
        assert_eq!(of_number(-1), None);
        assert_eq!(of_number(i64::MAX), None);
        assert_eq!(of_number(1_748_736_000).unwrap().to_string(), "2025-06-01T00:00:00.000Z");
    }
}
