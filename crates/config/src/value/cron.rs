//! Cron schedules with five fields, validated when they are parsed.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::date;
use jiff::tz::TimeZone;

use super::{BadValue, text_value};
use stdx::phrase;
use stdx::phrase::Phrase;

/// A cron schedule: minute, hour, day of month, month, day of week.
#[derive(Clone)]
pub struct Cron {
    text: String,
    parsed: Arc<croner::Cron>,
}

impl Cron {
    /// For calendar calculations.
    pub fn parsed(&self) -> &croner::Cron {
        &self.parsed
    }

    /// In words.
    pub fn describe(&self) -> String {
        self.parsed.describe()
    }
}

impl FromStr for Cron {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = |why: Phrase| {
            BadValue::new(phrase!(
                "`{text}` is not a cron schedule: {why}",
                "`{text}` は cron の書式ではありません：{why}"
            ))
            .with_hint(phrase!(
                "write minute, hour, day of month, month and day of week, for example \"0 9 * * 1-5\"",
                "分・時・日・月・曜日の順に書きます（例：\"0 9 * * 1-5\"）"
            ))
        };
        let text = text.trim();
        let fields = text.split_whitespace().count();
        if !text.starts_with('@') && fields != 5 {
            return Err(bad(phrase!(
                "it has {fields} fields instead of 5",
                "項目が 5 個ではなく {fields} 個です"
            )));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let parsed = parser.parse(text).map_err(|err| bad(plain(&err)))?;
        let start =
            date(2000, 1, 1).to_zoned(TimeZone::UTC).map_err(|err| bad(Phrase::verbatim(err.to_string())))?;
        if parsed.find_next_occurrence(&start, true).is_err() {
            return Err(bad(phrase!("no day ever matches it", "当てはまる日がありません")));
        }
        Ok(Self { text: text.to_owned(), parsed: Arc::new(parsed) })
    }
}

/// The parser's error without its own terms.
fn plain(err: &croner::errors::CronError) -> Phrase {
    use croner::errors::CronError;
    match err {
        CronError::InvalidPattern(why)
        | CronError::IllegalCharacters(why)
        | CronError::ComponentError(why) => {
            let mut why = why.trim_end_matches('.').to_owned();
            if let Some(first) = why.get_mut(0..1) {
                first.make_ascii_lowercase();
            }
            why.into()
        }
        _ => phrase!("it cannot be read", "解釈できません"),
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Cron {}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

text_value!(Cron, "a cron schedule", "cron の書式", "0 9 * * 1-5");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_of_five_fields_are_read() {
        for text in ["0 9 * * 1-5", "*/15 * * * *", "0 0 29 2 *", "30 6 1,15 * *", "0 9 * * MON", "@daily"] {
            assert_eq!(text.parse::<Cron>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_not_a_schedule_says_why() {
        for (text, why) in [
            ("", "0 fields"),
            ("0 9 * *", "4 fields"),
            ("0 0 9 * * 1-5", "6 fields"),
            ("0 0 30 2 *", "no day ever matches"),
            ("61 * * * *", "not a cron schedule"),
            ("0 25 * * *", "not a cron schedule"),
            ("a b c d e", "not a cron schedule"),
            ("@sometimes", "not a cron schedule"),
        ] {
            let message = text.parse::<Cron>().unwrap_err().message().to_string();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
