//! Rows of one sort, page by page along their key: for exports and for the API.

use serde_json::Value as Json;

use crate::config::Config;
use crate::db::{self, Tx};
use crate::time::Timestamp;

/// Rows of one sort.
pub struct Table {
    /// Its name behind `export`.
    pub name: &'static str,
    /// What it holds, for the help text.
    pub about: &'static str,
    /// The names of the columns.
    pub columns: &'static [&'static str],
    /// The rows after a key.
    pub page: fn(&mut Tx<'_>, &TableFilter, After<'_>) -> db::Result<TablePage>,
    /// What the rows of a job have in common, if it is not its name; `None` if that job has no such rows.
    pub owner: fn(&Config, &str) -> Option<String>,
}

/// Which rows are meant.
#[derive(Clone, Debug)]
pub struct TableFilter {
    /// Of this owner only; mostly a job.
    pub owner: Option<String>,
    /// From then on …
    pub since: Timestamp,
    /// … and before then.
    pub until: Timestamp,
    /// How many rows a page has at most.
    pub limit: usize,
}

impl Default for TableFilter {
    fn default() -> Self {
        Self { owner: None, since: Timestamp::MIN, until: Timestamp::MAX, limit: 1_000 }
    }
}

/// The key of the last row of a page; empty before the first page.
#[derive(Clone, Copy, Debug)]
pub struct After<'a>(pub &'a str);

impl After<'_> {
    /// The key as a number.
    pub fn number(self) -> i64 {
        self.0.parse().unwrap_or(i64::MIN)
    }
}

/// Some rows, and the key of the last one; no key when there are no more.
#[derive(Debug, Default)]
pub struct TablePage {
    /// The rows, each with a field for every column.
    pub rows: Vec<Vec<Cell>>,
    /// Where the next page begins.
    pub next: Option<String>,
}

impl TablePage {
    /// A page of rows that were read.
    pub fn of<T, K: ToString>(rows: &[T], key: fn(&T) -> K, fields: fn(&T) -> Vec<Cell>) -> Self {
        Self { next: rows.last().map(|row| key(row).to_string()), rows: rows.iter().map(fields).collect() }
    }
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing is known.
    Null,
    /// A number.
    Int(i64),
    /// Yes or no.
    Flag(bool),
    /// Our own words: times, ids, states. They never begin like a formula.
    Word(String),
    /// Text that others wrote.
    Text(String),
    /// Several texts that others wrote.
    List(Vec<String>),
    /// Anything else.
    Json(Json),
}

impl Cell {
    /// Our own word.
    pub fn word(word: impl ToString) -> Self {
        Self::Word(word.to_string())
    }

    /// Text that others wrote.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

impl From<Timestamp> for Cell {
    fn from(at: Timestamp) -> Self {
        Self::word(at)
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}
