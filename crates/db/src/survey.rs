//! The content of a database: tables, row counts and checksums that are equal on both databases.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sha2::{Digest, Sha256};

use super::{Db, Dialect, Error, Result, Tx, Value, copy};

/// The row count and the checksum of a table.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TableSurvey {
    pub rows: u64,
    /// Independent of the order of rows and of the database.
    pub checksum: String,
}

impl TableSurvey {
    pub(super) fn new(rows: u64, sum: u128) -> Self {
        Self { rows, checksum: format!("{sum:032x}") }
    }
}

/// The number of rows in each table.
pub async fn count_rows(db: &Db) -> Result<BTreeMap<String, i64>> {
    db.read(|tx| {
        let mut counts = BTreeMap::new();
        for table in list_ours(tx)? {
            let count = tx.list_dynamic(&format!("SELECT count(*) FROM {table}"), |row| row.get(0))?;
            counts.insert(table, count.first().copied().unwrap_or(0));
        }
        Ok(counts)
    })
    .await
}

/// The row count and checksum of every table.
pub async fn survey(db: &Db) -> Result<BTreeMap<String, TableSurvey>> {
    db.read(|tx| {
        let tables = list_ours(tx)?;
        tables.into_iter().map(|table| Ok((table.clone(), survey_table(tx, &table)?))).collect()
    })
    .await
}

fn survey_table(tx: &mut Tx<'_>, table: &str) -> Result<TableSurvey> {
    let columns = list_columns(tx, table)?.join(", ");
    let mut rows = 0;
    let mut sum: u128 = 0;
    tx.each_dynamic(&format!("SELECT {columns} FROM {table}"), &[], |row| {
        rows += 1;
        // A sum does not depend on the order of rows.
        sum = sum.wrapping_add(digest(&row.cells()?));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(TableSurvey::new(rows, sum))
}

/// The share of one row in the checksum of its table; its cells are sorted by column name.
pub(super) fn digest(cells: &[Value<'_>]) -> u128 {
    let mut hasher = Sha256::new();
    for cell in cells {
        match cell {
            Value::Null => hasher.update(b"n"),
            Value::Int(value) => hasher.update([b"i".as_slice(), &value.to_be_bytes()].concat()),
            Value::Real(value) => hasher.update([b"r".as_slice(), &value.to_be_bytes()].concat()),
            Value::Text(text) => {
                hasher.update([b"t".as_slice(), &(text.len() as u64).to_be_bytes()].concat());
                hasher.update(text.as_bytes());
            }
        }
    }
    let digest = hasher.finalize();
    digest.iter().take(16).fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
}

/// Our tables, each after those that its rows refer to; a schema may contain tables of other programs, too.
fn list_ours(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    let there = list_tables(tx)?;
    Ok(copy::list_known_tables()?.into_iter().filter(|table| there.contains(table)).collect())
}

pub(super) fn list_tables(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    let text = match tx.dialect() {
        Dialect::Sqlite => {
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1"
        }
        Dialect::Postgres => {
            "SELECT table_name::text FROM information_schema.tables
             WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY 1"
        }
    };
    list_sorted(tx, text)
}

/// The columns of a table, sorted by name, so that both databases return the same order.
pub(super) fn list_columns(tx: &mut Tx<'_>, table: &str) -> Result<Vec<String>> {
    if !table.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(Error::Statement(format!("`{table}` is not a table of ours")));
    }
    let text = match tx.dialect() {
        Dialect::Sqlite => format!("SELECT name FROM pragma_table_info('{table}') ORDER BY 1"),
        Dialect::Postgres => format!(
            "SELECT column_name::text FROM information_schema.columns
             WHERE table_schema = current_schema() AND table_name = '{table}' ORDER BY 1"
        ),
    };
    list_sorted(tx, &text)
}

fn list_sorted(tx: &mut Tx<'_>, text: &str) -> Result<Vec<String>> {
    let mut words = list_words(tx, text)?;
    words.sort();
    Ok(words)
}

/// The values of a query with one text column.
pub(super) fn list_words(tx: &mut Tx<'_>, text: &str) -> Result<Vec<String>> {
    let words = tx.list_dynamic(text, |row| row.get::<Option<String>>(0))?;
    Ok(words.into_iter().flatten().collect())
}

/// Problems found by SQLite's own full check, and broken references. Empty if there are none.
pub async fn check_integrity(db: &Db) -> Result<Vec<String>> {
    db.read(|tx| {
        let mut problems = Vec::new();
        if tx.dialect() == Dialect::Sqlite {
            problems.extend(list_words(tx, "PRAGMA integrity_check(20)")?);
            problems.retain(|word| word != "ok");
            problems.extend(tx.list_dynamic("PRAGMA foreign_key_check", |row| {
                Ok(format!("a row points at nothing: {:?}", row.cells()?))
            })?);
        }
        Ok(problems)
    })
    .await
}

/// Drops all our tables and creates them again, empty. Tables of other programs stay; if one refers to ours, the
/// database refuses, and nothing is changed.
pub async fn reset(db: &Db) -> Result<()> {
    db.write(|tx| {
        for table in list_ours(tx)?.iter().rev() {
            tx.execute_text(&format!("DROP TABLE {table}"))?;
        }
        super::migrate::apply_all(tx)
    })
    .await
}
