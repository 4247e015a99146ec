//! SQLite: one writer thread with group commit, a few reader threads, and the rules of our files.

use std::cell::Cell;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, ToSql, ffi};

use super::neighbour::{self, OpenedFile};
use super::unit::{Access, Unit};
use super::{DbUrl, Error, Open, Result, Stats, Tx, Value, lineage, migrate, moved};
use stdx::time::Clock;

/// Marks the file as ours: "tszk" as a number.
pub(super) const APPLICATION_ID: i32 = 0x7473_7a6b;
/// How long we wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long we wait once we have waited in vain: a neighbour that stalls is not waited for by every job in turn.
const BUSY_AGAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// A batch ends after this many closures …
const MAX_BATCH: usize = 1_000;
/// … or when it has run for this long, so that nobody waits for a stranger's work.
const MAX_BATCH_TIME: Duration = Duration::from_millis(100);
const READERS: usize = 3;
/// Files up to this size are checked page by page at every start; larger ones by `db check`.
const QUICK_CHECK_BYTES: u64 = 8 << 20;
const STATEMENT_CACHE: usize = 256;
/// Pages that the writer keeps, in KiB (negative, as SQLite wants it).
const WRITER_CACHE: i32 = -4_000;
/// Pages that a reader keeps: there are several, and the system's cache is shared.
const READER_CACHE: i32 = -1_000;
/// Pages in the log before they are moved to the file: a page that is written often is then moved once.
const WAL_PAGES: i32 = 4_000;

/// The threads that own the connections.
pub(super) struct Threads {
    writer: Option<mpsc::Sender<Box<dyn Unit>>>,
    /// Absent for a database in memory, which has one connection only.
    readers: Option<mpsc::Sender<Box<dyn Unit>>>,
    /// The writer's, then the readers'.
    handles: Vec<JoinHandle<()>>,
    file: Option<OpenedFile>,
}

fn busy_timeout() -> Duration {
    stdx::fail::duration("TSUZUKI_BUSY_MS", BUSY_TIMEOUT)
}

impl Threads {
    pub(super) fn open(place: &DbUrl, how: Open, clock: &Clock, stats: Arc<Stats>) -> Result<Self> {
        let path = match place {
            DbUrl::File(path) => Some(path.as_path()),
            _ => None,
        };
        let connection = match path {
            Some(path) => open_file(path, how)?,
            None => Connection::open_in_memory()?,
        };
        prepare(&connection, path, how, clock)?;
        moved::refuse(&mut Tx::on_sqlite(&connection, clock.now()), how)?;

        if let Some(path) = path.filter(|_| how != Open::Look) {
            with_busy_retry(|| Ok(connection.execute_batch("BEGIN IMMEDIATE")?))
                .map_err(|error| with_writer(error, path))?;
            lineage::check_file(&mut Tx::on_sqlite(&connection, clock.now()), path)?;
            connection.execute_batch("COMMIT")?;
        }

        let (writer, inbox) = mpsc::channel();
        let file = path.map(OpenedFile::new);
        let work = Writer {
            file: file.clone(),
            connection,
            clock: clock.clone(),
            stats,
            may_be_left: how == Open::Left,
            has_waited: Cell::new(false),
        };
        let mut handles = vec![spawn("db-writer", move || work.run(&inbox))?];
        let readers = match path {
            None => None,
            Some(path) => {
                let (readers, inbox) = mpsc::channel();
                let inbox = Arc::new(Mutex::new(inbox));
                for number in 0..READERS {
                    let reader =
                        Reader { file: OpenedFile::new(path), clock: clock.clone(), connection: None };
                    let inbox = Arc::clone(&inbox);
                    handles.push(spawn(&format!("db-reader-{number}"), move || reader.run(&inbox))?);
                }
                Some(readers)
            }
        };
        Ok(Self { writer: Some(writer), readers, handles, file })
    }

    pub(super) fn is_replaced(&self) -> bool {
        self.file.as_ref().is_some_and(|file| !file.is_in_place())
    }

    pub(super) fn submit(&self, unit: Box<dyn Unit>) -> Result<()> {
        let inbox = match (unit.access(), &self.readers) {
            (Access::Read, Some(readers)) => Some(readers),
            _ => self.writer.as_ref(),
        };
        inbox.ok_or(Error::Closed)?.send(unit).map_err(|_| Error::Closed)
    }

    pub(super) fn join(mut self) {
        // Readers first, and wholly: the last connection to close tidies the WAL away, but two that close at the same
        // moment see each other, and neither does.
        self.readers = None;
        for handle in self.handles.drain(1..) {
            let _ = handle.join();
        }
        self.writer = None;
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| Error::CannotOpen(format!("no thread: {error}")))
}

pub(super) fn open_file(path: &Path, how: Open) -> Result<Connection> {
    if !path.exists() {
        if how != Open::Create {
            return Err(Error::Missing(path.display().to_string()));
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent)
                .map_err(|error| Error::CannotOpen(format!("{}: {error}", parent.display())))?;
        }
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, how == Open::Create);
    Ok(Connection::open_with_flags(path, flags)?)
}

/// Refuses what is not ours or not sound before anything is written, then sets the rules and migrates.
pub(super) fn prepare(connection: &Connection, path: Option<&Path>, how: Open, clock: &Clock) -> Result<()> {
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
    if how == Open::Look {
        connection.pragma_update(None, "query_only", true)?;
        return migrate::check_sqlite(connection);
    }
    with_busy_retry(|| Ok(connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?))?;
    migrate::migrate_sqlite(connection, clock, || {
        Ok(connection.pragma_update(None, "application_id", APPLICATION_ID)?)
    })
}

fn set_rules(connection: &Connection) -> Result<()> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", WRITER_CACHE)?;
    Ok(())
}

pub(super) fn refuse_strangers(connection: &Connection, path: &Path) -> Result<()> {
    // One view for both questions: another process may be making this very file ours.
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

/// The first thing that SQLite finds wrong with the file, as an error.
pub(super) fn quick_check(connection: &Connection) -> Result<()> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        problem => Err(Error::Damaged(problem.to_owned())),
    }
}

/// Repeats what failed only because another process was writing; SQLite's own waiting does not cover
/// every case (switching to WAL, recovery after a crash).
pub(super) fn with_busy_retry<T>(attempt: impl FnMut() -> Result<T>) -> Result<T> {
    retry_for(busy_timeout(), attempt)
}

fn retry_for<T>(patience: Duration, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    loop {
        match attempt() {
            Err(Error::Busy(_)) if started.elapsed() < patience => {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

/// The error with the name of the process that keeps the file at `path` locked.
fn with_writer(error: Error, path: &Path) -> Error {
    match error {
        Error::Busy(None) => Error::Busy(neighbour::find_writer(path)),
        error => error,
    }
}

struct Writer {
    file: Option<OpenedFile>,
    connection: Connection,
    clock: Clock,
    stats: Arc<Stats>,
    /// Whether the database may be written although everything in it was moved away.
    may_be_left: bool,
    /// Whether the last wait for another process was in vain.
    has_waited: Cell<bool>,
}

impl Writer {
    fn run(self, inbox: &mpsc::Receiver<Box<dyn Unit>>) {
        let mut waiting: VecDeque<Box<dyn Unit>> = VecDeque::new();
        loop {
            if waiting.is_empty() {
                match inbox.recv() {
                    Ok(unit) => waiting.push_back(unit),
                    Err(_) => return,
                }
            }
            waiting.extend(inbox.try_iter().take(MAX_BATCH - waiting.len().min(MAX_BATCH)));
            self.run_batch(&mut waiting);
        }
    }

    /// Runs what is waiting in one transaction; if that fails as a whole, one by one.
    fn run_batch(&self, waiting: &mut VecDeque<Box<dyn Unit>>) {
        let mut batch = Vec::new();
        match self.try_batch(waiting, &mut batch) {
            Ok(outcomes) => {
                for (unit, outcome) in batch.into_iter().zip(outcomes) {
                    unit.answer(outcome);
                }
            }
            // All of them have waited for the neighbour: none is to do so again, one after the other.
            Err(error @ Error::Busy(_)) if batch.is_empty() => {
                waiting.drain(..).for_each(|unit| unit.answer(Err(error.clone())));
            }
            Err(error) if batch.len() <= 1 => {
                // With an empty batch it was BEGIN that failed: the first in the queue hears it, the others have their turn.
                if let Some(unit) = batch.pop().or_else(|| waiting.pop_front()) {
                    unit.answer(Err(error));
                }
            }
            Err(_) => {
                self.stats.reruns.fetch_add(batch.len() as u64, Ordering::Relaxed);
                for unit in batch {
                    self.run_batch(&mut VecDeque::from([unit]));
                }
            }
        }
    }

    /// Begins a transaction in the file that was opened, and in no other.
    fn begin(&self) -> Result<()> {
        let (has_waited, patience) = (self.has_waited.get(), busy_timeout());
        let patience = if has_waited { patience.min(BUSY_AGAIN_TIMEOUT) } else { patience };
        let began = retry_for(patience, || Ok(self.connection.execute_batch("BEGIN IMMEDIATE")?));
        let is_busy = matches!(began, Err(Error::Busy(_)));
        if is_busy != has_waited {
            self.connection.busy_timeout(if is_busy { BUSY_AGAIN_TIMEOUT } else { busy_timeout() })?;
            self.has_waited.set(is_busy);
        }
        let Some(file) = &self.file else { return began };
        began.map_err(|error| with_writer(error, file.path()))?;
        file.refuse_replaced().inspect_err(|_| self.rollback())
    }

    /// Moves units from `waiting` to `batch` as it runs them, so that a failure knows which ones were touched.
    fn try_batch(
        &self,
        waiting: &mut VecDeque<Box<dyn Unit>>,
        batch: &mut Vec<Box<dyn Unit>>,
    ) -> Result<Vec<Result<()>>> {
        self.begin()?;
        if !self.may_be_left
            && let Err(error) = moved::refuse_left(&mut Tx::on_sqlite(&self.connection, self.clock.now()))
        {
            self.rollback();
            return Err(error);
        }
        let started = Instant::now();
        let mut outcomes = Vec::with_capacity(waiting.len());
        while let Some(mut unit) = waiting.pop_front() {
            let outcome = self.run_in_savepoint(unit.as_mut());
            batch.push(unit);
            outcomes.push(outcome);
            if self.connection.is_autocommit() {
                // A full disk or an I/O error has rolled everything back already.
                return Err(outcomes.pop().and_then(Result::err).unwrap_or(Error::Closed));
            }
            if started.elapsed() > MAX_BATCH_TIME {
                break;
            }
        }
        let mut counted = None;
        if self.file.is_some()
            && batch
                .iter()
                .zip(&outcomes)
                .any(|(unit, outcome)| unit.access() == Access::Claim && outcome.is_ok())
        {
            let tx = &mut Tx::on_sqlite(&self.connection, self.clock.now());
            match lineage::count_claim(tx) {
                Ok(count) => counted = count,
                Err(error) => {
                    self.rollback();
                    return Err(error);
                }
            }
        }
        if let Err(error) = with_busy_retry(|| Ok(self.connection.execute_batch("COMMIT")?)) {
            self.rollback();
            return Err(error);
        }
        // Before anybody hears of the claim, and so before anything leaves.
        if let Some((file, count)) = self.file.as_ref().zip(counted) {
            lineage::put_beside(file.path(), &count);
        }
        self.stats.commits.fetch_add(1, Ordering::Relaxed);
        let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        self.stats.writes.fetch_add(done as u64, Ordering::Relaxed);
        Ok(outcomes)
    }

    fn run_in_savepoint(&self, unit: &mut dyn Unit) -> Result<()> {
        self.connection.prepare_cached("SAVEPOINT unit")?.execute([])?;
        let mut tx = Tx::on_sqlite(&self.connection, self.clock.now());
        let outcome = unit.run(&mut tx);
        if self.connection.is_autocommit() {
            return outcome.and(Err(Error::Disk("the transaction was rolled back".into())));
        }
        if outcome.is_err() {
            self.connection.prepare_cached("ROLLBACK TO unit")?.execute([])?;
        }
        self.connection.prepare_cached("RELEASE unit")?.execute([])?;
        outcome
    }

    fn rollback(&self) {
        if !self.connection.is_autocommit() {
            // Nothing more can be done if even this fails; the next BEGIN reports it.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

struct Reader {
    file: OpenedFile,
    clock: Clock,
    connection: Option<Connection>,
}

impl Reader {
    fn run(mut self, inbox: &Mutex<mpsc::Receiver<Box<dyn Unit>>>) {
        loop {
            let next = match inbox.lock() {
                Ok(inbox) => inbox.recv(),
                Err(_) => return,
            };
            let Ok(mut unit) = next else { return };
            let outcome = self.read(unit.as_mut());
            unit.answer(outcome);
        }
    }

    fn read(&mut self, unit: &mut dyn Unit) -> Result<()> {
        let now = self.clock.now();
        let connection = self.connection()?;
        with_busy_retry(|| {
            connection.prepare_cached("BEGIN")?.execute([])?;
            let outcome = unit.run(&mut Tx::on_sqlite(connection, now));
            if !connection.is_autocommit() {
                connection.prepare_cached("ROLLBACK")?.execute([])?;
            }
            outcome
        })
    }

    fn connection(&mut self) -> Result<&Connection> {
        if self.connection.is_none() {
            // Another file of that name is not the one that we write to.
            self.file.refuse_replaced()?;
            let connection = open_file(self.file.path(), Open::Existing)?;
            connection.busy_timeout(busy_timeout())?;
            connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
            set_rules(&connection)?;
            connection.pragma_update(None, "cache_size", READER_CACHE)?;
            connection.pragma_update(None, "query_only", true)?;
            self.connection = Some(connection);
        }
        self.connection.as_ref().ok_or(Error::Closed)
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
            // The extended code says which call failed.
            ffi::ErrorCode::SystemIoFailure => Error::Disk(format!("{text} ({})", failure.extended_code)),
            ffi::ErrorCode::DatabaseCorrupt => Error::Damaged(text),
            ffi::ErrorCode::NotADatabase => Error::NotADatabase(text),
            ffi::ErrorCode::CannotOpen => Error::CannotOpen(text),
            ffi::ErrorCode::ConstraintViolation => Error::Constraint(text),
            _ => Error::Statement(text),
        }
    }
}
