//! The append-only log behind `why`: every decision that changed something, with its reason code.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::Subject;
use crate::db::{self, Row, Sql, Tx, Value};
use crate::id::JobName;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::{params, sql};

/// A recorded decision.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Event {
    pub at: Timestamp,
    /// The job, if it belongs to one.
    pub job_name: Option<String>,
    pub subject: Subject,
    /// The reason code: a short stable word such as `baseline` or `not_valuable`.
    pub code: String,
    /// Details as JSON.
    pub detail: Json,
}

/// Adds an event; call it in the transaction that makes the change.
pub fn add(
    tx: &mut Tx<'_>,
    job_name: Option<&JobName>,
    subject: &Subject,
    code: impl EventCode,
    detail: &Json,
    now: Timestamp,
) -> db::Result<()> {
    let detail = (!detail.is_null()).then(|| detail.to_string());
    tx.run(
        sql!("INSERT INTO events (at, job_name, subject, code, detail) VALUES (?1, ?2, ?3, ?4, ?5)"),
        params![now, job_name, subject, code.word(), detail],
    )
}

/// Adds a typed event; call it in the transaction that makes the change.
pub fn record<E: EventDetail>(
    tx: &mut Tx<'_>,
    job_name: Option<&JobName>,
    subject: &Subject,
    event: &E,
    now: Timestamp,
) -> db::Result<()> {
    let (code, detail) = split(event);
    add(tx, job_name, subject, code.as_str(), &detail, now)
}

/// The code of an event: a short stable word.
pub trait EventCode {
    fn word(&self) -> &str;
}

impl EventCode for &str {
    fn word(&self) -> &str {
        self
    }
}

/// Defines an enum of event codes with English and Japanese words; `on` restricts it to subjects of one kind.
///
/// `words` renders such an event. The details `why`, `until` and `delivery` are added after the words.
#[macro_export]
macro_rules! event_codes {
    ($(#[$doc:meta])* $name:ident $(on $subject:expr)?; $($variant:ident = $word:literal, $en:literal, $ja:literal;)+) => {
        $crate::word_enum! {
            $(#[$doc])*
            pub enum $name {
                $(#[doc = $en] $variant = $word,)+
            }
        }

        impl $name {
            /// In words.
            pub fn phrase(self) -> $crate::phrase::Phrase {
                match self {
                    $(Self::$variant => $crate::phrase!($en, $ja),)+
                }
            }

            /// The words of an event with one of these codes.
            pub fn words(event: &$crate::ledger::event::Event) -> Option<$crate::phrase::Phrase> {
                $(if event.subject.word() != $subject {
                    return None;
                })?
                let code: Self = event.code.parse().ok()?;
                Some($crate::ledger::event::with_detail(code.phrase(), &event.detail))
            }
        }

        impl $crate::ledger::event::EventCode for $name {
            fn word(&self) -> &str {
                Self::word(*self)
            }
        }
    };
}

/// Adds the details of an event to its words.
pub fn with_detail(says: Phrase, detail: &Json) -> Phrase {
    let phrase_at =
        |key: &str| phrase::stored::deserialize(detail.get(key)?).ok().filter(|why| !why.is_empty());
    let until = detail.get("until").and_then(|until| until.as_str()?.parse::<Timestamp>().ok());
    let says = match detail.get("delivery").and_then(Json::as_i64) {
        Some(id) => phrase!("{says} (delivery {id})", "{says}（配信 {id}）"),
        None => says,
    };
    match (phrase_at("why"), until) {
        (Some(why), Some(until)) => {
            phrase!("{says} until {until}: {why}", "{says}（{until} まで）：{why}")
        }
        (Some(why), None) => phrase!("{says}: {why}", "{says}：{why}"),
        (None, Some(until)) => phrase!("{says} until {until}", "{says}（{until} まで）"),
        (None, None) => says,
    }
}

/// Events about one kind of thing with typed details: a code, its details and how to word it.
///
/// An enum whose variants are the codes: `#[serde(tag = "code", rename_all = "snake_case")]`.
pub trait EventDetail: Serialize + DeserializeOwned {
    /// The kind of its subjects.
    const SUBJECT: &'static str;

    /// In words.
    fn phrase(&self) -> Phrase;
}

/// The words of `event`, if it is one of `E`.
pub fn words<E: EventDetail>(event: &Event) -> Option<Phrase> {
    (event.subject.word() == E::SUBJECT).then(|| parse::<E>(event)).flatten().map(|event| event.phrase())
}

/// The event as it was recorded; `None` if it is not one of `E`.
pub fn parse<E: EventDetail>(event: &Event) -> Option<E> {
    let mut fields = match &event.detail {
        Json::Object(fields) => fields.clone(),
        _ => serde_json::Map::new(),
    };
    fields.insert(CODE.to_owned(), event.code.clone().into());
    serde_json::from_value(Json::Object(fields)).ok()
}

/// The serde tag of an event's code.
const CODE: &str = "code";

/// The code, and all other fields.
fn split<E: EventDetail>(event: &E) -> (String, Json) {
    let mut fields = match serde_json::to_value(event) {
        Ok(Json::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let code = match fields.remove(CODE) {
        Some(Json::String(code)) => code,
        _ => String::new(),
    };
    (code, if fields.is_empty() { Json::Null } else { Json::Object(fields) })
}

fn read(row: &Row<'_>) -> db::Result<Event> {
    let detail: Option<String> = row.get(4)?;
    Ok(Event {
        at: row.get(0)?,
        job_name: row.get(1)?,
        subject: row.get(2)?,
        code: row.get(3)?,
        detail: detail.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Json::Null),
    })
}

/// The newest events about `subject`, oldest first.
pub fn list_about(tx: &mut Tx<'_>, subject: &Subject, limit: usize) -> db::Result<Vec<Event>> {
    list(
        tx,
        sql!(
            "SELECT at, job_name, subject, code, detail FROM events
             WHERE subject = ?1 ORDER BY id DESC LIMIT ?2"
        ),
        params![subject, limit],
    )
}

/// The newest events of a job about what it works on, not about the job itself, oldest first.
pub fn list_work_of_job(tx: &mut Tx<'_>, job_name: &str, limit: usize) -> db::Result<Vec<Event>> {
    list(
        tx,
        sql!(
            "SELECT at, job_name, subject, code, detail FROM events
             WHERE job_name = ?1 AND subject <> ?2 ORDER BY id DESC LIMIT ?3"
        ),
        params![job_name, Subject::job(job_name), limit],
    )
}

/// The newest events of a job, oldest first.
pub fn list_of_job(tx: &mut Tx<'_>, job_name: &str, limit: usize) -> db::Result<Vec<Event>> {
    list(
        tx,
        sql!(
            "SELECT at, job_name, subject, code, detail FROM events
             WHERE job_name = ?1 ORDER BY id DESC LIMIT ?2"
        ),
        params![job_name, limit],
    )
}

/// How long to wait for a missing event number, which may belong to a transaction that has not committed.
const IN_FLIGHT: Duration = Duration::from_secs(10);

/// An event with its number.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbered {
    pub id: i64,
    pub event: Event,
}

/// The next events after the number `after`, oldest first.
pub fn list_after(tx: &mut Tx<'_>, after: i64, limit: usize) -> db::Result<Vec<Numbered>> {
    tx.list(
        sql!("SELECT at, job_name, subject, code, detail, id FROM events WHERE id > ?1 ORDER BY id LIMIT ?2"),
        params![after, limit],
        |row| Ok(Numbered { id: row.get(5)?, event: read(row)? }),
    )
}

/// The same, up to the first number that a pending transaction may still add.
///
/// A number is assigned on INSERT and visible on COMMIT: on PostgreSQL a smaller one can appear after a larger one.
/// Wait for a missing number while the event after it is recent; later, its transaction was rolled back.
pub fn list_settled_after(tx: &mut Tx<'_>, after: i64, limit: usize) -> db::Result<Vec<Numbered>> {
    let now = tx.now();
    let mut events = list_after(tx, after, limit)?;
    let is_young = |at: Timestamp| now.since(at) < IN_FLIGHT && at.since(now) < IN_FLIGHT;
    let mut last = after;
    let gap = events.iter().position(|Numbered { id, event }| {
        let is_gap = *id != last + 1;
        last = *id;
        is_gap && is_young(event.at)
    });
    events.truncate(gap.unwrap_or(events.len()));
    Ok(events)
}

/// The newest events of all jobs, newest first.
pub fn list_newest(tx: &mut Tx<'_>, limit: usize) -> db::Result<Vec<Event>> {
    tx.list(
        sql!("SELECT at, job_name, subject, code, detail FROM events ORDER BY id DESC LIMIT ?1"),
        params![limit],
        read,
    )
}

/// The number of the newest event; 0 if there is none.
pub fn find_newest(tx: &mut Tx<'_>) -> db::Result<i64> {
    tx.count(sql!("SELECT COALESCE(MAX(id), 0) FROM events"), params![])
}

/// Reverses what a statement returns, to oldest first.
fn list(tx: &mut Tx<'_>, newest_first: &'static Sql, params: &[Value<'_>]) -> db::Result<Vec<Event>> {
    let mut events = tx.list(newest_first, params, read)?;
    events.reverse();
    Ok(events)
}

/// Deletes at most `limit` events older than `before`; returns how many were deleted.
pub fn prune(tx: &mut Tx<'_>, before: Timestamp, limit: usize) -> db::Result<u64> {
    tx.execute(
        sql!("DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at < ?1 ORDER BY at LIMIT ?2)"),
        params![before, limit],
    )
}
