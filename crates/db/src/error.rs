//! Database errors, named by what to do next.

use stdx::phrase;
use stdx::phrase::Phrase;

/// The result of a database operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A database error. [`Error::phrase`] says what and why, [`Error::hint`] the way out.
#[derive(Debug, Clone)]
pub enum Error {
    /// The address is invalid.
    BadAddress(String),
    /// The database does not exist, and we may not create it.
    Missing(String),
    /// It has tables, but they are not ours.
    NotOurs {
        place: String,
        /// How that was recognised.
        why: String,
    },
    /// A newer version of the program has changed the schema.
    Newer {
        /// The version of the database.
        found: i64,
        /// The newest version of this program.
        known: i64,
    },
    /// The schema is older than the program and we may not change it now.
    Outdated {
        /// The version of the database.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// A migration that was applied differs from ours: it was edited afterwards.
    Altered { version: i64 },
    /// A move into this database is unfinished.
    Arriving {
        /// Where its rows come from.
        from: String,
    },
    /// The data was moved to another database, so this one must not be used any more.
    MovedAway {
        /// Where it was moved to.
        to: String,
        at: String,
    },
    /// The file is damaged. It is never recreated or repaired without being asked.
    Damaged(String),
    /// The file is not a database. It is never overwritten.
    NotADatabase(String),
    /// The file, its directory or the server does not allow writes.
    ReadOnly(String),
    /// The disk is full; nothing was changed.
    Full(String),
    /// The disk failed to read or write.
    Disk(String),
    /// The file cannot be opened at all.
    CannotOpen(String),
    /// Another process, named if known, kept the file locked for longer than we wait.
    Busy(Option<String>),
    /// The file was removed or replaced by another one: anything written would be lost.
    Replaced(String),
    /// The server does not answer, or the connection broke before the commit.
    Unreachable(String),
    /// The connection broke during COMMIT and the server cannot say whether it succeeded.
    UnknownOutcome(String),
    /// Serialisation failures on every attempt; the closure can run again.
    Collided(String),
    /// A constraint of the schema was violated.
    Constraint(String),
    /// A stored value has an unexpected type or content.
    Unexpected {
        column: usize,
        wanted: &'static str,
        /// What was found.
        found: String,
    },
    /// Any other failure of a statement: a bug of ours.
    Statement(String),
    /// A write on a database that was opened read-only.
    OpenedReadOnly,
    /// The end of a dry run; everything was rolled back.
    Rehearsed,
    /// The file of another program cannot be read.
    Foreign(Phrase),
    /// The closure panicked; the panic is passed on to the caller.
    Panicked,
    /// The database is being closed.
    Closed,
}

impl Error {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            Error::BadAddress(why) => Phrase::verbatim(why),
            Error::Foreign(why) => why.clone(),
            Error::Missing(place) => {
                phrase!("there is no database at {place}", "{place} にデータベースがありません")
            }
            Error::NotOurs { place, why } => phrase!(
                "{place} is not a tsuzuki database: {why}",
                "{place} は tsuzuki のデータベースではありません：{why}"
            ),
            Error::Newer { found, known } => phrase!(
                "the database has schema version {found}, this program knows only up to {known}",
                "データベースのスキーマはバージョン {found} ですが、このプログラムが対応しているのは {known} までです"
            ),
            Error::Outdated { found, known } => phrase!(
                "the database has schema version {found}, this program needs {known}",
                "データベースのスキーマはバージョン {found} ですが、このプログラムには {known} が必要です"
            ),
            Error::Altered { version } => phrase!(
                "migration {version} in the database is not the one this program has",
                "データベースのマイグレーション {version} がこのプログラムのものと異なります"
            ),
            Error::Arriving { from } => phrase!(
                "the database is being filled by a move from {from} that has not ended",
                "{from} からの移行が終わっていないデータベースです"
            ),
            Error::MovedAway { to, at } => phrase!(
                "everything in this database was moved to {to} at {at}",
                "このデータベースの内容はすべて {to} に移行されました（{at}）"
            ),
            Error::Damaged(why) => {
                phrase!("the database file is damaged: {why}", "データベースのファイルが壊れています：{why}")
            }
            Error::NotADatabase(why) => phrase!(
                "the file is not a SQLite database: {why}",
                "SQLite のデータベースではありません：{why}"
            ),
            Error::ReadOnly(why) => {
                phrase!("the database cannot be written: {why}", "データベースに書き込めません：{why}")
            }
            Error::Full(why) => phrase!(
                "the disk is full: nothing was changed ({why})",
                "ディスクの空きがないため、何も変更していません（{why}）"
            ),
            Error::Disk(why) => {
                phrase!("the disk reports an error: {why}", "ディスクのエラーです：{why}")
            }
            Error::CannotOpen(why) => {
                phrase!("cannot open the database: {why}", "データベースを開けません：{why}")
            }
            Error::Busy(Some(who)) => {
                phrase!("{who} keeps the database locked", "{who} がデータベースをロックしています")
            }
            Error::Busy(None) => phrase!(
                "another process keeps the database locked",
                "別のプロセスがデータベースをロックしています"
            ),
            Error::Replaced(place) => phrase!(
                "{place} was removed or replaced while it was open",
                "{place} が使用中に削除されたか、置き換えられました"
            ),
            Error::Unreachable(why) => {
                phrase!("no connection to the database: {why}", "データベースに接続できません：{why}")
            }
            Error::UnknownOutcome(why) => phrase!(
                "the connection broke during COMMIT and its outcome is not known: {why}",
                "COMMIT の途中で接続が切れ、結果が分かりません：{why}"
            ),
            Error::Collided(why) => phrase!(
                "the transaction collided with others too often: {why}",
                "トランザクションの競合が続きました：{why}"
            ),
            Error::Constraint(why) => {
                phrase!("the database refused a row: {why}", "データベースが行を拒否しました：{why}")
            }
            Error::Unexpected { column, wanted, found } => phrase!(
                "column {column} holds {found}, not {wanted}",
                "{column} 列目の値は {wanted} ではなく {found} です"
            ),
            Error::Statement(why) => {
                phrase!("statement failed: {why}", "SQL の実行に失敗しました：{why}")
            }
            Error::OpenedReadOnly => phrase!(
                "this run changes nothing, so the database refuses writes",
                "変更を行わない実行のため、データベースには書き込めません"
            ),
            Error::Rehearsed => {
                phrase!("a dry run was undone, as it should be", "試行の内容は予定どおり取り消されました")
            }
            Error::Panicked => {
                phrase!("a database closure panicked", "データベースの処理が異常終了しました")
            }
            Error::Closed => phrase!("the database is closed", "データベースは閉じられています"),
        }
    }

    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<Phrase> {
        Some(match self {
            Error::BadAddress(_) => phrase!(
                "write `sqlite:path/to/tsuzuki.db` or `postgres://user@host/name` as [store] url",
                "[store] の url に `sqlite:path/to/tsuzuki.db` または `postgres://user@host/name` と書きます"
            ),
            Error::Missing(_) => phrase!(
                "run `tsuzuki db migrate` to create it, or check [store] url",
                "`tsuzuki db migrate` で作るか、[store] の url を確認してください"
            ),
            Error::NotOurs { .. } => phrase!(
                "point [store] url at a new file or an empty schema",
                "[store] の url には新しいファイルか空のスキーマを指定してください"
            ),
            Error::Newer { .. } => phrase!(
                "update tsuzuki, or restore a backup made by this version",
                "tsuzuki を更新するか、このバージョンで作ったバックアップを復元してください"
            ),
            Error::Outdated { .. } => {
                phrase!("run `tsuzuki db migrate` first", "先に `tsuzuki db migrate` を実行してください")
            }
            Error::Altered { .. } => phrase!(
                "this database was made by another build; use that build or a backup",
                "別のビルドで作られたデータベースです。そのビルドかバックアップを使ってください"
            ),
            Error::Arriving { .. } => phrase!(
                "point [store] url at the database it comes from and run the same `tsuzuki db move --to …` again",
                "[store] の url を移行元に戻し、同じ `tsuzuki db move --to …` をもう一度実行してください"
            ),
            Error::MovedAway { .. } => phrase!(
                "set [store] url to the new place; `tsuzuki db move --reopen` makes this one usable again",
                "[store] の url を移行先に変更してください。`tsuzuki db move --reopen` でこちらを再び使えるようにもできます"
            ),
            Error::NotADatabase(_) => phrase!(
                "nothing was changed; check [store] url",
                "何も変更していません。[store] の url を確認してください"
            ),
            Error::Damaged(_) => phrase!(
                "nothing was changed; restore a backup with `tsuzuki db restore FILE`",
                "何も変更していません。`tsuzuki db restore FILE` でバックアップを復元してください"
            ),
            Error::ReadOnly(_) => phrase!(
                "check the permissions of the database file and of its directory",
                "データベースのファイルとディレクトリの権限を確認してください"
            ),
            Error::Full(_) => phrase!(
                "free some space and run the same command again; nothing is lost",
                "空き容量を確保して、同じコマンドをもう一度実行してください。失われたデータはありません"
            ),
            Error::Disk(_) => phrase!(
                "check the disk and the system log before running again",
                "ディスクとシステムログを確認してから実行してください"
            ),
            Error::CannotOpen(_) => phrase!(
                "check that the path exists and that this user may read and write it",
                "パスがあること、このユーザーに読み書きの権限があることを確認してください"
            ),
            Error::Busy(_) => phrase!(
                "a `tsuzuki db move` may be under way; else find the process with `fuser` on the database file",
                "`tsuzuki db move` の実行中かもしれません。そうでなければ、データベースのファイルに `fuser` を使うとプロセスが分かります"
            ),
            Error::Replaced(_) => phrase!(
                "nothing more is written or sent; start again with the database that is there now",
                "これ以上の書き込みも送信も行いません。今あるデータベースで起動し直してください"
            ),
            Error::Unreachable(_) => phrase!(
                "check that PostgreSQL runs and that [store] url is right",
                "PostgreSQL が動いていること、[store] の url が正しいことを確認してください"
            ),
            Error::UnknownOutcome(_) => phrase!(
                "run the same command again; what was committed is not done twice",
                "同じコマンドをもう一度実行してください。確定済みの処理が二重に行われることはありません"
            ),
            _ => return None,
        })
    }

    /// Whether running the closure again may succeed.
    pub(super) fn is_transient(&self) -> bool {
        matches!(self, Error::Collided(_) | Error::Unreachable(_) | Error::Busy(_))
    }
}

stdx::error_in_english!(Error);
