//! Copies of a SQLite file while it is in use, and putting one back.

use std::path::{Path, PathBuf};
use std::time::Duration;
use stdx::phrase;
use stdx::phrase::Phrase;

use rusqlite::{Connection, OpenFlags};

use super::{Db, DbUrl, Error, Open, Result, SchemaState, sqlite};
use stdx::time::{Clock, Timestamp};

/// What a backup wrote.
#[derive(Debug, Clone, serde::Serialize)]
pub struct BackupReport {
    /// Size of the copy.
    pub bytes: u64,
    /// Where the database is kept that stood in the copy's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
}

/// Why a backup was not written or not put back; nothing was changed.
#[derive(Debug)]
pub enum BackupError {
    /// The file to write is there already.
    Exists(PathBuf),
    /// There is no directory for the file to write.
    NoDirectory(PathBuf),
    /// The file to put back is not there.
    NoBackup(PathBuf),
    /// The file to put back is none that we can use.
    NotABackup {
        path: PathBuf,
        /// What is wrong with it.
        why: Error,
    },
    /// The file to put back is the database.
    Itself(PathBuf),
    /// Somebody has the database open.
    InUse(PathBuf),
    /// The database is not a file.
    NotAFile(String),
    /// A database refused.
    Db(Error),
}

impl BackupError {
    /// Why, in one sentence.
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

/// Copies the database at `from` to the new file `to`, page by page, while others go on using it.
///
/// The copy is checked before it gets its name, so a half-written backup never looks like a good one. It carries the
/// moment at which it was made, so that it is known for a copy wherever it is put.
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

/// Keeps a copy of a file whose schema is about to change, as `NAME.before-vN`; one that is there already stays.
pub(super) fn keep_before_migration(path: &Path, state: &SchemaState, clock: &Clock) -> Result<()> {
    let kept = with_ending(path, &format!(".before-v{}", state.known));
    if state.found == 0 || state.found == state.known || kept.exists() {
        return Ok(());
    }
    copy_checked(path, &kept, Made::Now(clock.now()))?.put_at(&kept)
}

/// Deletes the oldest backups of a directory whose names begin with `prefix`, so that `keep` stay; answers those.
///
/// The names end in the moment of the backup, so that their order is that of time.
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

/// Puts the backup `from` in the place of the database at `to`, which must not be in use.
///
/// The database that stood there, sound or not, is kept beside it as `NAME.before-restore`, or with a number behind
/// that if there is such a file already. Nothing is touched before the copy is whole.
pub async fn restore(from: &Path, to: &DbUrl, clock: &Clock) -> BackupResult<BackupReport> {
    let (from, to) = (from.to_owned(), file_of(to)?.to_owned());
    if !from.is_file() {
        return Err(BackupError::NoBackup(from));
    }
    if from.canonicalize().ok() == to.canonicalize().ok() {
        return Err(BackupError::Itself(from));
    }
    // Opening it says at once whether it is a sound database of ours; an older one is brought up to date later.
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

/// Refuses a SQLite file that another process has open. Who uses a PostgreSQL, nobody can tell.
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

/// What SQLite keeps beside a database: none of it may meet another one of that name, or its pages would be laid over it.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Moves the database at `path` out of the way, with what belongs to it, or what is left of one that somebody removed;
/// answers its new name.
fn put_aside(path: &Path) -> BackupResult<Option<PathBuf>> {
    let exists = path.exists();
    let used = if exists { refuse_others(path) } else { Ok(()) };
    match used {
        // Whether anybody uses a damaged file cannot be told; to be rid of it is why one restores.
        Ok(()) | Err(BackupError::Db(Error::Damaged(_) | Error::NotADatabase(_))) => {}
        Err(error) => return Err(error),
    }
    let aside = free_name(path);
    // The database goes last: if we are cut off, what is left cannot be taken for a sound one.
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

/// A name beside `path` that no file has.
fn free_name(path: &Path) -> PathBuf {
    let numbered = (2..).map(|number: u32| with_ending(path, &format!(".before-restore-{number}")));
    std::iter::once(with_ending(path, ".before-restore"))
        .chain(numbered)
        .find(|name| BESIDE.into_iter().chain([""]).all(|ending| !with_ending(name, ending).exists()))
        .unwrap_or_default()
}

/// A copy on its way; it goes when nobody gives it its name.
struct Copied {
    draft: PathBuf,
    bytes: u64,
}

impl Copied {
    fn put_at(&self, to: &Path) -> Result<()> {
        std::fs::rename(&self.draft, to).map_err(|error| cannot(to, &error))?;
        // Its name must outlast a power cut, too.
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

/// When a copy was made.
#[derive(Clone, Copy)]
enum Made {
    Now(Timestamp),
    /// Some time ago, and what stands at its place has been in use since.
    Before,
}

/// Copies `from` into a draft beside `to` and checks it.
fn copy_checked(from: &Path, to: &Path, made: Made) -> Result<Copied> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    source.busy_timeout(Duration::from_secs(60))?;
    // One state of the source from the first page to the last: without it the copy would start over whenever somebody
    // commits, and never end beside a busy writer.
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

/// Lets those read a copy who may read what it replaces, or else what it is a copy of.
fn keep_rights(draft: &Path, from: &Path, to: &Path) -> std::io::Result<()> {
    let replaced = std::fs::metadata(to);
    #[cfg(unix)]
    if let Ok(replaced) = &replaced {
        use std::os::unix::fs::MetadataExt as _;
        // Only root can, and only root has to: the daemon could not write what root put back.
        let _ = std::os::unix::fs::chown(draft, Some(replaced.uid()), Some(replaced.gid()));
    }
    std::fs::set_permissions(draft, replaced.or_else(|_| std::fs::metadata(from))?.permissions())
}

/// Writes into a copy when it was made. One that does not know was made some time after the last thing that it knows of.
fn stamp(copy: &Connection, made: Made) -> Result<()> {
    let has_place =
        copy.query_row("SELECT count(*) FROM sqlite_master WHERE name = 'restores'", [], |row| {
            row.get::<_, i64>(0)
        })?;
    if has_place == 0 {
        // Of a version that did not know of copies.
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

/// Tables whose numbers are the names of messages: a mail that tells something else under the name of another may be taken
/// for the other by those who get it.
const NUMBERED: [&str; 2] = ["book_digests", "blog_changes"];
/// More of them than are given out in the life of a copy.
const JUMP: i64 = 1_000_000;

/// Leaves out the numbers that the original may have given out since, and those that what stands at `to` has.
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
