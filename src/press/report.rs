//! Builds the report of a run line by line.

use std::collections::BTreeSet;

use super::{Failure, Report};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

#[derive(Default)]
pub(super) struct ReportBuilder {
    pub(super) lines: Vec<Phrase>,
    pub(super) problems: Vec<Phrase>,
    pub(super) new_count: u64,
    pub(super) waiting_until: Option<Timestamp>,
    pub(super) failed_steps: Vec<Phrase>,
    pub(super) any_step_well: bool,
    pub(super) out_of_reach: BTreeSet<String>,
    /// Whether a feed cannot be read without a change of the config.
    pub(super) needs_config: bool,
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

    /// A failure that ended the run, after the lines about what was done and saved before.
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
        // If another step succeeded, a failure is only reported; alone it makes the run a failed one.
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
