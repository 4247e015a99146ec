//! Spans of time such as `90s`, `15m`, `1h30m`, `7d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{BadValue, text_value};
use stdx::phrase;
use stdx::phrase::Phrase;

/// The longest duration: 100 years of 365 days.
const LONGEST: Duration = Duration::from_secs(100 * 365 * DAY);
const DAY: u64 = 24 * 60 * 60;
/// The units from long to short, in milliseconds.
const UNITS: [(&str, u64); 6] =
    [("w", 7 * DAY * 1000), ("d", DAY * 1000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// A duration, never zero and never longer than 100 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(Duration);

impl Span {
    /// A duration of so many seconds; `None` for zero and for more than 100 years.
    pub const fn from_secs(secs: u64) -> Option<Self> {
        if secs == 0 || secs > LONGEST.as_secs() { None } else { Some(Self(Duration::from_secs(secs))) }
    }

    /// As the standard library's type.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl FromStr for Span {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = |why: Phrase| {
            BadValue::new(phrase!(
                "`{text}` is not a duration: {why}",
                "`{text}` は期間ではありません：{why}"
            ))
            .with_hint(phrase!(
                "write numbers with units, for example \"90s\", \"15m\", \"1h30m\" or \"7d\"",
                "数値と単位を書きます（例：\"90s\"、\"15m\"、\"1h30m\"、\"7d\"）"
            ))
        };
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(bad(phrase!("it is empty", "空です")));
        }
        let mut millis: u64 = 0;
        let mut next_unit = 0;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (number, after) = rest.split_at(digits);
            let after = after.trim_start();
            let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
            let (word, after) = after.split_at(letters);
            if number.is_empty() {
                return Err(bad(phrase!("a number is missing", "数値がありません")));
            }
            if word.is_empty() {
                return Err(bad(phrase!("a unit is missing", "単位がありません")));
            }
            let unit = UNITS.iter().position(|(name, _)| *name == short_unit(word));
            let Some(unit) = unit else {
                return Err(bad(phrase!(
                    "`{unit}` is no unit",
                    "`{unit}` という単位はありません",
                    unit = word
                )));
            };
            if unit < next_unit {
                return Err(bad(phrase!(
                    "longer units come first, each once",
                    "大きい単位から順に、それぞれ 1 回だけ書きます"
                )));
            }
            next_unit = unit + 1;
            let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(UNITS[unit].1));
            millis = part
                .and_then(|part| millis.checked_add(part))
                .filter(|millis| u128::from(*millis) <= LONGEST.as_millis())
                .ok_or_else(|| bad(phrase!("it is longer than 100 years", "100 年を超えています")))?;
            rest = after.trim_start();
        }
        if millis == 0 {
            return Err(bad(phrase!("it is zero", "0 です")));
        }
        Ok(Self(Duration::from_millis(millis)))
    }
}

/// Common words for units.
fn short_unit(word: &str) -> &str {
    match word {
        "weeks" | "week" => "w",
        "days" | "day" => "d",
        "hours" | "hour" | "hr" => "h",
        "minutes" | "minute" | "min" => "m",
        "seconds" | "second" | "sec" => "s",
        other => other,
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        for (name, unit) in UNITS.iter().skip(1) {
            if rest >= *unit {
                write!(f, "{}{name}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

text_value!(Span, "a duration", "期間", "1h30m");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_are_numbers_with_units() {
        for (text, secs) in [
            ("90s", 90),
            ("15m", 900),
            ("3h", 10_800),
            ("7d", 604_800),
            ("1h30m", 5_400),
            ("2w", 1_209_600),
            ("1 h 30 min", 5_400),
            ("1 day", 86_400),
        ] {
            assert_eq!(text.parse::<Span>().unwrap().duration(), Duration::from_secs(secs), "{text}");
        }
        assert_eq!("250ms".parse::<Span>().unwrap().duration(), Duration::from_millis(250));
    }

    #[test]
    fn what_is_not_a_span_says_why() {
        for (text, why) in [
            ("", "it is empty"),
            ("10", "a unit is missing"),
            ("h", "a number is missing"),
            ("-5m", "a number is missing"),
            ("1.5h", "a unit is missing"),
            ("3y", "`y` is no unit"),
            ("30m1h", "longer units come first, each once"),
            ("1h1h", "longer units come first, each once"),
            ("0s", "it is zero"),
            ("0h0m", "it is zero"),
            ("36501d", "it is longer than 100 years"),
            ("99999999999999999999d", "it is longer than 100 years"),
            ("36500d1s", "it is longer than 100 years"),
        ] {
            let message = text.parse::<Span>().unwrap_err().message().to_owned();
            assert!(message.to_string().ends_with(why), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_span_reads_back(secs in 1..100 * 365 * DAY) {
            let span = Span::from_secs(secs).unwrap();
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,12}") {
            let _ = text.parse::<Span>();
        }
    }
}
