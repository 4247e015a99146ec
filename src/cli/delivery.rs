//! `delivery`: outgoing messages, and the decisions that only a user can make about them.

use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;

use super::names::{no_such, refuse_unknown, refuse_unknown_if_given};
use super::since::SinceArgs;
use super::table::{Tone, row, tone_of};
use super::{Cell, Column, Context, Error, Exit, Result, view};
use tsuzuki::app;
use tsuzuki::channel::outbox::{self, Answer, ChannelWait, DeliveryFilter, Row, State};
use tsuzuki::engine::things::delivery;
use tsuzuki::ledger::Subject;
use tsuzuki::ledger::event::{self, Event};
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::word_enum::UnknownWord;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List messages, newest first
    Ls {
        /// Only this state: ready, sending, sent, unknown, failed, held or skipped, or the word of the listing
        #[arg(long, value_name = "STATE", value_parser = parse_state)]
        state: Option<State>,
        /// Only those of this job
        #[arg(long, value_name = "NAME")]
        job: Option<String>,
        /// Only those of this channel
        #[arg(long, value_name = "NAME")]
        channel: Option<String>,
        #[command(flatten)]
        since: SinceArgs,
        /// At most this many
        #[arg(long, default_value_t = 30)]
        limit: usize,
    },
    /// Show one message, its text and what happened to it
    Show {
        /// Its number
        id: i64,
    },
    /// Send what failed again, or resume a paused channel
    Retry {
        /// The numbers of messages that failed, were skipped or wait
        #[arg(required_unless_present = "channel")]
        id: Vec<i64>,
        /// Send a second one of a message that was sent
        #[arg(long)]
        again: bool,
        /// Resume this channel and reschedule everything that waits for it
        #[arg(long, value_name = "NAME", conflicts_with_all = ["id", "again"])]
        channel: Option<String>,
    },
    /// Release held messages
    Approve {
        /// Their numbers
        #[arg(required_unless_present = "job")]
        id: Vec<i64>,
        /// All that this job holds
        #[arg(long, value_name = "NAME", conflicts_with = "id")]
        job: Option<String>,
    },
    /// Say that messages have arrived: they count as sent and are not sent again
    Confirm {
        /// The numbers of messages that are held, or may have been sent
        #[arg(required = true)]
        id: Vec<i64>,
    },
    /// Discard messages that were not sent
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
    /// Why its channel does not send, if it is waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<ChannelWait>,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    row: Row,
    payload: serde_json::Value,
    events: Vec<Event>,
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Ls { state, job, channel, since, limit } => {
            list(DeliveryFilter { state, job, channel, before: None }, &since, limit, context).await
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

async fn list(filter: DeliveryFilter, since: &SinceArgs, limit: usize, context: &Context) -> Result {
    let (app, now) = (context.read_only_app().await?, context.clock.now());
    let db = &app.env.db;
    refuse_unknown_if_given("job", filter.job.as_deref(), db, context).await?;
    refuse_unknown_if_given("channel", filter.channel.as_deref(), db, context).await?;
    let (channels, since) = (Arc::clone(&app.env.channels), since.moment(context).await?);
    let listed = db.read(move |tx| {
        let waits = outbox::list_waits(tx, &channels, now)?;
        let with_wait = |row: Row| DeliveryRow { wait: outbox::find_wait(&row, &waits).cloned(), row };
        Ok(outbox::list(tx, &filter, limit)?.into_iter().map(with_wait).collect::<Vec<_>>())
    });
    let mut listed = listed.await?;
    listed.retain(|listed| listed.row.created_at >= since);
    let columns = [
        Column::right(phrase!("id", "番号")),
        Column::moment(phrase!("queued", "登録")),
        Column::left(phrase!("state", "状態")),
        Column::left(phrase!("job", "ジョブ")),
        Column::left(phrase!("channel", "チャンネル")),
        Column::long(phrase!("about", "内容")),
        Column::right(phrase!("attempts", "送信回数")).secondary(),
        Column::moment(phrase!("next attempt", "次の送信")).secondary(),
        Column::long(phrase!("why", "理由")).secondary(),
    ];
    context.out.listing(&columns, &listed, |listed| {
        let row = &listed.row;
        let tone = delivery::state_of(row.state).map_or(Tone::Plain, tone_of);
        row![
            row.id,
            row.created_at,
            Cell::toned(short_phrase(row.state), tone),
            row.job_name.as_str(),
            &row.channel,
            delivery::headline(row),
            row.attempts,
            outbox::next_at(row, listed.wait.as_ref()),
            match &listed.wait {
                Some(wait) => Some(wait.why.clone()),
                None => row.last_error.clone(),
            },
        ]
    })?;
    let count = |state: State| listed.iter().filter(|listed| listed.row.state == state).count();
    let (failed, held) = (count(State::Failed), count(State::Held));
    if failed > 0 {
        context.out.note(phrase!(
            "{failed} failed: `tsuzuki delivery retry ID` tries again",
            "失敗 {failed} 件：`tsuzuki delivery retry ID` で再送します"
        ));
    }
    if held > 0 {
        context.out.note(phrase!(
            "{held} held: `tsuzuki delivery approve ID`, `skip ID` or, if it has arrived, `confirm ID`",
            "確認待ち {held} 件：`tsuzuki delivery approve ID`、`skip ID`、届いている場合は `confirm ID`"
        ));
    }
    Ok(Exit::Fine)
}

/// A state by its own word, or by the one that the listing shows for it.
fn parse_state(text: &str) -> Result<State, UnknownWord> {
    let is_shown = |state: &&State| {
        let shown = short_phrase(**state);
        shown == text || super::japanese::SPEECH.phrase(&shown) == text
    };
    State::ALL.iter().find(is_shown).map_or_else(|| text.parse(), |state| Ok(*state))
}

/// The short name of a state.
fn short_phrase(state: State) -> Phrase {
    match state {
        State::Unknown => phrase!("unknown", "不明"),
        state => delivery::phrase_of(state),
    }
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
    if context.out.is_json() {
        let payload = serde_json::from_str(&row.payload).unwrap_or(serde_json::Value::Null);
        context.out.json(&Shown { row, payload, events })?;
        return Ok(Exit::Fine);
    }
    view::show(&Subject::delivery(id), context).await?;
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
            Answer::Done { id, state } => {
                let (id, state) = (*id, delivery::phrase_of(*state));
                context.out.note(phrase!("Delivery {id}: {state}", "配信 {id}：{state}"));
            }
            Answer::Missing => refused = Some(missing(id)),
            Answer::NotNow { state, why } => {
                let state = delivery::phrase_of(*state);
                refused = Some(Error::failed(phrase!(
                    "delivery {id} stays as it is ({state}): {why}",
                    "配信 {id} はそのままです（{state}）：{why}"
                )));
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
    context.out.done(match choice {
        Choice::Skip => phrase!(
            "Discarded {count held message} of job {job}",
            "ジョブ {job} の確認待ち {count} 件を破棄しました"
        ),
        Choice::Approve | Choice::Confirm | Choice::Retry { .. } => phrase!(
            "Released {count held message} of job {job}",
            "ジョブ {job} の確認待ち {count} 件を送信します"
        ),
    })
}

async fn resume(channel: String, context: &Context) -> Result {
    let known = context.config().await?.channels.iter().map(|section| section.name.as_str());
    if !known.clone().any(|name| name == channel) {
        return Err(no_such("channel", &channel, known));
    }
    let name = channel.clone();
    let (was_paused, due) =
        context.db().await?.write(move |tx| outbox::resume_channel(tx, &name, tx.now())).await?;
    context.out.done(if was_paused {
        phrase!(
            "channel {channel} was resumed; {due message} rescheduled for now",
            "チャンネル {channel} を再開しました。{due} 件をすぐに送ります"
        )
    } else {
        phrase!(
            "channel {channel} was not paused; {due message} rescheduled for now",
            "チャンネル {channel} は停止していません。{due} 件をすぐに送ります"
        )
    })
}

fn missing(id: i64) -> Error {
    Error::failed(phrase!("there is no delivery {id}", "配信 {id} はありません"))
        .hint(phrase!("`tsuzuki delivery ls` lists them", "`tsuzuki delivery ls` で一覧できます"))
}
