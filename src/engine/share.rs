//! A run that several processes share: one begins it, holds the job's lease and records its end; the others take parts
//! of its work while it lasts.

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
    /// With all of its work.
    Fresh,
    /// With the work that an interrupted run has left: the next scheduled point has not come yet.
    Resumed,
}

/// A job whose runs can be shared. Each part of a run is claimed separately and done once.
#[async_trait]
pub trait SharedRun: Send + Sync {
    /// Creates the parts of a run, in the transaction that begins it. `fence` is that of the job's lease.
    fn open(&self, tx: &mut Tx<'_>, job: &JobName, fence: i64, start: RunStart) -> db::Result<()>;

    /// Whether the run of `job` has parts that are not claimed.
    fn has_free_parts(&self, tx: &mut Tx<'_>, job: &JobName) -> db::Result<bool>;

    /// Works on parts of a run that another process began until none is left, and returns a summary; `None` if there
    /// were none.
    async fn join(&self, ctx: &ShareContext) -> Result<Option<Phrase>, Failure>;
}

/// What a process is given to work on parts of a run, whoever began it.
#[derive(Clone)]
pub struct ShareContext {
    pub job: JobName,
    pub db: Db,
    pub clock: Clock,
    /// Who claims parts.
    pub owner: Owner,
    /// Cancelled when the work should stop.
    pub stop: CancellationToken,
    pub progress: Progress,
}
