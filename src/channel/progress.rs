//! The progress of a send, and its time limit.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::time::{Clock, Timestamp, Uptime};

/// The progress of one send, reported by the channel.
#[derive(Debug)]
pub struct Progress {
    handed_over_at: Mutex<Option<Instant>>,
    budget: SendBudget,
}

impl Progress {
    pub(crate) fn new(budget: SendBudget) -> Self {
        Self { handed_over_at: Mutex::default(), budget }
    }

    /// For a message outside the outbox, such as a test mail.
    pub fn unlimited() -> Self {
        Self::new(SendBudget::unlimited())
    }

    /// The server may have the message from now on: call it right before sending.
    pub(crate) fn hand_over(&self) {
        *self.handed_over_at.lock() = Some(Instant::now());
    }

    /// The server has refused: the message was not delivered.
    pub(crate) fn take_back(&self) {
        *self.handed_over_at.lock() = None;
    }

    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over_at().is_some()
    }

    /// Since when the server may have it.
    pub(crate) fn handed_over_at(&self) -> Option<Instant> {
        *self.handed_over_at.lock()
    }

    /// Whether there is time left; check it before every step that cannot be undone.
    pub(crate) fn may_go_on(&self) -> bool {
        self.budget.is_ample()
    }
}

/// How long we hold a claimed message, by three clocks: one stops while the machine sleeps, one can be set, and the
/// third does neither but is not available everywhere and stops while a virtual machine is paused. The earliest end
/// counts.
#[derive(Clone, Debug)]
pub(crate) struct SendBudget {
    clock: Clock,
    began: Arc<Mutex<Moment>>,
    length: Duration,
}

/// One moment by all three clocks.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    instant: Instant,
    at: Timestamp,
    uptime: Option<Uptime>,
}

impl SendBudget {
    /// Starts at `began`, when the claim did: its commit may have taken longer than the lease.
    pub(super) fn new(clock: &Clock, began: Instant, length: Duration) -> Self {
        let began = Moment { instant: began, at: clock.now(), uptime: clock.uptime() };
        Self { clock: clock.clone(), began: Arc::new(Mutex::new(began)), length }
    }

    /// Never ends.
    pub(crate) fn unlimited() -> Self {
        Self::new(&Clock::system(), Instant::now(), Duration::from_secs(3600 * 24))
    }

    /// The present moment; pass it to [`SendBudget::renew`] once the lease that begins now is saved.
    pub(crate) fn moment(&self) -> Moment {
        Moment { instant: Instant::now(), at: self.clock.now(), uptime: self.clock.uptime() }
    }

    /// Starts again at `moment`, for every holder.
    pub(crate) fn renew(&self, moment: Moment) {
        *self.began.lock() = moment;
    }

    /// The time left.
    pub(crate) fn left(&self) -> Duration {
        let Moment { instant, at, uptime } = self.began.lock().clone();
        let slept = uptime.zip(self.clock.uptime()).map(|(began, now)| now.since(&began));
        let spent = instant.elapsed().max(self.clock.now().since(at)).max(slept.unwrap_or_default());
        self.length.saturating_sub(spent)
    }

    /// Whether there is enough time to begin a step that cannot be undone.
    pub(crate) fn is_ample(&self) -> bool {
        self.left() > self.length / 8
    }
}
