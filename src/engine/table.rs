//! Rows of one kind, page by page along their key: for exports and for the API.

use serde_json::Value as Json;

use crate::config::Config;
use crate::db::{self, Tx};
use crate::time::Timestamp;

/// Rows of one kind that can be exported.
pub struct Table {
    /// Its name as an argument of `export`.
    pub name: &'static str,
    /// Its content, for the help text.
    pub about: &'static str,
    pub columns: &'static [&'static str],
    /// A page of rows after a key.
    pub page: fn(&mut Tx<'_>, &TableFilter, After<'_>) -> db::Result<TablePage>,
    /// The owner of a job's rows, if it is not the job's name; `None` if that job has no such rows.
    pub owner: fn(&Config, &str) -> Option<String>,
}

/// Selects rows.
#[derive(Clone, Debug)]
pub struct TableFilter {
    /// Rows of this owner only; mostly a job.
    pub owner: Option<String>,
    pub since: Timestamp,
    /// Exclusive.
    pub until: Timestamp,
    /// Rows of a page.
    pub limit: usize,
}

impl Default for TableFilter {
    fn default() -> Self {
        Self { owner: None, since: Timestamp::MIN, until: Timestamp::MAX, limit: 1_000 }
    }
}

/// The key of the last row of the previous page; empty for the first page.
#[derive(Clone, Copy, Debug)]
pub struct After<'a>(pub &'a str);

impl After<'_> {
    /// The key as a number.
    pub fn number(self) -> i64 {
        self.0.parse().unwrap_or(i64::MIN)
    }
}

/// A page of rows and the key of its last one, if there may be more.
#[derive(Debug, Default)]
pub struct TablePage {
    /// The rows, each with a field for every column.
    pub rows: Vec<Vec<Cell>>,
    /// The key for the next page.
    pub next: Option<String>,
}

impl TablePage {
    /// Makes a page of rows.
    pub fn of<T, K: ToString>(rows: &[T], key: fn(&T) -> K, fields: fn(&T) -> Vec<Cell>) -> Self {
        Self { next: rows.last().map(|row| key(row).to_string()), rows: rows.iter().map(fields).collect() }
    }
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Unknown.
    Null,
    Int(i64),
    Flag(bool),
    /// Our own words: times, ids, states. They never begin like a formula.
    Word(String),
    /// Text written by others.
    Text(String),
    /// Several texts written by others.
    List(Vec<String>),
    Json(Json),
}

impl Cell {
    /// A cell with our own word.
    pub fn word(word: impl ToString) -> Self {
        Self::Word(word.to_string())
    }

    /// A cell with text written by others.
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
