//! Problems that the operator has to know about. Each is announced once when it begins and once when it ends, and only
//! to the channels of `[app] alert`.
//!
//! ```text
//! runs, sources ── raise, clear ──┐
//! pauses, held messages ─ update ─┴─▶ alerts ── announce ──▶ outbox (same transaction) ──▶ channels of `alert`
//!                                       └─▶ status
//! ```

mod announce;
mod causes;
mod store;

pub use announce::Announcer;
pub use store::{Alert, clear, list_open, raise};

use super::RunOutcome;
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::ledger::Subject;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::word_enum;

/// Failed runs in a row that raise an alert.
const FAILURES: i64 = 3;

word_enum! {
    /// The kind of problem.
    pub enum AlertKind {
        /// A job keeps failing, or fails in a way that only a person can fix.
        Failing = "failing",
        /// A channel, a provider or a source has been paused for long: locked, gone, quota used up.
        Paused = "paused",
        /// Messages wait for a decision.
        Approval = "approval",
        /// A source has brought nothing new for much longer than usual.
        Silent = "silent",
    }
}

impl AlertKind {
    /// The key of an alert in the database.
    fn cause(self, subject: &Subject) -> String {
        format!("{} {subject}", self.word())
    }
}

/// Raises or clears the alert of a failing job; call it in the transaction that records the end of the run.
///
/// `failures` includes this run; `may_pass` is false if only a person can fix the failure.
pub(super) fn note_run(
    tx: &mut Tx<'_>,
    job: &JobName,
    (outcome, message): (RunOutcome, &Phrase),
    failures: i64,
    may_pass: bool,
    now: Timestamp,
) -> db::Result<()> {
    let subject = Subject::job(job);
    match outcome {
        RunOutcome::Failed if failures >= FAILURES || !may_pass => {
            let text = match failures {
                ..=1 => phrase!("failed: {message}", "失敗：{message}"),
                _ => phrase!(
                    "failed {failures time} in a row: {message}",
                    "{failures} 回続けて失敗：{message}"
                ),
            };
            raise(tx, AlertKind::Failing, &subject, &text, now)
        }
        RunOutcome::Failed | RunOutcome::Interrupted => Ok(()),
        RunOutcome::Success | RunOutcome::Waiting | RunOutcome::Partly => {
            clear(tx, AlertKind::Failing, &subject, now)
        }
    }
}
