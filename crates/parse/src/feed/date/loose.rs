//! Dates with words, slashes or another order.

use jiff::civil::Date;

use super::clock::{Half, Time, Zone, fraction, half_of_day, number_after};
use super::{civil, finish, zone};
use stdx::time::Timestamp;

/// Parses such dates: each part is used as what it can be.
pub(super) fn read(text: &str, local: &Zone) -> Option<Timestamp> {
    let mut numbers: Vec<(i32, usize)> = Vec::new();
    let mut month = None;
    let mut at: Option<Time> = None;
    let mut half: Option<Half> = None;
    let mut zone = None;
    let mut strange = 0;
    let mut separator = ' ';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c.is_ascii_digit() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let tail = &rest[digits..];
            let clock = tail.starts_with(':')
                || (tail.starts_with('h')
                    && digits <= 2
                    && !tail[1..].starts_with(|c: char| c.is_alphabetic()));
            if clock && at.is_none() && digits <= 2 {
                let (time, after) = clock_at(rest)?;
                at = Some(time);
                rest = after;
                continue;
            }
            let value: i32 = rest[..digits].parse().ok()?;
            if at.is_none()
                && (1..=12).contains(&value)
                && let Some((named, after)) = half_of_day(tail.trim_start())
            {
                // An hour alone: `3 p.m.`
                at = Some(Time { hour: value.unsigned_abs(), minute: 0, second: 0, zone: Zone::Missing });
                half = Some(named);
                rest = after;
                continue;
            }
            numbers.push((value, digits));
            if numbers.len() > 3 {
                return None;
            }
            rest = tail;
            for suffix in ["st", "nd", "rd", "th"] {
                if let Some(after) =
                    rest.strip_prefix(suffix).filter(|r| !r.starts_with(|c: char| c.is_alphabetic()))
                {
                    rest = after;
                }
            }
            if let Some(next) = rest.chars().next().filter(|next| matches!(next, '/' | '.' | '-'))
                && numbers.len() == 1
            {
                separator = next;
            }
            if let Some(after) =
                rest.strip_prefix('t').filter(|after| after.starts_with(|c: char| c.is_ascii_digit()))
            {
                rest = after;
            }
        } else if c.is_alphabetic() {
            let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '\'')).unwrap_or(rest.len());
            let word = &rest[..length];
            let tail = &rest[length..];
            // Check before zones, because `p` is one.
            if let Some((named, after)) = at.is_some().then(|| half_of_day(rest)).flatten() {
                half = Some(named);
                rest = after;
                continue;
            }
            if let Some((named, after)) = at.is_some().then(|| zone::named(rest)).flatten() {
                zone = zone.or(Some(named));
                rest = after;
                continue;
            }
            match word {
                // am before a time; before a day it is a German preposition.
                "am" if is_before_clock(tail) => {
                    half = Some(Half::Morning);
                }
                "pm" => half = Some(Half::Afternoon),
                "noon" | "midnight" if at.is_none() => {
                    let hour = if word == "noon" { 12 } else { 0 };
                    at = Some(Time { hour, minute: 0, second: 0, zone: Zone::Missing });
                }
                _ => match zone::month(word) {
                    Some(found) => month = Some(found),
                    None => strange += 1,
                },
            }
            rest = tail;
        } else if matches!(c, '+' | '-')
            && at.is_some()
            && rest[1..].starts_with(|c: char| c.is_ascii_digit())
        {
            let length =
                rest[1..].find(|c: char| !(c.is_ascii_digit() || c == ':')).map_or(rest.len(), |at| at + 1);
            // A numeric offset takes precedence over the name before it.
            zone = Some(Zone::Offset(zone::offset(&rest[..length])?));
            rest = &rest[length..];
        } else {
            rest = &rest[c.len_utf8()..];
        }
    }
    if strange > 4 {
        return None;
    }
    let date = assemble(&numbers, month, separator)?;
    let mut time = at.unwrap_or(Time { hour: 0, minute: 0, second: 0, zone: Zone::Missing });
    if let Some(half) = half {
        time.hour = half.hour(time.hour);
    }
    if let Some(zone) = zone {
        time.zone = zone;
    }
    finish(date, time, local)
}

fn is_before_clock(text: &str) -> bool {
    let text = text.trim_start();
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < text.len() && rest.starts_with(':')
}

/// A time such as `9:15`, `16:29:06.5` or `14h30`, and the rest.
fn clock_at(text: &str) -> Option<(Time, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let hour = text[..digits].parse().ok()?;
    let (minute, rest) = number_after(&text[digits..], [':', 'h'])
        .unwrap_or((0, text[digits..].trim_start_matches(['h', ':'])));
    let (second, rest) = number_after(rest, [':', '.', 'm']).unwrap_or((0, rest));
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    Some((Time { hour, minute, second: second.min(59), zone: Zone::Missing }, fraction(rest)))
}

/// A date from its numbers and an optional month name.
fn assemble(numbers: &[(i32, usize)], month: Option<i32>, separator: char) -> Option<Date> {
    let is_year = |(value, digits): (i32, usize)| digits >= 3 || value > 31;
    let year = |(value, digits): (i32, usize)| match (digits, value) {
        (1 | 2, 0..90) => 2000 + value,
        (1..=3, _) => 1900 + value,
        _ => value,
    };
    match (month, numbers) {
        (Some(month), &[first, second, ..]) if is_year(first) => civil(year(first), month, second.0),
        (Some(month), &[first, second, ..]) => civil(year(second), month, first.0),
        (Some(month), &[only]) if only.1 == 4 => civil(only.0, month, 1),
        (None, &[first, second, third]) => {
            if first.1 == 4 {
                return civil(first.0, second.0, third.0);
            }
            let (month, day) = match (first.0, second.0) {
                (a, b) if a > 12 => (b, a),
                (a, b) if b > 12 => (a, b),
                (a, b) if separator == '/' => (a, b),
                (a, b) => (b, a),
            };
            civil(year(third), month, day)
        }
        _ => None,
    }
}
