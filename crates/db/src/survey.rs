//! What is in a database: tables, row counts and checksums that are the same on both databases.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::{Db, Dialect, Error, Result, SqlCell, Tx, copy};

/// What one table holds.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TableSurvey {
    pub rows: u64,
    /// The same for the same rows, whatever their order and the database.
    pub checksum: String,
}

impl TableSurvey {
    pub(super) fn new(rows: u64, sum: u128) -> Self {
        Self { rows, checksum: format!("{sum:032x}") }
    }
}

/// How many rows each table has.
pub async fn count_rows(db: &Db) -> Result<BTreeMap<String, i64>> {
    db.read(|tx| {
        let mut counts = BTreeMap::new();
        for table in list_ours(tx)? {
            let mut count = 0;
            tx.each_text(&format!("SELECT count(*) FROM {table}"), |cells| {
                if let [SqlCell::Int(rows)] = cells {
                    count = *rows;
                }
                Ok(())
            })?;
            counts.insert(table, count);
        }
        Ok(counts)
    })
    .await
}

/// Every table with its rows counted and summed up.
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
    tx.each_text(&format!("SELECT {columns} FROM {table}"), |cells| {
        rows += 1;
        // A sum does not depend on the order of the rows.
        sum = sum.wrapping_add(digest(cells.iter().cloned()));
        Ok(())
    })?;
    Ok(TableSurvey::new(rows, sum))
}

/// What one row adds to the checksum of its table; the cells are in the order of their columns' names.
pub(super) fn digest<'a>(cells: impl IntoIterator<Item = SqlCell<'a>>) -> u128 {
    let mut hasher = Sha256::new();
    for cell in cells {
        match cell {
            SqlCell::Null => hasher.update(b"n"),
            SqlCell::Int(value) => hasher.update([b"i".as_slice(), &value.to_be_bytes()].concat()),
            SqlCell::Real(value) => hasher.update([b"r".as_slice(), &value.to_be_bytes()].concat()),
            SqlCell::Text(text) => {
                hasher.update([b"t".as_slice(), &(text.len() as u64).to_be_bytes()].concat());
                hasher.update(text.as_bytes());
            }
        }
    }
    let digest = hasher.finalize();
    digest.iter().take(16).fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
}

/// Our tables that are there, each after those that its rows point at; a schema may hold those of other programs, too.
fn list_ours(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    let there = list_tables(tx)?;
    Ok(copy::list_known_tables()?.into_iter().filter(|table| there.contains(table)).collect())
}

/// All tables, by name.
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

/// The columns of a table, by name, so that both databases give the same order.
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

/// The words that a statement with one column answers, in its order.
pub(super) fn list_words(tx: &mut Tx<'_>, text: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    tx.each_text(text, |cells| {
        if let [SqlCell::Text(word)] = cells {
            words.push((*word).to_owned());
        }
        Ok(())
    })?;
    Ok(words)
}

/// What SQLite's own full check finds wrong, and rows that point at nothing. Empty when all is well.
pub async fn check_integrity(db: &Db) -> Result<Vec<String>> {
    db.read(|tx| {
        let mut problems = Vec::new();
        if tx.dialect() == Dialect::Sqlite {
            tx.each_text("PRAGMA integrity_check(20)", |cells| {
                if let [SqlCell::Text(word)] = cells
                    && *word != "ok"
                {
                    problems.push((*word).to_owned());
                }
                Ok(())
            })?;
            tx.each_text("PRAGMA foreign_key_check", |cells| {
                problems.push(format!("a row points at nothing: {cells:?}"));
                Ok(())
            })?;
        }
        Ok(problems)
    })
    .await
}

/// Drops every table of ours and creates them again, empty. What belongs to others stays; if it needs a table of ours,
/// the database refuses, and nothing is changed.
pub async fn reset(db: &Db) -> Result<()> {
    db.write(|tx| {
        for table in list_ours(tx)?.iter().rev() {
            tx.execute_text(&format!("DROP TABLE {table}"))?;
        }
        super::migrate::apply_all(tx)
    })
    .await
}
