//! SQLite: one writer thread with group commit, and a few reader threads.

mod checkpoint;
mod file;

use std::cell::Cell;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::neighbour::{self, OpenedFile};
use super::unit::{TxAccess, Unit};
use super::{DbUrl, Error, Open, Result, Stats, Tx, lineage, moved};
use checkpoint::Checkpointer;
pub(crate) use file::{
    APPLICATION_ID, create_private, open_file, prepare, quick_check, refuse_strangers, with_busy_retry,
};
use file::{STATEMENT_CACHE, busy_timeout, retry_for, set_rules};
use stdx::time::Clock;

/// The timeout after one that expired, so that not every job in turn waits for a stalled process.
const BUSY_AGAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// A batch ends after this many closures …
const MAX_BATCH: usize = 1_000;
/// … or after this time, so that no caller waits long for the work of others.
const MAX_BATCH_TIME: Duration = Duration::from_millis(100);
/// After so much work without a pause …
const MAX_WORK: Duration = Duration::from_millis(100);
/// … the writer releases the file to other processes for a moment: they poll it every millisecond, and SQLite has no
/// queue.
const BREAK: Duration = Duration::from_millis(3);
const READERS: usize = 3;
/// A reader's page cache: there are several readers, and the system's cache is shared.
const READER_CACHE: i32 = -1_000;

pub(super) struct Threads {
    writer: Option<mpsc::Sender<Box<dyn Unit>>>,
    /// `None` for a database in memory, which has only one connection.
    readers: Option<mpsc::Sender<Box<dyn Unit>>>,
    /// The writer's, then the readers'.
    handles: Vec<JoinHandle<()>>,
    file: Option<OpenedFile>,
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

        if let Some(path) = path.filter(|_| how != Open::ReadOnly) {
            with_busy_retry(|| Ok(connection.execute_batch("BEGIN IMMEDIATE")?))
                .map_err(|error| with_writer(error, path))?;
            lineage::check_file(&mut Tx::on_sqlite(&connection, clock.now()), path)?;
            connection.execute_batch("COMMIT")?;
        }

        // We poll for locks ourselves: SQLite's busy handler waits longer each time, and misses the moment when the
        // file is free.
        connection.busy_timeout(Duration::ZERO)?;
        let (writer, inbox) = mpsc::channel();
        let file = path.map(OpenedFile::new);
        let checkpointer = match &file {
            Some(file) if how != Open::ReadOnly => Some(Checkpointer::start(file.clone())?),
            _ => None,
        };
        let work = WriterThread {
            checkpointer,
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
                    let reader = ReadConnection {
                        file: OpenedFile::new(path),
                        clock: clock.clone(),
                        connection: None,
                    };
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
            (TxAccess::Read, Some(readers)) => Some(readers),
            _ => self.writer.as_ref(),
        };
        inbox.ok_or(Error::Closed)?.send(unit).map_err(|_| Error::Closed)
    }

    pub(super) fn join(mut self) {
        // Stop the readers first: the last connection to close removes the WAL, but two that close at the same moment
        // see each other, and neither does.
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

/// Adds the process that has locked the file at `path` to the error.
fn with_writer(error: Error, path: &Path) -> Error {
    match error {
        Error::Busy(None) => Error::Busy(neighbour::find_writer(path)),
        error => error,
    }
}

/// How the closures of a batch are isolated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Isolation {
    /// Not at all: one failure rolls back all of them. SQLite copies every page that changes within a savepoint, and
    /// nearly all closures succeed.
    Together,
    /// A failure rolls back that closure only.
    Savepoints,
}

enum Batch {
    /// The result of each closure.
    Ended(Vec<Result<()>>),
    /// One of several closures failed, and all were rolled back.
    Failed,
}

struct WriterThread {
    /// Declared before the connection, so that it closes its own first.
    checkpointer: Option<Checkpointer>,
    file: Option<OpenedFile>,
    connection: Connection,
    clock: Clock,
    stats: Arc<Stats>,
    /// Whether writes are allowed although the data was moved away.
    may_be_left: bool,
    has_waited: Cell<bool>,
}

impl WriterThread {
    fn run(self, inbox: &mpsc::Receiver<Box<dyn Unit>>) {
        let mut waiting: VecDeque<Box<dyn Unit>> = VecDeque::new();
        let mut worked = Duration::ZERO;
        loop {
            if waiting.is_empty() {
                let idle_since = Instant::now();
                match inbox.recv() {
                    Ok(unit) => waiting.push_back(unit),
                    Err(_) => return,
                }
                if idle_since.elapsed() >= BREAK {
                    worked = Duration::ZERO;
                }
            }
            if worked >= MAX_WORK && self.file.is_some() {
                std::thread::park_timeout(BREAK);
                worked = Duration::ZERO;
            }
            waiting.extend(inbox.try_iter().take(MAX_BATCH - waiting.len().min(MAX_BATCH)));
            let began = Instant::now();
            self.run_batch(&mut waiting);
            worked += began.elapsed();
        }
    }

    /// Runs the waiting units in one transaction; if that fails, each in a savepoint; if that fails as a whole, one by
    /// one.
    fn run_batch(&self, waiting: &mut VecDeque<Box<dyn Unit>>) {
        let mut batch = Vec::new();
        let mut tried = self.try_batch(waiting, &mut batch, Isolation::Together);
        if matches!(tried, Ok(Batch::Failed)) {
            self.stats.reruns.fetch_add(batch.len() as u64, Ordering::Relaxed);
            let mut again = VecDeque::from(std::mem::take(&mut batch));
            tried = self.try_batch(&mut again, &mut batch, Isolation::Savepoints);
            again.into_iter().rev().for_each(|unit| waiting.push_front(unit));
        }
        match tried {
            Ok(Batch::Ended(outcomes)) => {
                for (unit, outcome) in batch.into_iter().zip(outcomes) {
                    unit.answer(outcome);
                }
            }
            // All of them have waited for the lock, so none should wait again one after the other.
            Err(error @ Error::Busy(_)) if batch.is_empty() => {
                waiting.drain(..).for_each(|unit| unit.answer(Err(error.clone())));
            }
            Err(error) if batch.len() <= 1 => {
                // With an empty batch BEGIN has failed: report it to the first unit only; the others are tried again.
                if let Some(unit) = batch.pop().or_else(|| waiting.pop_front()) {
                    unit.answer(Err(error));
                }
            }
            Ok(Batch::Failed) | Err(_) => {
                self.stats.reruns.fetch_add(batch.len() as u64, Ordering::Relaxed);
                for unit in batch {
                    self.run_batch(&mut VecDeque::from([unit]));
                }
            }
        }
    }

    /// Begins a transaction, and checks that the file was not replaced.
    fn begin(&self) -> Result<()> {
        let (has_waited, patience) = (self.has_waited.get(), busy_timeout());
        let patience = if has_waited { patience.min(BUSY_AGAIN_TIMEOUT) } else { patience };
        let began = retry_for(patience, || Ok(self.connection.execute_batch("BEGIN IMMEDIATE")?));
        self.has_waited.set(matches!(began, Err(Error::Busy(_))));
        let Some(file) = &self.file else { return began };
        began.map_err(|error| with_writer(error, file.path()))?;
        file.refuse_replaced().inspect_err(|_| self.rollback())
    }

    /// Moves units from `waiting` to `batch` when it runs them, so that a failure shows which were run.
    fn try_batch(
        &self,
        waiting: &mut VecDeque<Box<dyn Unit>>,
        batch: &mut Vec<Box<dyn Unit>>,
        isolation: Isolation,
    ) -> Result<Batch> {
        self.begin()?;
        let tx = &mut Tx::on_sqlite(&self.connection, self.clock.now());
        if !self.may_be_left {
            moved::refuse_left(tx).inspect_err(|_| self.rollback())?;
        }
        let started = Instant::now();
        let mut outcomes = Vec::with_capacity(waiting.len());
        while let Some(mut unit) = waiting.pop_front() {
            let outcome = match isolation {
                Isolation::Together => unit.run(&mut Tx::on_sqlite(&self.connection, self.clock.now())),
                Isolation::Savepoints => self.run_in_savepoint(unit.as_mut()),
            };
            batch.push(unit);
            if self.connection.is_autocommit() {
                // A full disk or an I/O error has rolled everything back already.
                return Err(outcome
                    .err()
                    .unwrap_or_else(|| Error::Disk("the transaction was rolled back".into())));
            }
            if isolation == Isolation::Together && outcome.is_err() {
                self.rollback();
                let is_alone = batch.len() == 1;
                return Ok(if is_alone { Batch::Ended(vec![outcome]) } else { Batch::Failed });
            }
            outcomes.push(outcome);
            if started.elapsed() > MAX_BATCH_TIME {
                break;
            }
        }
        let mut units = batch.iter().zip(&outcomes);
        let has_claim = units.any(|(unit, outcome)| unit.access() == TxAccess::Claim && outcome.is_ok());
        let counted = if self.file.is_some() && has_claim {
            lineage::count_claim(tx).inspect_err(|_| self.rollback())?
        } else {
            None
        };
        with_busy_retry(|| Ok(self.connection.execute_batch("COMMIT")?)).inspect_err(|_| self.rollback())?;
        // Before the claim is reported, and so before anything is sent.
        if let Some((file, count)) = self.file.as_ref().zip(counted) {
            lineage::put_beside(file.path(), &count);
        }
        let number = self.stats.commits.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.after_commit(number);
        }
        let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        self.stats.writes.fetch_add(done as u64, Ordering::Relaxed);
        Ok(Batch::Ended(outcomes))
    }

    fn run_in_savepoint(&self, unit: &mut dyn Unit) -> Result<()> {
        self.connection.prepare_cached("SAVEPOINT unit")?.execute([])?;
        let mut tx = Tx::on_sqlite(&self.connection, self.clock.now());
        let outcome = unit.run(&mut tx);
        if self.connection.is_autocommit() {
            return outcome;
        }
        if outcome.is_err() {
            self.connection.prepare_cached("ROLLBACK TO unit")?.execute([])?;
        }
        self.connection.prepare_cached("RELEASE unit")?.execute([])?;
        outcome
    }

    fn rollback(&self) {
        if !self.connection.is_autocommit() {
            // If even this fails, the next BEGIN reports it.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

struct ReadConnection {
    file: OpenedFile,
    clock: Clock,
    connection: Option<Connection>,
}

impl ReadConnection {
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
            // The file may have been replaced.
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
