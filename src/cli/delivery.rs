//! `delivery`: messages on their way out, and the decisions that only a person can make about them.

use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;

use super::names::{no_such, refuse_unknown, refuse_unknown_if_given};
use super::{Column, Context, Error, Exit, Result};
use crate::app;
use crate::channel;
use crate::channel::outbox::{self, Answer, ChannelWait, DeliveryFilter, Row, State};
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};
use crate::text;
use crate::text::counted;
use crate::time::Timestamp;

/// Options of `delivery`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List messages, newest first
    Ls {
        /// Only those that stand so: ready, sending, sent, unknown, failed, held or skipped
        #[arg(long, value_name = "STATE", value_parser = read_state)]
        state: Option<State>,
        /// Only those of this job
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
        /// Only those of this channel
        #[arg(long, value_name = "NAME")]
        channel: Option<String>,
        /// At most this many
        #[arg(long, default_value_t = 30)]
        limit: usize,
    },
    /// Show one message, its text and what happened to it
    Show {
        /// Its number
        id: i64,
    },
    /// Send what failed, or wake a channel that rests
    Retry {
        /// The numbers of messages that failed, were skipped or wait
        #[arg(required_unless_present = "channel")]
        id: Vec<i64>,
        /// Send a second one of a message that was sent
        #[arg(long)]
        again: bool,
        /// End the rest of this channel and make everything that waits for it due
        #[arg(long, value_name = "NAME", conflicts_with_all = ["id", "again"])]
        channel: Option<String>,
    },
    /// Let held messages go
    Approve {
        /// Their numbers
        #[arg(required_unless_present = "job")]
        id: Vec<i64>,
        /// All that this job holds
        #[arg(long, value_name = "NAME", conflicts_with = "id")]
        job: Option<String>,
    },
    /// Say that messages have arrived: they count as sent, and what they told is not told again
    Confirm {
        /// The numbers of messages that are held, or may have been sent
        #[arg(required = true)]
        id: Vec<i64>,
    },
    /// Decide against messages that were not sent
    Skip {
        /// Their numbers
        #[arg(required_unless_present = "job")]
        id: Vec<i64>,
        /// All that this job holds
        #[arg(long, value_name = "NAME", conflicts_with = "id")]
        job: Option<String>,
    },
}

#[derive(Serialize)]
struct DeliveryRow {
    #[serde(flatten)]
    row: Row,
    /// What keeps its channel from sending, if it is to be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<ChannelWait>,
}

impl DeliveryRow {
    /// When it may leave; `None` for what does not by itself.
    fn next_at(&self) -> Option<Timestamp> {
        let waits = matches!(self.row.state, State::Ready | State::Unknown);
        let until = self.wait.as_ref().map_or(Some(self.row.not_before), |wait| wait.until);
        until.filter(|_| waits).map(|until| until.max(self.row.not_before))
    }
}

fn find_wait<'a>(row: &Row, waits: &'a [ChannelWait]) -> Option<&'a ChannelWait> {
    let is_to_leave = matches!(row.state, State::Ready | State::Unknown);
    waits.iter().find(|wait| is_to_leave && wait.channel == row.channel)
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    row: Row,
    payload: serde_json::Value,
    events: Vec<Event>,
}

pub(super) async fn run(args: Args, context: &Context) -> Result {
    match args.command {
        Command::Ls { state, job, channel, limit } => {
            list(DeliveryFilter { state, job, channel }, limit, context).await
        }
        Command::Show { id } => show(id, context).await,
        Command::Retry { channel: Some(channel), .. } => resume(channel, context).await,
        Command::Retry { id, again, .. } => decide(id, Choice::Retry { again }, context).await,
        Command::Approve { job: Some(job), .. } => decide_job(job, Choice::Approve, context).await,
        Command::Approve { id, .. } => decide(id, Choice::Approve, context).await,
        Command::Confirm { id } => decide(id, Choice::Confirm, context).await,
        Command::Skip { job: Some(job), .. } => decide_job(job, Choice::Skip, context).await,
        Command::Skip { id, .. } => decide(id, Choice::Skip, context).await,
    }
}

fn read_state(text: &str) -> std::result::Result<State, String> {
    State::parse(text).ok_or_else(|| {
        let known = State::ALL.iter().map(|state| state.as_str()).collect::<Vec<_>>();
        match text::nearest(text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {}", known.join(", ")),
        }
    })
}

async fn list(filter: DeliveryFilter, limit: usize, context: &Context) -> Result {
    let (app, speech, now) = (context.look().await?, context.speech().await?, context.clock.now());
    let db = &app.env.db;
    refuse_unknown_if_given("job", filter.job.as_deref(), db, context).await?;
    refuse_unknown_if_given("channel", filter.channel.as_deref(), db, context).await?;
    let channels = Arc::clone(&app.env.channels);
    let listed = db.read(move |tx| {
        let waits = outbox::list_waits(tx, &channels, now)?;
        let with_wait = |row: Row| DeliveryRow { wait: find_wait(&row, &waits).cloned(), row };
        Ok(outbox::list(tx, &filter, limit)?.into_iter().map(with_wait).collect::<Vec<_>>())
    });
    let listed = listed.await?;
    let times = context.times().await?;
    let columns = [
        Column::right("id"),
        times.column("added"),
        Column::left("state"),
        Column::left("job"),
        Column::left("channel"),
        Column::long("subject"),
        Column::right("tries"),
        Column::left("next"),
        Column::long("why"),
    ];
    context.out.listing(&columns, &listed, |listed| {
        let row = &listed.row;
        let why = match &listed.wait {
            Some(wait) => Some(speech.phrase(&wait.why)),
            None => row.last_error.as_deref().map(|why| times.told(why)),
        };
        vec![
            row.id.to_string(),
            times.cell(row.created_at),
            row.state.as_str().to_owned(),
            row.job_name.to_string(),
            row.channel.clone(),
            row.subject.clone(),
            row.attempts.to_string(),
            times.cell(listed.next_at()),
            why.unwrap_or_else(|| "-".to_owned()),
        ]
    })?;
    let count = |state: State| listed.iter().filter(|listed| listed.row.state == state).count();
    if count(State::Failed) > 0 {
        context.out.note(format!("{} failed: `tsuzuki delivery retry ID` tries again", count(State::Failed)));
    }
    if count(State::Held) > 0 {
        context.out.note(format!(
            "{} held: `tsuzuki delivery approve ID`, `skip ID` or, if it has arrived, `confirm ID`",
            count(State::Held)
        ));
    }
    Ok(Exit::Fine)
}

async fn show(id: i64, context: &Context) -> Result {
    let found = context
        .view()
        .await?
        .read(move |tx| {
            let Some(row) = outbox::find(tx, id)? else { return Ok(None) };
            Ok(Some((row, event::list_about(tx, &Subject::delivery(id), 100)?)))
        })
        .await?;
    let Some((row, events)) = found else { return Err(missing(id)) };
    let payload = serde_json::from_str(&row.payload).unwrap_or(serde_json::Value::Null);
    let shown = Shown { row, payload, events };
    if context.out.is_json() {
        context.out.json(&shown)?;
        return Ok(Exit::Fine);
    }
    let times = context.times().await?;
    let row = &shown.row;
    let line = |text: String| context.out.line(text::one_line(&text));
    line(format!("delivery {} is {}", row.id, row.state.as_str()))?;
    line(format!("about {} ({} of job {})", row.subject, row.topic, row.job_name))?;
    line(format!("through {} to {}", row.channel, row.recipient))?;
    line(format!("added {}, tried {}", times.line(row.created_at), counted(row.attempts, "time")))?;
    if matches!(row.state, State::Ready | State::Unknown) {
        line(format!("next at {}", times.line(row.not_before)))?;
    }
    if let Some(remote_id) = &row.remote_id {
        line(format!("known there as {remote_id}"))?;
    }
    if let Some(why) = &row.last_error {
        line(format!("because: {}", times.told(why)))?;
    }
    for event in &shown.events {
        let why = event.detail["why"].as_str().unwrap_or_default();
        line(format!("- {} {} {why}", times.line(event.at), event.code))?;
    }
    context.out.line("")?;
    context.out.text(&channel::as_text(&shown.row.payload))?;
    Ok(Exit::Fine)
}

#[derive(Clone, Copy)]
enum Choice {
    Retry { again: bool },
    Approve,
    Confirm,
    Skip,
}

async fn decide(ids: Vec<i64>, choice: Choice, context: &Context) -> Result {
    let topics = app::topics();
    let mut refused = None;
    let mut done = Vec::new();
    for id in ids {
        let topics = topics.clone();
        let answer = context
            .db()
            .await?
            .write(move |tx| {
                let now = tx.now();
                match choice {
                    Choice::Retry { again } => outbox::retry(tx, id, again, now),
                    Choice::Approve => outbox::approve(tx, id, now),
                    Choice::Confirm => outbox::confirm(tx, id, &topics, now),
                    Choice::Skip => outbox::skip(tx, id, &topics, now),
                }
            })
            .await?;
        match &answer {
            Answer::Done { id, state } => context.out.note(format!("Delivery {id} is {}", state.as_str())),
            Answer::Missing => refused = Some(missing(id)),
            Answer::NotNow { state, why } => {
                let why = context.speech().await?.phrase(why);
                refused = Some(Error::failed(format!("delivery {id} is {}: {why}", state.as_str())));
            }
        }
        done.push(serde_json::json!({ "id": id, "answer": answer }));
    }
    if context.out.is_json() {
        context.out.json(&done)?;
    }
    refused.map_or(Ok(Exit::Fine), Err)
}

async fn decide_job(job: String, choice: Choice, context: &Context) -> Result {
    let topics = app::topics();
    let name = job.clone();
    let db = context.db().await?;
    refuse_unknown("job", &job, db, context).await?;
    let count = db
        .write(move |tx| {
            let now = tx.now();
            match choice {
                Choice::Skip => outbox::skip_job(tx, &name, &topics, now),
                Choice::Approve | Choice::Confirm | Choice::Retry { .. } => {
                    outbox::approve_job(tx, &name, now)
                }
            }
        })
        .await?;
    let word = if matches!(choice, Choice::Skip) { "Skipped" } else { "Approved" };
    context.out.note(format!("{word} {} of job {job}", counted(count, "held message")));
    Ok(Exit::Fine)
}

async fn resume(channel: String, context: &Context) -> Result {
    let known = context.config().await?.channels.iter().map(|section| section.name.as_str());
    if !known.clone().any(|name| name == channel) {
        return Err(no_such("channel", &channel, known));
    }
    let name = channel.clone();
    let (rested, due) =
        context.db().await?.write(move |tx| outbox::resume_channel(tx, &name, tx.now())).await?;
    let rest = if rested { "was resumed" } else { "was not paused" };
    context.out.note(format!("{channel} {rest}; {} became due", counted(due, "message")));
    Ok(Exit::Fine)
}

fn missing(id: i64) -> Error {
    Error::failed(format!("there is no delivery {id}")).hint("`tsuzuki delivery ls` lists them")
}
