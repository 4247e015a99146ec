//! Imports the data of other programs once, so that nothing is sent a second time.
//!
//! ```text
//! SQLite file ──read-only──▶ rows ──read──┬─▶ row of ours ──add──▶ added | known already
//!                                         └─▶ refused, with a reason         │
//!            everything in one transaction: imported as a whole or not at all ┘
//! jobs.yaml, config.toml, OPML, lists ──▶ `[[job]]` and `[[job.blog]]`, by edits that keep comments
//! ```
//!
//! Import the database before the config file: a job must not run before it knows what was sent.

pub mod blog_watcher;
pub mod config;
pub mod dre;
pub mod gitlab_analyzer;
pub mod jobs_yaml;
pub mod list;
pub mod mic_bot;
pub mod moment;
mod report;
mod source;
pub mod watched;

use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub use report::{Reason, Report, TableReport};

use crate::db::{self, Db, Tx};
use crate::engine::events::JobEvent;
use crate::id::JobName;
use crate::ledger::{Subject, event};

/// Called with a table, the number of rows read so far, and their total.
pub type Progress = Arc<dyn Fn(&str, u64, u64) + Send + Sync>;

/// The options of an import.
#[derive(Clone)]
pub struct Options {
    /// Whether to roll back at the end.
    pub dry_run: bool,
    /// The zone of times without one.
    pub zone: TimeZone,
    pub progress: Progress,
    /// Cancelled when the import should stop; then nothing is imported.
    pub stop: CancellationToken,
}

impl Options {
    /// Not a dry run, with times in UTC and without progress.
    pub fn plain() -> Self {
        Self {
            dry_run: false,
            zone: TimeZone::UTC,
            progress: Arc::new(|_, _, _| {}),
            stop: CancellationToken::new(),
        }
    }
}

/// Runs an import in one transaction, or rolls it back for a dry run, and records an event of the job.
async fn in_one_go(
    db: &Db,
    options: &Options,
    from: &'static str,
    job: Option<&JobName>,
    work: impl Fn(&mut Tx<'_>) -> db::Result<Report> + Send + 'static,
) -> db::Result<Report> {
    let job = job.cloned();
    let all = move |tx: &mut Tx<'_>| {
        let report = work(tx)?;
        if report.added() > 0 {
            let subject = job.as_ref().map_or_else(Subject::import, Subject::job);
            let imported = JobEvent::Imported { from: from.to_owned(), tables: json!(report.tables) };
            let now = tx.now();
            event::record(tx, job.as_ref(), &subject, &imported, now)?;
        }
        Ok(report)
    };
    if options.dry_run { db.rehearse(all).await } else { db.write(all).await }
}
