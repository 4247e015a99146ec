//! What can go wrong with a database, named by what to do next.

/// The result of anything that touches the database.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A database error. `Display` says what and why, [`Error::hint`] the way out.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The address cannot be read.
    #[error("{0}")]
    BadAddress(String),
    /// There is no database and we may not create one.
    #[error("there is no database at {0}")]
    Missing(String),
    /// It holds tables, but not ours.
    #[error("{place} is not a tsuzuki database: {why}")]
    NotOurs {
        place: String,
        /// What gives it away.
        why: String,
    },
    /// A newer version of the program has changed the schema.
    #[error("the database has schema version {found}, this program knows only up to {known}")]
    Newer {
        /// The version in the database.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// The schema is older than the program and we may not change it now.
    #[error("the database has schema version {found}, this program needs {known}")]
    Outdated {
        /// The version in the database.
        found: i64,
        /// The version this program needs.
        known: i64,
    },
    /// A migration that ran once has been edited since, or was edited by hand.
    #[error("migration {version} in the database is not the one this program has")]
    Altered {
        /// The migration's number.
        version: i64,
    },
    /// A move into this database was begun and has not ended.
    #[error("the database is being filled by a move from {from} that has not ended")]
    Arriving {
        /// Where its rows come from.
        from: String,
    },
    /// Everything in this database was moved elsewhere, so nothing may happen here any more.
    #[error("everything in this database was moved to {to} at {at}")]
    MovedAway {
        /// Where it went.
        to: String,
        at: String,
    },
    /// The file is damaged. It is never recreated or repaired behind the user's back.
    #[error("the database file is damaged: {0}")]
    Damaged(String),
    /// The file is something else. It is never overwritten.
    #[error("the file is not a SQLite database: {0}")]
    NotADatabase(String),
    /// The file, its directory or the server refuses writes.
    #[error("the database cannot be written: {0}")]
    ReadOnly(String),
    /// The disk is full; nothing was changed.
    #[error("the disk is full: nothing was changed ({0})")]
    Full(String),
    /// The disk failed to read or write.
    #[error("the disk reports an error: {0}")]
    Disk(String),
    /// The file cannot be opened at all.
    #[error("cannot open the database: {0}")]
    CannotOpen(String),
    /// Another process, which the system may name, kept the file locked for longer than we wait.
    #[error("{} keeps the database locked", .0.as_deref().unwrap_or("another process"))]
    Busy(Option<String>),
    /// The file was removed, or another one stands in its place: what we write would be lost.
    #[error("{0} was removed or replaced while it was open")]
    Replaced(String),
    /// The server does not answer, or the connection broke before anything was committed.
    #[error("no connection to the database: {0}")]
    Unreachable(String),
    /// The connection broke during COMMIT and the server cannot say how it ended.
    #[error("the connection broke during COMMIT and its outcome is not known: {0}")]
    UnknownOutcome(String),
    /// Other transactions got in the way on every try; the closure runs again.
    #[error("the transaction collided with others too often: {0}")]
    Collided(String),
    /// A constraint of the schema refused a row.
    #[error("the database refused a row: {0}")]
    Constraint(String),
    /// A stored value is not of the expected kind.
    #[error("column {column} holds {found}, not {wanted}")]
    Unexpected {
        /// Its position in the row.
        column: usize,
        /// What was expected.
        wanted: &'static str,
        /// What is there.
        found: String,
    },
    /// Any other refusal of a statement: a defect of ours.
    #[error("statement failed: {0}")]
    Statement(String),
    /// A write was tried on a database that was opened to look only.
    #[error("this run changes nothing, so the database refuses writes")]
    OpenedReadOnly,
    /// A dry run has ended, and everything it did is undone.
    #[error("a dry run was undone, as it should be")]
    Rehearsed,
    /// The file of another program cannot be read.
    #[error("{0}")]
    Foreign(String),
    /// The closure panicked; the panic is passed on to the caller.
    #[error("a database closure panicked")]
    Panicked,
    /// The database is being closed.
    #[error("the database is closed")]
    Closed,
}

impl Error {
    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Error::BadAddress(_) => {
                "write `sqlite:path/to/tsuzuki.db` or `postgres://user@host/name` as [store] url"
            }
            Error::Missing(_) => "run `tsuzuki db migrate` to create it, or check [store] url",
            Error::NotOurs { .. } => "point [store] url at a new file or an empty schema",
            Error::Newer { .. } => "update tsuzuki, or restore a backup made by this version",
            Error::Outdated { .. } => "run `tsuzuki db migrate` first",
            Error::Altered { .. } => "this database was made by another build; use that build or a backup",
            Error::Arriving { .. } => {
                "point [store] url at the database it comes from and run the same `tsuzuki db move --to …` again"
            }
            Error::MovedAway { .. } => {
                "set [store] url to the new place; `tsuzuki db move --reopen` makes this one usable again"
            }
            Error::NotADatabase(_) => "nothing was changed; check [store] url",
            Error::Damaged(_) => "nothing was changed; restore a backup with `tsuzuki db restore FILE`",
            Error::ReadOnly(_) => "check the permissions of the database file and of its directory",
            Error::Full(_) => "free some space and run the same command again; nothing is lost",
            Error::Disk(_) => "check the disk and the system log before running again",
            Error::CannotOpen(_) => "check that the path exists and that this user may read and write it",
            Error::Busy(_) => {
                "a `tsuzuki db move` may be under way; else find the process with `fuser` on the database file"
            }
            Error::Replaced(_) => {
                "nothing more is written or sent; start again with the database that is there now"
            }
            Error::Unreachable(_) => "check that PostgreSQL runs and that [store] url is right",
            Error::UnknownOutcome(_) => "run the same command again; what was committed is not done twice",
            _ => return None,
        })
    }

    /// Whether running the closure again may succeed.
    pub(super) fn is_transient(&self) -> bool {
        matches!(self, Error::Collided(_) | Error::Unreachable(_) | Error::Busy(_))
    }
}
