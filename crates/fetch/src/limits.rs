//! The limits of one response, and their names in messages.

use std::time::Duration;

use stdx::phrase;
use stdx::phrase::Phrase;

/// Limits of one request and its response; exceeding one is an error that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the decoded body, and of the encoded body.
    pub body_bytes: u64,
    /// How many decoded bytes one encoded byte may become.
    pub ratio: u64,
    /// Up to so many decoded bytes the ratio does not matter.
    pub ratio_floor_bytes: u64,
    /// Bytes of all response headers together.
    pub header_bytes: usize,
    pub redirects: usize,
    /// From the start of a hop to the end of its response headers.
    pub to_headers: Duration,
    /// All hops and the body together, without the time spent waiting for admission.
    pub in_all: Duration,
    /// The minimum average speed of the body over each window.
    pub min_bytes_per_sec: u64,
    /// The window over which the speed is averaged.
    pub speed_window: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 16 * 1024 * 1024,
            ratio: 100,
            ratio_floor_bytes: 1024 * 1024,
            header_bytes: 64 * 1024,
            redirects: 10,
            to_headers: Duration::from_secs(30),
            in_all: Duration::from_secs(60),
            min_bytes_per_sec: 1024,
            speed_window: Duration::from_secs(20),
        }
    }
}

impl Limits {
    /// The same limits with another size of the body, and proportionally more time for large ones.
    pub fn with_body_bytes(mut self, bytes: u64) -> Self {
        let usual = Self::default();
        if bytes > usual.body_bytes {
            let times = u32::try_from(bytes.div_ceil(usual.body_bytes)).unwrap_or(u32::MAX);
            self.in_all = self.in_all.max(usual.in_all.saturating_mul(times));
        }
        self.body_bytes = bytes;
        self
    }
}

/// A size limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// The decoded body, in bytes.
    Body(u64),
    /// The encoded body, in bytes.
    Wire(u64),
    /// Decoded bytes per encoded byte.
    Ratio(u64),
    /// All headers together, in bytes.
    Headers(usize),
    /// The memory for decompression that the body requires.
    Window,
    /// Codings applied on top of each other.
    Encodings(usize),
}

impl Size {
    /// A short stable word for events.
    pub fn code(self) -> &'static str {
        match self {
            Size::Body(_) => "body_too_big",
            Size::Wire(_) => "transfer_too_big",
            Size::Ratio(_) => "compression_bomb",
            Size::Headers(_) => "headers_too_big",
            Size::Window => "compression_window",
            Size::Encodings(_) => "too_many_encodings",
        }
    }

    /// In words.
    pub fn phrase(self) -> Phrase {
        match self {
            Size::Body(bytes) => phrase!(
                "the body is larger than {most}",
                "本文が {most}を超えています",
                most = bytes_phrase(bytes)
            ),
            Size::Wire(bytes) => phrase!(
                "the compressed body is larger than {most}",
                "圧縮された本文が {most}を超えています",
                most = bytes_phrase(bytes)
            ),
            Size::Ratio(ratio) => phrase!(
                "the body unpacks to more than {ratio} times its size",
                "本文を展開すると {ratio} 倍を超えます"
            ),
            Size::Headers(bytes) => phrase!(
                "the headers are larger than {most} or too many",
                "ヘッダーが {most}を超えているか、多すぎます",
                most = bytes_phrase(bytes as u64)
            ),
            Size::Window => phrase!(
                "the compressed body needs a window larger than 16 MiB",
                "圧縮された本文の展開に 16 MiB を超えるウィンドウが必要です"
            ),
            Size::Encodings(count) => phrase!(
                "the body is encoded more than {count} times over",
                "本文が {count} 重を超えて圧縮されています"
            ),
        }
    }
}

/// A time limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// No response headers within this time.
    Headers(Duration),
    /// Not complete within this time.
    InAll(Duration),
    /// Fewer bytes a second than this.
    Speed(u64),
}

impl Pace {
    /// A short stable word for events.
    pub fn code(self) -> &'static str {
        match self {
            Pace::Headers(_) => "no_answer",
            Pace::InAll(_) => "took_too_long",
            Pace::Speed(_) => "too_slow",
        }
    }

    /// In words.
    pub fn phrase(self) -> Phrase {
        match self {
            Pace::Headers(span) => {
                phrase!("no answer within {span}", "{span}以内に応答がありません", span = span_phrase(span))
            }
            Pace::InAll(span) => {
                phrase!("not complete within {span}", "{span}以内に完了しません", span = span_phrase(span))
            }
            Pace::Speed(bytes) => phrase!(
                "the body came slower than {bytes} a second",
                "本文の受信が毎秒 {bytes}を下回りました",
                bytes = bytes_phrase(bytes)
            ),
        }
    }
}

/// A size in words: `16 MiB`, `1500 bytes`.
fn bytes_phrase(bytes: u64) -> Phrase {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (size, unit) in UNITS {
        if bytes >= size && bytes.is_multiple_of(size) {
            return phrase!("{count} {unit}", "{count} {unit} ", count = bytes / size);
        }
    }
    phrase!("{bytes} bytes", "{bytes} バイト")
}

/// A duration in words: `30 s`, `250 ms`, `2 h 5 min`.
pub(super) fn span_phrase(span: Duration) -> Phrase {
    let secs = span.as_secs();
    match secs {
        0 => phrase!("{ms} ms", "{ms} ミリ秒", ms = span.subsec_millis()),
        1..=119 => phrase!("{secs} s", "{secs} 秒"),
        120..=7199 => phrase!("{minutes} min", "{minutes} 分", minutes = secs / 60),
        _ if secs % 3600 < 60 => phrase!("{hours} h", "{hours} 時間", hours = secs / 3600),
        _ => phrase!(
            "{hours} h {minutes} min",
            "{hours} 時間 {minutes} 分",
            hours = secs / 3600,
            minutes = secs % 3600 / 60
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_in_units_people_use() {
        for (text, bytes) in
            [("16 MiB", 16 << 20), ("64 KiB", 65_536), ("1500 bytes", 1_500), ("1 GiB", 1 << 30)]
        {
            assert_eq!(bytes_phrase(bytes), text);
        }
        for (text, secs) in
            [("30 s", 30), ("2 min", 150), ("2 h", 7_200), ("2 h 5 min", 7_500), ("24 h", 86_400)]
        {
            assert_eq!(span_phrase(Duration::from_secs(secs)), text);
        }
        assert_eq!(span_phrase(Duration::from_millis(250)), "250 ms");
    }

    #[test]
    fn a_larger_body_gets_more_time_and_a_smaller_one_not_less() {
        let large = Limits::default().with_body_bytes(50 << 20);
        assert_eq!(large.in_all, Duration::from_secs(240));
        assert_eq!(Limits::default().with_body_bytes(1024).in_all, Duration::from_secs(60));
    }
}
