//! Times of day, with an optional am/pm and zone.

use jiff::tz::TimeZone;

use super::zone;

/// A time of day and its offset from UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) zone: Zone,
}

/// The zone of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    /// Seconds east of UTC.
    Offset(i64),
    /// A region, whose offset may depend on the date.
    Region(TimeZone),
    /// Not given.
    Missing,
}

/// Parses a time of day with optional am/pm and zone; an empty text is midnight.
pub(super) fn read(text: &str) -> Option<Time> {
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

/// am or pm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Morning,
    Afternoon,
}

impl Half {
    /// The hour from 0 to 23.
    pub(super) fn hour(self, hour: u32) -> u32 {
        match self {
            Half::Afternoon if hour < 12 => hour + 12,
            Half::Morning if hour == 12 => 0,
            _ => hour,
        }
    }
}

/// `am`, `p.m.` or `a. m.` at the start of `text`, and the rest.
pub(super) fn half_of_day(text: &str) -> Option<(Half, &str)> {
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

pub(super) fn number_after<const N: usize>(text: &str, separators: [char; N]) -> Option<(u32, &str)> {
    let rest = text.strip_prefix(separators)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=2).contains(&digits) {
        return None;
    }
    let (number, rest) = rest.split_at(digits);
    Some((number.parse().ok()?, rest))
}

/// Skips a fraction of a second.
pub(super) fn fraction(text: &str) -> &str {
    match text.strip_prefix(['.', ',', ':']) {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            rest.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => text,
    }
}
