//! The words of charts: weekdays and months.

use jiff::civil::Date;

use crate::phrase::Speech;
use crate::text::Language;

/// Monday first.
pub(super) fn weekdays(speech: &Speech) -> [&'static str; 7] {
    let english = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    speech.language.choose(english, ["月", "火", "水", "木", "金", "土", "日"])
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
