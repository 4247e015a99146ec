//! One database interface over SQLite and PostgreSQL: closures over a transaction, and nothing else.
//!
//! ```text
//! async code ── write(closure) ──▶ SQLite: one writer thread, many closures per COMMIT (group commit)
//!                                  PostgreSQL: a few threads, one SERIALIZABLE transaction per closure
//!            ── read(closure)  ──▶ a read connection with one consistent view
//! ```
//!
//! Store functions are plain synchronous functions over a [`Tx`], so no transaction can be held across an await.
//! A closure may run more than once (it is `Fn`), and its result is returned only after COMMIT.
//!
//! ```
//! # use tsuzuki_db::{Db, DbUrl, Open, params, sql};
//! # use stdx::time::Clock;
//! # #[tokio::main]
//! # async fn main() -> tsuzuki_db::Result<()> {
//! let db = Db::open(DbUrl::Memory, Open::Create, Clock::system()).await?;
//! let answer = db.write(|tx| tx.count(sql!("SELECT 6 * CAST(?1 AS BIGINT)"), params![7_i64])).await?;
//! assert_eq!(answer, 42);
//! # Ok(())
//! # }
//! ```

mod backup;
mod copy;
pub mod dialect;
mod error;
mod foreign;
mod lineage;
mod migrate;
mod moved;
mod neighbour;
mod postgres;
mod restored;
mod session;
mod sqlite;
mod statement;
mod survey;
mod tls;
mod tx;
mod unit;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use backup::{BackupError, BackupReport, backup, prune_backups, refuse_if_open, restore};
pub use copy::{DatabaseMove, MoveError, MovePlan, MoveReport, MoveStep, MovedTable, TargetState};
pub use dialect::Dialect;
pub use error::{Error, Result};
pub use foreign::{Foreign, Raw};
pub use macros::FromRow;
pub use migrate::{MIGRATIONS, Migration, SchemaState, known_migrations};
pub use moved::{MovedAway, find_moved_away, reopen};
use parking_lot::Mutex;
pub use restored::{Restore, list_restores, notice_restore};
pub use statement::{STATEMENTS, Sql};
pub use survey::{TableSurvey, check_integrity, count_rows, reset, survey};
pub use tx::{FromRow, Row, Tx, analyze, keep_more_pages};
pub use value::{FromCell, ToValue, Value};

use config::Location;
use stdx::phrase::AsValue;
use stdx::time::{Clock, Timestamp};
use unit::{Pending, TxAccess, Unit};

/// The address of a database.
#[derive(Clone, PartialEq, Eq)]
pub enum DbUrl {
    /// A SQLite file.
    File(std::path::PathBuf),
    /// A SQLite database in the memory of this process.
    Memory,
    /// A PostgreSQL server; the address may contain a password and is never printed in full.
    Server(String),
}

impl From<&Location> for DbUrl {
    fn from(location: &Location) -> Self {
        match location {
            Location::Sqlite(path) => DbUrl::File(path.clone()),
            Location::Postgres(url) => DbUrl::Server(url.expose().to_owned()),
        }
    }
}

impl std::fmt::Display for DbUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DbUrl::File(path) => write!(f, "sqlite:{}", path.display()),
            DbUrl::Memory => f.write_str("sqlite::memory:"),
            DbUrl::Server(url) => f.write_str(&session::without_password(url)),
        }
    }
}

impl AsValue for DbUrl {
    fn as_value(&self) -> stdx::phrase::Value {
        self.to_string().into()
    }
}

impl std::fmt::Debug for DbUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// What opening may do to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Create it if it is missing, and migrate its schema.
    Create,
    /// Fail if it is missing; migrate its schema.
    Existing,
    /// Like `Existing`, but also if its data was moved away.
    Left,
    /// Change nothing: writes fail, and a missing or outdated database is an error.
    ReadOnly,
}

/// An open database; cheap to clone, shared by the whole process.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

struct Inner {
    place: DbUrl,
    dialect: Dialect,
    is_read_only: bool,
    clock: Clock,
    backend: Backend,
    stats: Arc<Stats>,
}

enum Backend {
    Sqlite(sqlite::Threads),
    Postgres(postgres::Pool),
}

/// Counters that show how well writes are grouped.
#[derive(Debug, Default)]
pub struct Stats {
    commits: AtomicU64,
    writes: AtomicU64,
    reruns: AtomicU64,
}

impl Stats {
    /// Write transactions that were committed.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Closures whose writes were committed.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Closures that had to run again.
    pub fn reruns(&self) -> u64 {
        self.reruns.load(Ordering::Relaxed)
    }
}

impl Db {
    /// Opens the database at `place`, checks that it is ours and intact, and migrates it if `how` allows it.
    pub async fn open(place: DbUrl, how: Open, clock: Clock) -> Result<Self> {
        tokio::task::spawn_blocking(move || Self::open_blocking(place, how, clock))
            .await
            .map_err(|_| Error::Closed)?
    }

    fn open_blocking(place: DbUrl, how: Open, clock: Clock) -> Result<Self> {
        let stats = Arc::new(Stats::default());
        let (dialect, backend) = match &place {
            DbUrl::Server(url) => {
                let pool = postgres::Pool::open(url, how, &clock, Arc::clone(&stats))?;
                (Dialect::Postgres, Backend::Postgres(pool))
            }
            file => {
                let threads = sqlite::Threads::open(file, how, &clock, Arc::clone(&stats))?;
                (Dialect::Sqlite, Backend::Sqlite(threads))
            }
        };
        let is_read_only = how == Open::ReadOnly;
        Ok(Self { inner: Arc::new(Inner { place, dialect, is_read_only, clock, backend, stats }) })
    }

    /// Runs `work` in a write transaction, and returns after its COMMIT.
    pub async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.submit(TxAccess::Write, work).await
    }

    /// Runs `work` in a transaction that claims rows under a lease.
    ///
    /// The named exception to SERIALIZABLE: on PostgreSQL it is READ COMMITTED, so that many workers can claim
    /// different rows with `SKIP LOCKED` at the same time. Every statement in it must guard itself.
    pub async fn claim<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.submit(TxAccess::Claim, work).await
    }

    /// Runs `work` on one consistent snapshot of the database.
    pub async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.submit(TxAccess::Read, work).await
    }

    /// Runs `work` as [`Db::write`] does, returns its result, and rolls everything back: an exact dry run.
    pub async fn rehearse<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let keeps = Arc::clone(&result);
        let outcome: Result<()> = self
            .write(move |tx| {
                let answer = work(tx)?;
                *keeps.lock() = Some(answer);
                Err(Error::Rehearsed)
            })
            .await;
        match outcome {
            Err(Error::Rehearsed) => result.lock().take().ok_or(Error::Closed),
            Err(error) => Err(error),
            Ok(()) => Err(Error::Closed),
        }
    }

    async fn submit<T, F>(&self, access: TxAccess, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        if self.inner.is_read_only && access != TxAccess::Read {
            return Err(Error::OpenedReadOnly);
        }
        let (unit, answer) = Pending::new(access, work);
        let unit: Box<dyn Unit> = Box::new(unit);
        match &self.inner.backend {
            Backend::Sqlite(threads) => threads.submit(unit)?,
            Backend::Postgres(pool) => pool.submit(unit)?,
        }
        match answer.await {
            Ok(unit::UnitAnswer::Done(result)) => result,
            Ok(unit::UnitAnswer::Panicked(payload)) => std::panic::resume_unwind(payload),
            Err(_) => Err(Error::Closed),
        }
    }

    /// The moment that leases are compared with: the server's on PostgreSQL, the injected clock's on SQLite.
    pub async fn now(&self) -> Result<Timestamp> {
        if self.inner.dialect == Dialect::Sqlite || !self.inner.clock.is_system() {
            return Ok(self.inner.clock.now());
        }
        self.read(|tx| Ok(tx.now())).await
    }

    /// The clock passed to [`Db::open`].
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// The kind of this database.
    pub fn dialect(&self) -> Dialect {
        self.inner.dialect
    }

    /// The address of this database.
    pub fn place(&self) -> &DbUrl {
        &self.inner.place
    }

    /// Whether the opened file was removed or replaced since; always `false` for a server.
    pub fn is_replaced(&self) -> bool {
        match &self.inner.backend {
            Backend::Sqlite(threads) => threads.is_replaced(),
            Backend::Postgres(_) => false,
        }
    }

    /// Counters since opening.
    pub fn stats(&self) -> &Stats {
        &self.inner.stats
    }

    /// Ends the threads and closes the connections after everything submitted so far.
    ///
    /// Dropping the last clone does the same without waiting for it.
    pub async fn close(self) {
        let Some(inner) = Arc::into_inner(self.inner) else { return };
        let _ = tokio::task::spawn_blocking(move || match inner.backend {
            Backend::Sqlite(threads) => threads.join(),
            Backend::Postgres(pool) => pool.join(),
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let place = DbUrl::Server("postgres://me:hunter2@db.example:5433/t?sslmode=require".into());
        assert_eq!(place.to_string(), "postgres://me@db.example:5433/t");
    }
}
