//! A job: what it is, how its runs ended, why it runs or not, and what waits for a person.

use serde::Serialize;

use super::super::run::why_skipped;
use super::super::times::Times;
use super::page::Page;
use super::words;
use crate::blogs;
use crate::books::select;
use crate::channel::outbox::{self, Filter, State};
use crate::config::value::Span;
use crate::db::{self, Tx};
use crate::engine::{Job, JobState, Outcome, Selection, Skipped, runner, store};
use crate::id::Owner;
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};
use crate::ledger::pause::{self, Pause};
use crate::ledger::subject::Kind;
use crate::text::counted;
use crate::time::Timestamp;

/// Runs, and lines of the story, that are told at most.
const TOLD: usize = 10;

/// Everything that is known about a job.
#[derive(Serialize)]
pub(super) struct JobView {
    pub(super) name: String,
    /// What the config says; `None` when it does not name the job any more.
    config: Option<Configured>,
    state: Option<JobState>,
    /// Why it would not run at this moment; `None` when it would.
    skipped: Option<Skipped>,
    next_run_at: Option<Timestamp>,
    /// What rests that it needs: itself, its channels, its providers, its blogs.
    pauses: Vec<Pause>,
    /// Blogs whose servers asked us to wait, and until when.
    waiting_blogs: Vec<(String, Timestamp)>,
    /// When a books job makes its next digest, if it rests now because the last one was refused.
    next_digest_at: Option<Timestamp>,
    /// Its newest runs, oldest first.
    runs: Vec<Event>,
    waiting: Vec<Waiting>,
    /// What else happened to the job itself, oldest first.
    changes: Vec<Event>,
    /// What happened to what it works on, oldest first.
    events: Vec<Event>,
}

#[derive(Serialize)]
struct Configured {
    kind: &'static str,
    schedule: String,
    enabled: bool,
    deliver: Vec<String>,
}

/// Messages of the job in one state on one channel.
#[derive(Serialize)]
struct Waiting {
    channel: String,
    state: State,
    count: i64,
    /// The newest of them.
    ids: Vec<i64>,
}

pub(super) fn find_story(
    tx: &mut Tx<'_>,
    name: &str,
    job: Option<&Job>,
    deliver: Vec<String>,
    limit: usize,
    now: Timestamp,
) -> db::Result<JobView> {
    let state = store::find_state(tx, name)?;
    let needed = list_needed(name, job, &deliver);
    let mut pauses = pause::list(tx, now)?;
    pauses.retain(|rest| needed.contains(&rest.name));
    let skipped = match job {
        Some(job) => runner::find_obstacle(tx, job, &Owner::this_process(), Selection::Due, now)?,
        None => None,
    };
    let holder = match &skipped {
        Some(Skipped::Held(holder)) => Some(holder),
        _ => None,
    };
    let next_run_at = job.and_then(|job| {
        let rest = pauses.iter().find(|rest| rest.name == Subject::job(&job.name));
        runner::next_run_at(job, state.as_ref(), holder, rest, now)
    });
    let is_run = |event: &Event| Outcome::ALL.iter().any(|outcome| outcome.word() == event.code);
    let (mut runs, mut changes): (Vec<Event>, Vec<Event>) =
        event::list_about(tx, &Subject::job(name), limit.max(TOLD) * 2)?.into_iter().partition(is_run);
    for events in [&mut runs, &mut changes] {
        events.drain(..events.len().saturating_sub(limit.min(TOLD)));
    }
    let next_digest_at = match name.parse() {
        Ok(name) => select::next_digest_at(tx, &name, now)?,
        Err(_) => None,
    };
    let mut waiting_blogs = blogs::view::list_waiting(tx, now)?;
    // One that has left the config is not waited for.
    waiting_blogs.retain(|(id, of_job, _)| of_job == name && needed.contains(&Subject::blog(id)));
    Ok(JobView {
        waiting_blogs: waiting_blogs.into_iter().map(|(id, _, until)| (id, until)).collect(),
        name: name.to_owned(),
        config: job.map(|job| Configured {
            kind: job.kind,
            schedule: job.schedule.to_string(),
            enabled: job.enabled,
            deliver,
        }),
        next_run_at,
        state,
        skipped,
        pauses,
        next_digest_at,
        runs,
        waiting: list_waiting(tx, name)?,
        changes,
        events: event::list_work_of_job(tx, name, limit.min(TOLD))?,
    })
}

/// What keeps the job from its work when it rests.
fn list_needed(name: &str, job: Option<&Job>, deliver: &[String]) -> Vec<Subject> {
    let relied_on = job.map(|job| job.collector.relies_on()).unwrap_or_default();
    let channels = deliver.iter().map(|channel| Subject::channel(channel));
    std::iter::once(Subject::job(name)).chain(channels).chain(relied_on).collect()
}

fn list_waiting(tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<Waiting>> {
    let mut waiting = Vec::new();
    for tally in outbox::tally(tx)?.into_iter().filter(|tally| tally.job_name == name) {
        let Some(state) = State::parse(&tally.state) else { continue };
        let channel = Some(tally.channel.clone());
        let filter = Filter { state: Some(state), job: Some(name.to_owned()), channel };
        let ids = outbox::list(tx, &filter, TOLD)?.into_iter().map(|row| row.id).collect();
        waiting.push(Waiting { channel: tally.channel, state, count: tally.count, ids });
    }
    Ok(waiting)
}

/// The story as lines.
pub(super) fn tell(story: &JobView, page: &mut Page<'_>) {
    let times = page.times;
    let name = &story.name;
    match &story.config {
        Some(config) => {
            let switch = if config.enabled { "enabled" } else { "disabled" };
            page.title(format!("job {name}: {}, {}, {switch}", config.kind, config.schedule));
            if !config.deliver.is_empty() {
                page.fact("delivers to", config.deliver.join(", "));
            }
        }
        None => page.title(format!("job {name}: no longer in the config; what it collected is kept")),
    }
    tell_state(story, page);
    for rest in &story.pauses {
        page.fact("paused", tell_rest(rest, times));
    }
    for (id, until) in story.waiting_blogs.iter().take(TOLD) {
        page.fact("waits", format!("blog {id} until {}: its server asked for it", times.line(*until)));
    }
    if let Some(more) = story.waiting_blogs.len().checked_sub(TOLD).filter(|more| *more > 0) {
        page.fact("waits", format!("{} more", counted(more, "blog")));
    }
    if let Some(at) = story.next_digest_at {
        let until = times.line(at);
        page.fact("paused", format!("its digests until {until}: the last one was refused, see messages"));
    }
    page.section("runs", story.runs.iter().map(|run| tell_run(run, times)));
    page.section("messages", story.waiting.iter().map(|waiting| tell_waiting(waiting, name)));
    page.section("job", story.changes.iter().map(|event| words::line(event, times)));
    page.section("story", story.events.iter().map(|event| words::line_with_subject(event, times)));
}

fn tell_state(story: &JobView, page: &mut Page<'_>) {
    let times = page.times;
    let state = story.state.as_ref();
    let last_run_at = state.and_then(|state| state.last_run_at);
    page.fact("last run", last_run_at.map_or_else(|| "never".to_owned(), |at| times.line(at)));
    if let Some(state) = state {
        let success = state.last_success_at.map_or_else(|| "never".to_owned(), |at| times.line(at));
        page.fact("last success", success);
        if state.failures_in_a_row > 1 {
            page.fact("in a row", format!("{} failures", state.failures_in_a_row));
        }
    }
    let is_cut_off = state.is_some_and(JobState::is_unfinished);
    let now = match (&story.config, &story.skipped) {
        (None, _) => "not running: the config does not name it".to_owned(),
        (_, Some(Skipped::Held(holder))) => {
            let who = crate::ledger::presence::shown_owner(&holder.owner);
            format!("running ({who}, since {})", times.line(holder.taken_at))
        }
        (_, Some(skipped)) => format!("not running: {}", times.told(&why_skipped(skipped))),
        (_, None) if is_cut_off => {
            "due: its last run was cut off; `run-due` or `serve` continues it".to_owned()
        }
        (_, None) => "due: `run-due` or `serve` starts it".to_owned(),
    };
    page.fact("now", now);
    if let (Some(at), Some(Skipped::Held(_))) = (story.next_run_at, &story.skipped) {
        page.fact("next run", times.line(at));
    }
}

/// What rests, until when, why, and what ends it.
pub(super) fn tell_rest(rest: &Pause, times: &Times) -> String {
    let until = match rest.paused_until {
        Some(until) => format!("until {}", times.line(until)),
        None if rest.name.name_of(Kind::Channel).is_some() => "until its credentials change".to_owned(),
        None => "until it is ended by hand".to_owned(),
    };
    let said = format!("{} {until}: {}", rest.name.spoken(), times.told(&rest.reason));
    let commands = [
        (Kind::Job, "job resume"),
        (Kind::Feed, "job resume"),
        (Kind::Channel, "delivery retry --channel"),
        (Kind::Blog, "change resume"),
    ];
    let command = commands.iter().find_map(|(kind, command)| Some((command, rest.name.name_of(*kind)?)));
    match command {
        Some((command, name)) => format!("{said} (`tsuzuki {command} {name}` ends it)"),
        None => said,
    }
}

fn tell_run(run: &Event, times: &Times) -> String {
    let began_at = run.detail["began_at"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    let took = began_at.and_then(|began| Span::from_secs(run.at.since(began).as_secs()));
    let took = took.map_or_else(String::new, |took| format!(" after {took}"));
    let said = run.detail["message"].as_str().unwrap_or_default();
    let ended = words::meaning(Some(Kind::Job), &run.code).unwrap_or(&run.code);
    format!("{}  {ended}{took}: {}", times.line(run.at), crate::text::one_line(&times.told(said)))
}

fn tell_waiting(waiting: &Waiting, job: &str) -> String {
    let Waiting { channel, state, count, ids } = waiting;
    let ids = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let what = match state {
        State::Held => format!(
            "held: `tsuzuki delivery approve --job {job}` lets them go, `tsuzuki delivery skip --job {job}` does not"
        ),
        State::Failed => format!("failed: `tsuzuki delivery retry {ids}` tries again"),
        State::Unknown => "may or may not have been sent: the sender checks it by itself".to_owned(),
        State::Sending => "being sent".to_owned(),
        State::Ready | State::Sent | State::Skipped => "waiting for their turn".to_owned(),
    };
    format!("{channel}: {count} {what}")
}

/// The command that decides about one message, if it needs one.
pub(super) fn way_out(state: &str, id: i64) -> Option<String> {
    match State::parse(state)? {
        State::Held => Some(format!("`tsuzuki delivery approve {id}` or `tsuzuki delivery skip {id}`")),
        State::Failed => Some(format!("`tsuzuki delivery retry {id}` tries again")),
        State::Unknown => Some("the sender checks it by itself".to_owned()),
        State::Ready | State::Sending | State::Sent | State::Skipped => None,
    }
}
