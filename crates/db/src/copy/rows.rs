//! Reads rows by key in batches of limited size, writes them in few statements, and computes checksums.

use std::ops::ControlFlow;

use super::tables::Table;
use crate::survey::{TableSurvey, digest};
use crate::{Dialect, Error, Result, ToValue, Tx, Value};

/// A batch ends after this many rows …
const MAX_ROWS: usize = 500;
/// … or this many bytes, whichever comes first; a single row may be larger.
const MAX_BYTES: usize = 4 << 20;
/// Rows per INSERT, largest first.
const AT_ONCE: [usize; 3] = [64, 8, 1];

pub(super) type Values = Vec<Value<'static>>;

/// The number of rows, and the sum of their digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowsDigest {
    pub(super) rows: u64,
    sum: u128,
}

impl RowsDigest {
    pub(super) fn add(&mut self, row: &Values) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(digest(row));
    }

    pub(super) fn survey(self) -> TableSurvey {
        TableSurvey::new(self.rows, self.sum)
    }
}

fn size(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) => 32 + text.len(),
        _ => 32,
    }
}

impl Table {
    pub(super) fn key_of(&self, row: &Values) -> Values {
        self.key.iter().map(|at| row[*at].clone()).collect()
    }

    /// The next rows by key: after `after`, up to and including `upto`. Empty at the end.
    pub(super) fn read_batch(
        &self,
        tx: &mut Tx<'_>,
        after: Option<&Values>,
        upto: Option<&Values>,
    ) -> Result<Vec<Values>> {
        let key = self.key.iter().map(|at| quoted(&self.columns[*at])).collect::<Vec<_>>().join(", ");
        let mut conditions = Vec::new();
        let mut params = Values::new();
        for (sign, bound) in [(">", after), ("<=", upto)] {
            if let Some(bound) = bound {
                let numbers = (1..=bound.len()).map(|number| format!("?{}", params.len() + number));
                conditions.push(format!("({key}) {sign} ({})", numbers.collect::<Vec<_>>().join(", ")));
                params.extend(bound.iter().cloned());
            }
        }
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        let text = tx.dialect().render(&format!(
            "SELECT {} FROM {}{filter} ORDER BY {key} LIMIT {MAX_ROWS}",
            self.quoted_columns(),
            quoted(&self.name)
        ));
        let mut batch = Vec::new();
        let mut bytes = 0;
        tx.each_dynamic(&text, &params, |row| {
            let values = (0..self.columns.len()).map(|at| row.get(at)).collect::<Result<Values>>()?;
            bytes += values.iter().map(size).sum::<usize>();
            batch.push(values);
            Ok(if bytes < MAX_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })
        .map_err(|error| self.named(error))?;
        Ok(batch)
    }

    /// Digests the rows up to `upto`, or all of them; returns the last key, too.
    pub(super) fn tally(
        &self,
        tx: &mut Tx<'_>,
        upto: Option<&Values>,
    ) -> Result<(RowsDigest, Option<Values>)> {
        let mut tally = RowsDigest::default();
        let mut last = None;
        loop {
            let batch = self.read_batch(tx, last.as_ref(), upto)?;
            let Some(row) = batch.last() else { return Ok((tally, last)) };
            last = Some(self.key_of(row));
            batch.iter().for_each(|row| tally.add(row));
        }
    }

    pub(super) fn add_rows(&self, tx: &mut Tx<'_>, rows: &[Values]) -> Result<()> {
        let mut rest = rows;
        for count in AT_ONCE {
            if rest.len() < count {
                continue;
            }
            let marker = format!("{{values {count}x{}}}", self.columns.len());
            let text = format!("INSERT INTO {} ({}) {marker}", quoted(&self.name), self.quoted_columns());
            let text = tx.dialect().render(&text);
            while rest.len() >= count {
                let (now, later) = rest.split_at(count);
                let values: Vec<Value<'_>> = now.iter().flatten().map(ToValue::to_value).collect();
                tx.execute_dynamic(&text, &values).map_err(|error| self.named(error))?;
                rest = later;
            }
        }
        Ok(())
    }

    pub(super) fn clear(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.execute_text(&format!("DELETE FROM {}", quoted(&self.name)))
    }

    pub(super) fn count(&self, tx: &mut Tx<'_>) -> Result<u64> {
        let count = self.number(tx, &format!("SELECT count(*) FROM {}", quoted(&self.name)))?;
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }

    pub(super) fn is_empty(&self, tx: &mut Tx<'_>) -> Result<bool> {
        Ok(self.number(tx, &format!("SELECT 1 FROM {} LIMIT 1", quoted(&self.name)))?.is_none())
    }

    /// The highest id that the database has assigned in this table, including deleted rows.
    pub(super) fn find_last_number(&self, tx: &mut Tx<'_>) -> Result<Option<i64>> {
        let Some(column) = &self.identity else { return Ok(None) };
        let name = &self.name;
        let given = match tx.dialect() {
            Dialect::Sqlite => {
                self.number(tx, &format!("SELECT seq FROM sqlite_sequence WHERE name = '{name}'"))?
            }
            Dialect::Postgres => self.number(
                tx,
                &format!(
                    "SELECT pg_sequence_last_value(pg_get_serial_sequence('{name}', '{column}')::regclass)"
                ),
            )?,
        };
        let highest = self.number(tx, &format!("SELECT max({}) FROM {}", quoted(column), quoted(name)))?;
        Ok(given.max(highest))
    }

    /// Sets the highest assigned id to `last`.
    pub(super) fn put_last_number(&self, tx: &mut Tx<'_>, last: i64) -> Result<()> {
        let Some(column) = &self.identity else { return Ok(()) };
        let name = &self.name;
        match tx.dialect() {
            Dialect::Sqlite => tx.execute_text(&format!(
                "DELETE FROM sqlite_sequence WHERE name = '{name}';
                 INSERT INTO sqlite_sequence (name, seq) VALUES ('{name}', {last})"
            )),
            // PostgreSQL sequences start at 1.
            Dialect::Postgres if last < 1 => Ok(()),
            Dialect::Postgres => tx.execute_text(&format!(
                "SELECT setval(pg_get_serial_sequence('{name}', '{column}'), {last})"
            )),
        }
    }

    fn number(&self, tx: &mut Tx<'_>, text: &str) -> Result<Option<i64>> {
        let found = tx.list_dynamic(text, |row| row.get::<Option<i64>>(0))?;
        Ok(found.last().copied().flatten())
    }

    fn quoted_columns(&self) -> String {
        self.columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ")
    }

    fn named(&self, error: Error) -> Error {
        match error {
            Error::Constraint(why) => Error::Constraint(format!("table `{}`: {why}", self.name)),
            Error::Statement(why) => Error::Statement(format!("table `{}`: {why}", self.name)),
            Error::Unexpected { column, wanted, found } => {
                let column = self.columns.get(column).cloned().unwrap_or_default();
                Error::Statement(format!("table `{}`, `{column}`: {found}, not {wanted}", self.name))
            }
            other => other,
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}
