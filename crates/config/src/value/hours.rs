//! Times of day and quiet hours.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Time;

use super::{BadValue, text_value};
use stdx::phrase;
use stdx::phrase::Phrase;

/// A local time of day to the minute: `09:30`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TimeOfDay {
    minutes: u16,
}

impl TimeOfDay {
    pub const MIDNIGHT: Self = Self { minutes: 0 };

    /// For calendar calculations.
    pub fn time(self) -> Time {
        let (hour, minute) = self.parts();
        Time::constant(hour, minute, 0, 0)
    }

    /// Minutes since midnight.
    pub const fn minutes(self) -> u16 {
        self.minutes
    }

    fn parts(self) -> (i8, i8) {
        // Both fit: a day has 24 hours of 60 minutes.
        ((self.minutes / 60) as i8, (self.minutes % 60) as i8)
    }
}

impl FromStr for TimeOfDay {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let part = |text: &str, limit: u16| {
            let number = text.parse::<u16>().ok().filter(|number| *number < limit);
            number.filter(|_| text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let parts = text.split_once(':').filter(|(_, minute)| minute.len() == 2);
        match parts.map(|(hour, minute)| (part(hour, 24), part(minute, 60))) {
            Some((Some(hour), Some(minute))) => Ok(Self { minutes: hour * 60 + minute }),
            _ => {
                Err(BadValue::new(phrase!("`{text}` is not a time of day", "`{text}` は時刻ではありません"))
                    .with_hint(phrase!(
                        "write hours and minutes, from \"00:00\" to \"23:59\"",
                        "\"00:00\" から \"23:59\" までの時と分を書きます"
                    )))
            }
        }
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.minutes / 60, self.minutes % 60)
    }
}

text_value!(TimeOfDay, "a time of day", "時刻", "09:30");

/// Local hours in which nothing is sent, such as `22:00-07:00`; the end is exclusive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    pub from: TimeOfDay,
    /// Exclusive.
    pub until: TimeOfDay,
}

impl QuietHours {
    /// Whether `time` is quiet.
    pub fn contains(&self, time: Time) -> bool {
        let (from, until) = (self.from.time(), self.until.time());
        if from < until { from <= time && time < until } else { from <= time || time < until }
    }
}

impl FromStr for QuietHours {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = |why: Phrase| {
            BadValue::new(phrase!(
                "`{text}` is not a range of hours: {why}",
                "`{text}` は時間帯ではありません：{why}"
            ))
            .with_hint(phrase!("write \"22:00-07:00\"", "\"22:00-07:00\" のように書きます"))
        };
        let (from, until) = text
            .split_once(['-', '–'])
            .ok_or_else(|| bad(phrase!("there is no `-` in it", "`-` がありません")))?;
        let time = |text: &str| text.trim().parse().map_err(|err: BadValue| bad(err.message().clone()));
        let (from, until): (TimeOfDay, TimeOfDay) = (time(from)?, time(until)?);
        if from == until {
            return Err(bad(phrase!("it begins when it ends", "開始と終了が同じ時刻です")));
        }
        Ok(Self { from, until })
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from, self.until)
    }
}

text_value!(QuietHours, "quiet hours", "送信しない時間帯", "22:00-07:00");

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::time;

    #[test]
    fn times_of_day_read_back_and_others_are_refused() {
        for (text, shown) in [("09:30", "09:30"), ("9:30", "09:30"), ("00:00", "00:00"), ("23:59", "23:59")] {
            assert_eq!(text.parse::<TimeOfDay>().unwrap().to_string(), shown);
        }
        for text in ["", "9", "24:00", "12:60", "12:5", "-1:00", "+1:00", "12:00:00", "１２:00"] {
            assert!(text.parse::<TimeOfDay>().is_err(), "{text}");
        }
    }

    #[test]
    fn quiet_hours_may_pass_midnight() {
        let night: QuietHours = "22:00-07:00".parse().unwrap();
        for (at, quiet) in [
            (time(21, 59, 59, 0), false),
            (time(22, 0, 0, 0), true),
            (time(0, 0, 0, 0), true),
            (time(6, 59, 59, 0), true),
            (time(7, 0, 0, 0), false),
        ] {
            assert_eq!(night.contains(at), quiet, "{at}");
        }
        let noon: QuietHours = "12:00 – 13:00".parse().unwrap();
        assert!(noon.contains(time(12, 30, 0, 0)) && !noon.contains(time(13, 0, 0, 0)));
        assert_eq!(noon.to_string().parse::<QuietHours>().unwrap(), noon);
        for text in ["", "22:00", "22:00-22:00", "22:00-25:00", "22:00-07:00-08:00"] {
            assert!(text.parse::<QuietHours>().is_err(), "{text}");
        }
    }
}
