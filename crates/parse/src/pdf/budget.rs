//! What one file may cost: work is counted, not time, so that the same file always reads the same.

use std::cell::Cell;

/// The most bytes that one stream may decode to; more is cut.
const MAX_STREAM: usize = 16 * 1024 * 1024;

/// What is left to spend on a file.
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

    /// Takes a little of the budget; `None` when nothing is left, from then on for ever.
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
    pub(super) fn room(&self) -> usize {
        self.decoded.get().min(MAX_STREAM)
    }

    /// Notes that a stream was decoded to that many bytes.
    pub(super) fn decoded(&self, bytes: usize) -> Option<()> {
        self.decoded.set(self.decoded.get().saturating_sub(bytes));
        self.spend(bytes)
    }

    /// Notes that something was left out.
    pub(super) fn mark_cut(&self) {
        self.is_cut.set(true);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }
}
