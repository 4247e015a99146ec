//! The columns of each export, and a row of ours as its fields. Pure.

use serde_json::Value as Json;

use super::What;
use crate::blogs::store::ChangeRow;
use crate::books::store::{BookRow, DeliveryRow};
use crate::channel::outbox::Row as Message;
use crate::commits::store::reading::CommitRow;
use crate::press::Item;
use crate::time::Timestamp;

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Nothing is known.
    Null,
    /// A number.
    Int(i64),
    /// Yes or no.
    Flag(bool),
    /// Our own words: times, ids, states. They never begin like a formula.
    Word(String),
    /// Text that others wrote.
    Text(String),
    /// Several texts that others wrote.
    List(Vec<String>),
    /// Anything else.
    Json(Json),
}

/// The names of the columns.
pub(super) fn columns(what: What) -> &'static [&'static str] {
    match what {
        What::Items => &[
            "id",
            "job_name",
            "url",
            "title",
            "published_at",
            "status",
            "reason",
            "retry_count",
            "created_at",
            "last_checked_at",
            "not_before",
            "is_held",
            "summary",
            "verdict",
        ],
        What::Changes => &[
            "id", "job_name", "blog_id", "found_at", "code", "held", "detector", "count", "titles", "urls",
            "error",
        ],
        What::Books => &[
            "isbn13",
            "title",
            "authors",
            "publisher",
            "published_date",
            "description",
            "cover_url",
            "links",
            "first_seen_at",
            "last_seen_at",
            "last_delivered_at",
        ],
        What::Deliveries => &["id", "job_name", "delivered_at", "isbn13_list"],
        What::Messages => &[
            "id",
            "job_name",
            "topic",
            "subject",
            "generation",
            "channel",
            "recipient",
            "state",
            "created_at",
            "not_before",
            "attempts",
            "first_attempt_at",
            "last_attempt_at",
            "settled_at",
            "remote_id",
            "last_error",
        ],
        What::Commits => &[
            "project",
            "branch_name",
            "sha",
            "author_name",
            "committed_date_utc",
            "additions",
            "deletions",
            "stats_missing",
            "unreachable_since",
        ],
    }
}

fn word(text: impl ToString) -> Field {
    Field::Word(text.to_string())
}

fn text(text: &str) -> Field {
    Field::Text(text.to_owned())
}

fn maybe(value: Option<&String>) -> Field {
    value.map_or(Field::Null, |value| text(value))
}

fn moment(at: Option<Timestamp>) -> Field {
    at.map_or(Field::Null, word)
}

pub(super) fn of_item(item: &Item) -> Vec<Field> {
    vec![
        Field::Int(item.id),
        text(&item.job_name),
        text(&item.url),
        text(&item.title),
        word(item.published_at),
        word(item.status.word()),
        item.reason.map_or(Field::Null, |reason| word(reason.word())),
        Field::Int(item.retry_count.into()),
        word(item.created_at),
        word(item.last_checked_at),
        moment(item.not_before),
        Field::Flag(item.is_held),
        maybe(item.summary.as_ref()),
        maybe(item.verdict.as_ref()),
    ]
}

pub(super) fn of_change(change: &ChangeRow) -> Vec<Field> {
    let entries = &change.detail.entries;
    vec![
        Field::Int(change.id),
        text(&change.job_name),
        text(&change.blog_id),
        word(change.found_at),
        word(change.code.word()),
        Field::Flag(change.held),
        change.detail.detector.map_or(Field::Null, |detector| word(detector.word())),
        Field::Int(i64::try_from(change.detail.count()).unwrap_or(i64::MAX)),
        Field::List(entries.iter().map(|entry| entry.title.clone().unwrap_or_default()).collect()),
        Field::List(entries.iter().map(|entry| entry.url.clone().unwrap_or_default()).collect()),
        maybe(change.detail.error.as_ref()),
    ]
}

pub(super) fn of_book(row: &BookRow) -> Vec<Field> {
    let book = &row.book;
    vec![
        word(&book.isbn13),
        text(&book.title),
        Field::List(book.authors.clone()),
        maybe(book.publisher.as_ref()),
        maybe(book.published_date.as_ref()),
        maybe(book.description.as_ref()),
        maybe(book.cover_url.as_ref()),
        Field::Json(serde_json::json!(book.links)),
        word(row.first_seen_at),
        word(row.last_seen_at),
        moment(row.last_delivered_at),
    ]
}

pub(super) fn of_delivery(delivery: &DeliveryRow) -> Vec<Field> {
    vec![
        Field::Int(delivery.id),
        text(&delivery.job_name),
        word(delivery.delivered_at),
        Field::List(delivery.isbn13_list.clone()),
    ]
}

pub(super) fn of_message(message: &Message) -> Vec<Field> {
    vec![
        Field::Int(message.id),
        text(message.job_name.as_str()),
        word(&message.topic),
        text(&message.subject),
        Field::Int(message.generation.into()),
        text(&message.channel),
        text(&message.recipient),
        word(message.state.as_str()),
        word(message.created_at),
        word(message.not_before),
        Field::Int(message.attempts.into()),
        moment(message.first_attempt_at),
        moment(message.last_attempt_at),
        moment(message.settled_at),
        maybe(message.remote_id.as_ref()),
        maybe(message.last_error.as_ref()),
    ]
}

pub(super) fn of_commit(commit: &CommitRow) -> Vec<Field> {
    vec![
        text(&commit.project),
        text(&commit.branch_name),
        word(&commit.sha),
        text(&commit.author_name),
        word(commit.committed_date_utc),
        Field::Int(commit.additions),
        Field::Int(commit.deletions),
        Field::Flag(commit.stats_missing),
        moment(commit.unreachable_since),
    ]
}
