//! Reads a table as far as it can be read: what is wrong is noted and set aside or stood in for, and the rest is read on.

use std::ops::Range;

use serde::de::DeserializeOwned;

use super::SecretUse;
use super::diagnostic::{Problem, Problems};
use super::explain::explain;
use super::reading::{Misfit, Reading};
use super::secret_context::reading;
use super::section::Section;
use super::tree::{Data, Entry, Table, Value};

/// After this many problems in one table, the rest can wait: each costs another reading.
const MOST_PROBLEMS: usize = 100;

/// What stands in for a required key that is missing or wrong, tried in this order until one fits.
const STAND_INS: [fn() -> Data; 6] = [
    || Data::Text("stand-in@example.com".into()),
    || Data::Text("https://stand-in.invalid".into()),
    || Data::Text("stand-in".into()),
    || Data::Plain("1".into()),
    || Data::Plain("true".into()),
    || Data::Array(Vec::new()),
];

/// What came of reading a table.
pub(super) struct Attempt<T> {
    /// The value; of a table with problems, what its owner would read were they mended. `None` when nothing could stand
    /// in for what is wrong.
    pub(super) value: Option<T>,
    /// The secrets in it.
    pub(super) secrets: Vec<SecretUse>,
    /// Everything that is wrong with it.
    pub(super) problems: Problems,
    /// The owner's keys as the value was read from, if anything was wrong.
    pub(super) repaired: Option<Table>,
}

impl<T> Attempt<T> {
    /// The value if nothing was wrong.
    pub(super) fn into_result(self) -> Result<T, Problems> {
        match self.value {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ => Err(self.problems),
        }
    }
}

/// Reads the owner's keys of `section`.
pub(super) fn read_lenient<T: DeserializeOwned>(section: &Section) -> Attempt<T> {
    let mut mending = Mending {
        section,
        rest: None,
        problems: Problems::default(),
        removed: Vec::new(),
        stand_ins: Vec::new(),
    };
    loop {
        let table = mending.rest.as_ref().unwrap_or(&section.table);
        let read = Reading::new(table, &section.span, section.taken);
        let (outcome, seen) = reading(&section.secret_context, || T::deserialize(read));
        let goes_on = match outcome {
            Ok(value) => {
                let stray = section.list_stray_references(table, &seen);
                if stray.is_empty() {
                    let secrets = section.list_secret_uses(seen);
                    return mending.end(Some(value), secrets);
                }
                stray.into_iter().all(|(span, problem)| mending.set_aside(&span, problem))
            }
            Err(misfit) => mending.mend(&misfit),
        };
        if !goes_on {
            return mending.end(None, Vec::new());
        }
    }
}

/// A table on its way to being readable.
struct Mending<'a> {
    section: &'a Section,
    /// The owner's keys without what is wrong; copied only when something is, for a table may be a long one.
    rest: Option<Table>,
    problems: Problems,
    /// Keys that were set aside, each with the place of its table: that they are missing now is no news.
    removed: Vec<(Range<usize>, String)>,
    stand_ins: Vec<StandIn>,
}

/// A value that is not in the file, for `key` of the table at `table`.
struct StandIn {
    table: Range<usize>,
    key: String,
    tried: usize,
}

impl Mending<'_> {
    /// Notes what is wrong and makes the next reading get past it; answers whether that could be done.
    fn mend(&mut self, misfit: &Misfit) -> bool {
        let span = misfit.span().unwrap_or_else(|| self.section.span.clone());
        let last_place = stand_in_place(self.section, self.stand_ins.len());
        if let Some(last) = self.stand_ins.last_mut()
            && span == last_place
        {
            last.tried += 1;
            return self.put_stand_in();
        }
        let Some(key) = misfit.missing_key() else {
            let problem = explain(misfit, &self.section.explainer());
            return self.set_aside(&span, problem);
        };
        let removed = (span, key.to_owned());
        if !self.removed.contains(&removed) && !self.note(explain(misfit, &self.section.explainer())) {
            return false;
        }
        let (table, key) = removed;
        self.stand_ins.push(StandIn { table, key, tried: 0 });
        self.put_stand_in()
    }

    fn set_aside(&mut self, span: &Range<usize>, problem: Problem) -> bool {
        if !self.note(problem) {
            return false;
        }
        let own = self.section.span.clone();
        let removed = self.rest().remove_at(&own, span);
        self.removed.extend(removed.clone());
        removed.is_some()
    }

    /// Notes a problem; answers whether there is room for more.
    fn note(&mut self, problem: Problem) -> bool {
        self.problems.push(problem);
        if self.problems.len() < MOST_PROBLEMS {
            return true;
        }
        let message = "there may be more problems in this table";
        let more = Problem::at(&self.section.source, self.section.span.clone(), message);
        self.problems.push(more.with_hint("they show once these are mended"));
        false
    }

    /// Puts the stand-in that was decided on last into its table.
    fn put_stand_in(&mut self) -> bool {
        let span = stand_in_place(self.section, self.stand_ins.len());
        let Some(StandIn { table, key, tried }) = self.stand_ins.last() else { return false };
        let Some(data) = STAND_INS.get(*tried) else { return false };
        let entry =
            Entry { key: key.as_str().into(), key_span: span.clone(), value: Value { span, data: data() } };
        let table = table.clone();
        let own = self.section.span.clone();
        self.rest().put_at(&own, &table, entry)
    }

    fn rest(&mut self) -> &mut Table {
        let section = self.section;
        self.rest.get_or_insert_with(|| section.table.only(|key| !section.taken.contains(&key)))
    }

    fn end<T>(self, value: Option<T>, secrets: Vec<SecretUse>) -> Attempt<T> {
        Attempt { value, secrets, problems: self.problems.in_order(), repaired: self.rest }
    }
}

/// A stand-in stands nowhere in the file: behind its end, each at a place of its own.
fn stand_in_place(section: &Section, number: usize) -> Range<usize> {
    let place = section.source.text().len() + number;
    place..place
}
