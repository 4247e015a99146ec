//! The statistics as series for charts: months, days and hours of the week, of each person.

use std::collections::{BTreeMap, HashMap};

use jiff::ToSpan;
use jiff::civil::Date;

use super::periods::Periods;
use super::tally::{Sum, Tally};
use super::{By, Counting, LeftOut, each_once};
use crate::commits::store::reading::Grain;
use crate::db::{self, Tx};
use crate::time::Timestamp;

/// The data of the charts of commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Series {
    /// The time zone in which days begin.
    pub timezone: String,
    /// Every month from the first commit to the last, including those without one.
    pub months: Vec<String>,
    /// A series for each person, by name.
    pub people: Vec<PersonSeries>,
    /// Excluded commits.
    pub left_out: LeftOut,
}

/// One person's commits. Days and hours count merges, too: they are activity.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(into = "StoredPerson", from = "StoredPerson")]
pub struct PersonSeries {
    pub name: String,
    /// The figures of the months that have any, by their index in those of the series.
    pub months: Vec<(u16, Sum)>,
    /// Days with a commit, in order.
    days: Vec<(Date, u32)>,
    /// Commits by year and hour of the week, which is counted from Monday at midnight.
    hours: Vec<(i16, u8, u32)>,
}

impl PersonSeries {
    /// All months together.
    pub fn total(&self) -> Sum {
        let mut total = Sum::default();
        self.months.iter().for_each(|(_, month)| total.extend(month));
        total
    }
}

/// A person in the stored document, with short keys: a document has thousands of them. The years of hours are given by
/// the document.
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredPerson {
    name: String,
    months: Vec<(u16, [i64; 8])>,
    /// Days as numbers: 20260115.
    days: Vec<(i32, u32)>,
    hours: Vec<(u8, u32)>,
}

impl From<PersonSeries> for StoredPerson {
    fn from(person: PersonSeries) -> Self {
        let month = |(at, sum): (u16, Sum)| {
            let Sum { commits, merges, additions, deletions, stats_missing, of_merges: [a, d, m] } = sum;
            (at, [commits, merges, additions, deletions, stats_missing, a, d, m])
        };
        let day = |(day, commits): (Date, u32)| {
            let number = i32::from(day.year()) * 10_000 + i32::from(day.month()) * 100 + i32::from(day.day());
            (number, commits)
        };
        Self {
            name: person.name,
            months: person.months.into_iter().map(month).collect(),
            days: person.days.into_iter().map(day).collect(),
            hours: person.hours.into_iter().map(|(_, slot, commits)| (slot, commits)).collect(),
        }
    }
}

impl From<StoredPerson> for PersonSeries {
    fn from(stored: StoredPerson) -> Self {
        let month = |(at, figures): (u16, [i64; 8])| {
            let [commits, merges, additions, deletions, stats_missing, of_merges @ ..] = figures;
            (at, Sum { commits, merges, additions, deletions, stats_missing, of_merges })
        };
        let day = |(number, commits): (i32, u32)| {
            let small = |number: i32| i8::try_from(number % 100).ok();
            let year = i16::try_from(number / 10_000).ok()?;
            Some((Date::new(year, small(number / 100)?, small(number)?).ok()?, commits))
        };
        Self {
            name: stored.name,
            months: stored.months.into_iter().map(month).collect(),
            days: stored.days.into_iter().filter_map(day).collect(),
            hours: stored.hours.into_iter().map(|(slot, commits)| (0, slot, commits)).collect(),
        }
    }
}

impl Series {
    /// Commits and merges on each day that has any.
    pub fn days(&self) -> Vec<(Date, i64)> {
        let mut days: BTreeMap<Date, i64> = BTreeMap::new();
        for (day, commits) in self.people.iter().flat_map(|person| &person.days) {
            *days.entry(*day).or_default() += i64::from(*commits);
        }
        days.into_iter().collect()
    }

    /// Commits and merges by weekday, Monday first, and hour.
    pub fn week_hours(&self) -> [[i64; 24]; 7] {
        let mut counts = [[0; 24]; 7];
        for (_, slot, commits) in self.people.iter().flat_map(|person| &person.hours) {
            let slot = usize::from(*slot);
            counts[slot / 24 % 7][slot % 24] += i64::from(*commits);
        }
        counts
    }

    /// The years that have commits, newest first.
    pub fn years(&self) -> Vec<i16> {
        let mut years: Vec<i16> =
            self.people.iter().flat_map(|person| person.hours.iter().map(|(year, ..)| *year)).collect();
        years.sort_unstable_by(|a, b| b.cmp(a));
        years.dedup();
        years
    }

    /// The same for one year, with all of its months.
    pub fn in_year(&self, year: i16) -> Self {
        let months: Vec<String> = (1..=12).map(|month| format!("{year:04}-{month:02}")).collect();
        let places: Vec<Option<u16>> = self
            .months
            .iter()
            .map(|known| (0..).zip(&months).find(|(_, month)| *month == known).map(|(at, _)| at))
            .collect();
        let narrow = |person: &PersonSeries| PersonSeries {
            name: person.name.clone(),
            months: person
                .months
                .iter()
                .filter_map(|(at, sum)| Some((places[usize::from(*at)]?, *sum)))
                .collect(),
            days: person.days.iter().copied().filter(|(day, _)| day.year() == year).collect(),
            hours: person.hours.iter().copied().filter(|(of, ..)| *of == year).collect(),
        };
        let mut people: Vec<PersonSeries> = self.people.iter().map(narrow).collect();
        people.retain(|person| !person.days.is_empty());
        Self { timezone: self.timezone.clone(), months, people, left_out: self.left_out }
    }

    /// The same for all years together: the days of the last year of each person, and the hours of all years.
    pub fn over_all_years(&self) -> Self {
        let narrow = |person: &PersonSeries| {
            let first = person.days.last().map_or(Date::ZERO, |(last, _)| last.saturating_sub(1.year()));
            let mut hours: BTreeMap<u8, u32> = BTreeMap::new();
            for (_, slot, commits) in &person.hours {
                *hours.entry(*slot).or_default() += commits;
            }
            PersonSeries {
                name: person.name.clone(),
                months: person.months.clone(),
                days: person.days.iter().copied().filter(|(day, _)| *day >= first).collect(),
                hours: hours.into_iter().map(|(slot, commits)| (0, slot, commits)).collect(),
            }
        };
        let people = self.people.iter().map(narrow).collect();
        Self { timezone: self.timezone.clone(), months: self.months.clone(), people, left_out: self.left_out }
    }

    /// How many commits and merges it contains.
    pub fn commits(&self) -> i64 {
        self.people.iter().flat_map(|person| &person.hours).map(|(.., commits)| i64::from(*commits)).sum()
    }
}

/// The sum of everything up to each value.
pub fn cumulative(values: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let add = |sum: &mut i64, value| {
        *sum += value;
        Some(*sum)
    };
    values.into_iter().scan(0, add).collect()
}

/// Counts the series in one pass; the lines of merges are separate.
pub fn find_series(tx: &mut Tx<'_>, counting: &Counting) -> db::Result<Series> {
    let zone = counting.zone.time_zone();
    let mut tally = Tally::new(Periods::new(By::Month, &counting.zone), &counting.people, false);
    let mut days: HashMap<(u32, Date), u32> = HashMap::new();
    let mut hours: HashMap<(u32, i16, u8), u32> = HashMap::new();
    // Some zones have an offset of half an hour.
    let length = if counting.zone.name() == "UTC" { "2026-01-15T00".len() } else { "2026-01-15T00:02".len() };
    each_once(tx, counting, Grain { at_turns: length, within: length }, |commit| {
        let Some(person) = tally.add(commit)? else { return Ok(()) };
        if let Ok(at) = commit.committed_date_utc()?.parse::<Timestamp>() {
            let local = at.to_jiff().to_zoned(zone.clone());
            let slot =
                local.weekday().to_monday_zero_offset().unsigned_abs() * 24 + local.hour().unsigned_abs();
            let commits = u32::try_from(commit.commits()?).unwrap_or(u32::MAX);
            *hours.entry((person, local.year(), slot)).or_default() += commits;
            *days.entry((person, local.date())).or_default() += commits;
        }
        Ok(())
    })?;
    let mut met: Vec<Date> = days.keys().map(|(_, day)| *day).collect();
    met.sort_unstable();
    let months = list_months(met.iter());
    let new_person = |name| PersonSeries { name, ..PersonSeries::default() };
    let mut people: Vec<PersonSeries> = tally.contributors.list_names().into_iter().map(new_person).collect();
    for (label, person, sum) in tally.list() {
        if let Ok(month) = months.binary_search_by(|month| month.as_str().cmp(label)) {
            people[person as usize].months.push((u16::try_from(month).unwrap_or(u16::MAX), sum));
        }
    }
    for ((person, day), commits) in days {
        people[person as usize].days.push((day, commits));
    }
    for ((person, year, slot), commits) in hours {
        people[person as usize].hours.push((year, slot, commits));
    }
    for person in &mut people {
        person.days.sort_unstable();
        person.hours.sort_unstable();
    }
    people.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Series {
        timezone: counting.zone.name().to_owned(),
        months,
        people,
        left_out: tally.contributors.left_out,
    })
}

/// Every month from the first day to the last; a commit dated a thousand years ahead does not add a thousand years.
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
