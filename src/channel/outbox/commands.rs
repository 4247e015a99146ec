//! What a person can do with a message: retry, approve, skip, confirm; and resume a paused channel.

use super::events::DeliveryCode;
use super::model::{DeliveryOutcome, Row, State};
use super::topics::{self, Topics};
use super::{memory, store};
use crate::db::{self, Tx};
use crate::ledger::{Subject, pause};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    /// Done; the message is now in this state.
    Done {
        /// Its number; a repeat has a new number.
        id: i64,
        state: State,
    },
    /// There is no such message.
    Missing,
    /// Not possible in its state.
    NotNow { state: State, why: Phrase },
}

/// Sends a message that failed, was skipped or waits. One that was sent is repeated if `again` is set.
pub fn retry(tx: &mut Tx<'_>, id: i64, again: bool, now: Timestamp) -> db::Result<Answer> {
    let Some(row) = store::find(tx, id)? else { return Ok(Answer::Missing) };
    let not_now = |why: Phrase| Answer::NotNow { state: row.state, why };
    match row.state {
        State::Failed | State::Skipped | State::Ready => ready_again(tx, &row, DeliveryCode::Retried, now),
        State::Held => Ok(not_now(phrase!(
            "it waits for a decision: approve or skip it",
            "判断待ちです。承認するか、送信しないことにしてください"
        ))),
        State::Sending => Ok(not_now(phrase!("it is being sent at this moment", "現在送信中です"))),
        State::Unknown => Ok(not_now(phrase!(
            "it may have been sent; the sender checks it by itself",
            "送信済みの可能性があり、自動で確認します"
        ))),
        State::Sent if !again => Ok(not_now(phrase!(
            "it was sent; `--again` sends a second one",
            "送信済みです（`--again` でもう一度送信できます）"
        ))),
        State::Sent => match store::add_repeat(tx, &row, now)? {
            Some(id) => {
                topics::note(tx, &row, DeliveryCode::Repeated, None, now)?;
                Ok(Answer::Done { id, state: State::Ready })
            }
            None => Ok(not_now(phrase!("a repeat of it exists already", "再送分がすでにあります"))),
        },
    }
}

/// Releases a held message.
pub fn approve(tx: &mut Tx<'_>, id: i64, now: Timestamp) -> db::Result<Answer> {
    let Some(row) = store::find(tx, id)? else { return Ok(Answer::Missing) };
    match row.state {
        State::Held => ready_again(tx, &row, DeliveryCode::Approved, now),
        state => Ok(Answer::NotNow {
            state,
            why: phrase!("only a held message needs approval", "承認が必要なのは保留中のメッセージだけです"),
        }),
    }
}

/// Discards a message that has not been sent; its owner is notified.
pub fn skip(tx: &mut Tx<'_>, id: i64, topics: &Topics, now: Timestamp) -> db::Result<Answer> {
    let Some(row) = store::find(tx, id)? else { return Ok(Answer::Missing) };
    match row.state {
        State::Held | State::Ready | State::Failed => {
            let why = row.last_error.clone();
            end(tx, row, (State::Skipped, DeliveryOutcome::Skipped, DeliveryCode::Skipped), why, topics, now)
        }
        State::Sending | State::Unknown => Ok(Answer::NotNow {
            state: row.state,
            why: phrase!("it may have been sent already", "送信済みの可能性があります"),
        }),
        State::Sent | State::Skipped => Ok(Answer::NotNow {
            state: row.state,
            why: phrase!("it is over", "すでに終わっています"),
        }),
    }
}

/// Records a person's confirmation that a message has arrived: it is marked sent, and its owner is notified.
///
/// This raises the fence, so that a sender that is resolving it now cannot send it again.
pub fn confirm(tx: &mut Tx<'_>, id: i64, topics: &Topics, now: Timestamp) -> db::Result<Answer> {
    let Some(row) = store::find(tx, id)? else { return Ok(Answer::Missing) };
    let not_now = |why: Phrase| Ok(Answer::NotNow { state: row.state, why });
    match row.state {
        State::Held | State::Unknown => {
            end(tx, row, (State::Sent, DeliveryOutcome::Sent, DeliveryCode::Confirmed), None, topics, now)
        }
        State::Sending => not_now(phrase!("it is being sent at this moment", "現在送信中です")),
        State::Ready => not_now(phrase!(
            "it has not been sent yet; skip it if it is not to be sent",
            "まだ送信されていません。送らない場合は「送信しない」を選んでください"
        )),
        State::Failed => not_now(phrase!(
            "it was certainly not sent: retry or skip it",
            "確実に送信されていません。再送するか、送信しないことにしてください"
        )),
        State::Sent | State::Skipped => not_now(phrase!("it is over", "すでに終わっています")),
    }
}

/// Gives a message its final state on behalf of a person and notifies its owner.
fn end(
    tx: &mut Tx<'_>,
    row: Row,
    (state, outcome, code): (State, DeliveryOutcome, DeliveryCode),
    error: Option<Phrase>,
    topics: &Topics,
    now: Timestamp,
) -> db::Result<Answer> {
    if !store::apply_by_hand(tx, &row, state, error.as_ref(), now)? {
        return Ok(changed(&row));
    }
    topics::note(tx, &row, code, None, now)?;
    let id = row.id;
    topics.notify_owner(tx, &Row { state, last_error: error, suspicion: None, ..row }, outcome, now)?;
    Ok(Answer::Done { id, state })
}

fn changed(row: &Row) -> Answer {
    Answer::NotNow {
        state: row.state,
        why: phrase!(
            "it changed at this very moment; look again",
            "ちょうど変化しました。もう一度確認してください"
        ),
    }
}

/// Releases every held message of a job; returns how many.
pub fn approve_job(tx: &mut Tx<'_>, job: &str, now: Timestamp) -> db::Result<u64> {
    let mut done = 0;
    for row in store::list_held(tx, job)? {
        done += u64::from(matches!(ready_again(tx, &row, DeliveryCode::Approved, now)?, Answer::Done { .. }));
    }
    Ok(done)
}

/// Discards every held message of a job; returns how many.
pub fn skip_job(tx: &mut Tx<'_>, job: &str, topics: &Topics, now: Timestamp) -> db::Result<u64> {
    let mut done = 0;
    for row in store::list_held(tx, job)? {
        done += u64::from(matches!(skip(tx, row.id, topics, now)?, Answer::Done { .. }));
    }
    Ok(done)
}

/// Resumes a channel and makes its waiting messages due; returns whether it was paused, and how many are due.
pub fn resume_channel(tx: &mut Tx<'_>, channel: &str, now: Timestamp) -> db::Result<(bool, u64)> {
    let was_paused = pause::reset(tx, &Subject::channel(channel))?;
    memory::put_locked_with(tx, channel, None)?;
    Ok((was_paused, store::put_due(tx, channel, now)?))
}

/// If a message may have been sent and that was not checked yet, it is resolved first.
fn ready_again(tx: &mut Tx<'_>, row: &Row, code: DeliveryCode, now: Timestamp) -> db::Result<Answer> {
    let (state, why) = match row.suspicion.filter(|_| row.state == State::Held) {
        Some(suspicion) => (State::Unknown, Some(suspicion.phrase())),
        None => (State::Ready, None),
    };
    if !store::apply_by_hand(tx, row, state, why.as_ref(), now)? {
        return Ok(changed(row));
    }
    topics::note(tx, row, code, why.as_ref(), now)?;
    Ok(Answer::Done { id: row.id, state })
}
