//! Copies of a SQLite file while it is in use, and putting one back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{Error, Place, Result, sqlite};

/// What a backup wrote.
#[derive(Debug, Clone, serde::Serialize)]
pub struct BackupReport {
    /// Size of the copy.
    pub bytes: u64,
    /// Where the database is kept that stood in the copy's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
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
        let (draft, bytes) = copy_checked(&from, &to)?;
        std::fs::rename(&draft, &to).map_err(|error| cannot(&to, &error))?;
        Ok(BackupReport { bytes, kept: None })
    })
    .await
}

/// Puts the backup `from` in the place of the database at `to`, which must not be in use.
///
/// The database that stood there is kept beside it as `NAME.before-restore`, or with a number behind that if there is
/// such a file already. Nothing is touched before the copy is whole.
pub async fn restore(from: &Path, to: &Place) -> Result<BackupReport> {
    let (from, to) = (from.to_owned(), file_of(to)?.to_owned());
    in_background(move || {
        let (draft, bytes) = copy_checked(&from, &to)?;
        let mut kept = None;
        if to.exists() {
            refuse_if_in_use(&to)?;
            let aside = free_name(&to);
            std::fs::rename(&to, &aside).map_err(|error| cannot(&to, &error))?;
            kept = Some(aside);
        }
        std::fs::rename(&draft, &to).map_err(|error| cannot(&to, &error))?;
        Ok(BackupReport { bytes, kept })
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

/// A name beside `path` that no file has.
fn free_name(path: &Path) -> PathBuf {
    let named = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let numbered = (2..).map(|number: u32| named(&format!(".before-restore-{number}")));
    std::iter::once(named(".before-restore")).chain(numbered).find(|path| !path.exists()).unwrap_or_default()
}

/// Copies `from` into a draft beside `to` and checks it; answers the draft and its size.
fn copy_checked(from: &Path, to: &Path) -> Result<(PathBuf, u64)> {
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
    Ok((draft, bytes))
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
