//! What the operator has to know: each cause is told once when it begins and once when it is over, to the channels of
//! `[app] alert` alone.
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

/// So many failed runs in a row are no accident.
const FAILURES: i64 = 3;

word_enum! {
    /// What is wrong with a thing.
    pub enum AlertKind {
        /// A job fails again and again, or until somebody acts.
        Failing = "failing",
        /// A channel, a provider or a source is paused for long: locked, gone, used up.
        Paused = "paused",
        /// Messages wait for a decision.
        Approval = "approval",
        /// A source has brought nothing for much longer than usual.
        Silent = "silent",
    }
}

impl AlertKind {
    /// What tells one cause from all others, as it is stored.
    fn cause(self, subject: &Subject) -> String {
        format!("{} {subject}", self.word())
    }
}

/// Notes how a run of a job ended; do it in the transaction that writes that down.
///
/// `failures` counts this run; `may_pass` is false for what stays refused until somebody acts.
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
            let said = match failures {
                ..=1 => phrase!("failed: {message}", "失敗：{message}"),
                _ => phrase!(
                    "failed {failures time} in a row: {message}",
                    "{failures} 回続けて失敗：{message}"
                ),
            };
            raise(tx, AlertKind::Failing, &subject, &said, now)
        }
        RunOutcome::Failed | RunOutcome::Interrupted => Ok(()),
        RunOutcome::Success | RunOutcome::Waiting | RunOutcome::Partly => {
            clear(tx, AlertKind::Failing, &subject, now)
        }
    }
}
