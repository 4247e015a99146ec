//! How far a send has come, and how long it may go on.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::time::{Clock, Timestamp, Uptime};

/// How far one send has come, told by the channel while it works.
#[derive(Debug)]
pub struct Progress {
    handed_over_at: Mutex<Option<Instant>>,
    budget: SendBudget,
}

impl Progress {
    pub(crate) fn new(budget: SendBudget) -> Self {
        Self { handed_over_at: Mutex::default(), budget }
    }

    /// For a message that belongs to nobody else, such as a test mail.
    pub fn unlimited() -> Self {
        Self::new(SendBudget::unlimited())
    }

    /// From here on the other side may have the message: say so right before.
    pub(crate) fn hand_over(&self) {
        *self.handed_over_at.lock() = Some(Instant::now());
    }

    /// The other side has said no: what was handed over did not count.
    pub(crate) fn take_back(&self) {
        *self.handed_over_at.lock() = None;
    }

    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over_at().is_some()
    }

    /// Since when the other side may have it.
    pub(crate) fn handed_over_at(&self) -> Option<Instant> {
        *self.handed_over_at.lock()
    }

    /// Whether there is still time; ask before every step that cannot be taken back.
    pub(crate) fn may_go_on(&self) -> bool {
        self.budget.is_ample()
    }
}

/// How long a claimed message is ours, by three clocks: one stands still when the machine sleeps, one can be set, and the
/// one that does neither is not everywhere and stands still when a virtual machine is paused. The most cautious one counts.
#[derive(Clone, Debug)]
pub(crate) struct SendBudget {
    clock: Clock,
    began: Arc<Mutex<Moment>>,
    length: Duration,
}

/// One moment by all three.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    instant: Instant,
    at: Timestamp,
    uptime: Option<Uptime>,
}

impl SendBudget {
    /// One of `length` that began at `began`, when the claim did: its commit may have taken longer than the lease.
    pub(super) fn new(clock: &Clock, began: Instant, length: Duration) -> Self {
        let began = Moment { instant: began, at: clock.now(), uptime: clock.uptime() };
        Self { clock: clock.clone(), began: Arc::new(Mutex::new(began)), length }
    }

    /// One that does not end while anybody waits.
    pub(crate) fn unlimited() -> Self {
        Self::new(&Clock::system(), Instant::now(), Duration::from_secs(3600 * 24))
    }

    /// The present moment: say it to [`SendBudget::renew`] once the lease that begins now is written down.
    pub(crate) fn moment(&self) -> Moment {
        Moment { instant: Instant::now(), at: self.clock.now(), uptime: self.clock.uptime() }
    }

    /// Starts again at `moment`, for every holder.
    pub(crate) fn renew(&self, moment: Moment) {
        *self.began.lock() = moment;
    }

    /// What is left of it.
    pub(crate) fn left(&self) -> Duration {
        let Moment { instant, at, uptime } = self.began.lock().clone();
        let slept = uptime.zip(self.clock.uptime()).map(|(began, now)| now.since(&began));
        let spent = instant.elapsed().max(self.clock.now().since(at)).max(slept.unwrap_or_default());
        self.length.saturating_sub(spent)
    }

    /// Whether enough is left to begin something that cannot be taken back.
    pub(crate) fn is_ample(&self) -> bool {
        self.left() > self.length / 8
    }
}
