//! `job`: lists, adds and changes jobs in the config file; pauses them; shows and resets how far they have read.

mod add;
mod cursor;
mod edit;
mod show;
mod test;

pub(super) use edit::{edit_file, key_and_value};

use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;

use super::kind_flags::Given;
use super::names::no_such;
use super::table::row;
use super::{Cell, Column, Context, Error, Exit, Result};
use tsuzuki::app;
use tsuzuki::app::new_table::NewJob;
use tsuzuki::config::ScheduleSpec;
use tsuzuki::config::value::Span;
use tsuzuki::engine::commands;
use tsuzuki::engine::preview::Asking;
use tsuzuki::id::JobName;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::time::Timestamp;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the jobs of the config file
    Ls,
    /// Show the config of one job
    Show {
        /// The job
        name: String,
    },
    /// Add a job to the config file, e.g. `job add blogs mine --blog https://example.com`
    Add(Box<add::Args>),
    /// Change keys of a job in the config file
    Update(edit::UpdateArgs),
    /// Enable a job: it runs on its schedule again
    Enable {
        /// The job
        name: String,
    },
    /// Disable a job: it stays in the file, and runs only when it is named
    Disable {
        /// The job
        name: String,
    },
    /// Remove a job from the config file; what it collected stays in the database
    Rm {
        /// The job
        name: String,
        /// Confirm: without it nothing is changed
        #[arg(long)]
        yes: bool,
    },
    /// Pause a job, without touching the config file
    Pause {
        /// The job
        name: String,
        /// For how long, e.g. 3h [default: until `job resume`]
        #[arg(long = "for", value_name = "DURATION")]
        span: Option<Span>,
        /// Why, for `status`
        #[arg(long, default_value = "by hand")]
        reason: String,
    },
    /// Resume a job and clear the back-off of its feed
    Resume {
        /// The job
        name: String,
    },
    /// Show what a job would find now; nothing is sent or saved, except requests that count against a quota
    Test {
        /// The job
        name: String,
        /// Show all that would be made of this item: page, files, question to the model, and post
        #[arg(long, value_name = "URL")]
        item: Option<String>,
        /// Ask the model about the item, too: this counts
        #[arg(long, requires = "item")]
        ask: bool,
    },
    /// See and reset how far a job has read
    #[command(subcommand)]
    Cursor(cursor::Command),
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Ls => list(context).await,
        Command::Show { name } => show::run(&name, context).await,
        Command::Add(args) => add::run(&args, context).await,
        Command::Update(args) => edit::update(&args, context),
        Command::Enable { name } => edit::switch(&name, edit::Switch::On, context),
        Command::Disable { name } => edit::switch(&name, edit::Switch::Off, context),
        Command::Rm { name, yes } => edit::remove(&name, yes, context),
        Command::Pause { name, span, reason } => pause(&name, span, reason, context).await,
        Command::Resume { name } => resume(&name, context).await,
        Command::Test { name, item: None, .. } => context.unless_stopped(test::run(&name, context)).await,
        Command::Test { name, item: Some(item), ask } => {
            let asking = if ask { Asking::Ask } else { Asking::No };
            context.unless_stopped(test::run_item(&name, &item, asking, context)).await
        }
        Command::Cursor(command) => cursor::run(command, context).await,
    }
}

#[derive(Serialize)]
struct Listed {
    job_name: JobName,
    kind: String,
    schedule: String,
    /// The same in words.
    #[serde(skip)]
    schedule_words: Phrase,
    enabled: bool,
    deliver: Vec<String>,
}

impl Listed {
    fn of(job: &tsuzuki::config::Job) -> Self {
        Self {
            job_name: job.name.clone(),
            kind: job.kind.clone(),
            schedule: match &job.schedule {
                ScheduleSpec::Every(span) => format!("every {span}"),
                ScheduleSpec::Cron(cron) => format!("cron {cron}"),
                ScheduleSpec::Default => match app::default_every(&job.kind) {
                    Some(every) => format!("every {every} by default"),
                    None => "default".into(),
                },
            },
            schedule_words: match &job.schedule {
                ScheduleSpec::Every(span) => {
                    phrase!("every {span}", "{span}ごと", span = Duration::from(*span))
                }
                ScheduleSpec::Cron(cron) => phrase!("cron {cron}", "cron {cron}", cron = cron.to_string()),
                ScheduleSpec::Default => match app::default_every(&job.kind) {
                    Some(every) => phrase!(
                        "every {every} by default",
                        "{every}ごと（既定）",
                        every = Duration::from(every)
                    ),
                    None => phrase!("default", "既定"),
                },
            },
            enabled: job.enabled,
            deliver: job.deliver.clone(),
        }
    }
}

async fn list(context: &Context) -> Result {
    let jobs: Vec<Listed> = context.config().await?.jobs.iter().map(Listed::of).collect();
    let columns = [
        Column::left(phrase!("job", "ジョブ")),
        Column::left(phrase!("kind", "種類")),
        Column::left(phrase!("schedule", "スケジュール")),
        Column::left(phrase!("enabled", "有効")),
        Column::long(phrase!("delivers to", "通知先")),
    ];
    context.out.listing(&columns, &jobs, |job| {
        row![&job.job_name, &job.kind, &job.schedule_words, Cell::flag(job.enabled), job.deliver.join(", ")]
    })
}

/// Adds a job named after its kind, as `job add` does.
pub(super) async fn add(kind: &str, own: Given, deliver: Option<&str>, context: &Context) -> Result {
    let deliver = deliver.map(str::to_owned).into_iter().collect();
    let (kind, name) = (kind.to_owned(), kind.to_owned());
    add::save(&NewJob { kind, name, own, deliver, ..NewJob::default() }, context).await
}

/// Tests a job, as `job test` does.
pub(super) async fn test_by_name(name: &str, context: &Context) -> Result {
    context.unless_stopped(test::run(name, context)).await
}

/// The error for an unknown job, with the nearest name.
fn no_such_job(name: &str, config: &tsuzuki::config::Config) -> Error {
    no_such("job", name, config.jobs.iter().map(|job| job.name.as_str()))
}

async fn pause(name: &str, span: Option<Span>, reason: String, context: &Context) -> Result {
    let job = find(name, context).await?;
    let now = context.clock.now();
    let until: Option<Timestamp> = span.map(|span| now.plus(span.into()));
    context
        .db()
        .await?
        .write(move |tx| commands::pause(tx, &job, until, &Phrase::verbatim(&reason), now))
        .await?;
    match until {
        Some(until) => {
            let done = phrase!("paused {name} until {until}", "{name} を {until} まで一時停止しました");
            context.out.note(done);
        }
        None => context.out.note(phrase!(
            "paused {name} until `tsuzuki job resume {name}`",
            "{name} を一時停止しました。`tsuzuki job resume {name}` で再開します"
        )),
    }
    Ok(Exit::Fine)
}

async fn resume(name: &str, context: &Context) -> Result {
    let job = find(name, context).await?;
    let now = context.clock.now();
    let was_paused =
        context.db().await?.write(move |tx| commands::resume(tx, &job, app::PIPELINES, now)).await?;
    context.out.done(if was_paused {
        phrase!("{name} runs again", "{name} を再開しました")
    } else {
        phrase!("{name} was not paused", "{name} は一時停止していません")
    })
}

async fn find(name: &str, context: &Context) -> Result<JobName> {
    let config = context.config().await?;
    config.find_job(name).map(|job| job.name.clone()).ok_or_else(|| no_such_job(name, config))
}
