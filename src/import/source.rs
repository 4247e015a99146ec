//! Tables of another program: maps their columns, and reads and checks their rows one by one.

use std::path::Path;

use jiff::tz::TimeZone;

use super::report::TableCount;
use super::{Options, Report, moment};
use crate::db::{self, Foreign, Raw, Tx};
use crate::phrase;
use crate::phrase::Phrase;
use crate::text;
use crate::time::Timestamp;

/// Rows between two checks for cancellation.
const POLL_EVERY: u64 = 500;
/// The longest text of a column, in bytes.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// A table that an import reads.
pub(super) struct SourceTable {
    pub(super) name: &'static str,
    pub(super) columns: &'static [SourceColumn],
}

/// A column: our name, names in other versions, and whether it is required.
pub(super) struct SourceColumn {
    name: &'static str,
    also: &'static [&'static str],
    is_needed: bool,
}

/// A required column.
pub(super) const fn needed(name: &'static str) -> SourceColumn {
    SourceColumn { name, also: &[], is_needed: true }
}

/// A required column that may have other names.
pub(super) const fn needed_as(name: &'static str, also: &'static [&'static str]) -> SourceColumn {
    SourceColumn { name, also, is_needed: true }
}

/// A column that counts as NULL if it is missing.
pub(super) const fn spare(name: &'static str, also: &'static [&'static str]) -> SourceColumn {
    SourceColumn { name, also, is_needed: false }
}

/// Why a row is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) Phrase);

/// What aborts the import of a row: the row itself, or the database.
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

/// The result for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowOutcome {
    Added,
    Known,
    /// It will be written together with others, which are counted later.
    Waiting,
}

impl RowOutcome {
    pub(super) fn new(is_new: bool) -> Self {
        if is_new { RowOutcome::Added } else { RowOutcome::Known }
    }
}

/// Opens the database of the program `of`, in which `table` is expected.
pub(super) fn open(file: &Path, of: &str, table: &str) -> db::Result<Foreign> {
    let source = Foreign::open(file)?;
    if source.tables()?.iter().any(|name| name == table) {
        return Ok(source);
    }
    Err(db::Error::Foreign(phrase!(
        "{file} is not a database of {of}: it has no table `{table}`",
        "{file} は {of} のデータベースではありません：表 `{table}` がありません",
        file = source.shown()
    )))
}

/// Passes every row of `table` to `take`; a missing table is skipped with a notice.
pub(super) fn import_table(
    tx: &mut Tx<'_>,
    source: &Foreign,
    table: &SourceTable,
    options: &Options,
    report: &mut Report,
    mut take: impl FnMut(&mut Tx<'_>, &Record<'_>, &mut TableCount) -> Result<RowOutcome, RowError>,
) -> db::Result<TableCount> {
    let mut tally = TableCount::default();
    let Some(columns) = find_columns(source, table, report)? else { return Ok(tally) };
    let wanted: Vec<&str> = columns.iter().flatten().map(String::as_str).collect();
    let total = source.count(table.name)?;
    source.each(table.name, &wanted, |cells| {
        if tally.found.is_multiple_of(POLL_EVERY) {
            if options.stop.is_cancelled() {
                return Err(db::Error::Foreign(phrase!(
                    "the import was interrupted; nothing was imported",
                    "取り込みを中断しました。何も取り込んでいません"
                )));
            }
            (options.progress)(table.name, tally.found, total);
        }
        tally.found += 1;
        let mut rest = cells.iter();
        let cells: Vec<Raw<'_>> = columns
            .iter()
            .map(|column| column.as_ref().and_then(|_| rest.next()).copied().unwrap_or(Raw::Null))
            .collect();
        let record = Record { columns: table.columns, cells: &cells, zone: &options.zone };
        match take(tx, &record, &mut tally) {
            Ok(RowOutcome::Added) => tally.added += 1,
            Ok(RowOutcome::Known) => tally.known += 1,
            Ok(RowOutcome::Waiting) => {}
            Err(RowError::Row(Refusal(reason))) => tally.refuse(reason),
            Err(RowError::Db(error)) => return Err(error),
        }
        Ok(())
    })?;
    (options.progress)(table.name, tally.found, total);
    Ok(tally)
}

/// The source's name of each column, `None` for a missing column; `None` altogether if the table is missing.
fn find_columns(
    source: &Foreign,
    table: &SourceTable,
    report: &mut Report,
) -> db::Result<Option<Vec<Option<String>>>> {
    let there = source.columns(table.name)?;
    if there.is_empty() {
        report.note(phrase!(
            "there is no table `{table}`; nothing is imported from it",
            "表 `{table}` がないため、取り込みません",
            table = table.name
        ));
        return Ok(None);
    }
    let find = |column: &SourceColumn| {
        let names = std::iter::once(&column.name).chain(column.also);
        names.flat_map(|name| there.iter().find(|known| known.eq_ignore_ascii_case(name))).next().cloned()
    };
    let columns: Vec<Option<String>> = table.columns.iter().map(find).collect();
    for (column, found) in table.columns.iter().zip(&columns) {
        if column.is_needed && found.is_none() {
            return Err(db::Error::Foreign(phrase!(
                "{file}: the table `{table}` has no column `{column}`, so it is of another program or version",
                "{file}：表 `{table}` に列 `{column}` がありません（別のプログラムかバージョンのものです）",
                file = source.shown(),
                table = table.name,
                column = column.name
            )));
        }
    }
    let unread: Vec<&str> = there
        .iter()
        .map(String::as_str)
        .filter(|name| *name != "id" && !columns.iter().flatten().any(|used| used == name))
        .collect();
    if !unread.is_empty() {
        report.note(phrase!(
            "`{table}` has columns that are not imported: {columns}",
            "`{table}` には取り込まない列があります：{columns}",
            table = table.name,
            columns = unread.join(", ")
        ));
    }
    Ok(Some(columns))
}

/// One row of the source.
pub(super) struct Record<'a> {
    columns: &'static [SourceColumn],
    cells: &'a [Raw<'a>],
    zone: &'a TimeZone,
}

impl Record<'_> {
    fn cell(&self, name: &str) -> Raw<'_> {
        let at = self.columns.iter().position(|column| column.name == name);
        at.and_then(|at| self.cells.get(at)).copied().unwrap_or(Raw::Null)
    }

    /// A required text; numbers are converted.
    pub(super) fn text(&self, name: &str) -> Result<String, Refusal> {
        self.find_text(name)?.ok_or_else(|| is_null(name))
    }

    /// A required text that is not empty.
    pub(super) fn word(&self, name: &str) -> Result<String, Refusal> {
        let text = self.text(name)?;
        match text.trim() {
            "" => Err(is_empty(name)),
            word => Ok(word.to_owned()),
        }
    }

    pub(super) fn find_text(&self, name: &str) -> Result<Option<String>, Refusal> {
        match self.cell(name) {
            Raw::Null => Ok(None),
            Raw::Int(number) => Ok(Some(number.to_string())),
            Raw::Real(number) => Ok(Some(number.to_string())),
            Raw::Text(bytes) if bytes.len() > MAX_TEXT_BYTES => Err(Refusal(phrase!(
                "`{name}` is longer than {most} bytes",
                "`{name}` が {most} バイトを超えています",
                most = MAX_TEXT_BYTES
            ))),
            Raw::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text.replace('\0', ""))),
                Err(_) => Err(Refusal(phrase!("`{name}` is not UTF-8", "`{name}` が UTF-8 ではありません"))),
            },
            Raw::Blob(_) => Err(Refusal(phrase!("`{name}` is not text", "`{name}` が文字列ではありません"))),
        }
    }

    /// An integer, also as text.
    pub(super) fn int(&self, name: &str) -> Result<i64, Refusal> {
        self.find_int(name)?.ok_or_else(|| is_null(name))
    }

    pub(super) fn find_int(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let number = match self.cell(name) {
            Raw::Null => return Ok(None),
            Raw::Int(number) => Some(number),
            #[allow(clippy::cast_possible_truncation, reason = "the range is checked beside it")]
            Raw::Real(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(number as i64),
            Raw::Text(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok()),
            _ => None,
        };
        number.map(Some).ok_or_else(|| {
            Refusal(phrase!("`{name}` is not a whole number", "`{name}` が整数ではありません"))
        })
    }

    /// A number that is not negative.
    pub(super) fn count(&self, name: &str) -> Result<i64, Refusal> {
        match self.int(name)? {
            number if number >= 0 => Ok(number),
            _ => Err(is_below_zero(name)),
        }
    }

    /// 0 or 1; NULL is 0.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.find_int(name)? {
            None | Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(_) => {
                Err(Refusal(phrase!("`{name}` is neither 0 nor 1", "`{name}` が 0 でも 1 でもありません")))
            }
        }
    }

    /// A time in any format that these programs write.
    pub(super) fn time(&self, name: &str) -> Result<Timestamp, Refusal> {
        self.find_time(name)?.ok_or_else(|| is_null(name))
    }

    pub(super) fn find_time(&self, name: &str) -> Result<Option<Timestamp>, Refusal> {
        let at = match self.cell(name) {
            Raw::Null => return Ok(None),
            Raw::Int(number) => moment::of_number(number),
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
        at.map(Some)
            .ok_or_else(|| Refusal(phrase!("`{name}` is not a time", "`{name}` を日時として読めません")))
    }
}

fn is_null(name: &str) -> Refusal {
    Refusal(phrase!("`{name}` is NULL", "`{name}` が NULL です"))
}

pub(super) fn is_empty(name: &str) -> Refusal {
    Refusal(phrase!("`{name}` is empty", "`{name}` が空です"))
}

pub(super) fn is_below_zero(name: &str) -> Refusal {
    Refusal(phrase!("`{name}` is below zero", "`{name}` が負の数です"))
}

pub(super) fn is_no_list_of_texts(name: &str) -> Refusal {
    Refusal(phrase!("`{name}` is not a JSON array of texts", "`{name}` が文字列の JSON 配列ではありません"))
}

/// `text` for a message: short and on one line.
pub(super) fn quote(text: &str) -> String {
    text::shorten(&text::one_line(text), 40)
}
