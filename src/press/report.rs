//! The report of a run while it is being made, line by line.

use std::collections::BTreeSet;

use super::{Failure, Report};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// A report on its way.
#[derive(Default)]
pub(super) struct ReportBuilder {
    pub(super) lines: Vec<Phrase>,
    pub(super) problems: Vec<Phrase>,
    /// Items that were found.
    pub(super) new_count: u64,
    pub(super) waiting_until: Option<Timestamp>,
    pub(super) failed_steps: Vec<Phrase>,
    /// Whether a step went well.
    pub(super) any_step_well: bool,
    /// The hosts of feeds that are out of reach.
    pub(super) out_of_reach: BTreeSet<String>,
    /// Whether only another config lets a feed be read.
    pub(super) needs_config: bool,
    /// Whether anything else went well.
    went_well: bool,
}

impl ReportBuilder {
    pub(super) fn well(&mut self, line: Phrase) {
        self.lines.push(line);
        self.went_well = true;
    }

    pub(super) fn step_well(&mut self, line: Phrase) {
        self.lines.push(line);
        self.any_step_well = true;
    }

    /// A failure that ended the run, behind what had been done until then: that is saved, and worth saying.
    pub(super) fn before(self, failure: Failure) -> Failure {
        let done: Vec<Phrase> = [self.lines, self.failed_steps, self.problems].concat();
        let after = |why: Phrase| Phrase::list(done.into_iter().chain([why]));
        match failure {
            Failure::Credentials(why) => Failure::Credentials(after(why)),
            Failure::Config(why) => Failure::Config(after(why)),
            Failure::Failed(why) => Failure::Failed(after(why)),
            other => other,
        }
    }

    pub(super) fn finish(mut self) -> Report {
        // Beside a step that went well a failure is part of the day; alone it is what the run came to.
        let lines = if self.any_step_well { &mut self.lines } else { &mut self.problems };
        lines.append(&mut self.failed_steps);
        let summary = match (self.lines.is_empty(), self.problems.is_empty()) {
            (true, true) => phrase!("nothing to do", "することはありません"),
            (true, false) => phrase!("nothing was done", "何も処理できませんでした"),
            (false, _) => Phrase::list(self.lines),
        };
        let ReportBuilder { problems, new_count, waiting_until, any_step_well, went_well, .. } = self;
        let all_failed = !went_well && !any_step_well;
        let needs_config = all_failed && self.needs_config;
        Report { problems, new_count, waiting_until, all_failed, needs_config, ..Report::new(summary) }
    }
}
