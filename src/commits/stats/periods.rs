//! Months, weeks and days of a time zone: the period of a moment, and the bounds of a period.

use std::collections::BTreeMap;
use std::ops::Bound;

use jiff::ToSpan;
use jiff::civil::{Date, ISOWeekDate, Weekday};

use super::By;
use crate::commits::store::reading::Grain;
use crate::config::value::Zone;
use crate::time::Timestamp;

/// Periods by the fixed-width texts of their beginnings and ends.
pub(super) struct Periods {
    by: By,
    zone: Zone,
    known: BTreeMap<String, (String, u32)>,
    labels: Vec<String>,
    /// The period of the previous row: neighbouring rows are mostly of one period.
    last: Option<(String, String, u32)>,
}

impl Periods {
    pub(super) fn new(by: By, zone: &Zone) -> Self {
        Self { by, zone: zone.clone(), known: BTreeMap::new(), labels: Vec::new(), last: None }
    }

    pub(super) fn label(&self, period: u32) -> &str {
        self.labels.get(period as usize).map_or("", String::as_str)
    }

    pub(super) fn find(&mut self, date: &str) -> u32 {
        if let Some((from, until, period)) = &self.last
            && date >= from.as_str()
            && date < until.as_str()
        {
            return *period;
        }
        let before = self.known.range::<str, _>((Bound::Unbounded, Bound::Included(date)));
        if let Some((from, (until, period))) = before.last()
            && date < until.as_str()
        {
            self.last = Some((from.clone(), until.clone(), *period));
            return *period;
        }
        let (from, until, label) = self.make(date);
        let period = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        self.labels.push(label);
        self.known.insert(from.clone(), (until.clone(), period));
        self.last = Some((from, until, period));
        period
    }

    /// The beginning, the end and the name of the period that contains `date`.
    fn make(&self, date: &str) -> (String, String, String) {
        let whole = (Timestamp::MIN.to_string(), "~".to_owned(), String::new());
        let Ok(at) = date.parse::<Timestamp>() else { return whole };
        let day = at.date_in(self.zone.time_zone());
        let (first, next, label) = match self.by {
            By::Day => (day, day.saturating_add(1.day()), day.to_string()),
            By::Week => {
                let monday = day.saturating_sub(i64::from(day.weekday().to_monday_zero_offset()).days());
                (monday, monday.saturating_add(1.week()), week_label(day))
            }
            By::Month => {
                let first = day.first_of_month();
                (first, first.saturating_add(1.month()), first.strftime("%Y-%m").to_string())
            }
            By::Person | By::Project | By::Branch => return whole,
        };
        (start(first, &self.zone).to_string(), start(next, &self.zone).to_string(), label)
    }
}

fn week_label(day: Date) -> String {
    let week = day.iso_week_date();
    format!("{:04}-W{:02}", week.year(), week.week())
}

fn start(day: Date, zone: &Zone) -> Timestamp {
    day.to_zoned(zone.time_zone().clone()).map_or(Timestamp::MAX, |start| start.timestamp().into())
}

/// How much of a date decides its period.
pub(super) fn grain(by: By, zone: &Zone) -> Grain {
    let (month, day, minute) = ("2026-01".len(), "2026-01-15".len(), "2026-01-15T00:02".len());
    let (at_turns, within) = match (by, zone.name() == "UTC") {
        (By::Person | By::Project | By::Branch, _) => (0, 0),
        (By::Month, true) => (month, month),
        (By::Month, false) => (minute, month),
        (By::Day | By::Week, true) => (day, day),
        (By::Day | By::Week, false) => (minute, minute),
    };
    Grain { at_turns, within }
}

/// The bounds of the period with this label: `2026`, `2026-01`, `2026-W03` or `2026-01-15`.
pub fn period_bounds(label: &str, zone: &Zone) -> Option<(Timestamp, Timestamp)> {
    let (first, next) = match label.split('-').collect::<Vec<_>>()[..] {
        [year] if year.len() == 4 => {
            let first = Date::new(year.parse().ok()?, 1, 1).ok()?;
            (first, first.checked_add(1.year()).ok()?)
        }
        [year, week] if week.starts_with('W') => {
            let week = ISOWeekDate::new(year.parse().ok()?, week[1..].parse().ok()?, Weekday::Monday).ok()?;
            (week.date(), week.date().checked_add(1.week()).ok()?)
        }
        [year, month] if month.len() == 2 => {
            let first = Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()?;
            (first, first.checked_add(1.month()).ok()?)
        }
        [_, _, _] => {
            let day: Date = label.parse().ok()?;
            (day, day.checked_add(1.day()).ok()?)
        }
        _ => return None,
    };
    Some((start(first, zone), start(next, zone)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(by: By, zone: &str, dates: &[&str]) -> Vec<String> {
        let mut periods = Periods::new(by, &zone.parse().unwrap());
        let found: Vec<u32> = dates.iter().map(|date| periods.find(date)).collect();
        found.into_iter().map(|period| periods.label(period).to_owned()).collect()
    }

    #[test]
    fn periods_begin_where_the_zone_says() {
        let dates = ["2026-01-31T14:59:59.999Z", "2026-01-31T15:00:00.000Z", "2025-12-31T23:59:59.000Z"];
        assert_eq!(labels(By::Month, "UTC", &dates), ["2026-01", "2026-01", "2025-12"]);
        assert_eq!(labels(By::Month, "Asia/Tokyo", &dates), ["2026-01", "2026-02", "2026-01"]);
        // The day on which summer time begins has 23 hours.
        let spring = ["2026-03-28T23:00:00.000Z", "2026-03-29T21:59:59.000Z", "2026-03-29T22:00:00.000Z"];
        assert_eq!(labels(By::Day, "Europe/Berlin", &spring), ["2026-03-29", "2026-03-29", "2026-03-30"]);
        assert_eq!(labels(By::Week, "Europe/Berlin", &spring), ["2026-W13", "2026-W13", "2026-W14"]);
        assert_eq!(labels(By::Week, "UTC", &["2027-01-01T00:00:00.000Z"]), ["2026-W53"]);
        assert_eq!(labels(By::Person, "UTC", &spring), ["", "", ""]);
    }

    #[test]
    fn a_label_has_its_bounds_in_the_zone() {
        for (label, from, until) in [
            ("2025", "2024-12-31T15:00:00.000Z", "2025-12-31T15:00:00.000Z"),
            ("2026-02", "2026-01-31T15:00:00.000Z", "2026-02-28T15:00:00.000Z"),
            ("2026-W53", "2026-12-27T15:00:00.000Z", "2027-01-03T15:00:00.000Z"),
            ("2026-01-15", "2026-01-14T15:00:00.000Z", "2026-01-15T15:00:00.000Z"),
        ] {
            let (first, next) = period_bounds(label, &"Asia/Tokyo".parse().unwrap()).unwrap();
            assert_eq!((first.to_string().as_str(), next.to_string().as_str()), (from, until));
        }
        for no_period in
            ["", "26", "2026-1", "2026-13", "2026-W54", "2026-W", "2026-02-30", "Ann", "2026-01-01-01"]
        {
            assert_eq!(period_bounds(no_period, &Zone::tokyo()), None, "{no_period}");
        }
    }
}
