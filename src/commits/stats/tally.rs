//! Sums of commits per person and period, added row by row.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::periods::Periods;
use super::{LeftOut, StatRow};
use crate::commits::people::{Author, People};
use crate::commits::store::reading::Counted;
use crate::db;

/// Commits and their lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Sum {
    /// Commits with one parent or none.
    pub commits: i64,
    /// Commits with two parents or more.
    pub merges: i64,
    /// Lines added.
    pub additions: i64,
    /// Lines deleted.
    pub deletions: i64,
    /// Commits whose line counts should be in the sum, but were not included by the host.
    #[serde(skip)]
    pub stats_missing: i64,
    /// Lines added, lines deleted and missing line counts of merges, which repeat those of the merged branches.
    #[serde(skip)]
    pub of_merges: [i64; 3],
}

impl Sum {
    fn add(&mut self, commit: &Counted<'_>) -> db::Result<()> {
        let ((additions, deletions), missing) = (commit.lines()?, commit.stats_missing()?);
        let number = commit.commits()?;
        let more = if commit.is_merge()? {
            Self { merges: number, of_merges: [additions, deletions, missing], ..Self::default() }
        } else {
            Self { commits: number, additions, deletions, stats_missing: missing, ..Self::default() }
        };
        self.extend(&more);
        Ok(())
    }

    /// The same, including the lines of merges.
    pub fn with_merges(self) -> Self {
        let [additions, deletions, missing] = self.of_merges;
        Self {
            additions: self.additions + additions,
            deletions: self.deletions + deletions,
            stats_missing: self.stats_missing + missing,
            of_merges: [0; 3],
            ..self
        }
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.commits += other.commits;
        self.merges += other.merges;
        self.additions += other.additions;
        self.deletions += other.deletions;
        self.stats_missing += other.stats_missing;
        self.of_merges.iter_mut().zip(other.of_merges).for_each(|(sum, more)| *sum += more);
    }
}

#[derive(Default)]
pub(super) struct Contributor {
    pub(super) key: String,
    pub(super) name: String,
    /// The date of the commit with this name; later than all dates if it is configured.
    named_at: String,
}

/// The authors by every spelling found.
pub(super) struct Contributors<'a> {
    people: &'a People,
    pub(super) all: Vec<Contributor>,
    /// From an address and a name to a person, or to `None` if excluded.
    spellings: HashMap<String, HashMap<String, Option<u32>>>,
    by_key: HashMap<String, u32>,
    pub(super) left_out: LeftOut,
}

impl<'a> Contributors<'a> {
    pub(super) fn new(people: &'a People) -> Self {
        let (spellings, by_key) = (HashMap::new(), HashMap::new());
        Self { people, all: Vec::new(), spellings, by_key, left_out: LeftOut::default() }
    }

    /// The number of a commit's author; `None` if excluded.
    pub(super) fn find(&mut self, commit: &Counted<'_>) -> db::Result<Option<u32>> {
        let (name, email) = (commit.author_name()?, commit.author_email()?);
        let known = self.spellings.get(email).and_then(|names| names.get(name));
        let person = match known {
            Some(person) => *person,
            None => self.add(name, email),
        };
        let Some(person) = person else {
            self.left_out.authors += commit.commits()?;
            return Ok(None);
        };
        if self.people.excludes_titles() && self.people.excludes_title(commit.title()?) {
            self.left_out.titles += commit.commits()?;
            return Ok(None);
        }
        let date = commit.committed_date_utc()?;
        let entry = &mut self.all[person as usize];
        if date > entry.named_at.as_str() {
            entry.named_at = date.to_owned();
            entry.name = name.to_owned();
        }
        Ok(Some(person))
    }

    fn add(&mut self, name: &str, email: &str) -> Option<u32> {
        let person = match self.people.find(name, email) {
            Author::LeftOut => None,
            Author::Person { key, name } => {
                let next = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
                let person = *self.by_key.entry(key.clone()).or_insert(next);
                if person == next {
                    self.all.push(Contributor { key, ..Contributor::default() });
                }
                if let Some(name) = name {
                    let entry = &mut self.all[person as usize];
                    (entry.name, entry.named_at) = (name, "~".to_owned());
                }
                Some(person)
            }
        };
        self.spellings.entry(email.to_owned()).or_default().insert(name.to_owned(), person);
        person
    }

    /// Their names; people with the same name get a tag, which is the same everywhere.
    pub(super) fn list_names(&self) -> Vec<String> {
        let mut sharing: BTreeMap<&str, usize> = BTreeMap::new();
        for person in &self.all {
            *sharing.entry(&person.name).or_default() += 1;
        }
        let name = |person: &Contributor| match sharing[person.name.as_str()] {
            1 => person.name.clone(),
            _ => format!("{} ({})", person.name, person.mark()),
        };
        self.all.iter().map(name).collect()
    }
}

impl Contributor {
    /// A tag of four characters that distinguishes people with the same name.
    fn mark(&self) -> &str {
        self.key.strip_prefix("sha256:").and_then(|digits| digits.get(..4)).unwrap_or("config")
    }

    /// Whether a person has the name `name`, with or without the tag.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let bare = name.strip_suffix(&format!(" ({})", self.mark())).unwrap_or(name);
        bare.to_lowercase() == self.name.to_lowercase()
    }
}

/// Sums per period and person.
pub(super) struct Tally<'a> {
    pub(super) contributors: Contributors<'a>,
    periods: Periods,
    sums: HashMap<(u32, u32), Sum>,
    with_merges: bool,
}

impl<'a> Tally<'a> {
    pub(super) fn new(periods: Periods, people: &'a People, with_merges: bool) -> Self {
        Self { contributors: Contributors::new(people), periods, sums: HashMap::new(), with_merges }
    }

    /// Adds commits of one author in one period; returns the author unless excluded.
    pub(super) fn add(&mut self, commit: &Counted<'_>) -> db::Result<Option<u32>> {
        let Some(person) = self.contributors.find(commit)? else { return Ok(None) };
        let period = self.periods.find(commit.committed_date_utc()?);
        self.sums.entry((period, person)).or_default().add(commit)?;
        Ok(Some(person))
    }

    /// The sum of all.
    pub(super) fn total(&self) -> Sum {
        let total = self.sums.values().fold(Sum::default(), |mut total, sum| {
            total.extend(sum);
            total
        });
        if self.with_merges { total.with_merges() } else { total }
    }

    /// Label, person and sum, by label and name.
    pub(super) fn list(&self) -> Vec<(&str, u32, Sum)> {
        let wanted = |sum: &Sum| if self.with_merges { sum.with_merges() } else { *sum };
        let mut rows: Vec<(&str, u32, Sum)> = self
            .sums
            .iter()
            .map(|((period, person), sum)| (self.periods.label(*period), *person, wanted(sum)))
            .collect();
        rows.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        rows
    }

    /// A row for each period and person.
    pub(super) fn rows(&self) -> Vec<StatRow> {
        let names = self.contributors.list_names();
        let mut rows: Vec<StatRow> = self
            .list()
            .into_iter()
            .map(|(label, person, sum)| StatRow {
                period: (!label.is_empty()).then(|| label.to_owned()),
                author: Some(names[person as usize].clone()),
                ..StatRow::of(sum)
            })
            .collect();
        rows.sort_by(|a, b| (&a.period, &a.author).cmp(&(&b.period, &b.author)));
        rows
    }

    /// How many people have a commit.
    pub(super) fn people(&self) -> usize {
        self.sums.keys().map(|(_, person)| person).collect::<HashSet<_>>().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_of_one_name_are_told_apart_by_what_does_not_change() {
        let people = People::default();
        let mut contributors = Contributors::new(&people);
        let person = |key: &str| Contributor { key: key.into(), name: "Ann".into(), named_at: String::new() };
        contributors.all = vec![person("sha256:beef01"), person("sha256:cafe02")];
        assert_eq!(contributors.list_names(), ["Ann (beef)", "Ann (cafe)"]);
        let called = |name: &str| contributors.all.iter().map(|one| one.is_called(name)).collect::<Vec<_>>();
        assert_eq!(called("ann"), [true, true]);
        assert_eq!(called("Ann (cafe)"), [false, true]);
        contributors.all.pop();
        assert_eq!(contributors.list_names(), ["Ann"]);
    }
}
