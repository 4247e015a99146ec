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

    /// A failure that ended the run, behind what had been done until then: that is saved, and worth saying.
    pub(super) fn before(self, failure: Failure) -> Failure {
        let done: Vec<String> = self.lines.into_iter().chain(self.problems).collect();
        let after = |why: String| match done.is_empty() {
            true => why,
            false => format!("{}; {why}", done.join("; ")),
        };
        match failure {
            Failure::Credentials(why) => Failure::Credentials(after(why)),
            Failure::Config(why) => Failure::Config(after(why)),
            Failure::Failed(why) => Failure::Failed(after(why)),
            other => other,
        }
    }

    pub(super) fn finish(self) -> Report {
        let summary = match (self.lines.is_empty(), self.problems.is_empty()) {
            (true, true) => "nothing to do".to_owned(),
            (true, false) => "nothing was done".to_owned(),
            (false, _) => self.lines.join("; "),
        };
        let Telling { problems, waiting_until, went_well, .. } = self;
        Report { summary, problems, waiting_until, is_in_vain: !went_well, ..Report::default() }
    }
}
