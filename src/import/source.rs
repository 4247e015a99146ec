//! Tables of another program: their columns under whatever name, and their rows, read one by one and judged alone.

use std::path::Path;

use jiff::tz::TimeZone;

use super::report::TableCount;
use super::{Options, Report, moment};
use crate::db::{self, Foreign, Raw, Tx};
use crate::text;
use crate::time::Timestamp;

/// Rows between two looks at whether to stop.
const POLL_EVERY: u64 = 500;
/// The longest text that is taken from one column, in bytes.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// A table that an import reads, and its columns by our names.
pub(super) struct SourceTable {
    pub(super) name: &'static str,
    /// Without one of these it is of another program or version.
    pub(super) needed: &'static [&'static str],
    /// These count as NULL when they are not there.
    pub(super) spare: &'static [&'static str],
    /// What other versions call some of them, after our names.
    pub(super) also: &'static [(&'static str, &'static str)],
}

/// Why a row is not taken, in words that fit into a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) String);

/// What ends the work on a row: the row itself, or the database.
#[derive(Debug)]
pub(super) enum RowError {
    Row(Refusal),
    Db(db::Error),
}

impl From<Refusal> for RowError {
    fn from(refusal: Refusal) -> Self {
        RowError::Row(refusal)
    }
}

impl From<db::Error> for RowError {
    fn from(error: db::Error) -> Self {
        RowError::Db(error)
    }
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    Added,
    Known,
    /// It waits with others to be written; they are counted later.
    Waiting,
}

impl Became {
    pub(super) fn new(is_new: bool) -> Self {
        if is_new { Became::Added } else { Became::Known }
    }
}

/// Opens a file that must have `table`, or it was not made by the program `of`.
pub(super) fn open(file: &Path, of: &str, table: &str) -> db::Result<Foreign> {
    let source = Foreign::open(file)?;
    if source.tables()?.iter().any(|name| name == table) {
        return Ok(source);
    }
    let shown = source.shown();
    Err(db::Error::Foreign(format!("{shown} is not a database of {of}: it has no table `{table}`")))
}

/// An import under way.
pub(super) struct Import<'a> {
    pub(super) source: &'a Foreign,
    pub(super) options: &'a Options,
    pub(super) report: Report,
}

impl Import<'_> {
    /// Reads every row of `table`, hands it to `take`, and reports what became of them.
    pub(super) fn table(
        &mut self,
        tx: &mut Tx<'_>,
        table: &SourceTable,
        take: impl FnMut(&mut Tx<'_>, &Record<'_>) -> Result<Became, RowError>,
    ) -> db::Result<()> {
        let count = self.read(tx, table, take)?;
        self.report.tables.push(count.finish(table.name));
        Ok(())
    }

    /// The same without a report; a table that is not there is passed over with a notice.
    pub(super) fn read(
        &mut self,
        tx: &mut Tx<'_>,
        table: &SourceTable,
        mut take: impl FnMut(&mut Tx<'_>, &Record<'_>) -> Result<Became, RowError>,
    ) -> db::Result<TableCount> {
        let mut count = TableCount::default();
        let (source, options) = (self.source, self.options);
        let Some(columns) = self.find_columns(table)? else { return Ok(count) };
        let wanted: Vec<&str> = columns.iter().map(|(_, theirs)| theirs.as_str()).collect();
        let total = source.count(table.name)?;
        source.each(table.name, &wanted, |cells| {
            if count.found.is_multiple_of(POLL_EVERY) {
                if options.stop.is_cancelled() {
                    return Err(db::Error::Foreign(
                        "the import was interrupted; nothing was imported".into(),
                    ));
                }
                (options.progress)(table.name, count.found, total);
            }
            count.found += 1;
            match take(tx, &Record { columns: &columns, cells, zone: &options.zone }) {
                Ok(Became::Added) => count.added += 1,
                Ok(Became::Known) => count.known += 1,
                Ok(Became::Waiting) => {}
                Err(RowError::Row(Refusal(reason))) => count.refuse(reason),
                Err(RowError::Db(error)) => return Err(error),
            }
            Ok(())
        })?;
        (options.progress)(table.name, count.found, total);
        Ok(count)
    }

    /// The columns that are there, by our names and theirs; `None` when there is no table.
    fn find_columns(&mut self, table: &SourceTable) -> db::Result<Option<Vec<(&'static str, String)>>> {
        let there = self.source.columns(table.name)?;
        if there.is_empty() {
            self.report.note(format!("there is no table `{}`; nothing is imported from it", table.name));
            return Ok(None);
        }
        let find = |name: &'static str| {
            let also = table.also.iter().filter(|(of, _)| *of == name).map(|(_, also)| *also);
            let mut names = std::iter::once(name).chain(also);
            let found = names.find_map(|name| there.iter().find(|known| known.eq_ignore_ascii_case(name)));
            found.map(|found| (name, found.clone()))
        };
        if let Some(missing) = table.needed.iter().find(|name| find(name).is_none()) {
            return Err(db::Error::Foreign(format!(
                "{}: the table `{}` has no column `{missing}`, so it is of another program or version",
                self.source.shown(),
                table.name
            )));
        }
        let columns: Vec<_> = table.needed.iter().chain(table.spare).filter_map(|name| find(name)).collect();
        let is_unread = |name: &&str| *name != "id" && columns.iter().all(|(_, read)| read != name);
        let unread: Vec<&str> = there.iter().map(String::as_str).filter(is_unread).collect();
        if !unread.is_empty() {
            let unread = unread.join(", ");
            self.report.note(format!("`{}` has columns that are not imported: {unread}", table.name));
        }
        Ok(Some(columns))
    }
}

/// One row of the source.
pub(super) struct Record<'a> {
    columns: &'a [(&'static str, String)],
    cells: &'a [Raw<'a>],
    zone: &'a TimeZone,
}

impl Record<'_> {
    fn cell(&self, name: &str) -> Raw<'_> {
        let at = self.columns.iter().position(|(known, _)| *known == name);
        at.and_then(|at| self.cells.get(at)).copied().unwrap_or(Raw::Null)
    }

    /// Text that must be there; numbers count as their digits.
    pub(super) fn text(&self, name: &str) -> Result<String, Refusal> {
        self.find_text(name)?.ok_or_else(|| Refusal(format!("`{name}` is NULL")))
    }

    /// Text that must be there and say something.
    pub(super) fn word(&self, name: &str) -> Result<String, Refusal> {
        let text = self.text(name)?;
        match text.trim() {
            "" => Err(Refusal(format!("`{name}` is empty"))),
            word => Ok(word.to_owned()),
        }
    }

    pub(super) fn find_text(&self, name: &str) -> Result<Option<String>, Refusal> {
        match self.cell(name) {
            Raw::Null => Ok(None),
            Raw::Integer(number) => Ok(Some(number.to_string())),
            Raw::Real(number) => Ok(Some(number.to_string())),
            Raw::Text(bytes) if bytes.len() > MAX_TEXT_BYTES => {
                Err(Refusal(format!("`{name}` is longer than {MAX_TEXT_BYTES} bytes")))
            }
            Raw::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text.replace('\0', ""))),
                Err(_) => Err(Refusal(format!("`{name}` is not UTF-8"))),
            },
            Raw::Blob(_) => Err(Refusal(format!("`{name}` is not text"))),
        }
    }

    /// A whole number; text of digits counts.
    pub(super) fn int(&self, name: &str) -> Result<i64, Refusal> {
        self.find_int(name)?.ok_or_else(|| Refusal(format!("`{name}` is NULL")))
    }

    pub(super) fn find_int(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let number = match self.cell(name) {
            Raw::Null => return Ok(None),
            Raw::Integer(number) => Some(number),
            #[allow(clippy::cast_possible_truncation, reason = "the range is checked beside it")]
            Raw::Real(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(number as i64),
            Raw::Text(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok()),
            _ => None,
        };
        number.map(Some).ok_or_else(|| Refusal(format!("`{name}` is not a whole number")))
    }

    /// A number that is not below zero.
    pub(super) fn count(&self, name: &str) -> Result<i64, Refusal> {
        match self.int(name)? {
            number if number >= 0 => Ok(number),
            _ => Err(Refusal(format!("`{name}` is below zero"))),
        }
    }

    /// 0 or 1; NULL is 0.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.find_int(name)? {
            None | Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(_) => Err(Refusal(format!("`{name}` is neither 0 nor 1"))),
        }
    }

    /// A moment in any spelling that these programs write.
    pub(super) fn time(&self, name: &str) -> Result<Timestamp, Refusal> {
        self.find_time(name)?.ok_or_else(|| Refusal(format!("`{name}` is NULL")))
    }

    pub(super) fn find_time(&self, name: &str) -> Result<Option<Timestamp>, Refusal> {
        let at = match self.cell(name) {
            Raw::Null => return Ok(None),
            Raw::Integer(number) => moment::of_number(number),
            #[allow(
                clippy::cast_possible_truncation,
                reason = "out of range becomes the edge, which is refused"
            )]
            Raw::Real(seconds) => moment::of_number((seconds * 1000.0) as i64),
            Raw::Text(bytes) => {
                let text = std::str::from_utf8(bytes).unwrap_or("\u{fffd}").trim();
                if text.is_empty() {
                    return Ok(None);
                }
                moment::parse(text, self.zone)
            }
            Raw::Blob(_) => None,
        };
        at.map(Some).ok_or_else(|| Refusal(format!("`{name}` is not a time")))
    }
}

/// `text` as it may stand in a refusal: short, on one line.
pub(super) fn quote(text: &str) -> String {
    text::shorten(&text::one_line(text), 40)
}
