//! Runs WAL checkpoints in a thread beside the writer: in the writer they would delay all other writes, for a second
//! and more on a slow disk.

use std::sync::mpsc;
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::file::{busy_timeout, set_rules};
use super::{open_file, spawn};
use crate::neighbour::OpenedFile;
use crate::{Open, Result};

/// Pages in the WAL, not in the file yet, from which on a checkpoint is worthwhile.
const WORTH_A_MOVE: i64 = 1_000;
/// How often to check the WAL: a command with few commits needs no second connection.
const CHECK_EVERY: u64 = 8;

/// A thread with its own connection. Dropping it waits until the connection is closed.
pub(super) struct Checkpointer {
    requests: Option<mpsc::SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(file: OpenedFile) -> Result<Self> {
        // One pending request is enough for any number of commits.
        let (requests, inbox) = mpsc::sync_channel(1);
        let thread = spawn("db-checkpoint", move || {
            let mut connection = None;
            while inbox.recv().is_ok() {
                // If it fails, nothing is lost: the WAL has everything, and the writer runs a checkpoint itself when it
                // is too long.
                let _ = move_log(&file, &mut connection);
            }
        })?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Called after each commit with its number.
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
            // The file may have been replaced.
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

/// Runs a checkpoint in this mode; returns the pages in the WAL, and how many of them are in the file.
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
