//! Other processes that use a SQLite file: which one has locked it, and whether the file was replaced.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Error, Result};

/// The byte of the shared index that a writer locks: SQLite's WAL_WRITE_LOCK.
const WRITE_LOCK: u64 = 120;

/// The process that has locked the file at `path`, if the system reports it: `process 30500 (tsuzuki, stopped)`.
///
/// Do not open the shared index to query its locks: closing it would release those of this process.
pub(super) fn find_writer(path: &Path) -> Option<String> {
    let mut index = path.as_os_str().to_owned();
    index.push("-shm");
    let inode = Identity::of(Path::new(&index))?.inode;
    let pid = find_pid(&fs::read_to_string("/proc/locks").ok()?, inode)?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    Some(match read_stat(&stat) {
        Some((name, 'T' | 't')) => format!("process {pid} ({name}, stopped)"),
        Some((name, _)) => format!("process {pid} ({name})"),
        None => format!("process {pid}"),
    })
}

/// The process with a write lock on that byte, from a line of `/proc/locks`: `1: POSIX  ADVISORY  WRITE 30500
/// fd:01:5678 120 120`.
fn find_pid(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, file, start, end] = fields[..] else { return None };
        let (start, end): (u64, u64) = (start.parse().ok()?, end.parse().unwrap_or(u64::MAX));
        let is_it = file.rsplit(':').next()?.parse() == Ok(inode) && (start..=end).contains(&WRITE_LOCK);
        pid.parse().ok().filter(|_| is_it)
    })
}

/// Name and state of a process from `/proc/PID/stat`; the name may contain any characters.
fn read_stat(stat: &str) -> Option<(&str, char)> {
    let (before, after) = stat.rsplit_once(") ")?;
    Some((before.split_once('(')?.1, after.chars().next()?))
}

/// Identifies a file independently of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let file = fs::metadata(path).ok()?;
            Some(Self { device: file.dev(), inode: file.ino() })
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            None
        }
    }
}

/// The opened file, in order to detect when it is replaced.
#[derive(Clone, Debug)]
pub(super) struct OpenedFile {
    path: PathBuf,
    identity: Option<Identity>,
}

impl OpenedFile {
    /// The file at `path`, which was just opened.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: Identity::of(path) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if it was replaced: reads and writes would go to another file, or to none.
    pub(super) fn refuse_replaced(&self) -> Result<()> {
        if self.is_in_place() { Ok(()) } else { Err(Error::Replaced(self.path.display().to_string())) }
    }

    /// Whether it was neither removed nor replaced.
    pub(super) fn is_in_place(&self) -> bool {
        self.identity.is_none() || self.identity == Identity::of(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_is_found_among_all_locks_of_the_machine() {
        let locks = "1: POSIX  ADVISORY  READ 11 fd:01:5678 123 123\n\
                     2: FLOCK  ADVISORY  WRITE 12 fd:01:5678 0 EOF\n\
                     2: -> POSIX  ADVISORY  WRITE 13 fd:01:5678 120 120\n\
                     3: POSIX  ADVISORY  WRITE 14 fd:01:9999 120 120\n\
                     4: POSIX  ADVISORY  WRITE 15 fd:01:5678 120 120\n";
        assert_eq!(find_pid(locks, 9999), Some(14));
        assert_eq!(find_pid(locks, 5678), Some(15));
        assert_eq!(find_pid(locks, 1), None);
        assert_eq!(find_pid("nonsense", 1), None);
    }

    #[test]
    fn a_process_may_have_any_name() {
        assert_eq!(read_stat("7 (tsuzuki) T 1 7"), Some(("tsuzuki", 'T')));
        assert_eq!(read_stat("7 (a) S (b) R 1 7"), Some(("a) S (b", 'R')));
        assert_eq!(read_stat(""), None);
    }

    #[test]
    fn a_file_that_was_removed_or_replaced_is_not_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        fs::write(&path, "one").unwrap();
        let opened = OpenedFile::new(&path);
        fs::write(&path, "changed").unwrap();
        assert!(opened.is_in_place());
        fs::rename(&path, dir.path().join("y.db")).unwrap();
        assert!(!opened.is_in_place());
        fs::write(&path, "two").unwrap();
        assert!(!opened.is_in_place());
    }
}
