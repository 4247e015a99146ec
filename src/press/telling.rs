//! The report of a run while it is being made, line by line.

use super::{Failure, Report};
use crate::time::Timestamp;

/// A report on its way.
#[derive(Default)]
pub(super) struct Telling {
    pub(super) lines: Vec<String>,
    pub(super) problems: Vec<String>,
    pub(super) waiting_until: Option<Timestamp>,
    /// Whether anything went well.
    pub(super) went_well: bool,
}

impl Telling {
    pub(super) fn well(&mut self, line: String) {
        self.lines.push(line);
        self.went_well = true;
    }

    pub(super) fn finish(self) -> Report {
        let summary = match (self.lines.is_empty(), self.problems.is_empty()) {
            (true, true) => "nothing to do".to_owned(),
            (true, false) => "nothing was done".to_owned(),
            (false, _) => self.lines.join("; "),
        };
        let Telling { problems, waiting_until, went_well, .. } = self;
        Report { summary, problems, waiting_until, is_in_vain: !went_well }
    }
}
