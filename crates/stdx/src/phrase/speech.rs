//! Renders phrases in the language and time zone of the reader.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::{Phrase, Value};
use crate::text::{Language, counted};
use crate::time::Timestamp;

/// Units of time in seconds, largest first, and their names.
const UNITS: [(u64, &str, &str); 4] =
    [(86_400, "d", "日"), (3_600, "h", "時間"), (60, "min", "分"), (1, "s", "秒")];

/// The language and time zone of a reader.
#[derive(Clone, Debug)]
pub struct Speech {
    pub language: Language,
    /// The zone of times; without one they are shown in UTC, as they are stored.
    pub zone: Option<TimeZone>,
}

/// A part of a phrase.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece<'a> {
    /// Our own text.
    Words(&'a str),
    /// A number of things in words.
    Counted(String),
    /// A value.
    Value(&'a Value),
}

/// English, with times as they are stored: for logs and programs.
impl Default for Speech {
    fn default() -> Self {
        Self { language: Language::En, zone: None }
    }
}

impl Speech {
    /// One of two texts.
    pub fn choose<'a>(&self, en: &'a str, ja: &'a str) -> &'a str {
        self.language.choose(en, ja)
    }

    /// Renders a phrase.
    pub fn phrase(&self, phrase: &Phrase) -> String {
        let mut text = String::new();
        for piece in self.pieces(phrase) {
            match piece {
                Piece::Words(words) => text.push_str(words),
                Piece::Counted(counted) => text.push_str(&counted),
                Piece::Value(value) => text.push_str(&self.value(value)),
            }
        }
        text
    }

    /// The texts and values of a phrase in the order of this language, for a renderer that formats values itself.
    pub fn pieces<'a>(&self, phrase: &'a Phrase) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        let mut words = phrase.words(self.language);
        while let Some(start) = words.find('{') {
            let Some(length) = words[start..].find('}') else { break };
            let place = &words[start + 1..start + length];
            let (name, thing) =
                place.split_once(' ').map_or((place, None), |(name, thing)| (name, Some(thing)));
            pieces.push(Piece::Words(&words[..start]));
            pieces.push(match (phrase.find(name), thing) {
                (Some(value), Some(thing)) => Piece::Counted(counted(self.value(value), thing)),
                (Some(value), None) => Piece::Value(value),
                (None, _) => Piece::Words(&words[start..=start + length]),
            });
            words = &words[start + length + 1..];
        }
        pieces.push(Piece::Words(words));
        pieces
    }

    /// Renders a value.
    pub fn value(&self, value: &Value) -> String {
        match value {
            Value::Nothing => String::new(),
            Value::Text(text) => text.clone(),
            Value::Count(count) => count.to_string(),
            Value::Moment(at) => self.moment(*at),
            Value::Duration(duration) => self.duration(*duration),
            Value::Bytes(bytes) => bytes_text(*bytes),
            Value::Link { href, text } => text.as_ref().unwrap_or(href).clone(),
            Value::Phrase(phrase) => self.phrase(phrase),
            Value::List(values) => self.join(values, self.choose(", ", "、")),
            Value::Sentences(values) => self.join(values, self.choose("; ", "。")),
        }
    }

    fn join(&self, values: &[Value], between: &str) -> String {
        values.iter().map(|value| self.value(value)).collect::<Vec<_>>().join(between)
    }

    /// A time with its offset: `2026-01-15 09:02 +09:00`.
    pub fn moment(&self, at: Timestamp) -> String {
        match &self.zone {
            Some(zone) => at.to_jiff().to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M %:z").to_string(),
            None => at.to_text(),
        }
    }

    /// A time without its offset, where a heading names the zone: `2026-01-15 09:02`.
    pub fn local_minute(&self, at: Timestamp) -> String {
        at.to_local_minute(self.zone.as_ref().unwrap_or(&TimeZone::UTC))
    }

    /// A time relative to `now`: `3 min ago`, `in 27 min`; its date if that is more than a month.
    pub fn relative(&self, at: Timestamp, now: Timestamp) -> String {
        let (ago, ahead) = (now.since(at).as_secs(), at.since(now).as_secs());
        let apart = ago.max(ahead);
        if apart > 30 * 86_400 {
            return self.local_minute(at).chars().take_while(|c| *c != ' ').collect();
        }
        match UNITS.iter().find(|(secs, ..)| apart >= *secs) {
            None => self.choose("now", if at < now { "たった今" } else { "今すぐ" }).to_owned(),
            Some((secs, en, _)) if self.language == Language::En => {
                if ago > 0 {
                    format!("{} {en} ago", ago / secs)
                } else {
                    format!("in {} {en}", ahead / secs)
                }
            }
            Some((secs, _, ja)) => format!("{} {ja}{}", apart / secs, if ago > 0 { "前" } else { "後" }),
        }
    }

    /// A duration in its two largest units: `2 h 5 min`.
    pub fn duration(&self, duration: Duration) -> String {
        let mut left = duration.as_secs();
        let mut parts = Vec::new();
        for (secs, en, ja) in UNITS {
            if left >= secs && parts.len() < 2 {
                parts.push(format!("{} {}", left / secs, self.choose(en, ja)));
                left %= secs;
            }
        }
        if parts.is_empty() {
            format!("{} {}", duration.as_millis(), self.choose("ms", "ミリ秒"))
        } else {
            parts.join(" ")
        }
    }
}

/// `512 B`, `3.2 kB`, `16 MB`.
fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "kB", "MB", "GB"];
    #[allow(clippy::cast_precision_loss, reason = "it is rounded anyway")]
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    if unit == 0 || size >= 10.0 {
        format!("{size:.0} {}", UNITS[unit])
    } else {
        format!("{size:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_near_now_is_told_by_its_distance_and_a_far_one_by_its_date() {
        let now: Timestamp = "2026-01-15T12:00:00Z".parse().unwrap();
        let en = Speech { zone: Some(TimeZone::get("Asia/Tokyo").unwrap()), ..Speech::default() };
        let ja = Speech { language: Language::Ja, ..en.clone() };
        for (at, english, japanese) in [
            ("2026-01-15T12:00:00Z", "now", "今すぐ"),
            ("2026-01-15T11:59:59.500Z", "now", "たった今"),
            ("2026-01-15T11:59:18Z", "42 s ago", "42 秒前"),
            ("2026-01-15T11:56:10Z", "3 min ago", "3 分前"),
            ("2026-01-15T12:27:59Z", "in 27 min", "27 分後"),
            ("2026-01-14T09:00:00Z", "1 d ago", "1 日前"),
            ("2025-11-30T18:00:00Z", "2025-12-01", "2025-12-01"),
        ] {
            let at = at.parse().unwrap();
            assert_eq!((&*en.relative(at, now), &*ja.relative(at, now)), (english, japanese));
        }
    }

    #[test]
    fn values_are_shown_as_people_write_them() {
        let en = Speech::default();
        let ja = Speech { language: Language::Ja, ..Speech::default() };
        for (secs, english, japanese) in [
            (0, "0 ms", "0 ミリ秒"),
            (8, "8 s", "8 秒"),
            (125, "2 min 5 s", "2 分 5 秒"),
            (7_500, "2 h 5 min", "2 時間 5 分"),
            (90_061, "1 d 1 h", "1 日 1 時間"),
        ] {
            let duration = Duration::from_secs(secs);
            assert_eq!(
                (en.duration(duration), ja.duration(duration)),
                (english.to_owned(), japanese.to_owned())
            );
        }
        for (bytes, text) in [(0, "0 B"), (999, "999 B"), (3_200, "3.2 kB"), (16_000_000, "16 MB")] {
            assert_eq!(en.value(&Value::Bytes(bytes)), text);
        }
        let link = Value::Link { href: "https://a.example/".into(), text: Some("A".into()) };
        assert_eq!(en.value(&link), "A");
        assert_eq!(en.value(&Value::link("https://a.example/")), "https://a.example/");
        assert_eq!(ja.value(&Value::List(vec!["a".into(), 1.into()])), "a、1");
    }
}
