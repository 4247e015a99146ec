//! A temporary folder for fetched files that is removed after use, even when its owner is killed.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

const PREFIX: &str = "tsuzuki-press-";
/// Locked while the owner lives; the system releases it when the owner dies.
const LOCK: &str = "owner.lock";

/// A folder below the system's temporary folder.
#[derive(Debug)]
pub struct Workspace {
    dir: TempDir,
    _lock: File,
}

impl Workspace {
    /// Creates a folder, after removing those of dead owners.
    pub fn open() -> io::Result<Self> {
        Self::open_in(&std::env::temp_dir())
    }

    /// The same below another folder.
    pub fn open_in(parent: &Path) -> io::Result<Self> {
        remove_abandoned(parent);
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::create_new(dir.path().join(LOCK))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => error,
            TryLockError::WouldBlock => io::Error::other("a new folder is locked already"),
        })?;
        Ok(Self { dir, _lock: lock })
    }

    /// The path of the file with that number.
    pub fn file(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("{number}.bin"))
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes folders whose owner is dead. A folder that cannot be read belongs to another user and stays.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let Ok(lock) = File::open(path.join(LOCK)) else { continue };
        // A folder that contains only its lock may just have been created and not be locked yet.
        let holds_files = fs::read_dir(&path).is_ok_and(|files| files.count() > 1);
        if holds_files && lock.try_lock().is_ok() {
            match fs::remove_dir_all(&path) {
                Ok(()) => tracing::info!("Removed the files of a run that was killed"),
                Err(error) => tracing::debug!("Could not remove the files of a killed run: {error}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_user() {
        let parent = tempfile::tempdir().unwrap();
        let workspace = Workspace::open_in(parent.path()).unwrap();
        fs::write(workspace.file(0), "x").unwrap();
        drop(workspace);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_folder_of_a_dead_owner_is_removed_and_that_of_a_living_one_stays() {
        let parent = tempfile::tempdir().unwrap();
        let living = Workspace::open_in(parent.path()).unwrap();
        fs::write(living.file(0), "x").unwrap();
        let dead = parent.path().join(format!("{PREFIX}dead"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        fs::write(dead.join("0.bin"), "x").unwrap();
        let _new = Workspace::open_in(parent.path()).unwrap();
        assert!(!dead.exists());
        assert!(living.file(0).exists());
    }
}
