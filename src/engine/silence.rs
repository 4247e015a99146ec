//! How often a source brings something new, and when to report that it has gone silent. Pure.

use std::time::Duration;

use crate::time::Timestamp;

/// Days with something new that are stored.
const KEPT: usize = 10;
/// With fewer days, no usual gap is known.
const FEWEST: usize = 4;
/// A source is silent after so many usual gaps,
const GAPS: u32 = 3;
/// but not earlier than this.
const LEAST: Duration = Duration::from_secs(3 * DAY.as_secs());
const DAY: Duration = Duration::from_secs(24 * 3600);

/// How often a source brings something new, and since when it is silent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// The last days with something new, oldest first; several things on one day count once.
    days: Vec<Timestamp>,
    /// Since when it has been silent, if it is.
    pub noted_at: Option<Timestamp>,
}

/// What has to be reported after a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceNotice {
    /// It has brought nothing new for much longer than usual.
    Silent {
        /// When it brought something last.
        last: Timestamp,
        usual_gap: Duration,
    },
    /// It brings new things again.
    Over,
}

impl Silence {
    /// From the database: the days as JSON.
    pub fn from_stored(days: Option<&str>, noted_at: Option<Timestamp>) -> Self {
        let days = days.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        Self { days, noted_at }
    }

    /// The days as JSON, for the database.
    pub fn stored(&self) -> Option<String> {
        (!self.days.is_empty()).then(|| serde_json::to_string(&self.days).unwrap_or_default())
    }

    /// When it brought something new last, as far as is known.
    pub fn last(&self) -> Option<Timestamp> {
        self.days.last().copied()
    }

    /// The usual time between two new things; `None` while there are too few.
    pub fn usual_gap(&self) -> Option<Duration> {
        if self.days.len() < FEWEST {
            return None;
        }
        let mut gaps: Vec<Duration> = self.days.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        gaps.sort_unstable();
        gaps.get(gaps.len() / 2).copied()
    }

    /// Starts with the dates found by the first check. A source that has been silent since before is not reported.
    pub fn begin(&mut self, dates: impl IntoIterator<Item = Timestamp>, now: Timestamp) {
        self.add(dates.into_iter().filter(|at| *at <= now));
        self.noted_at = self.is_silent(now).then_some(now);
    }

    /// Records a check, and whether something was new.
    pub fn check(&mut self, is_news: bool, now: Timestamp) -> Option<SilenceNotice> {
        if is_news {
            self.add([now]);
            return self.noted_at.take().map(|_| SilenceNotice::Over);
        }
        if self.noted_at.is_some() || !self.is_silent(now) {
            return None;
        }
        self.noted_at = Some(now);
        Some(SilenceNotice::Silent { last: self.last()?, usual_gap: self.usual_gap()? })
    }

    fn is_silent(&self, now: Timestamp) -> bool {
        match (self.last(), self.usual_gap()) {
            (Some(last), Some(gap)) => last.plus((gap * GAPS).max(LEAST)) <= now,
            _ => false,
        }
    }

    fn add(&mut self, moments: impl IntoIterator<Item = Timestamp>) {
        self.days.extend(moments);
        self.days.sort_unstable();
        self.days.dedup_by(|later, earlier| later.since(*earlier) < DAY);
        self.days.drain(..self.days.len().saturating_sub(KEPT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u32) -> Timestamp {
        "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap().plus(DAY * number)
    }

    #[test]
    fn silence_is_told_once_after_three_usual_gaps_and_its_end_once() {
        let mut weekly = Silence::default();
        weekly.begin([day(21), day(0), day(7), day(14), day(99)], day(21));
        assert_eq!(weekly.usual_gap(), Some(DAY * 7));
        assert_eq!(weekly.check(false, day(41)), None);
        let silent = SilenceNotice::Silent { last: day(21), usual_gap: DAY * 7 };
        assert_eq!(weekly.check(false, day(42)), Some(silent));
        assert_eq!(weekly.check(false, day(60)), None, "once");
        assert_eq!(weekly.check(true, day(61)), Some(SilenceNotice::Over));
        assert_eq!(weekly.check(false, day(62)), None);
    }

    #[test]
    fn an_hourly_source_is_left_three_days_and_one_without_a_rhythm_for_ever() {
        let mut hourly = Silence::default();
        hourly.begin((0..10).map(|number| day(number).plus(Duration::from_secs(3600))), day(10));
        assert_eq!(hourly.check(false, day(12)), None);
        assert!(hourly.check(false, day(13)).is_some());
        let mut seldom = Silence::default();
        seldom.begin([day(0), day(1)], day(1));
        assert_eq!(seldom.check(false, day(1000)), None);
        let mut burst = Silence::default();
        burst.begin((0..20).map(|minute| day(0).plus(Duration::from_secs(60 * minute))), day(1));
        assert_eq!(burst.check(false, day(30)), None, "many things of one day are one");
    }

    #[test]
    fn a_source_that_had_stopped_before_we_came_is_no_news() {
        let mut stopped = Silence::default();
        stopped.begin((0..5).map(day), day(3000));
        assert_eq!(stopped.noted_at, Some(day(3000)));
        assert_eq!(stopped.check(false, day(3001)), None);
        let stored = Silence::from_stored(stopped.stored().as_deref(), stopped.noted_at);
        assert_eq!(stored, stopped);
    }
}
