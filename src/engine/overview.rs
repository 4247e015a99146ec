//! Every job at a glance, and what needs a person: the start page and `status`.

use std::time::Duration;

use serde::Serialize;

use super::action::Action;
use super::alert;
use super::attention::{self, Waiting};
use super::events::RunEvent;
use super::notice::{Notice, list_notices};
use super::standing::{self, JobFacts, Standing};
use super::view::State;
use super::{Finder, Job, JobState, Pipeline, RunOutcome, commands, obstacle, runner, store};
use crate::channel::outbox;
use crate::db::{self, MovedAway, Tx};
use crate::ledger::{Subject, event, lease, pause};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// Runs of a job to show.
const RUNS: usize = 30;
/// Events about a job among which its runs are searched: it may have been paused and resumed in between.
const EVENTS: usize = 45;

/// All jobs, what needs a person, and the daily limits.
#[derive(Clone, Debug)]
pub struct Overview {
    pub now: Timestamp,
    /// Every job, in the order of the config.
    pub jobs: Vec<JobOverview>,
    /// What needs a person, most urgent first.
    pub needs_you: Vec<Notice>,
    /// Use of the daily limits.
    pub quotas: Vec<QuotaUse>,
    /// Where the data was moved to, if it was.
    pub moved: Option<MovedAway>,
}

/// A job at a glance.
#[derive(Clone, Debug, Serialize)]
pub struct JobOverview {
    #[serde(rename = "job_name")]
    pub job: String,
    /// Set for a single thing that the config of its job no longer has, such as a blog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// Its kind; unknown if the config no longer has it.
    pub kind: Option<&'static str>,
    #[serde(flatten)]
    pub standing: Standing,
    pub last_run_at: Option<Timestamp>,
    pub last_success_at: Option<Timestamp>,
    pub next_run_at: Option<Timestamp>,
    /// Whether it was paused.
    #[serde(skip)]
    pub is_paused: bool,
    /// The message of its last run.
    pub message: Option<Phrase>,
    /// How many runs in a row have failed.
    pub failures_in_a_row: i64,
    /// Settings that are missing before it can work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_setup: Vec<Phrase>,
    /// Messages of the job that wait for a person.
    pub messages_held: i64,
    /// Messages of the job that failed for good, not long ago.
    pub messages_failed: i64,
    /// Its newest runs, oldest first.
    pub runs: Vec<RunMark>,
}

/// One run in the row of the newest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunMark {
    pub at: Timestamp,
    pub began_at: Option<Timestamp>,
    pub outcome: RunOutcome,
    pub new_count: u64,
    pub message: Phrase,
}

impl RunMark {
    /// How long it took, if its beginning is known.
    pub fn took(&self) -> Option<Duration> {
        self.began_at.map(|began| self.at.since(began))
    }
}

/// The use of a daily limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuotaUse {
    pub provider: String,
    /// Used today.
    pub used: i64,
    /// The limit.
    pub per_day: u32,
    pub resets_at: Timestamp,
}

impl Overview {
    /// Collects the overview of every job of `finder`.
    pub fn find(finder: &Finder, tx: &mut Tx<'_>) -> db::Result<Self> {
        let now = finder.now;
        let states = store::list_states(tx)?;
        let waiting = attention::list_waiting(tx, now)?;
        let moved = db::find_moved_away(tx)?;
        let mut jobs = Vec::with_capacity(finder.jobs.len());
        for job in &finder.jobs {
            let state = states.iter().find(|state| state.job_name == job.name.as_str());
            let waiting = waiting.get(job.name.as_str()).copied().unwrap_or_default();
            jobs.push(find_job(finder, tx, job, state, waiting, moved.as_ref())?);
        }
        let mut quotas = Vec::with_capacity(finder.quotas.len());
        for quota in finder.quotas.values() {
            quotas.push(QuotaUse {
                provider: quota.provider.clone(),
                used: quota.used(tx, now)?,
                per_day: quota.rule.per_day,
                resets_at: quota.resets_at(now),
            });
        }
        let waits = outbox::list_waits(tx, &finder.channels, now)?;
        let mut needs_you = Vec::new();
        for list_needs in &finder.needs {
            needs_you.extend(list_needs(tx)?);
        }
        let retries = outbox::list_retries(tx, &finder.channels, &waits)?;
        needs_you.extend(list_notices(&jobs, (&waits, &retries), &alert::list_open(tx)?, &quotas));
        Ok(Self { now, jobs, needs_you, quotas, moved })
    }

    /// When the next job starts, and which.
    pub fn next(&self) -> Option<(Timestamp, &str)> {
        self.jobs.iter().filter_map(|job| Some((job.next_run_at?, job.job.as_str()))).min()
    }
}

/// The overview of one job.
pub fn find_job(
    finder: &Finder,
    tx: &mut Tx<'_>,
    job: &Job,
    state: Option<&JobState>,
    waiting: Waiting,
    moved: Option<&MovedAway>,
) -> db::Result<JobOverview> {
    let now = finder.now;
    let paused = pause::find(tx, &Subject::job(&job.name), now)?;
    let holder = lease::find_holder(tx, &runner::lease_name(&job.name))?;
    let next_run_at = obstacle::next_run_at(job, state, holder.as_ref(), paused.as_ref(), now);
    let needs_setup = finder.missing.get(job.name.as_str()).cloned().unwrap_or_default();
    let standing = standing::decide(JobFacts {
        is_configured: true,
        is_enabled: job.enabled,
        is_running: holder.is_some(),
        moved_to: moved.map(|moved| moved.to.as_str()),
        paused: paused.as_ref().map(|pause| &pause.reason),
        needs_setup: needs_setup.first(),
        state,
        held: waiting.held,
        own: job.collector.find_standing(tx, &job.name, now)?,
        is_due: next_run_at.is_some_and(|at| at <= now),
    });
    Ok(JobOverview {
        kind: Some(job.kind),
        next_run_at,
        is_paused: paused.is_some(),
        needs_setup,
        messages_held: waiting.held,
        messages_failed: waiting.failed,
        runs: list_runs(tx, job.name.as_str())?,
        ..JobOverview::of_state(job.name.as_str(), standing, state)
    })
}

impl JobOverview {
    /// What a person can do with it right away.
    pub fn actions(&self) -> Vec<Action> {
        let pause = if self.is_paused {
            commands::resume_action(&self.job)
        } else {
            commands::pause_action(&self.job)
        };
        let is_running = self.standing.state == State::Running;
        let run = (!is_running).then(|| commands::run_action(&self.job));
        run.into_iter().chain([pause]).collect()
    }

    /// The overview of a job that is only in the database.
    fn of_state(name: &str, standing: Standing, state: Option<&JobState>) -> Self {
        Self {
            job: name.to_owned(),
            left: None,
            kind: None,
            standing,
            last_run_at: state.and_then(|state| state.last_run_at),
            last_success_at: state.and_then(|state| state.last_success_at),
            next_run_at: None,
            is_paused: false,
            message: state.and_then(|state| state.last_message.clone()),
            failures_in_a_row: state.map_or(0, |state| state.failures_in_a_row),
            needs_setup: Vec::new(),
            messages_held: 0,
            messages_failed: 0,
            runs: Vec::new(),
        }
    }
}

/// The newest runs of a job, oldest first.
pub fn list_runs(tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<RunMark>> {
    let events = event::list_about(tx, &Subject::job(name), EVENTS)?;
    let mark = |of: &event::Event| {
        let RunEvent { code: outcome, message, began_at, new_count } = event::parse(of)?;
        Some(RunMark { at: of.at, began_at, outcome, new_count, message })
    };
    let mut runs: Vec<RunMark> = events.iter().filter_map(mark).collect();
    runs.drain(..runs.len().saturating_sub(RUNS));
    Ok(runs)
}

/// What is in the database but no longer in the config: jobs, and single things of jobs that are still there.
pub fn list_left(
    finder: &Finder,
    tx: &mut Tx<'_>,
    pipelines: &[&'static Pipeline],
) -> db::Result<Vec<JobOverview>> {
    let is_there = |name: &str| finder.jobs.iter().any(|job| job.name.as_str() == name);
    let mut left: Vec<JobOverview> = store::list_states(tx)?
        .iter()
        .filter(|state| !is_there(&state.job_name))
        .map(|state| {
            let standing = standing::decide(JobFacts::default());
            JobOverview::of_state(&state.job_name, standing, Some(state))
        })
        .collect();
    for pipeline in pipelines {
        for thing in (pipeline.list_left)(tx, &finder.config)?.into_iter().filter(|left| is_there(&left.job))
        {
            let why = phrase!(
                "{word} `{name}` is not in the config",
                "{word} `{name}` は設定にありません",
                word = thing.word,
                name = &thing.name
            );
            left.push(JobOverview {
                left: Some(thing.name),
                kind: Some(pipeline.kind.name),
                last_run_at: Some(thing.last_at),
                ..JobOverview::of_state(&thing.job, Standing::new(State::Disabled).because(why), None)
            });
        }
    }
    Ok(left)
}
