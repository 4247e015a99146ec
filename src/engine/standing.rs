//! The state of a job, decided from everything known about it.

use serde::Serialize;

use super::store::{JobState, RunOutcome};
use super::view::State;
use crate::phrase;
use crate::phrase::Phrase;

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    pub state: State,
    /// The reason, if the state alone does not say it.
    pub why: Option<Phrase>,
    /// Whether only a person can change it.
    pub needs_you: bool,
}

impl Standing {
    /// A state without a reason.
    pub fn new(state: State) -> Self {
        Self { state, why: None, needs_you: false }
    }

    /// Adds a reason.
    pub fn because(self, why: Phrase) -> Self {
        Self { why: Some(why), ..self }
    }

    /// Marks it as needing a person.
    pub fn needing_you(self) -> Self {
        Self { needs_you: true, ..self }
    }

    /// In words.
    pub fn phrase(&self) -> Phrase {
        let state = self.state.phrase();
        match &self.why {
            Some(why) => phrase!("{state}: {why}", "{state}：{why}"),
            None => state,
        }
    }
}

/// What is known about a job.
#[derive(Clone, Debug, Default)]
pub struct JobFacts<'a> {
    /// Whether the config has it.
    pub is_configured: bool,
    /// Whether it is enabled in the config.
    pub is_enabled: bool,
    /// Whether a process is running it now.
    pub is_running: bool,
    /// The database that has replaced this one.
    pub moved_to: Option<&'a str>,
    pub paused: Option<&'a Phrase>,
    /// Settings that are missing before it can work.
    pub needs_setup: Option<&'a Phrase>,
    pub state: Option<&'a JobState>,
    /// Its messages that wait for a decision.
    pub held: i64,
    /// The state according to its pipeline.
    pub own: Option<Standing>,
    /// Whether it would start now.
    pub is_due: bool,
}

/// Decides the state of a job: what is running first, then what needs a person, then what comes next.
pub fn decide(known: JobFacts<'_>) -> Standing {
    let outcome = known.state.and_then(|state| state.last_outcome);
    let failures = known.state.map_or(0, |state| state.failures_in_a_row);
    if known.is_running {
        return Standing::new(State::Running);
    }
    if !known.is_configured {
        return Standing::new(State::Disabled).because(phrase!("not in the config", "設定にありません"));
    }
    if !known.is_enabled {
        return Standing::new(State::Disabled);
    }
    if let Some(to) = known.moved_to {
        let why = phrase!("everything was moved to {to}", "すべて {to} に移行済みです");
        return Standing::new(State::Paused).because(why);
    }
    if let Some(why) = known.paused {
        return Standing::new(State::Paused).because(why.clone());
    }
    if let Some(why) = known.needs_setup {
        return Standing::new(State::Setup).because(why.clone()).needing_you();
    }
    // Work that was left for later because a server asked for it needs no person.
    let waits = known.own.as_ref().is_some_and(|own| own.state == State::Waiting);
    match outcome {
        Some(RunOutcome::Failed) if failures > 1 => {
            return Standing::new(State::Failing)
                .because(phrase!("×{failures}", "×{failures}"))
                .needing_you();
        }
        Some(RunOutcome::Failed) => return Standing::new(State::Failing).needing_you(),
        Some(RunOutcome::Partly) if !waits => {
            return Standing::new(State::Failing).because(phrase!("partly", "一部のみ")).needing_you();
        }
        _ => {}
    }
    if known.held > 0 {
        return Standing::new(State::Approval);
    }
    let Some(state) = known.state.filter(|state| state.last_run_at.is_some()) else {
        return Standing::new(State::New);
    };
    if state.is_unfinished() {
        let why = phrase!("its last run was cut off", "前回の実行は途中で終わりました");
        return Standing::new(State::Due).because(why);
    }
    if let Some(own) = known.own {
        return own;
    }
    match outcome {
        Some(RunOutcome::Waiting) => Standing::new(State::Waiting),
        _ if known.is_due => Standing::new(State::Due),
        _ => Standing::new(State::Ok),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(outcome: Option<RunOutcome>, failures_in_a_row: i64) -> JobState {
        JobState {
            job_name: "x".into(),
            last_success_at: None,
            last_run_at: Some("2026-01-15T00:00:00Z".parse().unwrap()),
            last_outcome: outcome,
            last_message: None,
            failures_in_a_row,
            retry_at: None,
        }
    }

    fn known(state: Option<&JobState>) -> JobFacts<'_> {
        JobFacts { is_configured: true, is_enabled: true, state, ..JobFacts::default() }
    }

    #[test]
    fn the_last_run_decides_when_nothing_else_does() {
        for (outcome, failures, words) in [
            (Some(RunOutcome::Success), 0, "OK"),
            (Some(RunOutcome::Waiting), 0, "Waiting"),
            (Some(RunOutcome::Partly), 0, "Failing: partly"),
            (Some(RunOutcome::Failed), 1, "Failing"),
            (Some(RunOutcome::Failed), 3, "Failing: ×3"),
            (Some(RunOutcome::Interrupted), 0, "Due: its last run was cut off"),
            (None, 0, "Due: its last run was cut off"),
        ] {
            let state = ran(outcome, failures);
            assert_eq!(decide(known(Some(&state))).phrase(), words, "{outcome:?}");
        }
        assert_eq!(decide(known(None)).phrase(), "Not run yet");
        let fine = ran(Some(RunOutcome::Success), 0);
        assert_eq!(decide(JobFacts { is_due: true, ..known(Some(&fine)) }).phrase(), "Due");
    }

    #[test]
    fn a_run_that_misses_only_what_waits_is_not_failing() {
        let until = Phrase::verbatim("a until noon");
        let own = Some(Standing::new(State::Waiting).because(until));
        for (outcome, words) in
            [(RunOutcome::Partly, "Waiting: a until noon"), (RunOutcome::Failed, "Failing: ×2")]
        {
            let state = ran(Some(outcome), 2);
            let standing = decide(JobFacts { own: own.clone(), ..known(Some(&state)) });
            assert_eq!(
                (standing.phrase().to_string().as_str(), standing.needs_you),
                (words, outcome == RunOutcome::Failed)
            );
        }
    }

    #[test]
    fn what_goes_on_comes_before_what_a_person_has_to_do_and_that_before_the_schedule() {
        let (failed, holiday) = (ran(Some(RunOutcome::Failed), 2), Phrase::verbatim("holiday"));
        let missing = Phrase::verbatim("KEY is not set");
        let mut known = JobFacts {
            is_running: true,
            is_enabled: false,
            moved_to: Some("sqlite:b"),
            paused: Some(&holiday),
            needs_setup: Some(&missing),
            held: 1,
            own: Some(Standing::new(State::Done)),
            ..known(Some(&failed))
        };
        let mut seen = Vec::new();
        let mut note = |known: &JobFacts<'_>| seen.push(decide(known.clone()).phrase().to_string());
        note(&known);
        known.is_running = false;
        note(&known);
        known.is_enabled = true;
        note(&known);
        known.moved_to = None;
        note(&known);
        known.paused = None;
        note(&known);
        known.needs_setup = None;
        note(&known);
        let fine = ran(Some(RunOutcome::Success), 0);
        known.state = Some(&fine);
        note(&known);
        known.held = 0;
        note(&known);
        assert_eq!(
            seen,
            [
                "Running",
                "Disabled",
                "Paused: everything was moved to sqlite:b",
                "Paused: holiday",
                "Needs setup: KEY is not set",
                "Failing: ×2",
                "Needs approval",
                "All collected",
            ]
        );
    }
}
