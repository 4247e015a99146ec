//! Events in words: what a code means, and what its detail adds.

use serde_json::Value as Json;

use super::super::times::Times;
use crate::ledger::event::Event;
use crate::ledger::subject::Kind;
use crate::text::one_line;

/// Keys whose value is the point of the event: it stands at the end, behind a colon.
const REASONS: &[&str] = &["why", "reason", "message", "error"];

/// Keys whose number is a name and not a count.
const NAMES: &[&str] = &["digest", "delivery", "start_index", "code", "http_status"];

/// Keys that say nothing to people.
const INTERNAL: &[&str] = &["topic", "query_set_hash", "began_at"];

/// An event as a line: when, and what happened.
pub(super) fn line(event: &Event, times: &Times) -> String {
    format!("{}  {}", times.line(event.at), sentence(event, times))
}

/// The same for an event among others of its job: what it is about comes first.
pub(super) fn line_with_subject(event: &Event, times: &Times) -> String {
    let subject = one_line(&event.subject.spoken());
    format!("{}  {subject}: {}", times.line(event.at), sentence(event, times))
}

/// What happened, without when.
pub(super) fn sentence(event: &Event, times: &Times) -> String {
    let mut sentence = match meaning(event.subject.kind(), &event.code) {
        Some(meaning) => meaning.to_owned(),
        None => event.code.replace('_', " "),
    };
    let Some(detail) = event.detail.as_object() else { return sentence };
    let is_reason = |key: &str| REASONS.contains(&key);
    let facts: Vec<String> = detail
        .iter()
        .filter(|(key, _)| !is_reason(key) && !INTERNAL.contains(&key.as_str()))
        .filter_map(|(key, value)| fact(key, value, times))
        .collect();
    if !facts.is_empty() {
        sentence = format!("{sentence} ({})", facts.join(", "));
    }
    for (_, value) in detail.iter().filter(|(key, _)| is_reason(key)) {
        if let Some(reason) = value.as_str().filter(|reason| !reason.is_empty()) {
            sentence = format!("{sentence}: {}", one_line(&times.told(reason)));
        }
    }
    sentence
}

/// What a code means for a thing of that kind, where the code does not say it by itself.
pub(super) fn meaning(kind: Option<Kind>, code: &str) -> Option<&'static str> {
    Some(match (kind?, code) {
        (_, "baseline") => "was there at the first run: recorded, not sent",
        (Kind::Blog, "new_baseline") => {
            "is read in another way from now on: existing entries are recorded, not sent"
        }
        (Kind::Blog, "new") => "something new",
        (Kind::Blog, "gap") => "more is new than is known: something may have been missed in between",
        (Kind::Blog, "rewritten") => "entries changed their addresses; that is no news",
        (Kind::Blog, "detector_changed") => "is read in another way",
        (Kind::Blog, "failing") => "cannot be read",
        (Kind::Blog, "recovered") => "can be read again",
        (Kind::Blog, "gone") => "is gone, and paused",
        (Kind::Item, "rewritten") => "an old entry at a new address: remembered, not told",
        (Kind::Item, "found") => "found in the feed",
        (Kind::Item, "worth") => "worth a post",
        (Kind::Item, "not_valuable") => "not worth a post",
        (Kind::Item, "page_not_ready") => "the page is not ready",
        (Kind::Item, "model_failed") => "the model's answer was no use",
        (Kind::Item, "queued") => "summarised; the post is in the outbox",
        (Kind::Item, "wait_over") => "given up: its page did not change for as long as `wait_for_page` says",
        (Kind::Item, "retry_limit_exceeded" | "closed") => "given up: tried too often",
        (Kind::Item, "held") => "its post will wait for a person: too many are pending at once",
        (Kind::Book, "collected") => "found",
        (Kind::Book, "queued") => "chosen for a digest",
        (Kind::Book, "released") => "its digest was not sent; it is chosen again later",
        (Kind::Book, "delivery_reset") => "its delivery was forgotten by hand",
        (Kind::Book, "token_revoked") => "a link to its prompt was ended",
        (Kind::Branch, "collected") => "collected",
        (Kind::Branch, "collect_failed") => "could not be collected",
        (Kind::Branch, "history_rewritten") => {
            "its history was rewritten; commits that left it are kept and marked"
        }
        (Kind::Branch, "unreadable_commit") => "a commit has a date that cannot be read",
        (Kind::Delivery, "ready") => "put into the outbox",
        (Kind::Delivery, "deferred") => "put off",
        (Kind::Delivery, "unknown") => "it is not known whether it was sent",
        (Kind::Delivery, "held") => "held for a person to decide",
        (Kind::Delivery, "cleared") => "checked, and sent",
        (Kind::Delivery, "sent_again") => "sent once more, because it may have got lost",
        (Kind::Delivery, "repeated") => "a second one was asked for",
        (Kind::Delivery, "retried") => "to be tried again, by hand",
        (_, "asked_to_wait") => "asked us to wait",
        (Kind::Channel, "no_encryption") => "cannot be reached encrypted, and is paused",
        (Kind::Channel, "credentials_rejected") => "is paused until its credentials change",
        (Kind::Channel, "credentials_changed") => "has new credentials, and is tried again",
        (Kind::Provider, "provider_busy") => "is busy, and is paused",
        (Kind::Provider, "provider_used_up") => "is used up, and is paused",
        (Kind::Provider, "provider_down") => "does not work, and is paused",
        (Kind::Provider, "provider_locked") => "is paused: its key is missing or was refused",
        (Kind::Provider, "provider_refused") => "refuses our requests, and is paused",
        (Kind::Job, "feed_gone") => "its feed is gone, and is paused",
        (Kind::Job, "feed_changed") => "its feed has another address, and is read again",
        (Kind::Job, "exhausted") => "the search was read to its end",
        (_, "not_rendered") => "a message could not be made",
        (Kind::Job, "success") => "ended well",
        (Kind::Job, "waiting") => "ended early, the rest waits",
        (Kind::Job, "partly") => "failed in part",
        (Kind::Run, "run_told") => "its messages are in the outbox",
        (Kind::Run, "targets_given_up") => "gave up what nobody could collect",
        _ => return None,
    })
}

/// One key of a detail in words; nothing for what is not there.
fn fact(key: &str, value: &Json, times: &Times) -> Option<String> {
    let is_name = NAMES.contains(&key);
    // How many are news; whether anybody is told depends on the channels.
    let key = if key == "told" { "new" } else { key };
    let name = key.trim_end_matches("_at").replace('_', " ");
    Some(match value {
        Json::Null | Json::Bool(false) => return None,
        Json::Bool(true) => name,
        Json::Number(number) if is_name => format!("{name} {number}"),
        Json::Number(number) => format!("{number} {}", counted(&name, number.as_i64() == Some(1))),
        Json::String(text) if text.is_empty() => return None,
        Json::String(text) => format!("{name} {}", one_line(&times.told(text))),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().filter_map(|item| plain(item, times)).collect();
            if items.is_empty() {
                return None;
            }
            format!("{name} {}", items.join("; "))
        }
        Json::Object(_) => format!("{name} {}", plain(value, times)?),
    })
}

/// A value without a key.
fn plain(value: &Json, times: &Times) -> Option<String> {
    match value {
        Json::Object(fields) => {
            let facts: Vec<String> =
                fields.iter().filter_map(|(key, value)| fact(key, value, times)).collect();
            (!facts.is_empty()).then(|| facts.join(", "))
        }
        Json::String(text) => Some(one_line(&times.told(text))),
        Json::Null | Json::Array(_) => None,
        other => Some(other.to_string()),
    }
}

fn counted(name: &str, is_one: bool) -> String {
    match (is_one, name.strip_suffix("ies"), name.strip_suffix('s')) {
        (true, Some(stem), _) => format!("{stem}y"),
        (true, None, Some(stem)) => stem.to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Subject;
    use serde_json::json;

    #[test]
    fn events_are_sentences_and_never_json() {
        let times = Times::new("Asia/Tokyo".parse().unwrap());
        for (subject, code, detail, sentence) in [
            (
                "blog:example",
                "baseline",
                json!({ "detector": "feed", "entries": 12, "told": 0 }),
                "was there at the first run: recorded, not sent (detector feed, 12 entries, 0 new)",
            ),
            (
                "item:https://a.example/",
                "not_valuable",
                json!({ "cached": false, "criteria": ["添付 0 件"], "files": 1, "why": "資料がない" }),
                "not worth a post (criteria 添付 0 件, 1 file): 資料がない",
            ),
            (
                "provider:gemini",
                "provider_used_up",
                json!({ "why": "used up for today", "until": "2026-01-15T15:00:00.000Z" }),
                "is used up, and is paused (until 2026-01-16 00:00 +09:00): used up for today",
            ),
            (
                "book:9784000000239",
                "delivered",
                json!({ "channel": "mail", "delivery": 1, "digest": 1 }),
                "delivered (channel mail, delivery 1, digest 1)",
            ),
            (
                "job:a",
                "imported",
                json!({ "from": "dre", "tables": [{ "table": "books", "added": 3, "reasons": [] }] }),
                "imported (from dre, tables 3 added, table books)",
            ),
            ("job:a", "some_new_code", Json::Null, "some new code"),
            (
                "job:a",
                "x",
                json!({ "first": "a\u{1b}[31m\nb", "empty": "", "none": [] }),
                "x (first a[31m b)",
            ),
        ] {
            let at = "2026-01-15T00:00:00Z".parse().unwrap();
            let event =
                Event { at, job_name: None, subject: Subject::verbatim(subject), code: code.into(), detail };
            assert_eq!(super::sentence(&event, &times), sentence);
        }
    }
}
