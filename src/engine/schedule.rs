//! When a job is due: a fixed grid from local midnight, or cron; missed points run once.

use std::fmt;
use std::time::Duration;

use jiff::ToSpan;
use jiff::tz::TimeZone;

use crate::config::ScheduleSpec;
use crate::config::value::{Cron, Span};
use crate::hash::sha256_hex;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// When a failed job is retried: after the first, second, … failure in a row; the last value repeats.
const RETRY_AFTER: [Duration; 4] = [
    Duration::from_secs(5 * 60),
    Duration::from_secs(15 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(3 * 60 * 60),
];

/// When a job runs, in its own time zone.
#[derive(Clone, Debug)]
pub struct Schedule {
    rule: Rule,
    zone: TimeZone,
}

#[derive(Clone, Debug)]
enum Rule {
    Every(Duration),
    Cron(Cron),
}

impl Schedule {
    /// From the config, or `every` if the config does not say.
    pub fn new(spec: &ScheduleSpec, default_every: Duration, zone: TimeZone) -> Self {
        let rule = match spec {
            ScheduleSpec::Every(span) => Rule::Every((*span).into()),
            ScheduleSpec::Cron(cron) => Rule::Cron(cron.clone()),
            ScheduleSpec::Default => Rule::Every(default_every),
        };
        Self { rule, zone }
    }

    /// Whether the job is due at `now`, given when its last run began.
    ///
    /// It is due once, however many points were missed. Ignore a beginning that lies beyond the next point: the clock
    /// was wrong when it was written.
    pub fn is_due(&self, last_run_at: Option<Timestamp>, now: Timestamp) -> bool {
        let Some(last) = last_run_at else { return true };
        if self.next_after(now).is_some_and(|next| last > next) {
            return true;
        }
        self.latest_until(now).is_some_and(|point| point > last)
    }

    /// When to retry a job that failed at `now`; `None` if the schedule starts it as soon.
    pub fn retry_at(&self, failures_in_a_row: i64, now: Timestamp) -> Option<Timestamp> {
        let gap = usize::try_from(failures_in_a_row.saturating_sub(1)).unwrap_or(0);
        let at = now.plus(RETRY_AFTER[gap.min(RETRY_AFTER.len() - 1)]);
        Some(at).filter(|at| self.next_after(now).is_none_or(|next| *at < next))
    }

    /// The latest point at or before `now`.
    fn latest_until(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(every) => Some(self.grid_point_until(*every, now)),
            Rule::Cron(cron) => {
                let local = now.to_jiff().to_zoned(self.zone.clone());
                cron.parsed().find_previous_occurrence(&local, true).ok().map(|at| at.timestamp().into())
            }
        }
    }

    /// The first point after `now`.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(every) => Some(self.grid_point_after(*every, now)),
            Rule::Cron(cron) => {
                let local = now.to_jiff().to_zoned(self.zone.clone());
                cron.parsed().find_next_occurrence(&local, false).ok().map(|at| at.timestamp().into())
            }
        }
    }

    fn grid_point_until(&self, every: Duration, now: Timestamp) -> Timestamp {
        let (anchor, _) = self.anchors(every, now);
        let step = every.as_millis().max(1);
        let steps = now.since(anchor).as_millis() / step;
        anchor.plus(Duration::from_millis(u64::try_from(steps * step).unwrap_or(0)))
    }

    fn grid_point_after(&self, every: Duration, now: Timestamp) -> Timestamp {
        let (_, next_anchor) = self.anchors(every, now);
        self.grid_point_until(every, now).plus(every).min(next_anchor)
    }

    /// The two midnights around the grid of `now`. A grid of whole days is anchored at Monday 1970-01-05, a shorter one
    /// at every midnight.
    fn anchors(&self, every: Duration, now: Timestamp) -> (Timestamp, Timestamp) {
        let today = now.date_in(&self.zone);
        let days = i32::try_from((every.as_secs() / DAY.as_secs()).max(1)).unwrap_or(i32::MAX);
        let monday = jiff::civil::date(1970, 1, 5);
        let into = (today - monday).get_days().rem_euclid(days);
        let first = today.saturating_sub(into.days());
        (self.midnight(first), self.midnight(first.saturating_add(days.days())))
    }

    fn midnight(&self, date: jiff::civil::Date) -> Timestamp {
        date.to_zoned(self.zone.clone()).map_or(Timestamp::MAX, |start| start.timestamp().into())
    }

    /// The delay that a daemon adds to a scheduled point, so that jobs do not all start in the same second: always the
    /// same for a job, at most a minute and a twentieth of the interval.
    pub fn jitter(&self, job: &str) -> Duration {
        let most = match self.rule {
            Rule::Every(every) => (every / 20).min(Duration::from_secs(60)),
            Rule::Cron(_) => Duration::from_secs(5),
        };
        let number = u64::from_str_radix(&sha256_hex(job)[..8], 16).unwrap_or(0);
        Duration::from_millis(number % (u64::try_from(most.as_millis()).unwrap_or(0) + 1))
    }
}

impl Schedule {
    /// In words.
    pub fn phrase(&self) -> Phrase {
        match &self.rule {
            Rule::Every(every) => phrase!("every {every}", "{every}ごと"),
            Rule::Cron(cron) => phrase!(
                "by cron `{cron}` in {zone}",
                "cron `{cron}`（{zone}）",
                cron = cron.to_string(),
                zone = self.zone.iana_name().unwrap_or("UTC")
            ),
        }
    }
}

/// For programs: `every 5m`, or the cron line with the zone in which it holds.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zone = self.zone.iana_name().unwrap_or("UTC");
        match &self.rule {
            Rule::Every(every) => match Span::from_secs(every.as_secs()) {
                Some(span) => write!(f, "every {span}"),
                None => write!(f, "every {} ms", every.as_millis()),
            },
            Rule::Cron(cron) => write!(f, "by cron `{cron}` in {zone}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(text: &str, zone: &str) -> Schedule {
        let spec = ScheduleSpec::Every(text.parse().unwrap());
        Schedule::new(&spec, DAY, TimeZone::get(zone).unwrap())
    }

    fn cron(text: &str, zone: &str) -> Schedule {
        Schedule::new(&ScheduleSpec::Cron(text.parse().unwrap()), DAY, TimeZone::get(zone).unwrap())
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_grid_begins_at_local_midnight() {
        let schedule = every("3h", "Asia/Tokyo");
        // 09:10 in Tokyo: the points of the day are 00:00, 03:00, …, 09:00, 12:00.
        let now = at("2026-01-15T00:10:00Z");
        assert_eq!(schedule.next_after(now), Some(at("2026-01-15T03:00:00Z")));
        for (last, due) in [
            (None, true),
            (Some("2026-01-14T23:59:00Z"), true),
            (Some("2026-01-15T00:00:00Z"), false),
            (Some("2026-01-15T00:05:00Z"), false),
            (Some("2025-01-01T00:00:00Z"), true),
        ] {
            assert_eq!(schedule.is_due(last.map(at), now), due, "{last:?}");
        }
    }

    #[test]
    fn a_grid_that_does_not_fit_the_day_starts_anew_at_midnight() {
        let schedule = every("7h", "UTC");
        assert_eq!(schedule.next_after(at("2026-01-15T22:00:00Z")), Some(at("2026-01-16T00:00:00Z")));
        assert_eq!(schedule.next_after(at("2026-01-15T14:00:00Z")), Some(at("2026-01-15T21:00:00Z")));
    }

    #[test]
    fn a_span_of_days_is_counted_in_days_of_its_zone() {
        let schedule = every("7d", "Asia/Tokyo");
        let next = schedule.next_after(at("2026-01-15T00:00:00Z")).unwrap();
        assert_eq!(next, at("2026-01-18T15:00:00Z"), "Monday, 00:00 in Tokyo");
        assert!(!schedule.is_due(Some(at("2026-01-12T00:00:00Z")), at("2026-01-18T14:59:59Z")));
        assert!(schedule.is_due(Some(at("2026-01-12T00:00:00Z")), next));
    }

    #[test]
    fn days_of_23_and_25_hours_keep_their_midnights() {
        let schedule = every("6h", "Europe/Berlin");
        // Clocks go forward on 2026-03-29 and back on 2026-10-25.
        assert_eq!(schedule.next_after(at("2026-03-29T20:30:00Z")), Some(at("2026-03-29T22:00:00Z")));
        assert_eq!(schedule.next_after(at("2026-10-25T22:30:00Z")), Some(at("2026-10-25T23:00:00Z")));
    }

    #[test]
    fn cron_runs_by_the_wall_clock_of_its_zone_and_once_over_a_change() {
        let schedule = cron("0 9 * * 1-5", "Asia/Tokyo");
        assert_eq!(schedule.next_after(at("2026-01-16T00:00:00Z")), Some(at("2026-01-19T00:00:00Z")));
        assert!(schedule.is_due(Some(at("2026-01-15T00:00:00Z")), at("2026-01-16T00:00:00Z")));
        assert!(!schedule.is_due(Some(at("2026-01-16T00:00:00Z")), at("2026-01-18T23:59:00Z")));

        let nightly = cron("30 2 * * *", "Europe/Berlin");
        let mut now = at("2026-10-24T12:00:00Z");
        let mut runs = Vec::new();
        for _ in 0..2 {
            now = nightly.next_after(now).unwrap();
            runs.push(now.to_string());
        }
        assert_eq!(runs.len(), 2);
        assert_ne!(&runs[0][..10], &runs[1][..10], "02:30 happens twice that night, the job once: {runs:?}");
    }

    #[test]
    fn a_clock_that_was_far_ahead_does_not_silence_a_job() {
        let schedule = every("1h", "UTC");
        let now = at("2026-01-15T00:30:00Z");
        assert!(!schedule.is_due(Some(at("2026-01-15T00:40:00Z")), now), "a little ahead: wait");
        assert!(schedule.is_due(Some(at("2099-01-01T00:00:00Z")), now), "absurd: it does not count");
    }

    #[test]
    fn a_failed_job_is_tried_again_before_its_next_point_and_ever_later() {
        let (daily, hourly, often) =
            (cron("0 9 * * *", "Asia/Tokyo"), every("1h", "UTC"), every("5m", "UTC"));
        for (schedule, failures, now, expected) in [
            (&daily, 1, "2026-01-15T00:00:07Z", Some("2026-01-15T00:05:07Z")),
            (&daily, 2, "2026-01-15T00:05:07Z", Some("2026-01-15T00:20:07Z")),
            (&daily, 3, "2026-01-15T00:20:07Z", Some("2026-01-15T01:20:07Z")),
            (&daily, 4, "2026-01-15T01:20:07Z", Some("2026-01-15T04:20:07Z")),
            (&daily, 5, "2026-01-15T04:20:07Z", Some("2026-01-15T07:20:07Z")),
            (&daily, i64::MAX, "2026-01-15T07:20:07Z", Some("2026-01-15T10:20:07Z")),
            // The schedule is as early or earlier.
            (&daily, 5, "2026-01-15T21:00:00Z", None),
            (&daily, 1, "2026-01-15T23:55:00Z", None),
            (&daily, 1, "2026-01-15T23:54:59Z", Some("2026-01-15T23:59:59Z")),
            (&hourly, 1, "2026-01-15T00:00:07Z", Some("2026-01-15T00:05:07Z")),
            (&hourly, 3, "2026-01-15T00:20:07Z", None),
            (&often, 1, "2026-01-15T00:00:07Z", None),
            // No failures counted is taken as the first one.
            (&daily, 0, "2026-01-15T00:00:07Z", Some("2026-01-15T00:05:07Z")),
            (&daily, -3, "2026-01-15T00:00:07Z", Some("2026-01-15T00:05:07Z")),
        ] {
            let (now, expected) = (at(now), expected.map(at));
            assert_eq!(schedule.retry_at(failures, now), expected, "{schedule}, {failures} at {now}");
        }
    }

    #[test]
    fn a_schedule_says_when_it_runs() {
        assert_eq!(every("90m", "UTC").to_string(), "every 1h30m");
        assert_eq!(cron("0 9 * * 1-5", "Asia/Tokyo").to_string(), "by cron `0 9 * * 1-5` in Asia/Tokyo");
    }

    #[test]
    fn jitter_is_small_and_always_the_same() {
        let schedule = every("5m", "UTC");
        assert_eq!(schedule.jitter("a"), schedule.jitter("a"));
        assert!(schedule.jitter("a") <= Duration::from_secs(15));
        assert_ne!(schedule.jitter("a"), schedule.jitter("b"));
    }
}
