//! The cost limits of one file: work is counted instead of time, so that the result is always the same.

use std::cell::Cell;

/// The most bytes of one decoded stream; the rest is cut.
const MAX_STREAM: usize = 16 * 1024 * 1024;

/// The remaining budget of a file.
#[derive(Debug)]
pub(super) struct WorkBudget {
    work: Cell<u64>,
    decoded: Cell<usize>,
    is_cut: Cell<bool>,
}

impl WorkBudget {
    pub(super) fn new(work: u64, decoded: usize) -> Self {
        Self { work: Cell::new(work), decoded: Cell::new(decoded), is_cut: Cell::new(false) }
    }

    /// Spends some of the budget; `None` once it is used up.
    pub(super) fn spend(&self, work: usize) -> Option<()> {
        let left = self.work.get().saturating_sub(work as u64);
        self.work.set(left);
        if left == 0 {
            self.mark_cut();
            return None;
        }
        Some(())
    }

    /// How many bytes the next stream may decode to.
    pub(super) fn stream_limit(&self) -> usize {
        self.decoded.get().min(MAX_STREAM)
    }

    /// Records that a stream was decoded to that many bytes.
    pub(super) fn decoded(&self, bytes: usize) -> Option<()> {
        self.decoded.set(self.decoded.get().saturating_sub(bytes));
        self.spend(bytes)
    }

    /// Records that something was left out.
    pub(super) fn mark_cut(&self) {
        self.is_cut.set(true);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }
}
