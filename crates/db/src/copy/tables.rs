//! The tables of our migrations: columns, keys, and the order of references.

use rusqlite::Connection;

use crate::survey::{self, list_words};
use crate::{Error, Result, Tx, migrate};
use stdx::time::Timestamp;

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// Sorted by name, for checksums.
    pub(super) columns: Vec<String>,
    /// The positions in `columns` of a key that is unique and never NULL.
    pub(super) key: Vec<usize>,
    /// The column with ids assigned by the database.
    pub(super) identity: Option<String>,
    parents: Vec<String>,
}

/// Tables about the database itself, which are not copied.
pub(super) const OWN: [&str; 3] = ["schema_migrations", "db_move", "db_copy"];

/// Every table that a move copies, each after those that its rows refer to.
///
/// Both databases have run the same migrations, so the schema is read from an empty database in memory.
pub(super) fn list() -> Result<Vec<Table>> {
    let memory = Connection::open_in_memory()?;
    let mut tx = Tx::on_sqlite(&memory, Timestamp::MIN);
    migrate::apply_all(&mut tx)?;
    let mut waiting = Vec::new();
    for name in survey::list_tables(&mut tx)? {
        if !OWN.contains(&name.as_str()) {
            waiting.push(read(&mut tx, name)?);
        }
    }
    let mut ordered: Vec<Table> = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_ready = |table: &Table| {
            table.parents.iter().all(|parent| {
                *parent == table.name || ordered.iter().any(|done: &Table| done.name == *parent)
            })
        };
        let Some(next) = waiting.iter().position(is_ready) else {
            return Err(Error::Statement("tables point at each other in a circle".into()));
        };
        ordered.push(waiting.remove(next));
    }
    Ok(ordered)
}

fn read(tx: &mut Tx<'_>, name: String) -> Result<Table> {
    let columns = survey::list_columns(tx, &name)?;
    let mut key =
        list_words(tx, &format!("SELECT name FROM pragma_table_info('{name}') WHERE pk > 0 ORDER BY pk"))?;
    if key.is_empty() {
        key = unique_key(tx, &name)?;
    }
    let key = key
        .iter()
        .map(|word| columns.iter().position(|column| column == word))
        .collect::<Option<Vec<usize>>>()
        .filter(|key| !key.is_empty())
        .ok_or_else(|| Error::Statement(format!("the table `{name}` has no key to copy it by")))?;
    let is_numbered = !list_words(
        tx,
        &format!("SELECT name FROM sqlite_master WHERE name = '{name}' AND sql LIKE '%AUTOINCREMENT%'"),
    )?
    .is_empty();
    let identity = key.first().filter(|_| is_numbered).map(|at| columns[*at].clone());
    let parents =
        list_words(tx, &format!("SELECT DISTINCT \"table\" FROM pragma_foreign_key_list('{name}')"))?;
    Ok(Table { name, columns, key, identity, parents })
}

/// The columns of the first unique index that covers every row and contains no NULL.
fn unique_key(tx: &mut Tx<'_>, name: &str) -> Result<Vec<String>> {
    let indexes = list_words(
        tx,
        &format!(
            "SELECT name FROM pragma_index_list('{name}') WHERE \"unique\" = 1 AND partial = 0 ORDER BY seq"
        ),
    )?;
    let needed = list_words(
        tx,
        &format!("SELECT name FROM pragma_table_info('{name}') WHERE \"notnull\" = 1 ORDER BY 1"),
    )?;
    for index in indexes {
        let columns =
            list_words(tx, &format!("SELECT name FROM pragma_index_info('{index}') ORDER BY seqno"))?;
        if columns.iter().all(|column| needed.contains(column)) {
            return Ok(columns);
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(unsafe_code, reason = "linkme puts the static into a section of its own, nothing else")]
    #[linkme::distributed_slice(crate::MIGRATIONS)]
    static SCHEMA: crate::Migration = crate::Migration {
        version: 1,
        name: "a schema for this test",
        text: "CREATE TABLE albums (id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL REFERENCES people (name));
               CREATE TABLE people (name TEXT PRIMARY KEY NOT NULL);
               CREATE TABLE photos (album INTEGER NOT NULL REFERENCES albums (id), sha TEXT NOT NULL, note TEXT,
                 UNIQUE (album, sha));",
    };

    #[test]
    fn every_table_has_a_key_and_stands_after_those_it_points_at() {
        let tables = list().unwrap();
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        assert!(!names.contains(&"schema_migrations"), "{names:?}");
        let find = |name: &str| names.iter().position(|other| *other == name).unwrap();
        assert!(find("people") < find("albums") && find("albums") < find("photos"), "{names:?}");
        let photos = &tables[find("photos")];
        let key: Vec<&str> = photos.key.iter().map(|at| photos.columns[*at].as_str()).collect();
        assert_eq!(key, ["album", "sha"]);
        assert_eq!(tables[find("albums")].identity.as_deref(), Some("id"));
        assert_eq!(tables[find("people")].identity, None);
    }
}
