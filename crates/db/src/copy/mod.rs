//! Moves everything from one database to another, SQLite or PostgreSQL, and proves that it arrived.
//!
//! ```text
//! source ── locked: nobody writes, not even we ──────────────────────────────────┐ marked as left, in the same
//!    │ rows by key, in batches                                                   │ transaction that held the lock
//!    ▼                                                                           ▼
//! target ── marked as arriving ── a transaction per batch ── counted, summed ── open for everybody
//! ```
//!
//! An interrupted move is continued by the same command: the rows in the target are compared with the source, which may
//! have changed, and copying continues after them, or from the first table that differs.

mod rows;
mod side;
mod tables;

use std::collections::BTreeMap;
use stdx::phrase;
use stdx::phrase::Phrase;

use super::{DbUrl, Error, TableSurvey, Tx, moved};
use rows::{RowsDigest, Values};
use side::Side;
use stdx::fail;
use stdx::time::Clock;
use tables::Table;

/// The parameters of a move.
pub struct DatabaseMove {
    /// The source.
    pub from: DbUrl,
    /// The target.
    pub to: DbUrl,
    pub clock: Clock,
    /// Lists who is using the source now, in words; a move begins only if that is nobody.
    pub list_busy: fn(&mut Tx<'_>) -> super::Result<Vec<String>>,
    /// Whether to stop after the present batch.
    pub is_stopped: Box<dyn Fn() -> bool + Send>,
    /// Called with every step.
    pub progress: Box<dyn Fn(MoveStep<'_>) + Send>,
}

/// A step of a move.
#[derive(Clone, Copy, Debug)]
pub enum MoveStep<'a> {
    /// A table begins, some of whose rows may be in the target already.
    Table {
        name: &'a str,
        rows: u64,
        /// Rows copied by an earlier attempt.
        arrived: u64,
    },
    /// So many more rows were copied.
    Rows(u64),
}

/// A table that was moved.
#[derive(Clone, Debug, serde::Serialize)]
pub struct MovedTable {
    pub table: String,
    /// The content of the source table, and now of the target as well.
    #[serde(flatten)]
    pub survey: TableSurvey,
}

/// The result of a move.
#[derive(Clone, Debug, serde::Serialize)]
pub struct MoveReport {
    /// Without a password.
    pub from: String,
    /// Without a password.
    pub to: String,
    pub resumed: bool,
    /// In the order of copying.
    pub tables: Vec<MovedTable>,
}

/// The plan of a move.
#[derive(Clone, Debug, serde::Serialize)]
pub struct MovePlan {
    /// Without a password.
    pub from: String,
    pub rows: BTreeMap<String, u64>,
    /// Who is using the source now.
    pub busy: Vec<String>,
    pub target: TargetState,
}

/// The state of the target of a move.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetState {
    /// It does not exist and would be created.
    Missing,
    /// It has no rows.
    Empty,
    /// It has the rows of an unfinished move from the same source.
    Unfinished,
}

/// Why a move failed or was stopped.
#[derive(Debug)]
pub enum MoveError {
    /// Source and target are the same database.
    SamePlace(String),
    /// The source is in use.
    Busy(Vec<String>),
    /// The target has rows that are not from an unfinished move.
    NotEmpty { place: String, table: String },
    /// The same move was completed before: the target has everything, and the source is retired.
    Ended {
        /// Without a password.
        from: String,
        /// Without a password.
        to: String,
    },
    /// The target has an unfinished move from another source.
    OtherSource { place: String, from: String },
    /// The copied rows differ from the source: a bug or a broken disk.
    Differs(Vec<String>),
    /// It was asked to stop; the same command continues.
    Interrupted,
    /// The database failed.
    Db(Error),
}

impl MoveError {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            MoveError::SamePlace(place) => phrase!(
                "{place} is the database that everything is in already",
                "{place} は今使っているデータベースです"
            ),
            MoveError::Busy(who) => {
                phrase!("jobs are running: {who}", "実行中のジョブがあります：{who}", who = who.join(", "))
            }
            MoveError::NotEmpty { place, table } => phrase!(
                "{place} is not empty: the table `{table}` has rows",
                "{place} は空ではありません（テーブル `{table}` に行があります）"
            ),
            MoveError::Ended { from, to } => phrase!(
                "everything in {from} was moved to {to} already",
                "{from} の内容はすでに {to} に移行済みです"
            ),
            MoveError::OtherSource { place, from } => phrase!(
                "{place} holds an unfinished move from {from}",
                "{place} には {from} からの未完了の移行があります"
            ),
            MoveError::Differs(tables) => phrase!(
                "what arrived differs from the source in: {tables}",
                "移行先の内容が元と異なります：{tables}",
                tables = tables.join(", ")
            ),
            MoveError::Interrupted => phrase!(
                "interrupted; what was copied is saved",
                "中断しました。コピー済みの内容は保存されています"
            ),
            MoveError::Db(error) => error.phrase(),
        }
    }
}

stdx::error_in_english!(MoveError);

impl From<Error> for MoveError {
    fn from(error: Error) -> Self {
        MoveError::Db(error)
    }
}

type Result<T> = std::result::Result<T, MoveError>;

impl DatabaseMove {
    /// Plans the move without changing anything.
    pub async fn plan(self) -> Result<MovePlan> {
        in_background(move || self.plan_blocking()).await
    }

    /// Copies everything, compares, and retires the source.
    pub async fn run(self) -> Result<MoveReport> {
        in_background(move || self.run_blocking()).await
    }

    fn plan_blocking(&self) -> Result<MovePlan> {
        let tables = tables::list()?;
        let mut source = self.open_source()?;
        let mut target = Side::find(&self.to, &self.clock)?;
        self.refuse_same(&source, target.as_ref())?;
        self.refuse_left(&mut source, target.as_ref())?;
        let target = match &mut target {
            None => TargetState::Missing,
            Some(target) => {
                if self.check_target(target, &mut source, &tables)? {
                    TargetState::Unfinished
                } else {
                    TargetState::Empty
                }
            }
        };
        let busy = (self.list_busy)(&mut source.tx())?;
        let mut rows = BTreeMap::new();
        for table in &tables {
            rows.insert(table.name.clone(), table.count(&mut source.tx())?);
        }
        Ok(MovePlan { from: source.shown, rows, busy, target })
    }

    fn run_blocking(&self) -> Result<MoveReport> {
        let tables = tables::list()?;
        let mut source = self.open_source()?;
        let there = Side::find(&self.to, &self.clock)?;
        self.refuse_same(&source, there.as_ref())?;
        self.refuse_left(&mut source, there.as_ref())?;
        fail::point("move.waiting");
        source.lock(&tables).map_err(|error| match error {
            Error::Busy(_) | Error::Collided(_) => MoveError::Busy(vec!["another process is writing".into()]),
            other => other.into(),
        })?;
        // Another move may have completed while we waited.
        self.refuse_left(&mut source, there.as_ref())?;
        drop(there);
        let busy = (self.list_busy)(&mut source.tx())?;
        if !busy.is_empty() {
            return Err(MoveError::Busy(busy));
        }
        let mut target = Side::create(&self.to, &self.clock)?;
        let resumed = self.check_target(&mut target, &mut source, &tables)?;
        target.write(|tx| moved::put_arriving(tx, &source.shown))?;

        let mut tallies = Vec::with_capacity(tables.len());
        let mut is_known = resumed;
        for (number, table) in tables.iter().enumerate() {
            let (mut tally, mut after) = (RowsDigest::default(), None);
            if is_known {
                match find_arrived(table, &mut source, &mut target)? {
                    Some(arrived) => (tally, after) = arrived,
                    None => {
                        // The source has changed since: copy this table and those that may refer to it again.
                        target.write(|tx| {
                            tables[number..].iter().rev().try_for_each(|table| table.clear(tx))
                        })?;
                        is_known = false;
                    }
                }
            }
            let rows = table.count(&mut source.tx())?;
            (self.progress)(MoveStep::Table { name: &table.name, rows, arrived: tally.rows });
            self.copy(table, &mut source, &mut target, &mut tally, &mut after)?;
            if let Some(last) = table.find_last_number(&mut source.tx())? {
                target.write(|tx| table.put_last_number(tx, last))?;
            }
            tallies.push(tally);
        }
        let moved = compare(&tables, &tallies, &mut target)?;
        fail::point("move.compared");
        // Retire the source before the target is opened: after a crash in between, neither can be used until the same
        // command continues, but never both.
        let to = target.shown.clone();
        source.unlock(|tx| moved::put_left(tx, &to))?;
        fail::point("move.left");
        target.write(moved::reset)?;
        Ok(MoveReport { from: source.shown, to, resumed, tables: moved })
    }

    fn open_source(&self) -> Result<Side> {
        let mut source =
            Side::find(&self.from, &self.clock)?.ok_or_else(|| Error::Missing(self.from.to_string()))?;
        let schema = source.schema()?;
        if schema.found == 0 {
            return Err(Error::Missing(self.from.to_string()).into());
        }
        schema.must_be_current()?;
        if let Some(from) = moved::find_arriving(&mut source.tx())? {
            return Err(Error::Arriving { from }.into());
        }
        Ok(source)
    }

    fn refuse_same(&self, source: &Side, target: Option<&Side>) -> Result<()> {
        match target {
            Some(target) if target.identity == source.identity => {
                Err(MoveError::SamePlace(target.shown.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Fails if the source was moved to another target.
    fn refuse_left(&self, source: &mut Side, target: Option<&Side>) -> Result<()> {
        match moved::find_moved_away(&mut source.tx())? {
            Some(left) if target.is_none_or(|target| target.shown != left.to) => {
                Err(Error::MovedAway { to: left.to, at: left.at }.into())
            }
            _ => Ok(()),
        }
    }

    /// Whether `target` has an unfinished move from `source`; an error if it contains anything else.
    fn check_target(&self, target: &mut Side, source: &mut Side, tables: &[Table]) -> Result<bool> {
        let is_ours = target.schema()?.found > 0;
        if is_ours && let Some(from) = moved::find_arriving(&mut target.tx())? {
            return if from == source.shown {
                Ok(true)
            } else {
                Err(MoveError::OtherSource { place: target.shown.clone(), from })
            };
        }
        match target.find_filled(tables)? {
            None => Ok(false),
            // The source was moved to this target, as checked before.
            Some(_) if moved::find_moved_away(&mut source.tx())?.is_some() => {
                Err(MoveError::Ended { from: source.shown.clone(), to: target.shown.clone() })
            }
            Some(table) => {
                Err(MoveError::NotEmpty { place: target.shown.clone(), table: table.name.clone() })
            }
        }
    }

    /// Copies the rows after `after`, in one transaction per batch.
    fn copy(
        &self,
        table: &Table,
        source: &mut Side,
        target: &mut Side,
        tally: &mut RowsDigest,
        after: &mut Option<Values>,
    ) -> Result<()> {
        loop {
            if (self.is_stopped)() {
                return Err(MoveError::Interrupted);
            }
            let batch = table.read_batch(&mut source.tx(), after.as_ref(), None)?;
            let Some(last) = batch.last() else { return Ok(()) };
            *after = Some(table.key_of(last));
            target.write(|tx| table.add_rows(tx, &batch))?;
            fail::point("move.batch");
            batch.iter().for_each(|row| tally.add(row));
            (self.progress)(MoveStep::Rows(batch.len() as u64));
        }
    }
}

/// The rows of a table that were copied and their last key, if they equal those of the source.
fn find_arrived(
    table: &Table,
    source: &mut Side,
    target: &mut Side,
) -> super::Result<Option<(RowsDigest, Option<Values>)>> {
    let (arrived, last) = table.tally(&mut target.tx(), None)?;
    let Some(last) = last else { return Ok(Some((arrived, None))) };
    let (sent, _) = table.tally(&mut source.tx(), Some(&last))?;
    Ok((sent == arrived).then_some((arrived, Some(last))))
}

/// Reads the whole target and compares it with what was copied.
fn compare(tables: &[Table], sent: &[RowsDigest], target: &mut Side) -> Result<Vec<MovedTable>> {
    let mut moved = Vec::with_capacity(tables.len());
    let mut differing = Vec::new();
    for (table, sent) in tables.iter().zip(sent) {
        let (arrived, _) = table.tally(&mut target.tx(), None)?;
        if arrived != *sent {
            differing.push(format!("{} ({} rows sent, {} there)", table.name, sent.rows, arrived.rows));
        }
        moved.push(MovedTable { table: table.name.clone(), survey: arrived.survey() });
    }
    if differing.is_empty() { Ok(moved) } else { Err(MoveError::Differs(differing)) }
}

async fn in_background<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::Closed)?
}

/// Every table of the migrations, each after those that its rows refer to.
pub(super) fn list_known_tables() -> super::Result<Vec<String>> {
    let copied = tables::list()?.into_iter().map(|table| table.name);
    Ok(tables::OWN.iter().map(|name| (*name).to_owned()).chain(copied).collect())
}
