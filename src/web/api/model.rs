//! The types of responses.

use serde::Serialize;
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

use crate::engine::notice::Notice;
use crate::engine::overview::{JobOverview, QuotaUse, RunMark};
use crate::engine::table::TablePage;
use crate::engine::{Cell, State, View};
use crate::ledger::event::{Event, Numbered};
use crate::phrase::{Phrase, Speech};
use crate::time::Timestamp;

/// Everything that is known of one thing.
#[derive(Serialize, ToSchema)]
pub(super) struct ThingBody {
    /// What sort of thing it is.
    kind: &'static str,
    /// The word and the name, as `why` takes them.
    name: String,
    title: String,
    /// Where it stands: `ok`, `failing`, `paused` …
    state: Option<&'static str>,
    /// Its way from the first step to the last, if it has an end.
    stages: Vec<StageBody>,
    facts: Vec<FactBody>,
    sections: Vec<SectionBody>,
    /// Commands that a person can run about it.
    commands: Vec<CommandBody>,
    /// Its fields, as `--json` has them.
    data: Json,
}

#[derive(Serialize, ToSchema)]
pub(super) struct StageBody {
    name: String,
    /// `ok` when it was reached, `new` when it lies ahead.
    state: &'static str,
}

#[derive(Serialize, ToSchema)]
pub(super) struct FactBody {
    label: String,
    /// In words.
    text: String,
    /// As a value with its type.
    value: Json,
}

#[derive(Serialize, ToSchema)]
pub(super) struct SectionBody {
    title: String,
    lines: Vec<LineBody>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct LineBody {
    #[schema(format = DateTime)]
    at: Option<String>,
    text: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct CommandBody {
    label: String,
    /// Without the name of the program.
    command: String,
}

impl ThingBody {
    pub(super) fn new(view: &View, speech: &Speech) -> Self {
        let say = |phrase: &Phrase| speech.phrase(phrase);
        Self {
            kind: view.kind,
            name: view.name.clone(),
            title: say(&view.title),
            state: view.state.map(State::word),
            stages: view
                .stages
                .iter()
                .map(|stage| StageBody { name: say(&stage.name), state: stage.state.word() })
                .collect(),
            facts: view
                .facts
                .iter()
                .map(|fact| FactBody {
                    label: say(&fact.label),
                    text: speech.value(&fact.value),
                    value: json!(fact.value),
                })
                .collect(),
            sections: view
                .sections
                .iter()
                .map(|section| SectionBody {
                    title: say(&section.title),
                    lines: section
                        .lines
                        .iter()
                        .map(|line| LineBody { at: line.at.map(|at| at.to_string()), text: say(&line.text) })
                        .collect(),
                })
                .collect(),
            commands: view
                .actions
                .iter()
                .map(|action| CommandBody { label: say(&action.label), command: action.command.clone() })
                .collect(),
            data: view.data.clone(),
        }
    }
}

/// Every job at a glance, and what needs a person.
#[derive(Serialize, ToSchema)]
pub(super) struct OverviewBody {
    #[schema(format = DateTime)]
    now: String,
    /// What only a person can do, the worst first.
    needs_you: Vec<NoticeBody>,
    /// Every job, in the order of the config.
    jobs: Vec<JobBody>,
    quotas: Vec<QuotaBody>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct NoticeBody {
    state: &'static str,
    /// What it is about, as `why` takes it.
    about: String,
    text: String,
    /// What says more, without the name of the program.
    command: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct QuotaBody {
    provider: String,
    /// Today.
    used: i64,
    /// At most.
    per_day: u32,
    #[schema(format = DateTime)]
    resets_at: String,
}

impl OverviewBody {
    pub(super) fn new(overview: &crate::engine::Overview, speech: &Speech) -> Self {
        Self {
            now: overview.now.to_string(),
            needs_you: overview.needs_you.iter().map(|notice| NoticeBody::new(notice, speech)).collect(),
            jobs: overview.jobs.iter().map(|job| JobBody::new(job, speech)).collect(),
            quotas: overview.quotas.iter().map(QuotaBody::new).collect(),
        }
    }
}

impl NoticeBody {
    fn new(notice: &Notice, speech: &Speech) -> Self {
        Self {
            state: notice.state.word(),
            about: notice.about.to_string(),
            text: speech.phrase(&notice.text),
            command: notice.command.clone(),
        }
    }
}

impl QuotaBody {
    pub(super) fn new(quota: &QuotaUse) -> Self {
        let QuotaUse { provider, used, per_day, resets_at } = quota.clone();
        Self { provider, used, per_day, resets_at: resets_at.to_string() }
    }
}

/// A job at a glance.
#[derive(Serialize, ToSchema)]
pub(super) struct JobBody {
    job_name: String,
    /// Unknown when the config does not name it any more.
    kind: Option<&'static str>,
    /// Where it stands: `ok`, `failing`, `paused` …
    state: &'static str,
    /// The same in words, with the reason.
    standing: String,
    /// The reason alone.
    why: Option<String>,
    /// Whether it stays so until a person does something.
    needs_you: bool,
    #[schema(format = DateTime)]
    last_run_at: Option<String>,
    #[schema(format = DateTime)]
    last_success_at: Option<String>,
    #[schema(format = DateTime)]
    next_run_at: Option<String>,
    /// What its last run said.
    message: Option<String>,
    failures_in_a_row: i64,
    /// What has to be set before it can do its work.
    needs_setup: Vec<String>,
    /// Messages of the job that wait for a person.
    messages_held: i64,
    /// Messages of the job that failed for good, not long ago.
    messages_failed: i64,
    /// Its newest runs, oldest first.
    runs: Vec<RunBody>,
}

/// One run among others.
#[derive(Serialize, ToSchema)]
pub(super) struct RunBody {
    /// When it ended.
    #[schema(format = DateTime)]
    at: String,
    #[schema(format = DateTime)]
    began_at: Option<String>,
    /// `success`, `partly`, `failed` …
    outcome: &'static str,
    /// What was new.
    new_count: u64,
    /// What it said.
    message: String,
}

impl JobBody {
    fn new(job: &JobOverview, speech: &Speech) -> Self {
        let say = |phrase: &Phrase| speech.phrase(phrase);
        let moment = |at: Option<Timestamp>| at.map(|at| at.to_string());
        Self {
            job_name: job.job.clone(),
            kind: job.kind,
            state: job.standing.state.word(),
            standing: say(&job.standing.phrase()),
            why: job.standing.why.as_ref().map(say),
            needs_you: job.standing.needs_you,
            last_run_at: moment(job.last_run_at),
            last_success_at: moment(job.last_success_at),
            next_run_at: moment(job.next_run_at),
            message: job.message.as_ref().map(say),
            failures_in_a_row: job.failures_in_a_row,
            needs_setup: job.needs_setup.iter().map(say).collect(),
            messages_held: job.messages_held,
            messages_failed: job.messages_failed,
            runs: job.runs.iter().map(|run| RunBody::new(run, speech)).collect(),
        }
    }
}

impl RunBody {
    fn new(run: &RunMark, speech: &Speech) -> Self {
        Self {
            at: run.at.to_string(),
            began_at: run.began_at.map(|at| at.to_string()),
            outcome: run.outcome.word(),
            new_count: run.new_count,
            message: speech.phrase(&run.message),
        }
    }
}

/// Rows of a table.
#[derive(Serialize, ToSchema)]
pub(super) struct RowsBody {
    /// The names of the fields of each row.
    columns: Vec<&'static str>,
    rows: Vec<Vec<Json>>,
    /// What `after` takes for the rows that follow; nothing after the last.
    next: Option<String>,
}

impl RowsBody {
    pub(super) fn new(columns: &'static [&'static str], page: TablePage) -> Self {
        let rows = page.rows.into_iter().map(|row| row.into_iter().map(field).collect()).collect();
        Self { columns: columns.to_vec(), rows, next: page.next }
    }
}

fn field(field: Cell) -> Json {
    match field {
        Cell::Null => Json::Null,
        Cell::Int(number) => json!(number),
        Cell::Flag(flag) => json!(flag),
        Cell::Word(text) | Cell::Text(text) => json!(text),
        Cell::List(texts) => json!(texts),
        Cell::Json(value) => value,
    }
}

/// A table that can be asked for.
#[derive(Serialize, ToSchema)]
pub(super) struct TableBody {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) columns: Vec<&'static str>,
}

/// Things that happened, oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct EventsBody {
    pub(super) events: Vec<EventBody>,
    /// What `after` takes for what happens later.
    pub(super) next: i64,
}

#[derive(Serialize, ToSchema)]
pub(super) struct EventBody {
    id: i64,
    #[schema(format = DateTime)]
    at: String,
    job: Option<String>,
    /// To what it happened, as `why` takes it.
    about: String,
    code: String,
    /// In words.
    text: String,
    detail: Json,
}

impl EventBody {
    pub(super) fn new(numbered: Numbered, text: String) -> Self {
        let Numbered { id, event: Event { at, job_name, subject, code, detail } } = numbered;
        Self { id, at: at.to_string(), job: job_name, about: subject.to_string(), code, text, detail }
    }
}
