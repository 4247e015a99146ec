//! A job: its config, its runs, why it runs or not, and what needs a person.

use serde::Serialize;

use super::delivery::phrase_of;
use super::external::add_pause;
use crate::channel::outbox::{self, DeliveryFilter, State as MessageState};
use crate::db::{self, Tx};
use crate::engine::attention::Waiting;
use crate::engine::events::RunEvent;
use crate::engine::pipeline::Thing;
use crate::engine::standing::{self, JobFacts};
use crate::engine::view::{Line, View};
use crate::engine::{
    Finder, Job, JobState, Selection, Skipped, Standing, Verb, commands, obstacle, overview, store,
};
use crate::id::Owner;
use crate::ledger::event::{self, Event};
use crate::ledger::pause::{self, Pause};
use crate::ledger::{Subject, cursor};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// Runs, events and messages to show.
const SHOWN: usize = 10;

/// A job, by its name.
pub const JOB: Thing = Thing {
    word: "job",
    find,
    list_configured: |config| config.jobs.iter().map(|job| job.name.to_string()).collect(),
    list_stored: |tx| Ok(store::list_states(tx)?.into_iter().map(|state| state.job_name).collect()),
    listed_by: "status --all",
    resume: Some("job resume"),
    act: commands::act,
};

#[derive(Serialize)]
struct JobDetails {
    name: String,
    /// From the config; `None` if the job is no longer in it.
    config: Option<Configured>,
    state: Option<JobState>,
    /// Why it would not run now; `None` if it would.
    skipped: Option<Skipped>,
    next_run_at: Option<Timestamp>,
    /// Whether it has a cursor that can be reset.
    #[serde(skip)]
    has_cursor: bool,
    /// Pauses of the job itself and of its channels, providers and sources.
    pauses: Vec<Pause>,
    /// Its newest runs, oldest first.
    runs: Vec<Event>,
    waiting: Vec<WaitingMessages>,
    /// Other events about the job itself, oldest first.
    changes: Vec<Event>,
    /// Events about what it works on, oldest first.
    events: Vec<Event>,
}

#[derive(Serialize)]
struct Configured {
    kind: &'static str,
    schedule: String,
    #[serde(skip)]
    schedule_words: Phrase,
    enabled: bool,
    deliver: Vec<String>,
}

/// Messages of the job in one state on one channel.
#[derive(Serialize)]
struct WaitingMessages {
    channel: String,
    state: MessageState,
    count: i64,
    /// The newest of them.
    ids: Vec<i64>,
}

fn find(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let job = finder.jobs.iter().find(|job| job.name.as_str() == name);
    let state = store::find_state(tx, name)?;
    if job.is_none() && state.is_none() {
        return Ok(Vec::new());
    }
    let details = find_details(finder, tx, name, job, state)?;
    let mut view = View::new(
        "job",
        Subject::job(name),
        title(&details),
        serde_json::to_value(&details).unwrap_or_default(),
    );
    view.state = Some(find_standing(finder, tx, job, &details)?.state);
    add_state(&mut view, &details);
    if job.is_some() {
        for why in finder.missing.get(name).into_iter().flatten() {
            view.fact(phrase!("needs setup", "設定不足"), why.clone());
        }
    }
    for pause in &details.pauses {
        add_pause(&mut view, pause, finder);
    }
    if let Some(job) = job {
        view.facts.extend(job.collector.list_facts(tx, &job.name, finder.now)?);
    }
    view.section(phrase!("runs", "実行履歴"), details.runs.iter().map(run_line));
    view.section(phrase!("messages", "メッセージ"), details.waiting.iter().map(waiting_line));
    add_message_actions(&mut view, &details);
    let line = |event: &Event| Line::at(event.at, finder.words(event));
    view.section(phrase!("changes", "ジョブの変更"), details.changes.iter().map(line));
    let mut lines = Vec::with_capacity(details.events.len());
    for event in &details.events {
        let (what, happened) = (finder.find_title(tx, &event.subject)?, finder.words(event));
        let text = phrase!("{what}: {happened}", "{what}：{happened}");
        lines.push(Line::at(event.at, text).about(&event.subject));
    }
    view.section(phrase!("events", "経緯"), lines);
    Ok(vec![view])
}

fn find_details(
    finder: &Finder,
    tx: &mut Tx<'_>,
    name: &str,
    job: Option<&Job>,
    state: Option<JobState>,
) -> db::Result<JobDetails> {
    let (limit, now) = (finder.limit.min(SHOWN), finder.now);
    let deliver = finder.config.find_job(name).map(|job| job.deliver.clone()).unwrap_or_default();
    let needed = list_needed(name, job, &deliver);
    let mut pauses = pause::list(tx, now)?;
    pauses.retain(|pause| needed.contains(&pause.name));
    let skipped = match job {
        Some(job) => obstacle::find_obstacle(tx, job, &Owner::this_process(), Selection::Due, now)?,
        None => None,
    };
    let holder = match &skipped {
        Some(Skipped::Held(holder)) => Some(holder),
        _ => None,
    };
    let next_run_at = job.and_then(|job| {
        let pause = pauses.iter().find(|pause| pause.name == Subject::job(&job.name));
        obstacle::next_run_at(job, state.as_ref(), holder, pause, now)
    });
    let is_run = |event: &Event| event::parse::<RunEvent>(event).is_some();
    let (mut runs, mut changes): (Vec<Event>, Vec<Event>) =
        event::list_about(tx, &Subject::job(name), limit.max(SHOWN) * 2)?.into_iter().partition(is_run);
    for events in [&mut runs, &mut changes] {
        events.drain(..events.len().saturating_sub(limit));
    }
    Ok(JobDetails {
        name: name.to_owned(),
        config: job.map(|job| Configured {
            kind: job.kind,
            schedule: job.schedule.to_string(),
            schedule_words: job.schedule.phrase(),
            enabled: job.enabled,
            deliver,
        }),
        next_run_at,
        has_cursor: !cursor::list(tx, Some(name))?.is_empty(),
        state,
        skipped,
        pauses,
        runs,
        waiting: list_waiting(tx, name)?,
        changes,
        events: event::list_work_of_job(tx, name, limit)?,
    })
}

/// What the job needs, and what may be paused.
fn list_needed(name: &str, job: Option<&Job>, deliver: &[String]) -> Vec<Subject> {
    let relied_on = job.map(|job| job.collector.relies_on()).unwrap_or_default();
    let channels = deliver.iter().map(|channel| Subject::channel(channel));
    std::iter::once(Subject::job(name)).chain(channels).chain(relied_on).collect()
}

fn list_waiting(tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<WaitingMessages>> {
    let mut waiting = Vec::new();
    for tally in outbox::tally(tx)?.into_iter().filter(|tally| tally.job_name == name) {
        let state = tally.state;
        let channel = Some(tally.channel.clone());
        let filter = DeliveryFilter { state: Some(state), job: Some(name.to_owned()), channel, before: None };
        let ids = outbox::list(tx, &filter, SHOWN)?.into_iter().map(|row| row.id).collect();
        waiting.push(WaitingMessages { channel: tally.channel, state, count: tally.count, ids });
    }
    Ok(waiting)
}

fn find_standing(
    finder: &Finder,
    tx: &mut Tx<'_>,
    job: Option<&Job>,
    details: &JobDetails,
) -> db::Result<Standing> {
    let Some(job) = job else { return Ok(standing::decide(JobFacts::default())) };
    let held = details.waiting.iter().filter(|waiting| waiting.state == MessageState::Held);
    let waiting = Waiting { held: held.map(|waiting| waiting.count).sum(), failed: 0 };
    let moved = db::find_moved_away(tx)?;
    Ok(overview::find_job(finder, tx, job, details.state.as_ref(), waiting, moved.as_ref())?.standing)
}

fn title(details: &JobDetails) -> Phrase {
    let name = &details.name;
    match &details.config {
        Some(config) => phrase!(
            "job {name}: {kind}, {schedule}",
            "ジョブ {name}：{kind}、{schedule}",
            kind = config.kind,
            schedule = &config.schedule_words
        ),
        None => phrase!(
            "job {name}: no longer in the config; what it collected is kept",
            "ジョブ {name}：設定にはもうありません（収集済みのデータは残っています）"
        ),
    }
}

fn add_state(view: &mut View, details: &JobDetails) {
    let (state, name) = (details.state.as_ref(), &details.name);
    let never = || Value::from(phrase!("never", "なし"));
    let last_run_at = state.and_then(|state| state.last_run_at);
    if let Some(config) = &details.config
        && !config.deliver.is_empty()
    {
        let channels: Vec<Value> = config.deliver.iter().map(Value::from).collect();
        view.fact(phrase!("delivers to", "通知先"), channels);
    }
    view.fact(phrase!("last run", "最終実行"), last_run_at.map_or_else(never, Value::from));
    if let Some(state) = state {
        view.fact(phrase!("last success", "最終成功"), state.last_success_at.map_or_else(never, Value::from));
        if state.failures_in_a_row > 0 {
            view.fact(phrase!("failures in a row", "連続失敗"), state.failures_in_a_row);
        }
    }
    let is_cut_off = state.is_some_and(JobState::is_unfinished);
    let now = match (&details.config, &details.skipped) {
        (None, _) => phrase!("not running: the config does not name it", "実行しません：設定にありません"),
        (_, Some(skipped @ Skipped::Held(_))) => skipped.phrase(),
        (_, Some(skipped)) => {
            phrase!("not running: {why}", "実行していません：{why}", why = skipped.phrase())
        }
        (_, None) if is_cut_off => phrase!(
            "due: its last run was cut off; `run-due` or `serve` continues it",
            "実行待ち：前回は途中で終わりました。`run-due` か `serve` が続きから再開します"
        ),
        (_, None) => {
            phrase!("due: `run-due` or `serve` starts it", "実行待ち：`run-due` か `serve` が開始します")
        }
    };
    view.fact(phrase!("now", "現在"), now);
    if matches!(details.skipped, None | Some(Skipped::Held(_) | Skipped::NotDue(_))) {
        view.fact(phrase!("next run", "次回"), details.next_run_at);
    }
    if details.config.is_some() {
        if !matches!(details.skipped, Some(Skipped::Held(_))) {
            view.actions.push(commands::run_action(name));
        }
        if !details.pauses.iter().any(|pause| pause.name == Subject::job(name)) {
            view.actions.push(commands::pause_action(name));
        }
        if details.has_cursor {
            view.actions.push(commands::reset_action(name));
        }
    }
}

fn run_line(run: &Event) -> Line {
    let Some(ended) = event::parse::<RunEvent>(run) else {
        return Line::at(run.at, Phrase::verbatim(&run.code));
    };
    let (how, message) = (ended.code.phrase(), ended.message);
    let text = match ended.began_at.map(|began| run.at.since(began)) {
        Some(took) if took.as_secs() > 0 => {
            phrase!("{how} after {took}: {message}", "{how}（{took}）：{message}")
        }
        _ => phrase!("{how}: {message}", "{how}：{message}"),
    };
    Line::at(run.at, text)
}

fn waiting_line(waiting: &WaitingMessages) -> Line {
    let WaitingMessages { channel, state, count, .. } = waiting;
    phrase!("{channel}: {count} {state}", "{channel}：{state} {count} 件", state = phrase_of(*state)).into()
}

fn add_message_actions(view: &mut View, details: &JobDetails) {
    let name = &details.name;
    if details.waiting.iter().any(|waiting| waiting.state == MessageState::Held) {
        view.actions.extend(commands::held_actions(name));
    }
    for waiting in details.waiting.iter().filter(|waiting| waiting.state == MessageState::Failed) {
        let ids = waiting.ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        view.act(
            Verb::Retry,
            &Subject::job(name),
            phrase!("send again what failed", "失敗した分を再送する"),
            format!("delivery retry {ids}"),
        );
    }
}
