//! The append-only story that `why` tells: every decision that changed something, with its reason code.

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

/// A decision, as it was made.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Event {
    pub at: Timestamp,
    /// In which job, if in one.
    pub job_name: Option<String>,
    pub subject: Subject,
    /// The reason code: a short stable word such as `baseline` or `not_valuable`.
    pub code: String,
    /// What else there is to say, as JSON.
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

/// Adds what happened; call it in the transaction that makes the change.
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
    /// The word that is stored.
    fn word(&self) -> &str;
}

impl EventCode for &str {
    fn word(&self) -> &str {
        self
    }
}

/// Makes an enum of the codes of events about one sort of thing (without `on`: about any), with what each says in
/// English and Japanese.
///
/// `words` renders such an event. What its detail says under `why`, `until` and `delivery` is added behind the words.
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
            /// What it says.
            pub fn phrase(self) -> $crate::phrase::Phrase {
                match self {
                    $(Self::$variant => $crate::phrase!($en, $ja),)+
                }
            }

            /// What an event with one of these codes says.
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

/// What an event says, and what its detail adds to it.
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

/// What can happen to one sort of thing, with typed details: a code and its details, and what to say of it.
///
/// An enum whose variants are the codes: `#[serde(tag = "code", rename_all = "snake_case")]`.
pub trait EventDetail: Serialize + DeserializeOwned {
    /// The word of the subjects that it happens to.
    const SUBJECT: &'static str;

    /// What happened, for people.
    fn phrase(&self) -> Phrase;
}

/// What `event` says, if it is one of `E`.
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

/// The tag of an event's code.
const CODE: &str = "code";

/// The code, and everything else.
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

/// The newest events of a job that are about what it works on and not about the job itself, oldest first.
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

/// How long an event is waited for whose number was given to a transaction that has not ended.
const IN_FLIGHT: Duration = Duration::from_secs(10);

/// An event and its place among all.
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

/// The next events after the number `after`, oldest first, up to the first number that a transaction under way may have.
///
/// A number is given when a row is added and seen when its transaction ends: on PostgreSQL a smaller one can appear behind a
/// larger one. A number that is missing is waited for while the event behind it is young; afterwards it was rolled back.
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

/// The newest events of all, newest first.
pub fn list_newest(tx: &mut Tx<'_>, limit: usize) -> db::Result<Vec<Event>> {
    tx.list(
        sql!("SELECT at, job_name, subject, code, detail FROM events ORDER BY id DESC LIMIT ?1"),
        params![limit],
        read,
    )
}

/// The number of the newest event; 0 when there is none.
pub fn find_newest(tx: &mut Tx<'_>) -> db::Result<i64> {
    tx.count(sql!("SELECT COALESCE(MAX(id), 0) FROM events"), params![])
}

/// Oldest first, what a statement answers newest first.
fn list(tx: &mut Tx<'_>, newest_first: &'static Sql, params: &[Value<'_>]) -> db::Result<Vec<Event>> {
    let mut events = tx.list(newest_first, params, read)?;
    events.reverse();
    Ok(events)
}

/// Deletes at most `limit` events older than `before`; answers how many went.
pub fn prune(tx: &mut Tx<'_>, before: Timestamp, limit: usize) -> db::Result<u64> {
    tx.execute(
        sql!("DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at < ?1 ORDER BY at LIMIT ?2)"),
        params![before, limit],
    )
}
