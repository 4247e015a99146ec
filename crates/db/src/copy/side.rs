//! One of the two databases of a move: a single connection from beginning to end.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::tables::Table;
use crate::session::{NOW, Server, Session, without_password};
use crate::{DbUrl, Error, Open, Result, SchemaState, Tx, migrate, sqlite, survey};
use stdx::time::{Clock, Timestamp};

/// How long to wait for another process to finish writing.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Side {
    link: SideConnection,
    clock: Clock,
    now: Timestamp,
    /// The address without password, for people.
    pub(super) shown: String,
    /// Equal only for the same database.
    pub(super) identity: String,
}

enum SideConnection {
    Sqlite(Connection),
    Postgres(Box<Session>),
}

impl Side {
    /// Connects without changing anything; `None` for a file that does not exist.
    pub(super) fn find(place: &DbUrl, clock: &Clock) -> Result<Option<Self>> {
        match place {
            DbUrl::File(path) if !path.exists() => Ok(None),
            DbUrl::File(path) => {
                let connection = sqlite::open_file(path, Open::Existing)?;
                connection.busy_timeout(PATIENCE)?;
                sqlite::refuse_strangers(&connection, path)?;
                Ok(Some(Self::of_file(connection, path, clock)))
            }
            DbUrl::Server(url) => Self::connect(url, clock).map(Some),
            DbUrl::Memory => Err(Error::BadAddress("a database in memory cannot be moved".into())),
        }
    }

    /// Connects to the target, which is created and migrated if necessary.
    pub(super) fn create(place: &DbUrl, clock: &Clock) -> Result<Self> {
        match place {
            DbUrl::File(path) => {
                let connection = sqlite::open_file(path, Open::Create)?;
                sqlite::prepare(&connection, Some(path), Open::Create, clock)?;
                Ok(Self::of_file(connection, path, clock))
            }
            DbUrl::Server(url) => {
                let mut side = Self::connect(url, clock)?;
                if let SideConnection::Postgres(session) = &mut side.link {
                    migrate::migrate_postgres(session, clock)?;
                }
                Ok(side)
            }
            DbUrl::Memory => Err(Error::BadAddress("a database in memory cannot be moved".into())),
        }
    }

    fn of_file(connection: Connection, path: &Path, clock: &Clock) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let shown = format!("sqlite:{}", path.display());
        let link = SideConnection::Sqlite(connection);
        Self { link, clock: clock.clone(), now: clock.now(), identity: shown.clone(), shown }
    }

    fn connect(url: &str, clock: &Clock) -> Result<Self> {
        let mut session = Server::parse(url)?.connect()?;
        session.execute_text(&format!(
            "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '{}s'",
            PATIENCE.as_secs()
        ))?;
        let schema = session.first_text("SELECT current_schema()")?.unwrap_or_default();
        let identity = session
            .first_text(
                "SELECT concat_ws('/', pg_postmaster_start_time(), current_database(), current_schema())",
            )?
            .unwrap_or_default();
        let now = session.first_text(&format!("SELECT {NOW}"))?.and_then(|text| text.parse().ok());
        let now = now.filter(|_| clock.is_system()).unwrap_or_else(|| clock.now());
        let shown = format!("{} (schema {schema})", without_password(url));
        Ok(Self {
            link: SideConnection::Postgres(Box::new(session)),
            clock: clock.clone(),
            now,
            shown,
            identity,
        })
    }

    pub(super) fn tx(&mut self) -> Tx<'_> {
        match &mut self.link {
            SideConnection::Sqlite(connection) => Tx::on_sqlite(connection, self.clock.now()),
            SideConnection::Postgres(session) => Tx::on_postgres(session, self.now),
        }
    }

    /// The version of its schema.
    pub(super) fn schema(&mut self) -> Result<SchemaState> {
        match &mut self.link {
            SideConnection::Sqlite(connection) => migrate::state_of_sqlite(connection),
            SideConnection::Postgres(session) => migrate::state_of_postgres(session),
        }
    }

    /// Prevents all other writes until [`Side::unlock`] or the end of this process.
    ///
    /// It writes nothing: SQLite keeps a write transaction open, PostgreSQL locks the tables. Readers are not blocked.
    pub(super) fn lock(&mut self, tables: &[Table]) -> Result<()> {
        match &mut self.link {
            SideConnection::Sqlite(connection) => {
                connection.execute_batch("BEGIN IMMEDIATE")?;
                // Prevent our own writes, too, until the end.
                Ok(connection.pragma_update(None, "query_only", true)?)
            }
            SideConnection::Postgres(session) => {
                let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
                // Take the locks before the first read, so that it sees what their last holders wrote. Other writers
                // wait for `db_move` before their own first read, and then see our mark.
                session.execute_text(&format!(
                    "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE {}, db_move IN EXCLUSIVE MODE",
                    names.join(", ")
                ))
            }
        }
    }

    /// Ends [`Side::lock`]; `last` is committed with it.
    pub(super) fn unlock(&mut self, last: impl FnOnce(&mut Tx<'_>) -> Result<()>) -> Result<()> {
        if let SideConnection::Sqlite(connection) = &self.link {
            connection.pragma_update(None, "query_only", false)?;
        }
        last(&mut self.tx())?;
        self.tx().execute_text("COMMIT")
    }

    pub(super) fn write<T>(&mut self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        let begin = match &self.link {
            SideConnection::Sqlite(_) => "BEGIN IMMEDIATE",
            SideConnection::Postgres(_) => "BEGIN",
        };
        self.tx().execute_text(begin)?;
        let worked = work(&mut self.tx());
        let ended = self.tx().execute_text(if worked.is_ok() { "COMMIT" } else { "ROLLBACK" });
        // Report the first error.
        worked.and_then(|value| ended.map(|()| value))
    }

    /// The first of `tables` that has a row; tables that do not exist count as empty.
    pub(super) fn find_filled<'a>(&mut self, tables: &'a [Table]) -> Result<Option<&'a Table>> {
        let mut tx = self.tx();
        let there = survey::list_tables(&mut tx)?;
        for table in tables.iter().filter(|table| there.contains(&table.name)) {
            if !table.is_empty(&mut tx)? {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }
}
