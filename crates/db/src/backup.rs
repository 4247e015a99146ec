//! Backup of a SQLite file while it is in use, and restore.

use std::path::{Path, PathBuf};
use std::time::Duration;
use stdx::phrase;
use stdx::phrase::Phrase;

use rusqlite::{Connection, OpenFlags};

use super::{Db, DbUrl, Error, Open, Result, SchemaState, sqlite};
use stdx::time::{Clock, Timestamp};

/// The result of a backup or restore.
#[derive(Debug, Clone, serde::Serialize)]
pub struct BackupReport {
    pub bytes: u64,
    /// Where the database that was replaced is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
}

/// Why a backup or a restore failed; nothing was changed.
#[derive(Debug)]
pub enum BackupError {
    /// The file to write exists already.
    Exists(PathBuf),
    /// The directory of the file to write does not exist.
    NoDirectory(PathBuf),
    /// The file to restore does not exist.
    NoBackup(PathBuf),
    /// The file to restore cannot be used.
    NotABackup { path: PathBuf, why: Error },
    /// The file to restore is the database itself.
    Itself(PathBuf),
    /// Another process has the database open.
    InUse(PathBuf),
    /// The database is not a file.
    NotAFile(String),
    /// The database failed.
    Db(Error),
}

impl BackupError {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            BackupError::Exists(path) => {
                phrase!("{path} exists already", "{path} はすでにあります")
            }
            BackupError::NoDirectory(path) => {
                phrase!("there is no directory {path}", "ディレクトリ {path} がありません")
            }
            BackupError::NoBackup(path) => phrase!("there is no file {path}", "ファイル {path} がありません"),
            BackupError::NotABackup { path, why } => phrase!(
                "{path} is no backup that can be used: {why}",
                "{path} はバックアップとして使えません：{why}"
            ),
            BackupError::Itself(path) => {
                phrase!("{path} is the database itself", "{path} はデータベースそのものです")
            }
            BackupError::InUse(path) => {
                phrase!("{path} is in use by another process", "{path} は別のプロセスが使用中です")
            }
            BackupError::NotAFile(place) => phrase!(
                "{place} is not a SQLite file, and only those are copied",
                "{place} は SQLite のファイルではありません（コピーできるのは SQLite だけです）"
            ),
            BackupError::Db(error) => error.phrase(),
        }
    }
}

stdx::error_in_english!(BackupError);

impl From<Error> for BackupError {
    fn from(error: Error) -> Self {
        BackupError::Db(error)
    }
}

type BackupResult<T> = std::result::Result<T, BackupError>;

/// Copies the database at `from` to the new file `to`, page by page, while it is in use.
///
/// The copy is checked before it gets its name, so that an incomplete backup is never mistaken for a valid one. It
/// contains the moment of the backup, so that it can be recognised as a copy wherever it is used.
pub async fn backup(from: &DbUrl, to: &Path, clock: &Clock) -> BackupResult<BackupReport> {
    let (shown, from, to) = (from.to_string(), file_of(from)?.to_owned(), to.to_owned());
    let now = clock.now();
    in_background(move || {
        if to.exists() {
            return Err(BackupError::Exists(to));
        }
        if !from.exists() {
            return Err(Error::Missing(shown).into());
        }
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            return Err(BackupError::NoDirectory(parent.to_owned()));
        }
        let copied = copy_checked(&from, &to, Made::Now(now))?;
        copied.put_at(&to)?;
        Ok(BackupReport { bytes: copied.bytes, kept: None })
    })
    .await
}

/// Keeps a copy of a file whose schema is about to be migrated, as `NAME.before-vN`; an existing one is not replaced.
pub(super) fn keep_before_migration(path: &Path, state: &SchemaState, clock: &Clock) -> Result<()> {
    let kept = with_ending(path, &format!(".before-v{}", state.known));
    if state.found == 0 || state.found == state.known || kept.exists() {
        return Ok(());
    }
    copy_checked(path, &kept, Made::Now(clock.now()))?.put_at(&kept)
}

/// Deletes the oldest backups of a directory whose names begin with `prefix` until `keep` are left; returns the deleted
/// ones.
///
/// The names end in the moment of the backup, so they sort by time.
pub fn prune_backups(directory: &Path, prefix: &str, keep: usize) -> std::io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(prefix) && name.ends_with(".db")
        })
        .collect();
    found.sort();
    let old: Vec<PathBuf> = found.drain(..found.len().saturating_sub(keep)).collect();
    old.iter().try_for_each(std::fs::remove_file)?;
    Ok(old)
}

/// Replaces the database at `to`, which must not be in use, by the backup `from`.
///
/// The replaced database, valid or not, is kept beside it as `NAME.before-restore`, with a number appended if that
/// exists. Nothing is changed before the copy is complete.
pub async fn restore(from: &Path, to: &DbUrl, clock: &Clock) -> BackupResult<BackupReport> {
    let (from, to) = (from.to_owned(), file_of(to)?.to_owned());
    if !from.is_file() {
        return Err(BackupError::NoBackup(from));
    }
    if from.canonicalize().ok() == to.canonicalize().ok() {
        return Err(BackupError::Itself(from));
    }
    // Opening it verifies that it is a valid database of ours; an older one is migrated later.
    match Db::open(DbUrl::File(from.clone()), Open::ReadOnly, clock.clone()).await {
        Ok(opened) => opened.close().await,
        Err(Error::Outdated { found: 1.., .. }) => {}
        Err(why) => return Err(BackupError::NotABackup { path: from, why }),
    }
    in_background(move || {
        let copied = copy_checked(&from, &to, Made::Before)?;
        let kept = put_aside(&to)?;
        copied.put_at(&to)?;
        Ok(BackupReport { bytes: copied.bytes, kept })
    })
    .await
}

/// Fails if another process has the SQLite file open. For PostgreSQL that cannot be found out.
pub async fn refuse_if_open(place: &DbUrl) -> BackupResult<()> {
    match place {
        DbUrl::File(path) if path.exists() => {
            let path = path.clone();
            in_background(move || refuse_others(&path)).await
        }
        _ => Ok(()),
    }
}

fn refuse_others(path: &Path) -> BackupResult<()> {
    refuse_if_in_use(path).map_err(|error| match error {
        Error::Busy(_) => BackupError::InUse(path.to_owned()),
        error => error.into(),
    })
}

/// Files that SQLite keeps beside a database. They must never be left beside another one of that name, or their pages
/// would overwrite its own.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Renames the database at `path` with its associated files, or those of one that was removed; returns the new name.
fn put_aside(path: &Path) -> BackupResult<Option<PathBuf>> {
    let exists = path.exists();
    let used = if exists { refuse_others(path) } else { Ok(()) };
    match used {
        // For a damaged file it is unknown whether it is in use; replacing it is what the restore is for.
        Ok(()) | Err(BackupError::Db(Error::Damaged(_) | Error::NotADatabase(_))) => {}
        Err(error) => return Err(error),
    }
    let aside = free_name(path);
    // Rename the database last: after an interruption, the remaining files do not look like a valid database.
    for ending in BESIDE.into_iter().chain([""]) {
        let (old, new) = (with_ending(path, ending), with_ending(&aside, ending));
        if old.exists() {
            std::fs::rename(&old, new).map_err(|error| cannot(&old, &error))?;
        }
    }
    Ok(exists.then_some(aside))
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> BackupResult<T> + Send + 'static,
) -> BackupResult<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::Closed)?
}

fn file_of(place: &DbUrl) -> BackupResult<&Path> {
    match place {
        DbUrl::File(path) => Ok(path),
        DbUrl::Memory | DbUrl::Server(_) => Err(BackupError::NotAFile(place.to_string())),
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// An unused name beside `path`.
fn free_name(path: &Path) -> PathBuf {
    let numbered = (2..).map(|number: u32| with_ending(path, &format!(".before-restore-{number}")));
    std::iter::once(with_ending(path, ".before-restore"))
        .chain(numbered)
        .find(|name| BESIDE.into_iter().chain([""]).all(|ending| !with_ending(name, ending).exists()))
        .unwrap_or_default()
}

/// A draft of a copy; it is deleted unless it is renamed.
struct Copied {
    draft: PathBuf,
    bytes: u64,
}

impl Copied {
    fn put_at(&self, to: &Path) -> Result<()> {
        std::fs::rename(&self.draft, to).map_err(|error| cannot(to, &error))?;
        // The rename must survive a power cut, too.
        #[cfg(unix)]
        {
            let parent =
                to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let directory = std::fs::File::open(parent).map_err(|error| cannot(parent, &error))?;
            directory.sync_all().map_err(|error| cannot(parent, &error))?;
        }
        Ok(())
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.draft);
    }
}

#[derive(Clone, Copy)]
enum Made {
    Now(Timestamp),
    /// Earlier, and the database that it replaces has been in use since.
    Before,
}

/// Copies `from` into a draft beside `to` and checks it.
fn copy_checked(from: &Path, to: &Path, made: Made) -> Result<Copied> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    source.busy_timeout(Duration::from_secs(60))?;
    // Read a single state of the source: otherwise the copy would start over after every commit, and never finish
    // beside a busy writer.
    source.execute_batch("BEGIN")?;
    source.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    let mut copied = Copied { draft: with_ending(to, &format!(".part-{}", std::process::id())), bytes: 0 };
    let draft = &copied.draft;
    let _ = std::fs::remove_file(draft);
    sqlite::create_private(draft).map_err(|error| cannot(draft, &error))?;
    {
        let mut copy = Connection::open(draft)?;
        let backup = rusqlite::backup::Backup::new(&source, &mut copy)?;
        backup.run_to_completion(1_000, Duration::from_millis(1), None)?;
        drop(backup);
        sqlite::quick_check(&copy)?;
        stamp(&copy, made)?;
        skip_numbers(&copy, to)?;
        copy.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
    }
    let file = std::fs::File::open(draft).map_err(|error| cannot(draft, &error))?;
    keep_rights(draft, from, to).map_err(|error| cannot(draft, &error))?;
    file.sync_all().map_err(|error| cannot(draft, &error))?;
    copied.bytes = file.metadata().map_err(|error| cannot(draft, &error))?.len();
    Ok(copied)
}

/// Gives a copy the permissions of the file that it replaces, or else of its source.
fn keep_rights(draft: &Path, from: &Path, to: &Path) -> std::io::Result<()> {
    let replaced = std::fs::metadata(to);
    #[cfg(unix)]
    if let Ok(replaced) = &replaced {
        use std::os::unix::fs::MetadataExt as _;
        // Only root can change the owner, and only then it is needed: otherwise the daemon could not write a file
        // restored by root.
        let _ = std::os::unix::fs::chown(draft, Some(replaced.uid()), Some(replaced.gid()));
    }
    std::fs::set_permissions(draft, replaced.or_else(|_| std::fs::metadata(from))?.permissions())
}

/// Records in a copy when it was made. If that is unknown, it is the time of its last event.
fn stamp(copy: &Connection, made: Made) -> Result<()> {
    let has_place =
        copy.query_row("SELECT count(*) FROM sqlite_master WHERE name = 'restores'", [], |row| {
            row.get::<_, i64>(0)
        })?;
    if has_place == 0 {
        // Its version has no such table.
        return Ok(());
    }
    let made_at = match made {
        Made::Now(at) => at.to_text(),
        Made::Before => {
            let is_marked = "SELECT count(*) FROM restores WHERE restored_at IS NULL";
            if copy.query_row(is_marked, [], |row| row.get::<_, i64>(0))? > 0 {
                return Ok(());
            }
            let last: Option<String> = copy.query_row("SELECT max(at) FROM events", [], |row| row.get(0))?;
            last.unwrap_or_else(|| Timestamp::MIN.to_text())
        }
    };
    copy.execute(
        "INSERT INTO restores (made_at, restored_at) VALUES (?1, NULL)
         ON CONFLICT (made_at) DO UPDATE SET restored_at = NULL",
        [made_at],
    )?;
    Ok(())
}

/// Tables whose ids appear in messages: a second message with the same id but other content might be taken for a
/// repeat.
const NUMBERED: [&str; 2] = ["book_digests", "blog_changes"];
/// More ids than are assigned while a copy is in use.
const JUMP: i64 = 1_000_000;

/// Skips the ids that the original may have assigned since, and those used by the database at `to`.
fn skip_numbers(copy: &Connection, to: &Path) -> Result<()> {
    let there = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE).ok();
    for table in NUMBERED {
        let given = there.as_ref().and_then(|there| last_number(there, table).ok());
        let last = last_number(copy, table)?.saturating_add(JUMP).max(given.unwrap_or(0));
        copy.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
        copy.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, last))?;
    }
    Ok(())
}

fn last_number(connection: &Connection, table: &str) -> Result<i64> {
    let last = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?1";
    Ok(connection.query_row(last, [table], |row| row.get(0))?)
}

/// In WAL mode an exclusive lock is only granted if no other process has the file open.
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
