//! What a pass over the outbox did, in numbers.

use super::model::State;
use crate::time::Timestamp;

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SendReport {
    /// Messages that were accepted.
    pub sent: u64,
    /// Messages that will be retried.
    pub deferred: u64,
    /// Messages that may have been sent; the next passes resolve them.
    pub unknown: u64,
    /// Messages that failed for good.
    pub failed: u64,
    /// Messages that now need a decision.
    pub held: u64,
    /// Messages that another sender took over because this one was too slow.
    pub lost: u64,
    /// When the next message is due, as far as this pass knows.
    pub next_at: Option<Timestamp>,
    /// Channels that wait for new credentials.
    pub locked: Vec<String>,
    /// Channels that messages wait for but that are not configured.
    pub orphans: Vec<String>,
}

impl SendReport {
    pub(super) fn add(&mut self, other: SendReport) {
        self.sent += other.sent;
        self.deferred += other.deferred;
        self.unknown += other.unknown;
        self.failed += other.failed;
        self.held += other.held;
        self.lost += other.lost;
        self.next_at = [self.next_at, other.next_at].into_iter().flatten().min();
        self.locked.extend(other.locked);
        self.orphans.extend(other.orphans);
    }

    pub(super) fn count(&mut self, state: State) {
        match state {
            State::Sent => self.sent += 1,
            State::Ready | State::Sending => self.deferred += 1,
            State::Unknown => self.unknown += 1,
            State::Failed => self.failed += 1,
            State::Held => self.held += 1,
            State::Skipped => {}
        }
    }
}
