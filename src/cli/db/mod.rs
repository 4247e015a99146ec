//! `db`: manages the database.

mod move_database;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;

use super::table::row;
use super::{Column, Context, Error, Exit, Result, Stopping};
use tsuzuki::app;
use tsuzuki::channel::outbox;
use tsuzuki::config::value::Span;
use tsuzuki::db::{self, BackupError, Db, DbUrl, Open, SchemaState};
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::phrase::Value;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show where the database is, its schema version and its rows
    Info,
    /// Create the database or bring its schema up to date
    Migrate,
    /// Check the database from end to end
    Check,
    /// Copy a SQLite database while it is in use
    Backup {
        /// The file to write; it must not exist
        #[arg(required_unless_present = "keep")]
        file: Option<PathBuf>,
        /// Write it into the folder `backups` beside the database instead, and keep only the newest of that many
        #[arg(long, value_name = "COUNT", conflicts_with = "file")]
        keep: Option<NonZeroUsize>,
    },
    /// Put a backup in the place of the database, which is kept beside it
    Restore {
        /// The backup
        file: PathBuf,
        /// Confirm: without it nothing is changed
        #[arg(long)]
        yes: bool,
    },
    /// Delete old checks and events, as [store] keep_history says
    Prune {
        /// Keep this much instead, e.g. 30d
        #[arg(long, value_name = "SPAN")]
        keep: Option<Span>,
    },
    /// Move everything to another database, SQLite or PostgreSQL, and check that it arrived
    Move(move_database::Args),
    /// Delete everything and start with an empty database
    Reset {
        /// Confirm: without it nothing is changed
        #[arg(long)]
        yes: bool,
    },
}

impl Command {
    pub(super) fn stopping(&self) -> Stopping {
        match self {
            Command::Info | Command::Check => Stopping::CutOff,
            _ => Stopping::Graceful,
        }
    }
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Info => info(context).await,
        Command::Migrate => migrate(context).await,
        Command::Check => check(context).await,
        Command::Backup { file, keep } => backup(file, keep, context).await,
        Command::Restore { file, yes } => restore(file, yes, context).await,
        Command::Prune { keep } => prune(keep, context).await,
        Command::Move(args) => move_database::run(&args, context).await,
        Command::Reset { yes } => reset(yes, context).await,
    }
}

#[derive(Serialize)]
struct Info {
    place: String,
    database: &'static str,
    schema_version: i64,
    known_version: i64,
    bytes: Option<u64>,
    rows: std::collections::BTreeMap<String, i64>,
}

async fn info(context: &Context) -> Result {
    let database = context.open_db(Open::ReadOnly).await?;
    let schema = database.read(SchemaState::find).await?;
    let info = Info {
        place: database.place().to_string(),
        database: database.dialect().name(),
        schema_version: schema.found,
        known_version: schema.known,
        bytes: size_of(database.place()),
        rows: db::count_rows(database).await?,
    };
    if context.out.is_json() {
        context.out.json(&info)?;
        return Ok(Exit::Fine);
    }
    let speech = context.out.speech();
    context.out.prose(speech.phrase(&phrase!(
        "{database} at {place}",
        "{database}（{place}）",
        database = info.database,
        place = &info.place
    )))?;
    context.out.prose(speech.phrase(&phrase!(
        "schema version {version}",
        "スキーマのバージョン {version}",
        version = info.schema_version
    )))?;
    if let Some(bytes) = info.bytes {
        context.out.line(speech.value(&Value::Bytes(bytes)))?;
    }
    let rows: Vec<_> = info.rows.iter().collect();
    let columns = [Column::left(phrase!("table", "表")), Column::right(phrase!("rows", "行数"))];
    context.out.listing(&columns, &rows, |(table, count)| row![*table, **count])
}

fn size_of(place: &DbUrl) -> Option<u64> {
    match place {
        DbUrl::File(path) => path.metadata().ok().map(|file| file.len()),
        _ => None,
    }
}

async fn migrate(context: &Context) -> Result {
    let schema = context.db().await?.read(SchemaState::find).await?;
    context.out.done(phrase!(
        "The database has schema version {found}",
        "データベースのスキーマはバージョン {found} です",
        found = schema.found.to_string()
    ))
}

async fn check(context: &Context) -> Result {
    let database = context.open_db(Open::Existing).await?;
    let problems = db::check_integrity(database).await?;
    if context.out.is_json() {
        context.out.json(&problems)?;
    } else {
        problems.iter().try_for_each(|problem| context.out.line(problem))?;
    }
    if problems.is_empty() {
        context.out.done(phrase!("The database is sound", "データベースに異常はありません"))
    } else {
        Err(Error::failed(phrase!(
            "the database has {count problem}",
            "データベースに {count} 件の異常があります",
            count = problems.len()
        ))
        .hint(phrase!(
            "restore a backup with `tsuzuki db restore FILE`",
            "`tsuzuki db restore FILE` でバックアップを復元してください"
        )))
    }
}

async fn backup(file: Option<PathBuf>, keep: Option<NonZeroUsize>, context: &Context) -> Result {
    refuse_strangers(context).await?;
    let place = context.place().await?;
    let (Some(keep), DbUrl::File(path)) = (keep, &place) else {
        let file = file.unwrap_or_else(|| PathBuf::from("backup.db"));
        return write_backup(&place, &file, context).await;
    };
    let folder = path.parent().unwrap_or(Path::new("")).join("backups");
    std::fs::create_dir_all(&folder).map_err(|error| {
        let shown = folder.display().to_string();
        Error::failed(phrase!(
            "{shown} cannot be made: {error}",
            "{shown} を作れません：{error}",
            error = error.to_string()
        ))
    })?;
    let prefix = format!("{}-", path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("tsuzuki"));
    let stamp: String = context.clock.now().to_text().chars().filter(char::is_ascii_alphanumeric).collect();
    let exit = write_backup(&place, &folder.join(format!("{prefix}{stamp}.db")), context).await?;
    let gone = db::prune_backups(&folder, &prefix, keep.get())?;
    if !gone.is_empty() {
        context.out.note(phrase!(
            "Deleted {count older backup}",
            "古いバックアップ {count} 件を削除しました",
            count = gone.len()
        ));
    }
    Ok(exit)
}

async fn write_backup(place: &DbUrl, file: &Path, context: &Context) -> Result {
    let report = db::backup(place, file, &context.clock).await?;
    context.out.done(phrase!(
        "Wrote {file} ({size})",
        "{file} に書き出しました（{size}）",
        size = Value::Bytes(report.bytes)
    ))
}

async fn restore(file: PathBuf, yes: bool, context: &Context) -> Result {
    let place = context.place().await?;
    if !file.is_file() {
        return Err(BackupError::NoBackup(file).into());
    }
    if !yes {
        let file = file.display().to_string();
        let what = phrase!(
            "restoring replaces {place} by {file}",
            "復元すると {place} が {file} の内容に置き換わります"
        );
        return Err(Error::unconfirmed(what, format_args!("db restore {file}")));
    }
    let report = db::restore(&file, &place, &context.clock).await?;
    context.out.note(phrase!(
        "Restored {bytes} bytes to {place}",
        "{place} に {bytes} バイトを復元しました",
        bytes = report.bytes.to_string()
    ));
    if let Some(kept) = &report.kept {
        context.out.note(phrase!(
            "The database that was there is kept as {kept}",
            "これまでのデータベースは {kept} に残しました"
        ));
    }
    // Messages that wait in the backup may have been sent since. Another process that uses it first detects it, too.
    let suspicion = |tx: &mut db::Tx<'_>| match outbox::notice_restore(tx, tx.now())? {
        Some(suspected) => Ok(suspected),
        // A backup of a version that did not mark its copies.
        None => outbox::suspect(tx, outbox::Suspicion::Restored, tx.now()),
    };
    let suspected = context.db().await?.write(suspicion).await?;
    if suspected > 0 {
        context.out.note(phrase!(
            "Looked into before anything is sent: {count waiting message}",
            "送信前に確認する送信待ちメッセージ：{count} 件",
            count = suspected
        ));
    }
    Ok(Exit::Fine)
}

async fn prune(keep: Option<Span>, context: &Context) -> Result {
    let keep = keep.or(context.config().await?.store.keep_history);
    let Some(keep) = keep else {
        return context.out.done(phrase!(
            "Nothing is pruned: [store] keep_history is not set, so history is kept for ever",
            "何も削除しません：[store] の keep_history が未設定のため、履歴は無期限に残ります"
        ));
    };
    let before = context.clock.now().minus(keep.into());
    let pruned = app::prune(context.db().await?, before).await?;
    context.out.done(phrase!(
        "Pruned {pruned row} older than {before}",
        "{before} より古い {pruned} 行を削除しました"
    ))
}

/// The hint how to keep the data before it is deleted.
fn way_back(place: &DbUrl) -> Phrase {
    match place {
        DbUrl::Server(_) => {
            phrase!("back it up with `pg_dump` first", "先に `pg_dump` でバックアップしてください")
        }
        DbUrl::File(_) | DbUrl::Memory => phrase!(
            "run `tsuzuki db backup FILE` first",
            "先に `tsuzuki db backup FILE` でバックアップしてください"
        ),
    }
}

async fn reset(yes: bool, context: &Context) -> Result {
    let place = context.place().await?;
    if !yes {
        return Err(Error::usage(phrase!(
            "resetting deletes everything in {place}",
            "リセットすると {place} の内容がすべて削除されます"
        ))
        .hint(phrase!(
            "{first}, then `tsuzuki db reset --yes`",
            "{first}。実行するには `tsuzuki db reset --yes` としてください",
            first = way_back(&place)
        )));
    }
    // A running daemon would take the empty database for a first run, and send everything again.
    db::refuse_if_open(&place).await?;
    let database = context.db().await?;
    if matches!(place, DbUrl::Server(_)) {
        let busy = database.read(move_database::list_busy).await?;
        if !busy.is_empty() {
            return Err(db::MoveError::Busy(busy).into());
        }
    }
    db::reset(database).await.map_err(|error| match error {
        error @ db::Error::Statement(_) => Error::from(error)
            .hint(phrase!(
                "something that is not ours needs our tables; nothing was changed. Take it away first",
                "tsuzuki 以外のものがテーブルを参照しているため、何も変更していません。先にそれを取り除いてください"
            )),
        other => other.into(),
    })?;
    context.out.done(phrase!("{place} is empty again", "{place} を空にしました"))
}

/// Refuses a file that is not ours; one with another version of our schema can be copied.
async fn refuse_strangers(context: &Context) -> Result<()> {
    match Db::open(context.place().await?, Open::ReadOnly, context.clock.clone()).await {
        Ok(db) => db.close().await,
        Err(error @ (db::Error::NotOurs { .. } | db::Error::NotADatabase(_))) => return Err(error.into()),
        Err(_) => {}
    }
    Ok(())
}

impl From<BackupError> for Error {
    fn from(error: BackupError) -> Self {
        let words = error.phrase();
        match error {
            BackupError::Exists(_) => Error::failed(words).hint(phrase!(
                "name a new file; a backup is never overwritten",
                "新しいファイルを指定してください（バックアップは上書きしません）"
            )),
            BackupError::NoDirectory(path) => Error::failed(words)
                .hint(phrase!("make it with `mkdir -p {path}`", "`mkdir -p {path}` で作ってください")),
            BackupError::NoBackup(_) => Error::usage(words).hint(phrase!(
                "name a file that `tsuzuki db backup` has written",
                "`tsuzuki db backup` が書き出したファイルを指定してください"
            )),
            BackupError::NotABackup { .. } => Error::failed(words).hint(phrase!(
                "nothing was changed; name a file that `tsuzuki db backup` has written",
                "何も変更していません。`tsuzuki db backup` が書き出したファイルを指定してください"
            )),
            BackupError::Itself(_) => Error::usage(words).hint(phrase!(
                "name a file that `tsuzuki db backup` has written",
                "`tsuzuki db backup` が書き出したファイルを指定してください"
            )),
            BackupError::InUse(_) => Error::new(Exit::Held, words).hint(phrase!(
                "stop `tsuzuki serve` and every other tsuzuki, then run the same command again",
                "`tsuzuki serve` などすべての tsuzuki を止めてから、同じコマンドをもう一度実行してください"
            )),
            BackupError::NotAFile(_) => Error::usage(words).hint(phrase!(
                "back PostgreSQL up with `pg_dump` and put it back with `pg_restore` or `psql`",
                "PostgreSQL は `pg_dump` でバックアップし、`pg_restore` か `psql` で復元してください"
            )),
            BackupError::Db(db::Error::Missing(_)) => Error::failed(words).hint(phrase!(
                "nothing has run yet, so there is nothing to back up",
                "まだ何も実行されていないため、バックアップするものがありません"
            )),
            BackupError::Db(error) => error.into(),
        }
    }
}
