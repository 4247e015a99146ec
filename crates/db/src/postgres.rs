//! PostgreSQL: a few threads with one connection each, SERIALIZABLE transactions, retries and reconnects.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::session::{Server, Session};
use super::unit::{TxAccess, Unit};
use super::{Error, Open, Result, Stats, Tx, lineage, migrate, moved};
use parking_lot::Mutex;
use stdx::time::Clock;

/// Connections at most; each has its own thread, because a client blocks when it is dropped.
const MAX_CONNECTIONS: usize = 6;
/// How often to retry after serialisation failures before reporting them.
const MAX_ATTEMPTS: u32 = 60;
/// How often to try to reconnect.
const MAX_CONNECTS: u32 = 6;

/// The threads, started when needed.
pub(super) struct Pool {
    sender: Option<mpsc::Sender<Box<dyn Unit>>>,
    shared: Arc<Shared>,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    server: Server,
    clock: Clock,
    stats: Arc<Stats>,
    inbox: Mutex<mpsc::Receiver<Box<dyn Unit>>>,
    /// Units that were submitted and not answered yet.
    open: AtomicUsize,
    /// Whether writes are allowed although the data was moved away.
    may_be_left: bool,
    is_read_only: bool,
}

impl Pool {
    pub(super) fn open(url: &str, how: Open, clock: &Clock, stats: Arc<Stats>) -> Result<Self> {
        let server = Server::parse(url)?;
        let mut session = server.connect()?;
        match how {
            Open::ReadOnly => migrate::check_postgres(&mut session)?,
            Open::Create | Open::Existing | Open::Left => migrate::migrate_postgres(&mut session, clock)?,
        }
        moved::refuse(&mut Tx::on_postgres(&mut session, clock.now()), how)?;
        if how != Open::ReadOnly {
            lineage::check_server(&mut session, clock.now())?;
        }
        let (sender, inbox) = mpsc::channel();
        let shared = Arc::new(Shared {
            server,
            clock: clock.clone(),
            stats,
            inbox: Mutex::new(inbox),
            open: AtomicUsize::new(0),
            may_be_left: how == Open::Left,
            is_read_only: how == Open::ReadOnly,
        });
        let pool = Self { sender: Some(sender), shared, handles: Mutex::default() };
        pool.start_thread(Some(session))?;
        Ok(pool)
    }

    pub(super) fn submit(&self, unit: Box<dyn Unit>) -> Result<()> {
        let open = self.shared.open.fetch_add(1, Ordering::SeqCst) + 1;
        let threads = self.handles.lock().len();
        if open > threads && threads < MAX_CONNECTIONS {
            self.start_thread(None)?;
        }
        self.sender.as_ref().ok_or(Error::Closed)?.send(unit).map_err(|_| Error::Closed)
    }

    fn start_thread(&self, session: Option<Session>) -> Result<()> {
        let mut handles = self.handles.lock();
        let worker = Worker { shared: Arc::clone(&self.shared), session };
        let handle = std::thread::Builder::new()
            .name(format!("db-postgres-{}", handles.len()))
            .spawn(move || worker.run())
            .map_err(|error| Error::CannotOpen(format!("no thread: {error}")))?;
        handles.push(handle);
        Ok(())
    }

    pub(super) fn join(mut self) {
        self.sender = None;
        for handle in self.handles.lock().drain(..) {
            let _ = handle.join();
        }
    }
}

struct Worker {
    shared: Arc<Shared>,
    session: Option<Session>,
}

impl Worker {
    fn run(mut self) {
        loop {
            let next = self.shared.inbox.lock().recv();
            let Ok(mut unit) = next else { return };
            let outcome = self.work(unit.as_mut());
            self.shared.open.fetch_sub(1, Ordering::SeqCst);
            unit.answer(outcome);
        }
    }

    /// Runs the unit until it is committed or fails for good.
    fn work(&mut self, unit: &mut dyn Unit) -> Result<()> {
        let mut attempt = 0;
        let mut connects = 0;
        loop {
            let outcome = self.attempt(unit);
            let lost = matches!(outcome, Err(Error::Unreachable(_)));
            if lost {
                self.session = None;
                connects += 1;
            }
            attempt += 1;
            match outcome {
                Err(error) if error.is_transient() && attempt < MAX_ATTEMPTS && connects < MAX_CONNECTS => {
                    self.shared.stats.reruns.fetch_add(1, Ordering::Relaxed);
                    pause_before_retry(if lost { connects + 5 } else { attempt });
                }
                outcome => return outcome,
            }
        }
    }

    fn attempt(&mut self, unit: &mut dyn Unit) -> Result<()> {
        let session = match &mut self.session {
            Some(session) => session,
            empty => {
                let mut session = self.shared.server.connect()?;
                // The server may have been restored to an earlier state.
                if !self.shared.is_read_only {
                    lineage::check_server(&mut session, self.shared.clock.now())?;
                }
                empty.insert(session)
            }
        };
        let access = unit.access();
        let asked_at = Instant::now();
        let begun = session.begin(access).inspect_err(|_| session.rollback())?;
        if let Some((to, at)) = begun.left
            && !self.shared.may_be_left
        {
            session.rollback();
            return Err(Error::MovedAway { to, at });
        }
        let now = if self.shared.clock.is_system() { begun.now } else { self.shared.clock.now() };
        let ran = unit.run(&mut Tx::on_postgres(session, now).asked_at(asked_at));
        ran.inspect_err(|_| session.rollback())?;
        match session.execute_text("COMMIT") {
            Err(Error::Unreachable(why)) if access != TxAccess::Read => {
                self.session = None;
                self.resolve_commit(&begun.number, &why)?;
            }
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        if access != TxAccess::Read {
            self.shared.stats.commits.fetch_add(1, Ordering::Relaxed);
            self.shared.stats.writes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Resolves a COMMIT during which the connection broke: the server knows how the transaction with this number
    /// ended.
    fn resolve_commit(&mut self, number: &str, why: &str) -> Result<()> {
        for attempt in 1..=MAX_ATTEMPTS {
            // An error of this query says nothing about the transaction, so it must not look like one that allows a
            // retry.
            let status = self.shared.server.connect().and_then(|mut session| {
                let status = session.first_text(&format!("SELECT pg_xact_status('{number}'::xid8)"))?;
                Ok((session, status))
            });
            let Ok((session, status)) = status else {
                pause_before_retry(attempt + 5);
                continue;
            };
            self.session = Some(session);
            match status.as_deref() {
                Some("committed") => return Ok(()),
                Some("in progress") => pause_before_retry(attempt + 5),
                Some("aborted") => return Err(Error::Collided("lost before COMMIT took effect".into())),
                _ => break,
            }
        }
        Err(Error::UnknownOutcome(why.to_owned()))
    }
}

/// Waits longer after every attempt, up to a second, by a random amount.
fn pause_before_retry(attempt: u32) {
    let ceiling = 1_u64 << attempt.min(10);
    let mut random = [0; 2];
    let _ = getrandom::fill(&mut random);
    let millis = ceiling / 2 + u64::from(u16::from_le_bytes(random)) % ceiling;
    std::thread::park_timeout(Duration::from_millis(millis));
}
