//! A transaction as store functions use it: statements, rows, and the time at which it began.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::time::Instant;

use rusqlite::types::ValueRef;

use super::session::Session;
use super::{Dialect, Error, FromCell, Result, Sql, Value};
use stdx::time::Timestamp;

/// An open transaction. It is committed or rolled back by [`Db`](super::Db), never by its user.
///
/// An error of any statement ends the transaction: return it. Use a value, not an error, for a result that should not
/// roll back.
pub struct Tx<'a> {
    link: TxConnection<'a>,
    now: Timestamp,
    began: Instant,
}

enum TxConnection<'a> {
    Sqlite(&'a rusqlite::Connection),
    Postgres(&'a mut Session),
}

/// The page cache of a connection for large writes, in KiB (negative, as SQLite expects).
const LARGE_CACHE: i32 = -16_000;
/// From so many rows on, one statement is faster for SQLite than one for each row.
const LARGE_STATEMENT: usize = 100;

/// Enlarges SQLite's page cache from now on, for writes all over large tables. PostgreSQL has a cache of its own.
pub fn keep_more_pages(tx: &mut Tx<'_>) -> Result<()> {
    if let TxConnection::Sqlite(connection) = &tx.link {
        connection.pragma_update(None, "cache_size", LARGE_CACHE)?;
    }
    Ok(())
}

/// Runs ANALYZE on PostgreSQL, before many single-row changes of `table`: without statistics it may use any index with
/// a similar prefix. SQLite knows unique indexes without statistics.
pub fn analyze(tx: &mut Tx<'_>, table: &'static str) -> Result<()> {
    if let TxConnection::Postgres(session) = &mut tx.link {
        session.execute_text(&format!("ANALYZE {table}"))?;
    }
    Ok(())
}

impl<'a> Tx<'a> {
    pub(super) fn on_sqlite(connection: &'a rusqlite::Connection, now: Timestamp) -> Self {
        Self { link: TxConnection::Sqlite(connection), now, began: Instant::now() }
    }

    pub(super) fn on_postgres(session: &'a mut Session, now: Timestamp) -> Self {
        Self { link: TxConnection::Postgres(session), now, began: Instant::now() }
    }

    /// Sets the moment at which the time was requested, since the server's answer may be late.
    pub(super) fn asked_at(self, moment: Instant) -> Self {
        Self { began: moment, ..self }
    }

    /// The time at which this transaction began, by the clock that leases are compared with.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The same or slightly earlier, by the monotonic clock: a lease from [`Tx::now`] on counts from here.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// The kind of database.
    pub fn dialect(&self) -> Dialect {
        match self.link {
            TxConnection::Sqlite(_) => Dialect::Sqlite,
            TxConnection::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Runs a statement and returns how many rows it changed.
    pub fn execute(&mut self, sql: &'static Sql, params: &[Value<'_>]) -> Result<u64> {
        self.execute_each(sql, std::iter::once(params))
    }

    /// Runs a statement and ignores how many rows it changes.
    pub fn run(&mut self, sql: &'static Sql, params: &[Value<'_>]) -> Result<()> {
        self.execute(sql, params).map(drop)
    }

    /// Runs a statement that changes at most one row, and returns whether it did.
    pub fn execute_one(&mut self, sql: &'static Sql, params: &[Value<'_>]) -> Result<bool> {
        Ok(self.execute(sql, params)? == 1)
    }

    /// Runs a statement once for each list of parameters.
    fn execute_each<'v>(
        &mut self,
        sql: &'static Sql,
        lists: impl Iterator<Item = &'v [Value<'v>]>,
    ) -> Result<u64> {
        let mut changed = 0;
        match &mut self.link {
            TxConnection::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.render(Dialect::Sqlite))?;
                for params in lists {
                    changed += statement.execute(rusqlite::params_from_iter(params))? as u64;
                }
            }
            TxConnection::Postgres(session) => {
                for params in lists {
                    changed += session.execute(sql, params)?;
                }
            }
        }
        Ok(changed)
    }

    /// Runs an INSERT of [`sql_rows!`](crate::sql_rows) over many rows in few round trips; returns how many rows it
    /// changed. `values` contains the rows one after another.
    ///
    /// SQLite has no round trips to save, and a statement with several rows keeps a journal: that is worthwhile only
    /// for large ones, which open table and indexes once.
    pub fn execute_rows(&mut self, insert: &[&'static Sql], values: &[Value<'_>]) -> Result<u64> {
        let mut changed = 0;
        let mut rest = values;
        let dialect = self.dialect();
        let pays = |rows: usize| dialect == Dialect::Postgres || rows == 1 || rows >= LARGE_STATEMENT;
        for sql in insert.iter().filter(|sql| pays(sql.rows())) {
            let size = sql.rows() * sql.columns();
            let (now, later) = rest.split_at(rest.len() / size * size);
            if !now.is_empty() {
                changed += self.execute_each(sql, now.chunks_exact(size))?;
            }
            rest = later;
        }
        if rest.is_empty() {
            Ok(changed)
        } else {
            Err(Error::Statement(format!("{} values do not fill rows", values.len())))
        }
    }

    /// Passes every row to `each`, without collecting them.
    pub fn each(
        &mut self,
        sql: &'static Sql,
        params: &[Value<'_>],
        mut each: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let each = |row: &Row<'_>| each(row).map(ControlFlow::Continue);
        match &mut self.link {
            TxConnection::Sqlite(connection) => {
                each_of_sqlite(connection, sql.render(Dialect::Sqlite), params, each)
            }
            TxConnection::Postgres(session) => session.each(sql, params, &mut of_postgres(each)),
        }
    }

    /// Collects every row, converted by `read`.
    pub fn list<T>(
        &mut self,
        sql: &'static Sql,
        params: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        self.each(sql, params, |row| {
            found.push(read(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// The first row, if there is one.
    pub fn find<T>(
        &mut self,
        sql: &'static Sql,
        params: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut found = None;
        self.each(sql, params, |row| {
            if found.is_none() {
                found = Some(read(row)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The number that the query returns; 0 if it returns no row or NULL.
    pub fn count(&mut self, sql: &'static Sql, params: &[Value<'_>]) -> Result<i64> {
        Ok(self.find(sql, params, |row| row.get::<Option<i64>>(0))?.flatten().unwrap_or(0))
    }

    /// Whether the query returns a row.
    pub fn exists(&mut self, sql: &'static Sql, params: &[Value<'_>]) -> Result<bool> {
        Ok(self.find(sql, params, |_| Ok(()))?.is_some())
    }

    /// Runs a dynamic text: migrations and table copies only.
    pub(super) fn execute_text(&mut self, text: &str) -> Result<()> {
        match &mut self.link {
            TxConnection::Sqlite(connection) => Ok(connection.execute_batch(text)?),
            TxConnection::Postgres(session) => session.execute_text(text),
        }
    }

    /// Runs a dynamic text with parameters: table copies only.
    pub(super) fn execute_dynamic(&mut self, text: &str, params: &[Value<'_>]) -> Result<u64> {
        match &mut self.link {
            TxConnection::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(text)?;
                Ok(statement.execute(rusqlite::params_from_iter(params))? as u64)
            }
            TxConnection::Postgres(session) => session.execute_dynamic(text, params),
        }
    }

    /// Passes the rows of a dynamic query to `each`, until it stops: surveys and table copies only.
    pub(super) fn each_dynamic(
        &mut self,
        text: &str,
        params: &[Value<'_>],
        each: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        match &mut self.link {
            TxConnection::Sqlite(connection) => each_of_sqlite(connection, text, params, each),
            TxConnection::Postgres(session) => session.each_dynamic(text, params, &mut of_postgres(each)),
        }
    }

    /// Collects every row of a dynamic query, converted by `read`: surveys only.
    pub(super) fn list_dynamic<T>(
        &mut self,
        text: &str,
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        self.each_dynamic(text, &[], |row| {
            found.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Checks that the statement can be prepared; a test does so for all of them.
    pub fn prepare(&mut self, sql: &'static Sql) -> Result<()> {
        match &mut self.link {
            TxConnection::Sqlite(connection) => {
                Ok(connection.prepare(sql.render(Dialect::Sqlite)).map(drop)?)
            }
            TxConnection::Postgres(session) => session.prepare(sql).map(drop),
        }
    }
}

fn each_of_sqlite(
    connection: &rusqlite::Connection,
    text: &str,
    params: &[Value<'_>],
    mut each: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut statement = connection.prepare_cached(text)?;
    let mut rows = statement.query(rusqlite::params_from_iter(params))?;
    let names = Names::new();
    while let Some(row) = rows.next()? {
        if each(&Row::of(RowOf::Sqlite(row, &names)))?.is_break() {
            break;
        }
    }
    Ok(())
}

fn of_postgres(
    mut each: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
) -> impl FnMut(&postgres::Row) -> Result<ControlFlow<()>> {
    move |row| each(&Row::of(RowOf::Postgres(row)))
}

/// A row of a result.
pub struct Row<'a> {
    of: RowOf<'a>,
    /// The expected position of the next column by name: columns are mostly read from left to right.
    expected: std::cell::Cell<usize>,
}

enum RowOf<'a> {
    Sqlite(&'a rusqlite::Row<'a>, &'a Names),
    Postgres(&'a postgres::Row),
}

/// The column names of a result, queried from SQLite once and only if needed.
type Names = OnceCell<Vec<String>>;

/// A column: by its name in the statement, or by its position, counted from 0.
pub trait ColumnIndex {
    /// Its position in `row`.
    fn place_in(&self, row: &Row<'_>) -> Result<usize>;
}

impl ColumnIndex for usize {
    fn place_in(&self, _: &Row<'_>) -> Result<usize> {
        Ok(*self)
    }
}

impl ColumnIndex for &str {
    fn place_in(&self, row: &Row<'_>) -> Result<usize> {
        let expected = row.expected.get();
        let place = if row.name(expected) == Some(self) {
            expected
        } else {
            (0..row.width())
                .find(|place| row.name(*place) == Some(self))
                .ok_or_else(|| Error::Statement(format!("it gives no column `{self}`")))?
        };
        row.expected.set(place + 1);
        Ok(place)
    }
}

/// A value made from a row. For structs it can be derived: each field is the column of the same name.
pub trait FromRow: Sized {
    fn from_row(row: &Row<'_>) -> Result<Self>;
}

impl<'a> Row<'a> {
    fn of(of: RowOf<'a>) -> Self {
        Self { of, expected: std::cell::Cell::new(0) }
    }

    /// The value of a column.
    pub fn get<T: FromCell>(&self, column: impl ColumnIndex) -> Result<T> {
        let place = column.place_in(self)?;
        T::read(&self.cell(place)?, place)
    }

    fn name(&self, place: usize) -> Option<&str> {
        match &self.of {
            RowOf::Sqlite(row, names) => {
                let names = names.get_or_init(|| row.as_ref().column_names().map(str::to_owned).collect());
                names.get(place).map(String::as_str)
            }
            RowOf::Postgres(row) => row.columns().get(place).map(postgres::Column::name),
        }
    }

    /// The text in the column at `index`, without a copy; for very many rows.
    pub fn text(&self, index: usize) -> Result<&str> {
        match self.cell(index)? {
            Value::Text(Cow::Borrowed(text)) => Ok(text),
            _ => Err(unexpected(index, "something that is not text")),
        }
    }

    fn width(&self) -> usize {
        match &self.of {
            RowOf::Sqlite(row, _) => row.as_ref().column_count(),
            RowOf::Postgres(row) => row.len(),
        }
    }

    pub(super) fn cells(&self) -> Result<Vec<Value<'_>>> {
        (0..self.width()).map(|index| self.cell(index)).collect()
    }

    fn cell(&self, index: usize) -> Result<Value<'_>> {
        match &self.of {
            RowOf::Sqlite(row, _) => match row.get_ref(index)? {
                ValueRef::Null => Ok(Value::Null),
                ValueRef::Integer(value) => Ok(Value::Int(value)),
                ValueRef::Real(value) => Ok(Value::Real(value)),
                ValueRef::Text(value) => match std::str::from_utf8(value) {
                    Ok(value) => Ok(Value::Text(value.into())),
                    Err(_) => Err(unexpected(index, "bytes that are not UTF-8")),
                },
                ValueRef::Blob(_) => Err(unexpected(index, "a blob")),
            },
            RowOf::Postgres(row) => super::session::cell(row, index),
        }
    }
}

fn unexpected(column: usize, found: &str) -> Error {
    Error::Unexpected { column, wanted: "a value we write", found: found.to_owned() }
}
