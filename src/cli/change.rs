//! `change`: what blogs brought, and the decisions about what is held.

use clap::Subcommand;

use super::names::refuse_unknown_if_given;
use super::{Column, Context, Error, Exit, Result};
use crate::app;
use crate::blogs::commands;
use crate::blogs::decide::Code;
use crate::blogs::store::ChangeFilter;
use crate::blogs::view::{self, ListedChange};
use crate::channel::outbox::{Answer, State};
use crate::text::counted;

/// Options of `change`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List what was new, newest first
    Ls {
        /// Only this blog
        blog: Option<String>,
        /// Only this job
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
        /// Also failures, recoveries and blogs that are gone
        #[arg(long)]
        all: bool,
        /// At most this many
        #[arg(long, default_value_t = 30)]
        limit: usize,
    },
    /// Show one change with its entries and what became of its messages
    Show {
        /// Its number
        id: i64,
    },
    /// Let the held messages of a change go
    Approve {
        /// Its number
        #[arg(required = true)]
        id: Vec<i64>,
    },
    /// Decide against the held messages of a change; its entries stay known
    Skip {
        /// Its number
        #[arg(required = true)]
        id: Vec<i64>,
    },
    /// Check a blog again that was paused because it was gone
    Resume {
        /// Its id
        blog: String,
    },
}

pub(super) async fn run(args: Args, context: &Context) -> Result {
    match args.command {
        Command::Ls { blog, job, all, limit } => {
            list(ChangeFilter { job, blog, code: (!all).then_some(Code::New) }, limit, context).await
        }
        Command::Show { id } => show(id, context).await,
        Command::Approve { id } => decide(id, ChangeChoice::Approve, context).await,
        Command::Skip { id } => decide(id, ChangeChoice::Skip, context).await,
        Command::Resume { blog } => super::blog::resume(&blog, context).await,
    }
}

async fn list(filter: ChangeFilter, limit: usize, context: &Context) -> Result {
    let db = context.view().await?;
    refuse_unknown_if_given("blog", filter.blog.as_deref(), &db, context).await?;
    refuse_unknown_if_given("job", filter.job.as_deref(), &db, context).await?;
    let listed = db.read(move |tx| view::list_changes(tx, &filter, limit)).await?;
    let times = context.times().await?;
    let columns = [
        Column::right("id"),
        times.column("found"),
        Column::left("blog"),
        Column::left("what"),
        Column::right("entries"),
        Column::left("state"),
        Column::long("first"),
    ];
    context.out.listing(&columns, &listed, |listed| {
        let change = &listed.change;
        vec![
            change.id.to_string(),
            times.cell(change.found_at),
            change.blog_id.clone(),
            change.code.word().to_owned(),
            change.detail.count().to_string(),
            state_of(listed),
            first_of(listed),
        ]
    })?;
    let held = listed.iter().filter(|listed| is_held(listed)).count();
    if held > 0 {
        context.out.note(format!("{held} held: `tsuzuki change approve ID` or `skip ID`"));
    }
    Ok(Exit::Fine)
}

async fn show(id: i64, context: &Context) -> Result {
    let Some(listed) = context.view().await?.read(move |tx| view::find_change(tx, id)).await? else {
        return Err(missing(id));
    };
    if context.out.is_json() {
        context.out.json(&listed)?;
        return Ok(Exit::Fine);
    }
    let times = context.times().await?;
    let change = &listed.change;
    let detail = &change.detail;
    let line = |text: String| context.out.line(crate::text::one_line(&text));
    line(format!("{} {}: {} ({})", change.id, change.blog_id, change.code.word(), state_of(&listed)))?;
    line(format!("found {} by job {}", times.line(change.found_at), change.job_name))?;
    for why in [&detail.held_because, &detail.error].into_iter().flatten() {
        line(format!("because: {why}"))?;
    }
    for entry in &detail.entries {
        let date = entry.published_at.map(|at| times.line(at)).unwrap_or_default();
        line(format!(
            "- {date} {} {}",
            entry.title.as_deref().unwrap_or("-"),
            entry.url.as_deref().unwrap_or("")
        ))?;
    }
    for delivery in &listed.deliveries {
        line(format!("delivery {}: {} {}", delivery.id, delivery.channel, delivery.state))?;
    }
    Ok(Exit::Fine)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeChoice {
    Approve,
    Skip,
}

async fn decide(ids: Vec<i64>, choice: ChangeChoice, context: &Context) -> Result {
    let now = context.clock.now();
    let topics = app::topics();
    for id in ids {
        let topics = topics.clone();
        let answers = context
            .db()
            .await?
            .write(move |tx| match choice {
                ChangeChoice::Approve => commands::approve(tx, id, now),
                ChangeChoice::Skip => commands::skip(tx, id, &topics, now),
            })
            .await?;
        let Some(answers) = answers else { return Err(missing(id)) };
        let done = answers.iter().filter(|answer| matches!(answer, Answer::Done { .. })).count();
        if done == 0 {
            return Err(Error::failed(format!("change {id} has no message that waits for a decision"))
                .hint(format!("`tsuzuki change show {id}` says what became of it")));
        }
        let word = if choice == ChangeChoice::Approve { "approved" } else { "skipped" };
        context.out.note(format!("change {id}: {word} {}", counted(done, "message")));
    }
    Ok(Exit::Fine)
}

fn missing(id: i64) -> Error {
    Error::failed(format!("there is no change {id}")).hint("`tsuzuki change ls` lists them")
}

/// What became of the messages: one word if they agree.
fn state_of(listed: &ListedChange) -> String {
    let mut states: Vec<&str> = listed.deliveries.iter().map(|delivery| delivery.state.as_str()).collect();
    states.sort_unstable();
    states.dedup();
    match (&listed.change.digest, states.as_slice()) {
        (None, _) => "not queued yet".into(),
        (Some(_), []) if listed.change.code != Code::New => "alert".into(),
        (Some(_), []) => "no channel".into(),
        (Some(_), states) => states.join(", "),
    }
}

/// Whether it has a message that waits for a decision.
fn is_held(listed: &ListedChange) -> bool {
    let held = State::Held.as_str();
    listed.change.held && listed.deliveries.iter().any(|delivery| delivery.state == held)
}

fn first_of(listed: &ListedChange) -> String {
    let detail = &listed.change.detail;
    let first = detail.entries.first();
    let told = first.and_then(|entry| entry.title.clone().or_else(|| entry.url.clone()));
    told.or_else(|| detail.error.clone()).unwrap_or_default()
}
