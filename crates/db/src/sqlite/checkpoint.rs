//! Moves what was committed from the log into the file, beside the writer: its own checkpoints would keep everybody waiting
//! who has something to write, for a second and more on a slow disk.

use std::sync::mpsc;
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::file::{busy_timeout, set_rules};
use super::{open_file, spawn};
use crate::neighbour::OpenedFile;
use crate::{Open, Result};

/// Pages in the log that are not in the file yet, and worth a move.
const WORTH_A_MOVE: i64 = 1_000;
/// The log is checked after so many commits: a command that writes little needs no second connection.
const CHECK_EVERY: u64 = 8;

/// A thread with a connection of its own. Whoever drops it waits until the connection is closed.
pub(super) struct Checkpointer {
    requests: Option<mpsc::SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(file: OpenedFile) -> Result<Self> {
        // One request is enough, however many commits ask for it.
        let (requests, inbox) = mpsc::sync_channel(1);
        let thread = spawn("db-checkpoint", move || {
            let mut connection = None;
            while inbox.recv().is_ok() {
                // Nothing is lost if it fails: the log has it all, and the writer moves it when it has grown too long.
                let _ = move_log(&file, &mut connection);
            }
        })?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// After the commit of this number.
    pub(super) fn after_commit(&self, number: u64) {
        if number.is_multiple_of(CHECK_EVERY)
            && let Some(requests) = &self.requests
        {
            let _ = requests.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn move_log(file: &OpenedFile, connection: &mut Option<Connection>) -> Result<()> {
    let connection = match connection {
        Some(connection) => connection,
        None => {
            // Another file of that name is not the one that is written to.
            file.refuse_replaced()?;
            let opened = open_file(file.path(), Open::Existing)?;
            opened.busy_timeout(busy_timeout())?;
            set_rules(&opened)?;
            connection.insert(opened)
        }
    };
    let (in_log, moved) = checkpoint(connection, "NOOP")?;
    if in_log - moved >= WORTH_A_MOVE {
        checkpoint(connection, "PASSIVE")?;
    }
    Ok(())
}

/// How many pages are in the log, and how many of them in the file, after a checkpoint of this mode.
fn checkpoint(connection: &Connection, mode: &str) -> Result<(i64, i64)> {
    let found = connection
        .query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| Ok((row.get(1)?, row.get(2)?)))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_moved_beside_the_writer_and_a_short_one_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.db");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x BLOB)",
            )
            .unwrap();
        for (rows, is_moved) in [(100, false), (1_200, true)] {
            for _ in 0..rows {
                writer.execute("INSERT INTO t VALUES (zeroblob(4000))", []).unwrap();
            }
            let checkpointer = Checkpointer::start(OpenedFile::new(&path)).unwrap();
            checkpointer.after_commit(CHECK_EVERY);
            drop(checkpointer);
            let (in_log, moved) = checkpoint(&writer, "NOOP").unwrap();
            assert_eq!(moved == in_log, is_moved, "{rows}: {moved} of {in_log}");
        }
    }
}
