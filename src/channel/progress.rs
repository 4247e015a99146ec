//! How far a send has come, and how long it may go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::time::{Clock, Timestamp};

/// How far one send has come, told by the channel while it works.
#[derive(Debug)]
pub struct Progress {
    handed_over: AtomicBool,
    budget: Budget,
}

impl Progress {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { handed_over: AtomicBool::new(false), budget }
    }

    /// For a message that belongs to nobody else, such as a test mail.
    pub fn unlimited() -> Self {
        Self::new(Budget::unlimited())
    }

    /// From here on the other side may have the message: say so right before.
    pub(crate) fn hand_over(&self) {
        self.handed_over.store(true, Ordering::SeqCst);
    }

    /// The other side has said no: what was handed over did not count.
    pub(crate) fn take_back(&self) {
        self.handed_over.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::SeqCst)
    }

    /// Whether there is still time; ask before every step that cannot be taken back.
    pub(crate) fn may_go_on(&self) -> bool {
        self.budget.is_ample()
    }
}

/// How long a claimed message is ours, by two clocks: one stands still when the machine sleeps, one can be set.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    clock: Clock,
    began: Instant,
    began_at: Timestamp,
    length: Duration,
}

impl Budget {
    pub(super) fn new(clock: &Clock, length: Duration) -> Self {
        Self { clock: clock.clone(), began: Instant::now(), began_at: clock.now(), length }
    }

    /// One that does not end while anybody waits.
    pub(crate) fn unlimited() -> Self {
        Self::new(&Clock::system(), Duration::from_secs(3600 * 24))
    }

    /// What is left of it.
    pub(crate) fn left(&self) -> Duration {
        let spent = self.began.elapsed().max(self.clock.now().since(self.began_at));
        self.length.saturating_sub(spent)
    }

    /// Whether enough is left to begin something that cannot be taken back.
    pub(crate) fn is_ample(&self) -> bool {
        self.left() > self.length / 8
    }
}
