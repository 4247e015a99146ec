//! The statistics as series for charts: months per person, days, and the hours of the week.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::Date;

use super::periods::Periods;
use super::tally::{Sum, Tally};
use super::{By, Counting, LeftOut, each_once};
use crate::commits::store::reading::Grain;
use crate::db::{self, Tx};
use crate::time::Timestamp;

/// Everything that charts of commits are drawn from.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Series {
    /// The time zone in which days begin.
    pub timezone: String,
    /// Every month from the first commit to the last, also those without one.
    pub months: Vec<String>,
    /// A series for each person, by name.
    pub people: Vec<PersonSeries>,
    /// Commits and merges on each day that has any.
    pub days: Vec<(String, i64)>,
    /// Commits and merges by weekday, Monday first, and hour.
    pub week_hours: [[i64; 24]; 7],
    /// Commits that do not count.
    pub left_out: LeftOut,
}

/// One person's months.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PersonSeries {
    pub name: String,
    /// The figures of each month of the series.
    pub months: Vec<Sum>,
}

/// The sum of everything up to each value.
pub fn cumulative(values: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let add = |sum: &mut i64, value| {
        *sum += value;
        Some(*sum)
    };
    values.into_iter().scan(0, add).collect()
}

/// The series of what is counted, in one pass.
pub fn find_series(tx: &mut Tx<'_>, counting: &Counting) -> db::Result<Series> {
    let zone = counting.zone.time_zone();
    let mut tally =
        Tally::new(Periods::new(By::Month, &counting.zone), &counting.people, counting.with_merges);
    let mut days: BTreeMap<Date, i64> = BTreeMap::new();
    let mut week_hours = [[0; 24]; 7];
    // Some zones are half an hour apart from UTC.
    let length = if counting.zone.name() == "UTC" { "2026-01-15T00".len() } else { "2026-01-15T00:02".len() };
    each_once(tx, counting, Grain { at_turns: length, within: length }, |commit| {
        if tally.add(commit)?.is_none() {
            return Ok(());
        }
        if let Ok(at) = commit.committed_date_utc()?.parse::<Timestamp>() {
            let local = at.to_jiff().to_zoned(zone.clone());
            let weekday = usize::try_from(local.weekday().to_monday_zero_offset()).unwrap_or(0);
            let hour = usize::try_from(local.hour()).unwrap_or(0);
            week_hours[weekday][hour] += commit.commits()?;
            *days.entry(local.date()).or_default() += commit.commits()?;
        }
        Ok(())
    })?;
    let months = list_months(days.keys());
    let names = tally.contributors.list_names();
    let mut people: Vec<PersonSeries> = names
        .into_iter()
        .map(|name| PersonSeries { name, months: vec![Sum::default(); months.len()] })
        .collect();
    for (label, person, sum) in tally.list() {
        if let Ok(month) = months.binary_search_by(|month| month.as_str().cmp(label)) {
            people[person as usize].months[month] = sum;
        }
    }
    people.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Series {
        timezone: counting.zone.name().to_owned(),
        months,
        people,
        days: days.into_iter().map(|(day, commits)| (day.to_string(), commits)).collect(),
        week_hours,
        left_out: tally.contributors.left_out,
    })
}

/// Every month from the first day to the last; a commit dated a thousand years off does not bring a thousand years.
fn list_months<'a>(days: impl DoubleEndedIterator<Item = &'a Date> + Clone) -> Vec<String> {
    let (Some(first), Some(last)) = (days.clone().next(), days.clone().next_back()) else {
        return Vec::new();
    };
    let label = |day: Date| day.strftime("%Y-%m").to_string();
    if last.year() - first.year() > 100 {
        let mut met: Vec<String> = days.map(|day| label(*day)).collect();
        met.dedup();
        return met;
    }
    let first = first.first_of_month();
    let months = first.series(1.month());
    months.take_while(|month| month <= last).map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_without_commits_are_there_and_wrong_clocks_bring_no_thousand_years() {
        let days = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Date>>();
        assert_eq!(
            list_months(days(&["2025-11-30", "2026-01-01"]).iter()),
            ["2025-11", "2025-12", "2026-01"]
        );
        assert_eq!(list_months(days(&["1970-01-01", "2026-01-01", "2026-01-02"]).iter()).len(), 673);
        assert_eq!(
            list_months(days(&["0001-01-01", "2026-01-01", "2026-01-02"]).iter()),
            ["0001-01", "2026-01"]
        );
        assert!(list_months(days(&[]).iter()).is_empty());
        assert_eq!(cumulative([1, 0, 2]), [1, 1, 3]);
    }
}
