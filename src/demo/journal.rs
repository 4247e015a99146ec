//! Everything that happened in a demo world, one JSON line each, so that the world can be stopped and continued.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::mastodon::Toot;
use super::smtp::Kept;
use super::world::Ports;
use crate::time::Timestamp;

/// The file's name; it identifies the directory of a demo.
pub const FILE: &str = "world.ndjson";

/// An event of the world.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The beginning of the world; always the first entry.
    Began {
        at: Timestamp,
        /// The ports of its servers.
        ports: Ports,
    },
    /// One step of the story.
    Step { at: Timestamp },
    /// The Mastodon server accepted a post.
    Post(Toot),
    /// The mail server accepted a mail.
    Mail(Kept),
}

/// The open file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Opens the journal of `directory`, new or existing, and returns its entries.
    ///
    /// An incomplete last line is ignored: it was never confirmed.
    pub fn open(directory: &Path) -> io::Result<(Self, Vec<Entry>)> {
        let path = directory.join(FILE);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        let mut entries = Vec::new();
        for (number, line) in text[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
            let entry = serde_json::from_slice(line).map_err(|error| {
                let why = format!("line {} of {} is not ours: {error}", number + 1, path.display());
                io::Error::new(io::ErrorKind::InvalidData, why)
            })?;
            entries.push(entry);
        }
        Ok((Self { path, file: Mutex::new(file) }, entries))
    }

    /// Appends a line atomically.
    pub fn add(&self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut file = self.file.lock();
        let length = file.metadata()?.len();
        file.write_all(&line).or_else(|error| file.set_len(length).and(Err(error)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What a server received before, and the record of what it receives.
#[derive(Debug)]
pub struct Memory<T> {
    /// Received before, oldest first.
    pub before: Vec<T>,
    pub record: Record<T>,
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self { before: Vec::new(), record: Record(None) }
    }
}

/// Saves what was received before it is confirmed to the sender; or saves nothing.
pub struct Record<T>(Option<Arc<Note<T>>>);

type Note<T> = dyn Fn(&T) -> io::Result<()> + Send + Sync;

impl<T> Record<T> {
    /// A record that is saved by `note`.
    pub fn new(note: impl Fn(&T) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(note)))
    }

    /// Saves `received`; after an error it was not received.
    pub fn note(&self, received: &T) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |note| note(received))
    }
}

impl<T> Clone for Record<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Record<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for Record<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Record" } else { "Record (none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_did_not_happen_and_a_strange_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let step = |millis| Entry::Step { at: Timestamp::from_millis(millis) };
        let (journal, none) = Journal::open(directory.path()).unwrap();
        assert!(none.is_empty());
        journal.add(&step(1)).unwrap();
        journal.add(&step(2)).unwrap();
        let path = journal.path().to_owned();
        drop(journal);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 3]).unwrap();
        let (journal, entries) = Journal::open(directory.path()).unwrap();
        assert!(matches!(entries[..], [Entry::Step { at }] if at.as_millis() == 1), "{entries:?}");
        journal.add(&step(3)).unwrap();
        assert_eq!(Journal::open(directory.path()).unwrap().1.len(), 2);
        std::fs::write(&path, "shopping list\n").unwrap();
        let refused = Journal::open(directory.path()).unwrap_err().to_string();
        assert!(refused.contains("line 1 of "), "{refused}");
    }
}
