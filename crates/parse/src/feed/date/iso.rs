//! ISO 8601 and parts of it.

use jiff::civil::{Date, ISOWeekDate, Weekday};

use super::clock::Zone;
use super::{civil, clock, finish, ordinal};
use stdx::time::Timestamp;

/// ISO 8601, extended or basic, complete or truncated.
pub(super) fn read(text: &str, local: &Zone) -> Option<Timestamp> {
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
                return finish(date, clock::read(&text[8..])?, local);
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
    finish(date, clock::read(rest)?, local)
}

/// The parts that may follow a year of four digits.
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
        // A zone cannot follow a year directly, and month names are parsed elsewhere.
        return None;
    };
    let width = rest.len() - after.len() - 1;
    if width == 3 {
        // `2003-335`, or a month with an extra zero.
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
