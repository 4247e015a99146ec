//! SQLite files of other programs, opened so that neither they nor the files beside them can change.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use stdx::phrase;
use stdx::phrase::Phrase;

use super::sqlite::APPLICATION_ID;
use super::{Error, Result};

/// Characters of a path that are not escaped in a `file:` address.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');
/// The first bytes of every SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A value as stored in the file; SQLite allows any type in any column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raw<'a> {
    /// SQL NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A floating point number.
    Real(f64),
    /// Text, which need not be UTF-8.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

/// A SQLite file of another program.
///
/// It is opened as immutable: no lock is taken and no file is created beside it. A file that was not closed, with a WAL
/// or a journal beside it, is read from a copy, because only a writer may apply these.
pub struct Foreign {
    connection: Connection,
    shown: String,
    _copy: Option<tempfile::TempDir>,
}

impl Foreign {
    /// Opens the file, or explains why it cannot be imported.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let file = shown.as_str();
        let unreadable = |error: std::io::Error| Error::Foreign(cannot_be_read(file, error.to_string()));
        let facts = std::fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::Foreign(phrase!("{file} does not exist", "{file} がありません"))
            }
            _ => unreadable(error),
        })?;
        if !facts.is_file() {
            return Err(Error::Foreign(phrase!("{file} is not a file", "{file} はファイルではありません")));
        }
        if facts.len() == 0 {
            return Err(Error::Foreign(phrase!("{file} is empty", "{file} は空です")));
        }
        if !has_magic(path).map_err(unreadable)? {
            return Err(Error::Foreign(phrase!(
                "{file} is not a SQLite database",
                "{file} は SQLite のデータベースではありません"
            )));
        }
        let unclosed: Vec<PathBuf> = ["-wal", "-journal"]
            .iter()
            .map(|ending| beside(path, ending))
            .filter(|file| std::fs::metadata(file).is_ok_and(|facts| facts.len() > 0))
            .collect();
        let copy =
            if unclosed.is_empty() { None } else { Some(copy_all(path, &unclosed).map_err(Error::Foreign)?) };
        let connection = match &copy {
            None => open_immutable(path),
            Some(copy) => Connection::open(copy.path().join("copy")).map_err(Error::from),
        };
        let connection = connection.map_err(|error| broken(file, error))?;
        let foreign = Self { connection, shown, _copy: copy };
        foreign.check().map_err(|error| foreign.broken(error))?;
        Ok(foreign)
    }

    /// Rejects unreadable files and our own databases.
    fn check(&self) -> Result<()> {
        // Nothing defined in the file may run, and nothing is written, not even into a copy.
        for (name, value) in [("trusted_schema", false), ("query_only", true), ("cell_size_check", true)] {
            self.connection.pragma_update(None, name, value)?;
        }
        let id: i32 = self.connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        if id == APPLICATION_ID {
            return Err(Error::Foreign(phrase!(
                "{file} is a database of tsuzuki itself",
                "{file} は tsuzuki 自身のデータベースです",
                file = &self.shown
            )));
        }
        Ok(self.connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?)
    }

    /// The path of the file, for people.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The names of its tables. Virtual ones, which would run code of their modules, have no root page and are left
    /// out.
    pub fn tables(&self) -> Result<Vec<String>> {
        let text = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_%' ORDER BY name";
        self.names(text, [])
    }

    /// The columns of a table; empty if there is no such table.
    pub fn columns(&self, table: &str) -> Result<Vec<String>> {
        let text = "SELECT i.name FROM sqlite_master m JOIN pragma_table_info(m.name) i
                    WHERE m.type = 'table' AND m.rootpage > 0 AND m.name = ?1 ORDER BY i.cid";
        self.names(text, [table])
    }

    fn names(&self, text: &str, params: impl rusqlite::Params) -> Result<Vec<String>> {
        let read = || {
            let mut statement = self.connection.prepare(text)?;
            let names = statement.query_map(params, |row| row.get(0))?;
            names.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(|error| self.broken(error.into()))
    }

    /// The number of rows of a table.
    pub fn count(&self, table: &str) -> Result<u64> {
        let text = format!("SELECT count(*) FROM {}", quoted(table));
        let count: i64 = self
            .connection
            .query_row(&text, [], |row| row.get(0))
            .map_err(|error| self.broken(error.into()))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Passes every row of a table to `each`, in the order of the file.
    pub fn each(
        &self,
        table: &str,
        columns: &[&str],
        mut each: impl FnMut(&[Raw<'_>]) -> Result<()>,
    ) -> Result<()> {
        let list: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
        let text = format!("SELECT {} FROM {}", list.join(", "), quoted(table));
        let broken = |error: rusqlite::Error| self.broken(error.into());
        let mut statement = self.connection.prepare(&text).map_err(broken)?;
        let mut rows = statement.query([]).map_err(broken)?;
        while let Some(row) = rows.next().map_err(broken)? {
            let mut cells = Vec::with_capacity(columns.len());
            for index in 0..columns.len() {
                cells.push(match row.get_ref(index).map_err(broken)? {
                    ValueRef::Null => Raw::Null,
                    ValueRef::Integer(value) => Raw::Int(value),
                    ValueRef::Real(value) => Raw::Real(value),
                    ValueRef::Text(value) => Raw::Text(value),
                    ValueRef::Blob(value) => Raw::Blob(value),
                });
            }
            each(&cells)?;
        }
        Ok(())
    }

    fn broken(&self, error: Error) -> Error {
        broken(&self.shown, error)
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn broken(file: &str, error: Error) -> Error {
    match error {
        error @ Error::Foreign(_) => error,
        // Its header is valid, so it was a database.
        Error::Damaged(why) | Error::NotADatabase(why) => {
            Error::Foreign(phrase!("{file} is damaged: {why}", "{file} は壊れています：{why}"))
        }
        other => Error::Foreign(cannot_be_read(file, other.phrase())),
    }
}

fn cannot_be_read(file: &str, why: impl Into<Phrase>) -> Phrase {
    let why = why.into();
    phrase!("{file} cannot be read: {why}", "{file} を読み込めません：{why}")
}

fn has_magic(path: &Path) -> std::io::Result<bool> {
    use std::io::Read;
    let mut first = Vec::with_capacity(MAGIC.len());
    std::fs::File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut first)?;
    Ok(first == MAGIC)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn open_immutable(path: &Path) -> Result<Connection> {
    let path = std::path::absolute(path).map_err(|error| Error::CannotOpen(error.to_string()))?;
    let address =
        format!("file:{}?mode=ro&immutable=1", percent_encode(path.as_os_str().as_encoded_bytes(), PATH));
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(address, flags)?)
}

/// Copies the file and those beside it; fails if another process writes meanwhile, because the copy would be
/// inconsistent.
fn copy_all(path: &Path, unclosed: &[PathBuf]) -> Result<tempfile::TempDir, Phrase> {
    let file = path.display().to_string();
    let failed = |error: std::io::Error| {
        phrase!(
            "{file} was not closed by its program and cannot be copied for reading: {error}",
            "{file} は元のプログラムが閉じていないうえ、読み取り用に複製することもできません：{error}",
            file = &file,
            error = error.to_string()
        )
    };
    let list_files = || -> std::io::Result<Vec<_>> {
        let files = std::iter::once(path).chain(unclosed.iter().map(PathBuf::as_path));
        files
            .map(|file| std::fs::metadata(file).and_then(|facts| Ok((facts.len(), facts.modified()?))))
            .collect()
    };
    let dir = tempfile::tempdir().map_err(failed)?;
    let before = list_files().map_err(failed)?;
    std::fs::copy(path, dir.path().join("copy")).map_err(failed)?;
    for file in unclosed {
        let ending =
            if file.as_os_str().as_encoded_bytes().ends_with(b"-wal") { "copy-wal" } else { "copy-journal" };
        std::fs::copy(file, dir.path().join(ending)).map_err(failed)?;
    }
    if list_files().map_err(failed)? == before {
        Ok(dir)
    } else {
        Err(phrase!(
            "{file} is being written by its program; stop that first",
            "{file} は元のプログラムが書き込み中です。先に停止してください",
            file = &file
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_in_wal_mode_is_read_and_nothing_appears_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("odd name?#%.db");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = wal; CREATE TABLE t (a, b); INSERT INTO t VALUES (1, x'ff')",
            )
            .unwrap();
        drop(writer);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(files(dir.path()).len(), 1, "closed by its program");
        let foreign = Foreign::open(&path).unwrap();
        assert_eq!(foreign.columns("t").unwrap(), ["a", "b"]);
        assert_eq!(foreign.columns("u").unwrap(), Vec::<String>::new());
        assert_eq!(foreign.count("t").unwrap(), 1);
        foreign
            .each("t", &["b", "a"], |cells| {
                assert_eq!(cells, [Raw::Blob(&[0xff]), Raw::Int(1)]);
                Ok(())
            })
            .unwrap();
        assert_eq!(files(dir.path()).len(), 1);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn a_file_that_was_not_closed_is_read_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
            .unwrap();
        let before: Vec<_> = files(dir.path());
        assert!(before.contains(&"a.db-wal".to_owned()));
        let wal = std::fs::read(dir.path().join("a.db-wal")).unwrap();
        assert_eq!(Foreign::open(&path).unwrap().count("t").unwrap(), 1);
        assert_eq!(files(dir.path()), before);
        assert_eq!(std::fs::read(dir.path().join("a.db-wal")).unwrap(), wal);
    }

    #[test]
    fn what_is_no_database_is_told_as_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("empty"), "").unwrap();
        std::fs::write(at("text"), "a,b\n1,2\n").unwrap();
        std::fs::write(at("cut"), MAGIC).unwrap();
        for (name, words) in [
            ("none", "does not exist"),
            ("empty", "is empty"),
            ("text", "is not a SQLite database"),
            ("cut", "is damaged"),
            (".", "is not a file"),
        ] {
            let error = Foreign::open(&at(name)).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        }
    }
}
