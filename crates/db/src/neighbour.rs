//! What other processes do to a SQLite file: who keeps it locked, and whether it is still the file that we opened.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Error, Result};

/// The byte of the shared index that whoever writes has locked: SQLite's WAL_WRITE_LOCK.
const WRITE_LOCK: u64 = 120;

/// Who keeps the file at `path` locked, as far as the system says: `process 30500 (tsuzuki, stopped)`.
///
/// The shared index must not be opened to ask for its locks: closing it again would end those of this process.
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

/// The process that has locked the byte for writing, in the words of `/proc/locks`:
/// `1: POSIX  ADVISORY  WRITE 30500 fd:01:5678 120 120`.
fn find_pid(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, file, start, end] = fields[..] else { return None };
        let (start, end): (u64, u64) = (start.parse().ok()?, end.parse().unwrap_or(u64::MAX));
        let is_it = file.rsplit(':').next()?.parse() == Ok(inode) && (start..=end).contains(&WRITE_LOCK);
        pid.parse().ok().filter(|_| is_it)
    })
}

/// Name and state of a process, as `/proc/PID/stat` has them; the name may hold anything.
fn read_stat(stat: &str) -> Option<(&str, char)> {
    let (before, after) = stat.rsplit_once(") ")?;
    Some((before.split_once('(')?.1, after.chars().next()?))
}

/// Which file it is, whatever its name.
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

/// The file that was opened, to notice when another one stands in its place.
#[derive(Clone, Debug)]
pub(super) struct OpenedFile {
    path: PathBuf,
    identity: Option<Identity>,
}

impl OpenedFile {
    /// The file at `path`, which is open now.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: Identity::of(path) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whatever were read or written from now on would be another file's, or nobody's.
    pub(super) fn refuse_replaced(&self) -> Result<()> {
        if self.is_in_place() { Ok(()) } else { Err(Error::Replaced(self.path.display().to_string())) }
    }

    /// Whether it was not removed or replaced since.
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
