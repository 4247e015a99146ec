//! A run that several processes share: one begins it, holds the job's lease and writes down how it ends; the others take
//! parts of its work while it lasts.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::{Failure, Progress};
use crate::db::{self, Db, Tx};
use crate::id::{JobName, Owner};
use crate::phrase::Phrase;
use crate::time::Clock;

/// How a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStart {
    /// With everything still to do.
    Fresh,
    /// The last one was cut off, and the next point of the schedule has not come: with what that one has left.
    Resumed,
}

/// A job whose runs can be shared. Every part of a run is claimed by itself, so that each is done once.
#[async_trait]
pub trait SharedRun: Send + Sync {
    /// Lays out the parts of a run, in the transaction that begins it. `fence` is that of the job's lease.
    fn open(&self, tx: &mut Tx<'_>, job: &JobName, fence: i64, start: RunStart) -> db::Result<()>;

    /// Whether the run of `job` has parts that this process could take.
    fn has_free_parts(&self, tx: &mut Tx<'_>, job: &JobName) -> db::Result<bool>;

    /// Takes parts of a run that another process began until none is left, and says what it did; `None` if there was
    /// none from the beginning.
    async fn join(&self, ctx: &ShareContext) -> Result<Option<Phrase>, Failure>;
}

/// What a process is handed that works on parts of a run, whoever began it.
#[derive(Clone)]
pub struct ShareContext {
    pub job: JobName,
    pub db: Db,
    pub clock: Clock,
    /// Who claims parts.
    pub owner: Owner,
    /// Cancelled when the work is to stop.
    pub stop: CancellationToken,
    pub progress: Progress,
}
