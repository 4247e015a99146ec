//! Our SQLite files: opening, checking and marking them, and the conversion of values and errors.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ToSql, ffi};

use crate::{Error, Open, Result, SchemaState, Value, backup, migrate};
use stdx::time::Clock;

/// Marks the file as ours: "tszk" as a number.
pub(crate) const APPLICATION_ID: i32 = 0x7473_7a6b;
/// How long to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest file that is checked page by page at every start; larger ones are checked by `db check`.
const QUICK_CHECK_BYTES: u64 = 8 << 20;
pub(crate) const STATEMENT_CACHE: usize = 256;
/// The writer's page cache in KiB (negative, as SQLite expects).
const WRITER_CACHE: i32 = -4_000;
/// Pages in the WAL from which on the writer runs a checkpoint itself: usually the checkpoint thread was faster, and a
/// page that is written often is moved only once.
const WAL_PAGES: i32 = 8_000;

pub(super) fn busy_timeout() -> Duration {
    stdx::fail::duration("TSUZUKI_BUSY_MS", BUSY_TIMEOUT)
}

pub(crate) fn open_file(path: &Path, how: Open) -> Result<Connection> {
    if !path.exists() {
        if how != Open::Create {
            return Err(Error::Missing(path.display().to_string()));
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent)
                .map_err(|error| Error::CannotOpen(format!("{}: {error}", parent.display())))?;
        }
        // Another process may be faster, and SQLite reports errors better.
        let _ = create_private(path);
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, how == Open::Create);
    Ok(Connection::open_with_flags(path, flags)?)
}

/// Creates an empty file that only its owner can read, as it will contain messages, addresses and links to prompts.
/// SQLite gives the files beside it the same permissions.
pub(crate) fn create_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Rejects a file that is not ours or damaged before anything is written, then sets the pragmas and migrates.
pub(crate) fn prepare(connection: &Connection, path: Option<&Path>, how: Open, clock: &Clock) -> Result<()> {
    connection.busy_timeout(busy_timeout())?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    if let Some(path) = path {
        refuse_strangers(connection, path)?;
        if path.metadata().is_ok_and(|file| file.len() <= QUICK_CHECK_BYTES) {
            quick_check(connection)?;
        }
    }
    set_rules(connection)?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
    if how == Open::ReadOnly {
        connection.pragma_update(None, "query_only", true)?;
        return migrate::check_sqlite(connection);
    }
    with_busy_retry(|| Ok(connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?))?;
    let keep = |state: &SchemaState| match path {
        Some(path) => backup::keep_before_migration(path, state, clock),
        None => Ok(()),
    };
    let mark = || Ok(connection.pragma_update(None, "application_id", APPLICATION_ID)?);
    migrate::migrate_sqlite(connection, clock, keep, mark)
}

pub(super) fn set_rules(connection: &Connection) -> Result<()> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", WRITER_CACHE)?;
    // Plan a statement once, not whenever a value is bound: the tests check these plans.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

pub(crate) fn refuse_strangers(connection: &Connection, path: &Path) -> Result<()> {
    // Read both in one transaction: another process may be initialising this file.
    let (id, table) = with_busy_retry(|| {
        let view = connection.unchecked_transaction()?;
        let id: i32 = view.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let table: Option<String> = view.query_row(
            "SELECT min(name) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            [],
            |row| row.get(0),
        )?;
        Ok((id, table))
    })?;
    match table {
        _ if id == APPLICATION_ID => Ok(()),
        None if id == 0 => Ok(()),
        None => Err(not_ours(path, "it is marked as another program's file".into())),
        Some(table) => Err(not_ours(path, format!("it has a table `{table}` but not our mark"))),
    }
}

fn not_ours(path: &Path, why: String) -> Error {
    Error::NotOurs { place: path.display().to_string(), why }
}

/// The first problem that SQLite finds in the file, as an error.
pub(crate) fn quick_check(connection: &Connection) -> Result<()> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        problem => Err(Error::Damaged(problem.to_owned())),
    }
}

/// Retries after a lock by another process; SQLite's own busy timeout does not cover every case (switching to WAL,
/// recovery after a crash).
pub(crate) fn with_busy_retry<T>(attempt: impl FnMut() -> Result<T>) -> Result<T> {
    retry_for(busy_timeout(), attempt)
}

pub(super) fn retry_for<T>(patience: Duration, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    loop {
        match attempt() {
            Err(Error::Busy(_)) if started.elapsed() < patience => {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            outcome => return outcome,
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::{ToSqlOutput, ValueRef};
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Real(value) => ValueRef::Real(*value),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
        }))
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        let rusqlite::Error::SqliteFailure(failure, _) = error else { return Error::Statement(text) };
        match failure.code {
            ffi::ErrorCode::DatabaseBusy | ffi::ErrorCode::DatabaseLocked => Error::Busy(None),
            ffi::ErrorCode::DiskFull => Error::Full(text),
            ffi::ErrorCode::ReadOnly | ffi::ErrorCode::PermissionDenied => Error::ReadOnly(text),
            // The extended code tells which call failed.
            ffi::ErrorCode::SystemIoFailure => Error::Disk(format!("{text} ({})", failure.extended_code)),
            ffi::ErrorCode::DatabaseCorrupt => Error::Damaged(text),
            ffi::ErrorCode::NotADatabase => Error::NotADatabase(text),
            ffi::ErrorCode::CannotOpen => Error::CannotOpen(text),
            ffi::ErrorCode::ConstraintViolation => Error::Constraint(text),
            _ => Error::Statement(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_statement_is_planned_once_whatever_is_bound() {
        let connection = Connection::open_in_memory().unwrap();
        set_rules(&connection).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (a INTEGER, b INTEGER); CREATE INDEX by_a ON t (a); CREATE INDEX by_b ON t (b);
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
                 INSERT INTO t SELECT i, i % 7 FROM n; ANALYZE",
            )
            .unwrap();
        let mut statement = connection
            .prepare("SELECT COUNT(*) FROM t WHERE a > ?1 AND (b IS NULL OR b <= ?2 OR b > ?3)")
            .unwrap();
        for value in [1, 500, 999] {
            statement.query_row([value, value, value], |row| row.get::<_, i64>(0)).unwrap();
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
