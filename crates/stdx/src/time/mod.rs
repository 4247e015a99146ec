//! Times, durations and zones: the only place that reads the system's clock.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::phrase;
use crate::phrase::Phrase;

mod uptime;

pub use uptime::{NotAnUptime, Uptime};

/// A time in UTC with millisecond precision.
///
/// Its text is fixed-width (`2026-01-15T00:02:11.123Z`), so that text order in both databases is time order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is not a time in a known form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotATime(String);

impl NotATime {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        phrase!(
            "`{text}` is not a time such as 2026-01-15T00:02:11.123Z",
            "`{text}` を日時として読めません（例：2026-01-15T00:02:11.123Z）",
            text = &self.0
        )
    }
}

crate::error_in_english!(NotATime);

impl Timestamp {
    /// The first moment of year 0, in our text form `0000-01-01T00:00:00.000Z`.
    pub const MIN: Timestamp = Timestamp(-62_167_219_200_000);
    /// The latest time that is in year 9999 in every time zone; a later year would break the fixed width.
    pub const MAX: Timestamp = Timestamp(253_402_207_199_999);

    /// The time so many milliseconds after 1970, limited to `MIN..=MAX`.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// For calendar calculations.
    pub fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }

    /// As text, without a formatter, because every stored row needs it.
    pub fn to_text(self) -> String {
        String::from_utf8(self.digits().to_vec()).unwrap_or_default()
    }

    fn digits(self) -> [u8; 24] {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        let (year, month, day) = civil(self.0.div_euclid(DAY));
        let time = self.0.rem_euclid(DAY);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        for (from, to, mut number) in [
            (0, 4, year),
            (5, 7, month),
            (8, 10, day),
            (11, 13, time / 3_600_000),
            (14, 16, time / 60_000 % 60),
            (17, 19, time / 1000 % 60),
            (20, 23, time % 1000),
        ] {
            for place in text[from..to].iter_mut().rev() {
                *place = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
        text
    }

    /// The calendar date of this moment in `zone`.
    pub fn date_in(self, zone: &TimeZone) -> Date {
        zone.to_datetime(self.to_jiff()).date()
    }

    /// As local time in `zone`, for people: `2026-01-15 09:02`.
    pub fn to_local_minute(self, zone: &TimeZone) -> String {
        self.to_jiff().to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// The duration since `earlier`; zero if the clock was set back.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Adds a duration, limited to `MIN..=MAX`.
    pub fn plus(self, span: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This time by the fastest of several machines' clocks. Ignore anything recorded as later: the clock was wrong
    /// when it was written, and waiting for it could take years.
    pub fn with_skew(self) -> Self {
        self.plus(Duration::from_secs(10 * 60))
    }

    /// Subtracts a duration, limited to `MIN..=MAX`.
    pub fn minus(self, span: Duration) -> Self {
        Self::from_millis(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// Year, month and day, given the number of days since 1970-01-01.
///
/// Calculated with eras of 400 years, which all have the same number of days, and with years that begin in March, so
/// that the leap day is the last day of a year.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let since_march = days + 719_468;
    let (era, day) = (since_march.div_euclid(ERA), since_march.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + later, month, day_of_month)
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(at: jiff::Timestamp) -> Self {
        Self::from_millis(at.as_millisecond())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.digits()).unwrap_or_default())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parses our own form and any RFC 3339 text with an offset.
impl FromStr for Timestamp {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        text.parse::<jiff::Timestamp>().map(Self::from).map_err(|_| NotATime(text.to_owned()))
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// How often a wait checks the clock, so that setting the clock ends the wait.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// The source of the present time. Everything that needs the time is given one.
#[derive(Clone, Debug, Default)]
pub struct Clock(TimeSource);

#[derive(Clone, Debug, Default)]
enum TimeSource {
    #[default]
    System,
    /// The system clock with a fixed offset: a process that runs "on another day".
    Shifted(SignedDuration),
    /// As if the machine's clock had been set ahead by so many milliseconds.
    Set(Arc<AtomicI64>),
    /// Fixed until it is set.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(TimeSource::System)
    }

    /// A clock that starts at `start` and runs at normal speed.
    pub fn starting_at(start: Timestamp) -> Self {
        let shift = start.as_millis() - system_now().as_millis();
        Self(TimeSource::Shifted(SignedDuration::from_millis(shift)))
    }

    /// As if the machine's clock had been set ahead or back; [`Clock::set`] and [`Clock::advance`] change it again in
    /// every clone. Unlike other simulated clocks it has the machine's uptime.
    pub fn set_ahead(by: SignedDuration) -> Self {
        let millis = i64::try_from(by.as_millis()).unwrap_or(0);
        Self(TimeSource::Set(Arc::new(AtomicI64::new(millis))))
    }

    /// A clock fixed at `start` until [`Clock::set`] or [`Clock::advance`] moves it, in every clone.
    pub fn manual(start: Timestamp) -> Self {
        Self(TimeSource::Manual(Arc::new(AtomicI64::new(start.as_millis()))))
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            TimeSource::System => system_now(),
            TimeSource::Shifted(shift) => {
                let shift = i64::try_from(shift.as_millis()).unwrap_or(0);
                Timestamp::from_millis(system_now().as_millis().saturating_add(shift))
            }
            TimeSource::Set(ahead) => {
                Timestamp::from_millis(system_now().as_millis().saturating_add(ahead.load(Ordering::SeqCst)))
            }
            TimeSource::Manual(millis) => Timestamp::from_millis(millis.load(Ordering::SeqCst)),
        }
    }

    /// How long this kernel has been running, which setting the clock does not change; `None` if that is unknown, and
    /// for simulated clocks.
    pub fn uptime(&self) -> Option<Uptime> {
        match &self.0 {
            TimeSource::System | TimeSource::Set(_) => Uptime::now(),
            TimeSource::Shifted(_) | TimeSource::Manual(_) => None,
        }
    }

    /// Whether this is the machine's own clock, which a database server may replace by its own.
    pub fn is_system(&self) -> bool {
        matches!(self.0, TimeSource::System)
    }

    /// Returns once this clock has reached `until`, also if the clock is set.
    pub async fn wait_until(&self, until: Timestamp) {
        loop {
            let left = until.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(POLL_EVERY)).await;
        }
    }

    /// Sets a clock that can be set; others are not changed.
    pub fn set(&self, at: Timestamp) {
        match &self.0 {
            TimeSource::Manual(millis) => millis.store(at.as_millis(), Ordering::SeqCst),
            TimeSource::Set(ahead) => {
                ahead.store(at.as_millis() - system_now().as_millis(), Ordering::SeqCst);
            }
            TimeSource::System | TimeSource::Shifted(_) => {}
        }
    }

    /// Advances such a clock by `span`.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().plus(span));
    }
}

#[allow(clippy::disallowed_methods, reason = "the only place that asks the machine for the time")]
fn system_now() -> Timestamp {
    jiff::Timestamp::now().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_fixed_width_and_reads_back() {
        for (text, millis) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2026-01-15T00:02:11.123Z", 1_768_435_331_123),
            ("0000-01-01T00:00:00.000Z", Timestamp::MIN.as_millis()),
        ] {
            let at = Timestamp::from_millis(millis);
            assert_eq!(at.to_string(), text);
            assert_eq!(text.parse::<Timestamp>().unwrap(), at);
        }
        assert_eq!(Timestamp::MAX.to_string().len(), "2026-01-15T00:02:11.123Z".len());
    }

    proptest::proptest! {
        #[test]
        fn every_moment_is_written_as_the_calendar_has_it(millis in Timestamp::MIN.0..=Timestamp::MAX.0) {
            let at = TimeZone::UTC.to_datetime(Timestamp::from_millis(millis).to_jiff());
            let expected = at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
            proptest::prop_assert_eq!(Timestamp::from_millis(millis).to_text(), expected);
        }
    }

    #[test]
    fn every_day_of_four_centuries_is_written_as_the_calendar_has_it() {
        for day in -150_000..150_000 {
            let at = Timestamp::from_millis(day * 86_400_000);
            let date = at.date_in(&TimeZone::UTC);
            assert_eq!(civil(day), (date.year().into(), date.month().into(), date.day().into()), "{day}");
        }
    }

    #[test]
    fn offsets_are_read_and_moments_without_one_are_not() {
        let utc: Timestamp = "2026-01-15T00:00:00Z".parse().unwrap();
        assert_eq!("2026-01-15T09:00:00+09:00".parse::<Timestamp>().unwrap(), utc);
        assert!("2026-01-15T09:00:00".parse::<Timestamp>().is_err());
        assert!("soon".parse::<Timestamp>().is_err());
    }

    #[test]
    fn spans_never_run_backwards_or_out_of_range() {
        let at = Timestamp::from_millis(5_000);
        assert_eq!(at.since(Timestamp::from_millis(9_000)), Duration::ZERO);
        assert_eq!(Timestamp::MAX.plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.minus(Duration::MAX), Timestamp::MIN);
    }

    #[test]
    fn a_manual_clock_moves_in_every_clone() {
        let clock = Clock::manual(Timestamp::from_millis(0));
        let other = clock.clone();
        clock.advance(Duration::from_secs(3));
        assert_eq!(other.now().as_millis(), 3_000);
        assert!(!clock.is_system() && Clock::system().is_system());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_clock_that_is_set_keeps_the_uptime_of_the_machine() {
        let (clock, hour) = (Clock::set_ahead(SignedDuration::from_hours(1)), Duration::from_secs(3600));
        let before = clock.uptime().unwrap();
        assert!(clock.now() >= Clock::system().now().plus(hour / 2));
        clock.advance(hour * 24);
        assert!(clock.now() >= Clock::system().now().plus(hour * 24));
        assert!(clock.uptime().unwrap().since(&before) < hour, "the kernel is as old as it was");
        assert_eq!(Clock::manual(clock.now()).uptime(), None);
        assert_eq!(Clock::starting_at(clock.now()).uptime(), None);
    }
}
