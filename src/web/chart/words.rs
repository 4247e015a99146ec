//! Words that charts need: weekdays, months, and the headings of their tables.

use jiff::civil::Date;

use crate::phrase::{Phrase, Speech};
use crate::{phrase, text::Language};

/// Monday first.
pub(super) fn weekdays(speech: &Speech) -> [&'static str; 7] {
    match speech.language {
        Language::En => ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
        Language::Ja => ["月", "火", "水", "木", "金", "土", "日"],
    }
}

/// The month of a day; January names the year.
pub(super) fn month(day: Date, speech: &Speech) -> String {
    const NAMES: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    match (speech.language, day.month()) {
        (_, 1) => day.year().to_string(),
        (Language::Ja, month) => format!("{month}月"),
        (Language::En, month) => {
            NAMES.get(usize::try_from(month - 1).unwrap_or(0)).copied().unwrap_or_default().to_owned()
        }
    }
}

pub(super) fn period() -> Phrase {
    phrase!("Period", "期間")
}

pub(super) fn count() -> Phrase {
    phrase!("Count", "件数")
}

pub(super) fn day() -> Phrase {
    phrase!("Day", "日付")
}

pub(super) fn weekday_hour() -> Phrase {
    phrase!("Weekday", "曜日")
}

pub(super) fn step() -> Phrase {
    phrase!("Step", "段階")
}

pub(super) fn used() -> Phrase {
    phrase!("Used", "使用")
}

pub(super) fn limit() -> Phrase {
    phrase!("Limit", "上限")
}

pub(super) fn check() -> Phrase {
    phrase!("Check", "確認")
}
