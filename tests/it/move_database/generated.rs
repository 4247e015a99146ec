//! Rows for every table of the live schema, made at random within its constraints; a new table is covered by itself.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

/// A small generator whose every run can be repeated (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }
}

struct Column {
    name: String,
    is_number: bool,
    may_be_null: bool,
    /// PostgreSQL accepts at most 2,704 bytes in an index.
    is_indexed: bool,
    /// The words that its CHECK allows, if it lists any.
    words: Vec<String>,
    parent: Option<(String, String)>,
}

/// Puts up to `rows` rows into every table of the SQLite file.
pub(super) fn fill(path: &Path, seed: u64, rows: usize) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = OFF; BEGIN").unwrap();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..10 {
        random.next();
    }
    let names: Vec<String> = list(
        &connection,
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
         AND name NOT IN ('schema_migrations', 'db_move')",
    );
    let mut waiting: Vec<(String, Vec<Column>)> = names
        .into_iter()
        .map(|name| {
            let columns = columns(&connection, &name);
            (name, columns)
        })
        .collect();
    let mut done: Vec<String> = Vec::new();
    while !waiting.is_empty() {
        let ready = waiting.iter().position(|(_, columns)| {
            columns.iter().filter_map(|column| column.parent.as_ref()).all(|(table, _)| done.contains(table))
        });
        let (name, columns) = waiting.remove(ready.expect("tables point at each other in a circle"));
        fill_table(&connection, &name, &columns, rows, &mut random);
        done.push(name);
    }
    connection.execute_batch("COMMIT").unwrap();
}

fn fill_table(connection: &Connection, name: &str, columns: &[Column], rows: usize, random: &mut Random) {
    let names: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let marks: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
    let text = format!("INSERT OR IGNORE INTO {name} ({}) VALUES ({})", names.join(", "), marks.join(", "));
    let mut insert = connection.prepare(&text).unwrap();
    let parents: HashMap<&str, Vec<Value>> = columns
        .iter()
        .filter_map(|column| {
            let (table, key) = column.parent.as_ref()?;
            Some((column.name.as_str(), list(connection, &format!("SELECT {key} FROM {table}"))))
        })
        .collect();
    let mut made = 0;
    // Rows that a constraint refuses are made again; a table that refuses almost all of them shows in the count.
    for _ in 0..rows * 20 {
        let values: Vec<Value> = columns.iter().map(|column| value(column, &parents, random)).collect();
        made += insert.execute(rusqlite::params_from_iter(values)).unwrap_or(0);
        if made >= rows {
            return;
        }
    }
    assert!(made > 1, "no rows could be made for `{name}`");
}

fn value(column: &Column, parents: &HashMap<&str, Vec<Value>>, random: &mut Random) -> Value {
    if column.may_be_null && random.below(3) == 0 {
        return Value::Null;
    }
    if let Some(parents) = parents.get(column.name.as_str()) {
        return parents[random.below(parents.len())].clone();
    }
    if !column.words.is_empty() {
        return Value::Text(column.words[random.below(column.words.len())].clone());
    }
    if column.is_number {
        return Value::Integer(match random.below(6) {
            0 => 0,
            1 => 1,
            2 => 4_000_000_000_000_000_000,
            3 if !column.name.contains("id") => -4_000_000_000_000_000_000,
            _ => i64::try_from(random.next() % 1_000_000_007).unwrap(),
        });
    }
    let number = random.next();
    // Columns that the program reads while it moves: moments that have passed, and ids of runs.
    if column.name.ends_with("_until") || column.name.ends_with("_at") || column.name.ends_with("_utc") {
        let millis = number % 1000;
        return Value::Text(format!("2026-01-{:02}T{:02}:00:00.{millis:03}Z", 1 + number % 28, number % 24));
    }
    if column.name == "run_id" {
        return Value::Text(
            uuid::Builder::from_random_bytes(u128::from(number).to_le_bytes()).into_uuid().to_string(),
        );
    }
    Value::Text(match random.below(9) {
        0 if column.may_be_null => String::new(),
        1 => format!("2026-01-{:02}T{:02}:00:00.{:03}Z", 1 + number % 28, number % 24, number % 1000),
        2 => format!("続き①㈱𠮷野家🍜 {number}"),
        3 => format!("'quoted' \"twice\" \\ ?1 $1 {number}"),
        4 => format!("{{\"json\": [null, {number}]}}\n\tand a second line"),
        5 if random.below(150) == 0 && !column.is_indexed => {
            format!("{number}{}", "長い文章。".repeat(40_000))
        }
        6 => format!("e\u{301} is not \u{e9} {number}"),
        _ => format!("{number:x}"),
    })
}

fn columns(connection: &Connection, table: &str) -> Vec<Column> {
    let sql: String = connection
        .query_row("SELECT sql FROM sqlite_master WHERE name = ?1", [table], |row| row.get(0))
        .unwrap();
    let mut keys: HashMap<String, (String, String)> = HashMap::new();
    let mut statement = connection.prepare(&format!("PRAGMA foreign_key_list({table})")).unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        keys.insert(row.get(3).unwrap(), (row.get(2).unwrap(), row.get(4).unwrap()));
    }
    let indexed: Vec<String> = list(
        connection,
        &format!(
            "SELECT info.name FROM pragma_index_list('{table}') AS list, pragma_index_info(list.name) AS info
             WHERE info.name IS NOT NULL"
        ),
    );
    let mut statement = connection.prepare(&format!("PRAGMA table_info({table})")).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut columns = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let name: String = row.get(1).unwrap();
        let kind: String = row.get(2).unwrap();
        let (not_null, key): (bool, i64) = (row.get(3).unwrap(), row.get(5).unwrap());
        let words = sql
            .split_once(&format!("CHECK ({name} IN ("))
            .map(|(_, rest)| {
                rest.split(')')
                    .next()
                    .unwrap()
                    .split(',')
                    .map(|word| word.trim().trim_matches('\'').to_owned())
                    .collect()
            })
            .unwrap_or_default();
        let parent = keys.get(&name).cloned();
        columns.push(Column {
            is_number: kind == "INTEGER",
            may_be_null: !not_null && key == 0,
            words,
            parent,
            is_indexed: indexed.contains(&name),
            name,
        });
    }
    columns
}

fn list<T: rusqlite::types::FromSql>(connection: &Connection, text: &str) -> Vec<T> {
    let mut statement = connection.prepare(text).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
