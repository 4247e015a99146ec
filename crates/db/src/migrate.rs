//! Numbered migrations of the schema with checksums, each in one transaction, safe when several processes start at
//! once.

use std::sync::LazyLock;

use rusqlite::Connection;

use super::session::Session;
use super::{Dialect, Error, Result, Tx, sqlite};
use crate::{params, sql};
use stdx::hash::sha256_hex;
use stdx::time::Clock;

/// A migration.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// They run in this order.
    pub version: i64,
    pub name: &'static str,
    /// Its SQL, in SQLite's dialect.
    pub text: &'static str,
}

impl Migration {
    /// Changes when the migration is edited.
    pub fn checksum(&self) -> String {
        sha256_hex(self.text)
    }
}

/// The migrations of every module that has tables, gathered by the linker. Add one with
/// [`migration!`](crate::migration).
#[allow(unsafe_code, reason = "linkme gathers the statics of `migration!` from their section, nothing else")]
#[linkme::distributed_slice]
pub static MIGRATIONS: [Migration];

/// Declares a migration where its tables are used: `migration!(1, "press", "../../migrations/0001_press.sql");`.
#[macro_export]
macro_rules! migration {
    ($version:literal, $name:literal, $file:literal) => {
        const _: () = {
            #[allow(unsafe_code, reason = "linkme puts the static into a section of its own, nothing else")]
            #[linkme::distributed_slice($crate::MIGRATIONS)]
            static MIGRATION: $crate::Migration =
                $crate::Migration { version: $version, name: $name, text: include_str!($file) };
        };
    };
}

/// Every migration of this program, in order.
pub fn known_migrations() -> &'static [Migration] {
    static KNOWN: LazyLock<Vec<Migration>> = LazyLock::new(|| {
        let mut known = MIGRATIONS.to_vec();
        known.sort_by_key(|migration| migration.version);
        known
    });
    &KNOWN
}

/// The tables of our migrations.
fn known_tables() -> impl Iterator<Item = &'static str> {
    let made = known_migrations().iter().flat_map(|migration| migration.text.split("CREATE TABLE ").skip(1));
    made.filter_map(|rest| rest.split([' ', '(', '\n']).find(|word| !word.is_empty()))
}

fn newest() -> i64 {
    known_migrations().last().map_or(0, |migration| migration.version)
}

const BOOTSTRAP: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_at TEXT NOT NULL
);
-- What `db move` says about this database: it is being filled from `place`, or everything has left for `place`.
CREATE TABLE IF NOT EXISTS db_move (
  role TEXT PRIMARY KEY NOT NULL CHECK (role IN ('arriving', 'left')),
  place TEXT NOT NULL,
  at TEXT NOT NULL
)";

/// The version of a database, compared with this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaState {
    /// The newest version that was applied.
    pub found: i64,
    /// The newest version of this program.
    pub known: i64,
}

impl SchemaState {
    /// Reads the state in a transaction; an edited migration is an error.
    pub fn find(tx: &mut Tx<'_>) -> Result<Self> {
        let applied = tx.list(
            sql!("SELECT version, checksum FROM schema_migrations ORDER BY version"),
            params![],
            |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?)),
        )?;
        for (version, checksum) in &applied {
            let known = known_migrations().iter().find(|migration| migration.version == *version);
            if known.is_some_and(|migration| migration.checksum() != *checksum) {
                return Err(Error::Altered { version: *version });
            }
        }
        let found = applied.last().map_or(0, |(version, _)| *version);
        if found > newest() {
            Err(Error::Newer { found, known: newest() })
        } else {
            Ok(Self { found, known: newest() })
        }
    }

    /// Whether nothing is missing, including the tables of this module.
    fn is_current(&self) -> bool {
        self.found == self.known && self.known > 0
    }

    pub(super) fn must_be_current(self) -> Result<()> {
        if self.found < self.known {
            Err(Error::Outdated { found: self.found, known: self.known })
        } else {
            Ok(())
        }
    }
}

/// Applies the next missing migration; `false` if there is none.
fn apply_next(tx: &mut Tx<'_>, dialect: Dialect) -> Result<bool> {
    tx.execute_text(&dialect.render_schema(BOOTSTRAP))?;
    let state = SchemaState::find(tx)?;
    let Some(next) = known_migrations().iter().find(|migration| migration.version > state.found) else {
        return Ok(false);
    };
    tx.execute_text(&dialect.render_schema(next.text))?;
    tx.execute(
        sql!("INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)"),
        params![next.version, next.name, next.checksum(), tx.now()],
    )?;
    Ok(true)
}

/// Applies all missing migrations in one transaction.
pub(super) fn apply_all(tx: &mut Tx<'_>) -> Result<()> {
    let dialect = tx.dialect();
    while apply_next(tx, dialect)? {}
    Ok(())
}

/// Migrates a SQLite file in one transaction, so that other processes never see it half migrated. In it, `keep` may
/// make a copy first, and `mark` marks the file as ours.
pub(super) fn migrate_sqlite(
    connection: &Connection,
    clock: &Clock,
    keep: impl Fn(&SchemaState) -> Result<()>,
    mark: impl Fn() -> Result<()>,
) -> Result<()> {
    if let Ok(state) = state_of_sqlite(connection)
        && state.is_current()
    {
        return Ok(());
    }
    sqlite::with_busy_retry(|| Ok(connection.execute_batch("BEGIN IMMEDIATE")?))?;
    let migrated = state_of_sqlite(connection)
        .and_then(|state| keep(&state))
        .and_then(|()| mark())
        .and_then(|()| apply_all(&mut Tx::on_sqlite(connection, clock.now())))
        .and_then(|()| Ok(connection.execute_batch("COMMIT")?));
    if migrated.is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    migrated
}

pub(super) fn state_of_sqlite(connection: &Connection) -> Result<SchemaState> {
    let exists: bool = sqlite::with_busy_retry(|| {
        Ok(connection.query_row(
            "SELECT count(*) FROM sqlite_master WHERE name = 'schema_migrations'",
            [],
            |row| row.get(0),
        )?)
    })?;
    if exists {
        SchemaState::find(&mut Tx::on_sqlite(connection, stdx::time::Timestamp::MIN))
    } else {
        Ok(SchemaState { found: 0, known: newest() })
    }
}

/// Fails unless the schema of the SQLite file has exactly this program's version.
pub(super) fn check_sqlite(connection: &Connection) -> Result<()> {
    state_of_sqlite(connection)?.must_be_current()
}

/// Any number, as long as every process uses the same: "tszk".
const ADVISORY_LOCK: &str = "1953725035";

/// Migrates a PostgreSQL schema, one process at a time.
pub(super) fn migrate_postgres(session: &mut Session, clock: &Clock) -> Result<()> {
    if let Ok(state) = state_of_postgres(session)
        && state.is_current()
    {
        return Ok(());
    }
    session.execute_text(&format!("SELECT pg_advisory_lock({ADVISORY_LOCK})"))?;
    let outcome = migrate_postgres_locked(session, clock);
    session.execute_text(&format!("SELECT pg_advisory_unlock({ADVISORY_LOCK})"))?;
    outcome
}

fn migrate_postgres_locked(session: &mut Session, clock: &Clock) -> Result<()> {
    state_of_postgres(session)?;
    loop {
        session.execute_text("BEGIN")?;
        let applied = apply_next(&mut Tx::on_postgres(session, clock.now()), Dialect::Postgres);
        session.execute_text(if applied.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        if !applied? {
            return Ok(());
        }
    }
}

pub(super) fn state_of_postgres(session: &mut Session) -> Result<SchemaState> {
    let Some(schema) = session.first_text("SELECT current_schema()")? else {
        return Err(Error::BadAddress("no schema of the search path exists on the server".into()));
    };
    if session
        .first_text("SELECT to_regclass(quote_ident(current_schema()) || '.schema_migrations')")?
        .is_some()
    {
        return SchemaState::find(&mut Tx::on_postgres(session, stdx::time::Timestamp::MIN));
    }
    let ours = known_tables().map(|table| format!("'{table}'")).collect::<Vec<_>>().join(", ");
    let stranger = session.first_text(&format!(
        "SELECT min(table_name) FROM information_schema.tables WHERE table_schema = current_schema() \
         AND table_name IN ({ours})"
    ))?;
    match stranger {
        Some(table) => Err(Error::NotOurs {
            place: format!("schema `{schema}`"),
            why: format!("it has a table `{table}` but no list of our migrations"),
        }),
        None => Ok(SchemaState { found: 0, known: newest() }),
    }
}

/// Fails unless the PostgreSQL schema has exactly this program's version.
pub(super) fn check_postgres(session: &mut Session) -> Result<()> {
    let state = state_of_postgres(session)?;
    match state.found {
        0 => Err(Error::Missing("the PostgreSQL server".into())),
        _ => state.must_be_current(),
    }
}
