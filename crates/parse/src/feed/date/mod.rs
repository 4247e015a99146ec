//! Dates in feeds: RFC 822 and variants, ISO 8601 and parts of it, and local forms.
//!
//! A date without a zone is in the zone given by the caller, else in UTC; Korean, Japanese and Chinese dates are in the
//! zone of their country.
//! Results have whole seconds; fractions in feeds carry no meaning.

mod clock;
mod iso;
mod loose;
mod plain;
mod zone;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use self::clock::{Time, Zone};
use stdx::time::Timestamp;

/// Longer texts are not dates.
const LENGTH_LIMIT: usize = 120;

/// Parses a date in any known form; `None` if it is not a date or has no year.
pub fn parse(text: &str) -> Option<Timestamp> {
    parse_in(text, None)
}

/// Like [`parse`]; a date without a zone is in `zone`.
pub fn parse_in(text: &str, zone: Option<&TimeZone>) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > LENGTH_LIMIT {
        return None;
    }
    if let Some(at) = usual(text) {
        return Some(at);
    }
    let (text, implied) = plain::read(text);
    let text = text.trim();
    let local = match (implied, zone) {
        (Some(offset), _) => Zone::Offset(offset),
        (None, Some(zone)) => Zone::Region(zone.clone()),
        (None, None) => Zone::Offset(0),
    };
    iso::read(text, &local).or_else(|| epoch(text)).or_else(|| loose::read(text, &local))
}

/// The form of nearly all RSS, `Thu, 15 Jan 2026 09:02:11 +0900`; other forms take the slow path.
fn usual(text: &str) -> Option<Timestamp> {
    const MONTHS: &[u8; 36] = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let bytes = text.as_bytes();
    let bytes = match bytes {
        [a, b, c, b',', b' ', rest @ ..] if [a, b, c].iter().all(|byte| byte.is_ascii_alphabetic()) => rest,
        _ => bytes,
    };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    let two = |a: u8, b: u8| Some(digit(a)? * 10 + digit(b)?);
    let (day, rest) = match bytes {
        [a, b' ', rest @ ..] => (digit(*a)?, rest),
        [a, b, b' ', rest @ ..] => (two(*a, *b)?, rest),
        _ => return None,
    };
    let [m, n, o, b' ', y, e, a, r, b' ', h, i, b':', j, k, b':', s, t, b' ', zone @ ..] = rest else {
        return None;
    };
    let month = [*m, *n, *o].map(|byte| byte.to_ascii_lowercase());
    let month = MONTHS.as_chunks::<3>().0.iter().position(|known| *known == month)? + 1;
    let year = two(*y, *e)? * 100 + two(*a, *r)?;
    let (hour, minute, second) = (two(*h, *i)?, two(*j, *k)?, two(*s, *t)?);
    let offset = match zone {
        b"GMT" | b"UTC" => 0,
        [sign @ (b'+' | b'-'), a, b, c, d] => {
            let (hours, minutes) = (two(*a, *b)?, two(*c, *d)?);
            if hours > 14 || minutes > 59 {
                return None;
            }
            let seconds = i64::from(hours * 3600 + minutes * 60);
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    if hour > 23 || minute > 59 || second > 59 || !(1900..=2999).contains(&year) {
        return None;
    }
    let date =
        Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    finish(date, Time { hour, minute, second, zone: Zone::Offset(offset) }, &Zone::Missing)
}

/// Seconds or milliseconds since 1970.
fn epoch(text: &str) -> Option<Timestamp> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = text.parse().ok()?;
    match text.len() {
        10 => Some(Timestamp::from_millis(number * 1000)),
        13 => Some(Timestamp::from_millis(number / 1000 * 1000)),
        _ => None,
    }
}

/// A date; a day beyond the end of the month becomes its last day.
fn civil(year: i32, month: i32, day: i32) -> Option<Date> {
    let year = i16::try_from(year).ok().filter(|year| (0..=9999).contains(year))?;
    let month = i8::try_from(month).ok()?;
    if !(1..=31).contains(&day) {
        return None;
    }
    let first = Date::new(year, month, 1).ok()?;
    let last = i32::from(first.days_in_month());
    Date::new(year, month, i8::try_from(day.min(last)).ok()?).ok()
}

fn ordinal(year: i32, day: i32) -> Option<Date> {
    let first = civil(year, 1, 1)?;
    let day = i16::try_from(day).ok().filter(|day| (1..=first.days_in_year()).contains(day))?;
    first.with().day_of_year(day).build().ok()
}

/// The moment of a date and a time of day; `local` is the zone of a time without one.
fn finish(date: Date, time: Time, local: &Zone) -> Option<Timestamp> {
    let midnight = DateTime::from_parts(date, jiff::civil::Time::midnight());
    let seconds = TimeZone::UTC.to_timestamp(midnight).ok()?.as_second();
    let clock = i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + i64::from(time.second);
    let zone = if matches!(time.zone, Zone::Missing) { local } else { &time.zone };
    let offset = match zone {
        Zone::Offset(offset) => *offset,
        Zone::Region(zone) => {
            let there = midnight.checked_add(SignedDuration::from_secs(clock)).ok()?;
            seconds + clock - zone.to_timestamp(there).ok()?.as_second()
        }
        Zone::Missing => 0,
    };
    Some(Timestamp::from_millis((seconds + clock - offset) * 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_reads_what_the_long_way_reads() {
        for text in [
            "Thu, 15 Jan 2026 09:02:11 +0900",
            "thu, 1 DEC 1999 23:59:59 GMT",
            "15 Jan 2026 09:02:11 -0330",
            "Sat, 29 Feb 2020 00:00:00 UTC",
        ] {
            assert!(usual(text).is_some(), "{text}");
            assert_eq!(usual(text), loose::read(&text.to_ascii_lowercase(), &Zone::Missing), "{text}");
        }
        for text in [
            "Thu, 15 Jan 26 09:02:11 GMT",
            "Thu, 15 Jan 2026 09:02 GMT",
            "Thu, 15 Jan 2026 24:00:00 GMT",
            "Thu, 31 Feb 2026 09:02:11 GMT",
            "Thu, 15 Jan 2026 09:02:11 EST",
            "Thu, 15 Jan 2026 09:02:11 +9999",
            "2026-01-15T09:02:11Z",
        ] {
            assert_eq!(usual(text), None, "{text}");
        }
    }

    #[test]
    fn a_date_without_a_zone_is_one_of_the_zone_of_the_reader() {
        let tokyo = TimeZone::get("Asia/Tokyo").unwrap();
        let new_york = TimeZone::get("America/New_York").unwrap();
        for (text, zone, expected) in [
            ("2026-01-15T09:00:00", Some(&tokyo), "2026-01-15T00:00:00.000Z"),
            ("2026-01-15", Some(&tokyo), "2026-01-14T15:00:00.000Z"),
            ("Thu, 15 Jan 2026 09:00:00", Some(&tokyo), "2026-01-15T00:00:00.000Z"),
            ("2026-07-15 09:00", Some(&new_york), "2026-07-15T13:00:00.000Z"),
            ("2026-01-15 09:00", Some(&new_york), "2026-01-15T14:00:00.000Z"),
            // A zone given by number, by name or implied by the language takes precedence over ours.
            ("2026-01-15T09:00:00Z", Some(&tokyo), "2026-01-15T09:00:00.000Z"),
            ("Thu, 15 Jan 2026 09:00:00 GMT", Some(&tokyo), "2026-01-15T09:00:00.000Z"),
            ("2026年1月15日 9時", Some(&new_york), "2026-01-15T00:00:00.000Z"),
            ("1768467600", Some(&tokyo), "2026-01-15T09:00:00.000Z"),
            ("2026-01-15T09:00:00", None, "2026-01-15T09:00:00.000Z"),
        ] {
            let read = parse_in(text, zone).unwrap().to_string();
            assert_eq!(read, expected, "{text} in {zone:?}");
        }
    }
}
