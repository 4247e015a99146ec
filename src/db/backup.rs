//! Copies of a SQLite file while it is in use, and putting one back.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{Error, Place, Result, sqlite};

/// What a backup wrote.
#[derive(Debug, Clone, serde::Serialize)]
pub struct BackupReport {
    /// Size of the copy.
    pub bytes: u64,
}

/// Copies the database at `from` to the new file `to`, page by page, while others go on using it.
///
/// The copy is checked before it gets its name, so a half-written backup never looks like a good one.
pub async fn backup(from: &Place, to: &Path) -> Result<BackupReport> {
    let (from, to) = (file_of(from)?.to_owned(), to.to_owned());
    in_background(move || {
        if to.exists() {
            return Err(Error::CannotOpen(format!("{} exists already", to.display())));
        }
        copy_checked(&from, &to)
    })
    .await
}

/// Puts the backup `from` in the place of the database at `to`, which must not be in use.
///
/// The database that stood there is kept beside it as `NAME.before-restore`.
pub async fn restore(from: &Path, to: &Place) -> Result<BackupReport> {
    let (from, to) = (from.to_owned(), file_of(to)?.to_owned());
    in_background(move || {
        if to.exists() {
            refuse_if_in_use(&to)?;
            let aside = to.with_extension("before-restore");
            std::fs::rename(&to, &aside).map_err(|error| cannot(&to, &error))?;
        }
        copy_checked(&from, &to)
    })
    .await
}

async fn in_background<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::Closed)?
}

fn file_of(place: &Place) -> Result<&Path> {
    match place {
        Place::File(path) => Ok(path),
        Place::Memory => Err(Error::BadAddress("a database in memory cannot be copied".into())),
        Place::Server(_) => Err(Error::BadAddress(
            "PostgreSQL is backed up with pg_dump; this command copies SQLite files".into(),
        )),
    }
}

fn copy_checked(from: &Path, to: &Path) -> Result<BackupReport> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    source.busy_timeout(Duration::from_secs(60))?;
    let draft = to.with_extension("part");
    let _ = std::fs::remove_file(&draft);
    {
        let mut copy = Connection::open(&draft)?;
        let backup = rusqlite::backup::Backup::new(&source, &mut copy)?;
        backup.run_to_completion(1_000, Duration::from_millis(1), None)?;
        drop(backup);
        sqlite::quick_check(&copy)?;
        copy.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
    }
    let file = std::fs::File::open(&draft).map_err(|error| cannot(&draft, &error))?;
    file.sync_all().map_err(|error| cannot(&draft, &error))?;
    let bytes = file.metadata().map_err(|error| cannot(&draft, &error))?.len();
    std::fs::rename(&draft, to).map_err(|error| cannot(to, &error))?;
    Ok(BackupReport { bytes })
}

/// An exclusive lock is only granted when nobody else has the file open in WAL mode.
fn refuse_if_in_use(path: &Path) -> Result<()> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(Duration::from_millis(200))?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")?;
    connection.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
    Ok(())
}

fn cannot(path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::StorageFull => Error::Full(path.display().to_string()),
        _ => Error::CannotOpen(format!("{}: {error}", path.display())),
    }
}
