//! Moments for people: one form, in the time zone of `[app]`. As JSON they stay what is stored: RFC 3339 in UTC.

use super::Column;
use crate::config::value::Zone;
use crate::time::Timestamp;

/// How moments are told to people.
#[derive(Clone, Debug)]
pub(super) struct Times {
    zone: Zone,
}

/// The bytes of a stored moment, `2026-01-15T00:02:11.123Z`.
const STORED: usize = 24;

impl Times {
    pub(super) fn new(zone: Zone) -> Self {
        Self { zone }
    }

    /// In a line, with its offset: `2026-01-15 09:02 +09:00`.
    pub(super) fn line(&self, at: Timestamp) -> String {
        at.to_jiff().to_zoned(self.zone.time_zone().clone()).strftime("%Y-%m-%d %H:%M %:z").to_string()
    }

    /// In a cell, below or beside a heading that names the zone: `2026-01-15 09:02`, or `-`.
    pub(super) fn cell(&self, at: impl Into<Option<Timestamp>>) -> String {
        at.into().map_or_else(|| "-".to_owned(), |at| at.to_local_minute(self.zone.time_zone()))
    }

    /// The first column of moments in a table: its heading names the zone of all of them.
    pub(super) fn column(&self, name: &'static str) -> Column {
        Column::left(name).labelled(self.zone.name())
    }

    /// Text from the database or an error, with the moments that stand in it told as in a line.
    pub(super) fn told(&self, text: &str) -> String {
        let mut told = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (piece, length) = match find_stored(rest) {
                Some(at) => (self.line(at), STORED),
                None => (first.to_string(), first.len_utf8()),
            };
            told.push_str(&piece);
            rest = &rest[length..];
        }
        told
    }
}

/// The stored moment that `text` begins with.
fn find_stored(text: &str) -> Option<Timestamp> {
    let start = text.get(..STORED)?;
    let at = |place: usize| start.as_bytes()[place];
    let is_shaped = at(4) == b'-' && at(10) == b'T' && at(19) == b'.' && at(23) == b'Z';
    if is_shaped { start.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_in_the_zone_of_the_config_with_their_offset() {
        let at: Timestamp = "2026-07-15T15:02:11.123Z".parse().unwrap();
        for (zone, line, cell) in [
            ("Asia/Tokyo", "2026-07-16 00:02 +09:00", "2026-07-16 00:02"),
            ("Europe/Berlin", "2026-07-15 17:02 +02:00", "2026-07-15 17:02"),
            ("UTC", "2026-07-15 15:02 +00:00", "2026-07-15 15:02"),
        ] {
            let times = Times::new(zone.parse().unwrap());
            assert_eq!((times.line(at), times.cell(at)), (line.to_owned(), cell.to_owned()));
            assert_eq!(times.told(&format!("続き until {at}: x")), format!("続き until {line}: x"));
            assert_eq!(times.told(&format!("{at}{at}")), format!("{line}{line}"));
        }
    }

    #[test]
    fn text_without_a_stored_moment_stays_as_it_is() {
        let times = Times::new(Zone::tokyo());
        assert_eq!(times.cell(None), "-");
        for text in
            ["", "2026-07-15", "2026-07-15T15:02:11Z", "9999-99-99T99:99:99.999Z", "あ2026-07-15T15:02:11.12"]
        {
            assert_eq!(times.told(text), text);
        }
    }
}
