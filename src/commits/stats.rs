//! Lines and commits per person and month, day, or in all: one pass over the commits, each counted once.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::ToSpan;
use jiff::civil::Date;

use super::author::fingerprint;
use super::store::reading::{self, Counted, Grain, Repeats, Scope};
use crate::config::value::Zone;
use crate::db::{self, Tx};
use crate::time::Timestamp;

/// What the rows are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Each person in each month.
    Month,
    /// Each person on each day.
    Day,
    /// Each person.
    Author,
}

/// One line of the statistics.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct StatRow {
    /// `2026-01`, `2026-01-15`, or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The person's latest name; a number follows where two people have the same.
    pub author: String,
    /// Commits.
    pub commits: i64,
    /// Lines added.
    pub additions: i64,
    /// Lines deleted.
    pub deletions: i64,
}

/// The statistics, and what they are of.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// What the rows are about.
    pub by: By,
    /// The time zone in which months and days begin.
    pub timezone: String,
    /// By period, then by name.
    pub rows: Vec<StatRow>,
    /// All commits counted.
    pub commits: i64,
    /// Commits counted without lines, because the host gave none.
    pub stats_missing: i64,
}

/// Counts the commits of `scope`. A SHA on several branches or in several forks counts once; what a branch no longer
/// contains does not count.
pub fn count(tx: &mut Tx<'_>, scope: &Scope, by: By, zone: &Zone) -> db::Result<Stats> {
    let repeats = if may_repeat(tx, scope)? { Repeats::Possible } else { Repeats::Never };
    let mut tally = Tally { periods: Periods::new(by, zone), ..Tally::default() };
    if tx.dialect().groups_by_hashing() {
        reading::each_group(tx, scope, grain(by, zone), repeats, |commits| tally.add(commits))?;
        return Ok(tally.finish(by, zone));
    }
    if repeats == Repeats::Never {
        reading::each_commit(tx, scope, |commit| tally.add(commit))?;
        return Ok(tally.finish(by, zone));
    }
    let mut seen = HashSet::new();
    // Of a commit in several rows, one with its lines counts: those without are looked at last.
    for without_lines in [false, true] {
        let mut is_any_left = false;
        reading::each_commit(tx, scope, |commit| {
            if (commit.stats_missing()? != 0) != without_lines {
                is_any_left = true;
            } else if seen.insert(short_key(commit.sha()?)) {
                tally.add(commit)?;
            }
            Ok(())
        })?;
        if !is_any_left {
            break;
        }
    }
    Ok(tally.finish(by, zone))
}

/// What of a date decides its period.
fn grain(by: By, zone: &Zone) -> Grain {
    let (month, day, minute) = ("2026-01".len(), "2026-01-15".len(), "2026-01-15T00:02".len());
    let (at_turns, within) = match (by, zone.name() == "UTC") {
        (By::Author, _) => (0, 0),
        (By::Month, true) => (month, month),
        (By::Month, false) => (minute, month),
        (By::Day, true) => (day, day),
        (By::Day, false) => (minute, minute),
    };
    Grain { at_turns, within }
}

/// Sixteen bytes of a SHA: enough to tell the commits of the world apart.
fn short_key(sha: &str) -> u128 {
    sha.get(..32).and_then(|start| u128::from_str_radix(start, 16).ok()).unwrap_or(0)
}

/// Whether one commit can be in several rows of the scope.
///
/// Two branches of a project can share commits. Two projects can only if they share a commit without parents; if
/// the graph of a project is not known, they may.
fn may_repeat(tx: &mut Tx<'_>, scope: &Scope) -> db::Result<bool> {
    if scope.project_id.is_some() && scope.branch_name.is_some() {
        return Ok(false);
    }
    let pairs: Vec<i64> = reading::list_pairs(tx)?
        .into_iter()
        .filter(|(project_id, branch)| {
            scope.project_id.is_none_or(|wanted| wanted == *project_id)
                && scope.branch_name.as_ref().is_none_or(|wanted| wanted == branch)
        })
        .map(|(project_id, _)| project_id)
        .collect();
    let projects: HashSet<i64> = pairs.iter().copied().collect();
    if projects.len() < pairs.len() {
        return Ok(true);
    }
    if projects.len() < 2 {
        return Ok(false);
    }
    let mut rooted = HashSet::new();
    let mut roots = HashSet::new();
    for (project_id, sha) in reading::list_roots(tx)? {
        if projects.contains(&project_id) {
            rooted.insert(project_id);
            if !roots.insert(sha) {
                return Ok(true);
            }
        }
    }
    Ok(rooted.len() < projects.len())
}

/// The first moment of a year, and of the one after, in `zone`.
pub fn year_bounds(year: i16, zone: &Zone) -> Option<(Timestamp, Timestamp)> {
    let start = |year: i16| {
        let day = Date::new(year, 1, 1).ok()?;
        Some(day.to_zoned(zone.time_zone().clone()).ok()?.timestamp().into())
    };
    Some((start(year)?, start(year.checked_add(1)?)?))
}

#[derive(Clone, Copy, Default)]
struct Sum {
    commits: i64,
    additions: i64,
    deletions: i64,
}

#[derive(Default)]
struct Person {
    key: String,
    name: String,
    /// The date of the commit that gave the name.
    named_at: String,
}

#[derive(Default)]
struct Tally {
    periods: Periods,
    people: Vec<Person>,
    /// From every spelling of an address to a person.
    by_email: HashMap<String, u32>,
    by_key: HashMap<String, u32>,
    sums: HashMap<(u32, u32), Sum>,
    commits: i64,
    stats_missing: i64,
}

impl Tally {
    fn add(&mut self, commit: &Counted<'_>) -> db::Result<()> {
        let date = commit.committed_date_utc()?;
        let period = self.periods.find(date);
        let person = self.find_person(commit.author_email()?);
        let entry = &mut self.people[person as usize];
        if date > entry.named_at.as_str() {
            entry.named_at = date.to_owned();
            entry.name = commit.author_name()?.to_owned();
        }
        let (additions, deletions) = commit.lines()?;
        let commits = commit.commits()?;
        let sum = self.sums.entry((period, person)).or_default();
        sum.commits += commits;
        sum.additions += additions;
        sum.deletions += deletions;
        self.commits += commits;
        self.stats_missing += commit.stats_missing()?;
        Ok(())
    }

    fn find_person(&mut self, email: &str) -> u32 {
        if let Some(person) = self.by_email.get(email) {
            return *person;
        }
        let key = if email.starts_with("sha256:") { email.to_owned() } else { fingerprint(email) };
        let next = u32::try_from(self.people.len()).unwrap_or(u32::MAX);
        let person = *self.by_key.entry(key.clone()).or_insert(next);
        if person == next {
            self.people.push(Person { key, ..Person::default() });
        }
        self.by_email.insert(email.to_owned(), person);
        person
    }

    fn finish(self, by: By, zone: &Zone) -> Stats {
        let names = distinct_names(&self.people);
        let mut rows: Vec<(&str, &str, StatRow)> = self
            .sums
            .iter()
            .map(|((period, person), sum)| {
                let label = self.periods.label(*period);
                let author = &names[*person as usize];
                let row = StatRow {
                    period: (by != By::Author).then(|| label.to_owned()),
                    author: author.clone(),
                    commits: sum.commits,
                    additions: sum.additions,
                    deletions: sum.deletions,
                };
                (label, author.as_str(), row)
            })
            .collect();
        rows.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        Stats {
            by,
            timezone: zone.name().to_owned(),
            rows: rows.into_iter().map(|(_, _, row)| row).collect(),
            commits: self.commits,
            stats_missing: self.stats_missing,
        }
    }
}

/// The names of people, with a number behind those that two people share.
fn distinct_names(people: &[Person]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, person) in people.iter().enumerate() {
        by_name.entry(&person.name).or_default().push(index);
    }
    let mut names = vec![String::new(); people.len()];
    for (name, mut sharing) in by_name {
        sharing.sort_by(|a, b| people[*a].key.cmp(&people[*b].key));
        for (number, index) in sharing.into_iter().enumerate() {
            names[index] = if number == 0 { name.to_owned() } else { format!("{name} ({})", number + 1) };
        }
    }
    names
}

/// Months or days, by the fixed-width texts of their beginnings and ends.
#[derive(Default)]
struct Periods {
    by: Option<By>,
    zone: Option<Zone>,
    known: BTreeMap<String, (String, u32)>,
    labels: Vec<String>,
    /// The period of the row before: neighbours are mostly of one.
    last: Option<(String, String, u32)>,
}

impl Periods {
    fn new(by: By, zone: &Zone) -> Self {
        Self { by: Some(by), zone: Some(zone.clone()), ..Self::default() }
    }

    fn label(&self, period: u32) -> &str {
        self.labels.get(period as usize).map_or("", String::as_str)
    }

    fn find(&mut self, date: &str) -> u32 {
        if let Some((from, until, period)) = &self.last
            && date >= from.as_str()
            && date < until.as_str()
        {
            return *period;
        }
        let before =
            self.known.range::<str, _>((std::ops::Bound::Unbounded, std::ops::Bound::Included(date)));
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

    /// The beginning, the end and the name of the period that `date` lies in.
    fn make(&self, date: &str) -> (String, String, String) {
        let whole = (Timestamp::MIN.to_string(), "~".to_owned(), String::new());
        let (Some(by), Some(zone), Ok(at)) = (self.by, &self.zone, date.parse::<Timestamp>()) else {
            return whole;
        };
        let day = at.date_in(zone.time_zone());
        let (first, next, label) = match by {
            By::Author => return whole,
            By::Day => (day, day.saturating_add(1.day()), day.to_string()),
            By::Month => {
                let first = day.first_of_month();
                (first, first.saturating_add(1.month()), first.strftime("%Y-%m").to_string())
            }
        };
        let text = |day: Date| {
            let start = day.to_zoned(zone.time_zone().clone());
            start.map_or(Timestamp::MAX, |start| start.timestamp().into()).to_string()
        };
        (text(first), text(next), label)
    }
}

/// A table for spreadsheets; the heading says in which zone the periods are.
pub fn render_tsv(stats: &Stats) -> String {
    let period = match stats.by {
        By::Month => Some(format!("month ({})", stats.timezone)),
        By::Day => Some(format!("day ({})", stats.timezone)),
        By::Author => None,
    };
    let heading = ["author", "commits", "additions", "deletions"].map(str::to_owned);
    let mut text = period.into_iter().chain(heading).collect::<Vec<_>>().join("\t");
    text.push('\n');
    for row in &stats.rows {
        if let Some(period) = &row.period {
            text.push_str(period);
            text.push('\t');
        }
        // A name that begins like a formula must not become one.
        if row.author.starts_with(['=', '+', '-', '@']) {
            text.push('\'');
        }
        let author = row.author.replace(['\t', '\n', '\r'], " ");
        text.push_str(&format!("{author}\t{}\t{}\t{}\n", row.commits, row.additions, row.deletions));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(by: By, zone: &str, dates: &[&str]) -> Vec<String> {
        let mut periods = Periods::new(by, &zone.parse().unwrap());
        dates
            .iter()
            .map(|date| periods.find(date))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|p| periods.label(p).to_owned())
            .collect()
    }

    #[test]
    fn months_begin_where_the_zone_says() {
        let dates = ["2026-01-31T14:59:59.999Z", "2026-01-31T15:00:00.000Z", "2025-12-31T23:59:59.000Z"];
        assert_eq!(labels(By::Month, "UTC", &dates), ["2026-01", "2026-01", "2025-12"]);
        assert_eq!(labels(By::Month, "Asia/Tokyo", &dates), ["2026-01", "2026-02", "2026-01"]);
        // The day on which summer time begins has 23 hours.
        let spring = ["2026-03-28T23:00:00.000Z", "2026-03-29T21:59:59.000Z", "2026-03-29T22:00:00.000Z"];
        assert_eq!(labels(By::Day, "Europe/Berlin", &spring), ["2026-03-29", "2026-03-29", "2026-03-30"]);
        assert_eq!(labels(By::Author, "UTC", &spring), ["", "", ""]);
    }

    #[test]
    fn a_year_is_bounded_in_its_zone() {
        let (from, until) = year_bounds(2025, &"Asia/Tokyo".parse().unwrap()).unwrap();
        assert_eq!(from.to_string(), "2024-12-31T15:00:00.000Z");
        assert_eq!(until.to_string(), "2025-12-31T15:00:00.000Z");
    }

    #[test]
    fn people_of_one_name_are_numbered_and_formulas_defused() {
        let person = |key: &str| Person { key: key.into(), name: "Ann".into(), named_at: String::new() };
        assert_eq!(distinct_names(&[person("b"), person("a")]), ["Ann (2)", "Ann"]);
        let row = StatRow { period: None, author: "=1+1".into(), commits: 1, additions: 2, deletions: 3 };
        let stats =
            Stats { by: By::Author, timezone: "UTC".into(), rows: vec![row], commits: 1, stats_missing: 0 };
        assert_eq!(render_tsv(&stats), "author\tcommits\tadditions\tdeletions\n'=1+1\t1\t2\t3\n");
    }
}
