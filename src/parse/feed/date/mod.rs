//! Dates as feeds write them: RFC 822 and its relatives, ISO 8601 and its fragments, and local forms.
//!
//! A date without a zone is UTC, except in Korean and Japanese, where it is the one zone of the country.
//! The answer has whole seconds: feeds that give more mean nothing by it.

mod loose;
mod zone;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, ISOWeekDate, Weekday};
use jiff::tz::TimeZone;

use crate::time::Timestamp;

/// Longer texts are no dates.
const LENGTH_LIMIT: usize = 120;

/// Reads a date in any shape known to occur; `None` when it is none or lacks its year.
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > LENGTH_LIMIT {
        return None;
    }
    if let Some(at) = usual(text) {
        return Some(at);
    }
    let (text, local) = plain(text);
    let text = text.trim();
    iso(text, local).or_else(|| epoch(text)).or_else(|| loose::read(text, local))
}

/// The shape that nearly all RSS has, `Thu, 15 Jan 2026 09:02:11 +0900`; anything else takes the long way.
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
    finish(date, Time { hour, minute, second, zone: Zone::Offset(offset) }, 0)
}

/// A time of day with its distance from UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Time {
    hour: u32,
    minute: u32,
    second: u32,
    zone: Zone,
}

/// Where a time of day belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Zone {
    /// Seconds east of UTC.
    Offset(i64),
    /// A place with a clock of its own, which may be an hour ahead in summer.
    Region(TimeZone),
    /// Not said.
    Unsaid,
}

/// Lower case, plain digits, plain hyphens, no remarks in brackets; East Asian units as separators.
/// The second part is the offset such a local form implies.
fn plain(text: &str) -> (String, i64) {
    if text.is_ascii() && !text.contains(['(', '[']) && !text.starts_with(['R', 'r', 'H', 'h', 'S', 's']) {
        return (text.to_ascii_lowercase(), 0);
    }
    let mut local = 0;
    let mut out = String::with_capacity(text.len());
    let lower = text.to_lowercase();
    let text = zone::western_year(&lower);
    if text.chars().any(|c| matches!(c, '년' | '월' | '오')) {
        local = 9 * 3600;
    } else if text.contains('年') || text.contains('月') {
        local =
            if text.contains('时') || text.contains("上午") || text.contains("下午") { 8 } else { 9 } * 3600;
    }
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '（' | '(' | '[' => {
                // A remark such as (JST) or (木) repeats what is said; without a time before it there is nothing to lose.
                let close = rest.find(['）', ')', ']']).unwrap_or(rest.len());
                rest = rest[close..].trim_start_matches(['）', ')', ']']);
                out.push(' ');
            }
            '０'..='９' => out.push(char::from(b'0' + (c as u32 - '０' as u32) as u8)),
            '−' | '–' | '—' | '‐' | '‑' | '－' => out.push('-'),
            '：' => out.push(':'),
            '／' => out.push('/'),
            '＋' => out.push('+'),
            '．' => out.push('.'),
            '年' | '년' | '月' | '월' => out.push('-'),
            '時' | '时' | '시' | '点' | '點' => out.push(':'),
            '分' | '분' => out.push(':'),
            '日' | '일' | '秒' | '초' | '\u{a0}' | '\u{3000}' | '\u{202f}' => out.push(' '),
            '午' if rest.starts_with('前') => rest = meridiem(rest, &mut out, " am "),
            '午' if rest.starts_with(['後', '后']) => rest = meridiem(rest, &mut out, " pm "),
            '上' if rest.starts_with('午') => rest = meridiem(rest, &mut out, " am "),
            '下' if rest.starts_with('午') => rest = meridiem(rest, &mut out, " pm "),
            '오' if rest.starts_with('전') => rest = meridiem(rest, &mut out, " am "),
            '오' if rest.starts_with('후') => rest = meridiem(rest, &mut out, " pm "),
            _ => out.push(c),
        }
    }
    if local != 0 {
        out = tidy_units(&out);
    }
    (out, local)
}

fn meridiem<'a>(rest: &'a str, out: &mut String, word: &str) -> &'a str {
    out.push_str(word);
    &rest[rest.chars().next().map_or(0, char::len_utf8)..]
}

/// `2004- 05- 28  01:31:` becomes `2004-05-28 01:31`: units leave spaces and a separator too many.
fn tidy_units(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() && !out.ends_with(['-', ':']) {
            out.push(' ');
        }
        out.push_str(word);
    }
    let end = out.trim_end_matches([':', '-', ' ']).len();
    out.truncate(end);
    // `01:31: pm` cannot be; `9:` alone is an hour.
    if out
        .rsplit(' ')
        .next()
        .is_some_and(|last| last.len() <= 2 && !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()))
        && out.contains(' ')
    {
        out.push_str(":00");
    }
    out
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

/// ISO 8601, extended or basic, whole or cut short.
fn iso(text: &str, local: i64) -> Option<Timestamp> {
    let (text, centuryless) = match text.strip_prefix('-') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => (rest, true),
        Some(_) => return None,
        None => (text, false),
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (head, rest) = text.split_at(digits);
    let number = |range: std::ops::Range<usize>| head.get(range)?.parse::<i32>().ok();
    let (date, rest) = if centuryless {
        match digits {
            4 => (civil(2000 + number(0..2)?, number(2..4)?, 1)?, rest),
            2 => {
                let (month, rest) = part(rest, '-').filter(|(month, _)| *month <= 12).unwrap_or((1, rest));
                (civil(2000 + number(0..2)?, month, 1)?, rest)
            }
            _ => return None,
        }
    } else {
        match digits {
            14 | 12 => {
                let date = civil(number(0..4)?, number(4..6)?, number(6..8)?)?;
                return finish(date, time(&text[8..])?, local);
            }
            8 => (civil(number(0..4)?, number(4..6)?, number(6..8)?)?, rest),
            7 => (ordinal(number(0..4)?, number(4..7)?)?, rest),
            6 => (civil(2000 + number(0..2)?, number(2..4)?, number(4..6)?)?, rest),
            5 => (ordinal(2000 + number(0..2)?, number(2..5)?)?, rest),
            4 => after_year(number(0..4)?, rest)?,
            2 => {
                let (month, rest) = part(rest, '-')?;
                if rest.starts_with('-') {
                    let (day, rest) = part(rest, '-')?;
                    if rest.starts_with(|c: char| c.is_ascii_digit()) {
                        return None;
                    }
                    (civil(2000 + number(0..2)?, month, day)?, rest)
                } else if month > 31 {
                    (ordinal(2000 + number(0..2)?, month)?, rest)
                } else {
                    return None;
                }
            }
            _ => return None,
        }
    };
    if !rest.is_empty() && !rest.starts_with(['t', ' ', '_', '\t', '\n', 'z', '+', '-', ',']) {
        return None;
    }
    finish(date, time(rest)?, local)
}

/// What may follow a year of four digits.
fn after_year(year: i32, rest: &str) -> Option<(Date, &str)> {
    let separator = rest.chars().next();
    if let Some(week) = rest.strip_prefix('-').unwrap_or(rest).strip_prefix('w') {
        let number: i8 = week.get(..2)?.parse().ok()?;
        let rest = &week[2..];
        let day = rest.strip_prefix('-').unwrap_or(rest);
        let (day, rest) = match day.bytes().next() {
            Some(byte @ b'1'..=b'7') => ((byte - b'0') as i8, &day[1..]),
            _ => (1, rest),
        };
        let date =
            ISOWeekDate::new(i16::try_from(year).ok()?, number, Weekday::from_monday_one_offset(day).ok()?)
                .ok()?;
        return Some((date.date(), rest));
    }
    let Some(separator) = separator.filter(|separator| matches!(separator, '-' | '/' | '.')) else {
        return Some((civil(year, 1, 1)?, rest));
    };
    let Some((first, after)) = part(rest, separator) else {
        // A zone directly after a year is not a thing; letters are months in words.
        return None;
    };
    let width = rest.len() - after.len() - 1;
    if width == 3 {
        // `2003-335`, or the month with a zero too many.
        return match part(after, separator) {
            Some((day, after)) if first <= 12 => Some((civil(year, first, day)?, after)),
            _ => Some((ordinal(year, first)?, after)),
        };
    }
    if width > 2 {
        return None;
    }
    match part(after, separator) {
        Some((day, rest)) if after.len() - rest.len() <= 3 => Some((civil(year, first, day)?, rest)),
        Some(_) => None,
        None => Some((civil(year, first, 1)?, after.strip_prefix(separator).unwrap_or(after))),
    }
}

/// The number after `separator`.
fn part(text: &str, separator: char) -> Option<(i32, &str)> {
    let text = text.strip_prefix(separator)?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

/// A time of day with what follows it: half of the day, zone; nothing at all is midnight.
fn time(text: &str) -> Option<Time> {
    let mut rest = text.trim_start_matches([' ', '\t', '\n', '\r', 't', '_', ',']);
    let mut half = None;
    for (word, named) in [("am ", Half::Morning), ("pm ", Half::Afternoon)] {
        if let Some(after) = rest.strip_prefix(word) {
            half = Some(named);
            rest = after.trim_start();
        }
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (hour, minute, second, after);
    if digits == 0 {
        (hour, minute, second, after) = (0, 0, 0, rest);
    } else {
        let (numbers, tail) = rest.split_at(digits);
        let two = |at: usize| numbers.get(at..at + 2).map(|n| n.parse::<u32>().ok());
        match digits {
            4 | 6 => {
                hour = two(0)??;
                minute = two(2)??;
                second = two(4).flatten().unwrap_or(0);
                after = tail;
            }
            1 | 2 => {
                hour = numbers.parse().ok()?;
                let (m, tail) = number_after(tail, [':', 'h', '.']).unwrap_or((0, tail));
                let (s, tail) = number_after(tail, [':', '.', 'm']).unwrap_or((0, tail));
                (minute, second, after) = (m, s, tail);
            }
            _ => return None,
        }
    }
    let after = fraction(after).trim_start();
    let (half, after) = half_of_day(after).map_or((half, after), |(half, tail)| (Some(half), tail));
    let hour = half.map_or(hour, |half| half.hour(hour));
    let zone = zone::read(after.trim())?;
    (hour <= 24 && minute < 60 && second <= 60).then_some(Time { hour, minute, second: second.min(59), zone })
}

/// A half of the day, by which hours from 1 to 12 are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Morning,
    Afternoon,
}

impl Half {
    /// The hour from 0 to 23 that is meant.
    fn hour(self, hour: u32) -> u32 {
        match self {
            Half::Afternoon if hour < 12 => hour + 12,
            Half::Morning if hour == 12 => 0,
            _ => hour,
        }
    }
}

/// `am`, `p.m.` or `a. m.` at the start of `text`, and what follows.
fn half_of_day(text: &str) -> Option<(Half, &str)> {
    let (half, rest) = match text.strip_prefix('a') {
        Some(rest) => (Half::Morning, rest),
        None => (Half::Afternoon, text.strip_prefix('p')?),
    };
    let rest = match rest.strip_prefix('.') {
        Some(rest) => rest.trim_start().strip_prefix('m')?,
        None => rest.strip_prefix('m')?,
    };
    let rest = rest.strip_prefix('.').unwrap_or(rest);
    (!rest.starts_with(|c: char| c.is_alphabetic())).then_some((half, rest))
}

fn number_after<const N: usize>(text: &str, separators: [char; N]) -> Option<(u32, &str)> {
    let rest = text.strip_prefix(separators)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=2).contains(&digits) {
        return None;
    }
    let (number, rest) = rest.split_at(digits);
    Some((number.parse().ok()?, rest))
}

/// Passes over a fraction of a second.
fn fraction(text: &str) -> &str {
    match text.strip_prefix(['.', ',', ':']) {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            rest.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => text,
    }
}

/// A date; a day that the month does not have is its last one.
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

fn finish(date: Date, time: Time, local: i64) -> Option<Timestamp> {
    let midnight = DateTime::from_parts(date, jiff::civil::Time::midnight());
    let seconds = TimeZone::UTC.to_timestamp(midnight).ok()?.as_second();
    let clock = i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + i64::from(time.second);
    let offset = match time.zone {
        Zone::Offset(offset) => offset,
        Zone::Region(zone) => {
            let there = midnight.checked_add(SignedDuration::from_secs(clock)).ok()?;
            seconds + clock - zone.to_timestamp(there).ok()?.as_second()
        }
        Zone::Unsaid => local,
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
            assert_eq!(usual(text), loose::read(&text.to_ascii_lowercase(), 0), "{text}");
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
}
