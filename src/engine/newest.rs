//! The latest events: what jobs found, decided and sent, but not that they ran.

use std::collections::HashSet;

use super::Finder;
use crate::channel::outbox::events::DeliveryCode;
use crate::db::{self, Tx};
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// Events to search.
const MAX_EVENTS: usize = 200;

/// The latest event about a thing, and how many others it happened to.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest {
    pub at: Timestamp,
    pub about: Subject,
    /// Its title.
    pub title: Phrase,
    pub job: Option<String>,
    /// The event in words.
    pub text: Phrase,
    /// How many other things of the job it happened to right before.
    pub others: usize,
}

/// The latest event of each of the newest things, newest first, at most `limit`. Successive events of one job with the
/// same code are counted as one.
pub fn list(finder: &Finder, tx: &mut Tx<'_>, limit: usize) -> db::Result<Vec<Newest>> {
    let finder = &Finder { limit: 1, ..finder.clone() };
    let mut newest: Vec<Newest> = Vec::new();
    let mut seen = HashSet::new();
    let mut last: Option<(Option<String>, String)> = None;
    for event in event::list_newest(tx, MAX_EVENTS)?.iter().filter(|event| is_of_interest(event)) {
        // Only the latest event about a thing is shown.
        if !seen.insert(event.subject.clone()) || is_in_a_message(event) {
            continue;
        }
        let key = (event.job_name.clone(), event.code.clone());
        if last.as_ref() == Some(&key)
            && let Some(same) = newest.last_mut()
        {
            same.others += 1;
            continue;
        }
        if newest.len() == limit {
            break;
        }
        last = Some(key);
        newest.push(Newest {
            at: event.at,
            title: find_title(finder, tx, &event.subject)?,
            about: event.subject.clone(),
            job: event.job_name.clone(),
            text: finder.words(event),
            others: 0,
        });
    }
    Ok(newest)
}

/// The title of a thing, without loading its events.
fn find_title(finder: &Finder, tx: &mut Tx<'_>, about: &Subject) -> db::Result<Phrase> {
    let found = finder.find_exactly(tx, about.as_str())?.into_iter().next();
    Ok(match found {
        Some(view) => view.headline.map_or(view.title, Phrase::verbatim),
        None => about.phrase(),
    })
}

/// How runs ended is shown with the jobs, and a message matters once it has been sent.
fn is_of_interest(event: &Event) -> bool {
    let is_of_a_run = ["job", "run"].iter().any(|kind| event.subject.name_of(kind).is_some());
    !is_of_a_run && event.code != DeliveryCode::Ready.word()
}

/// Whether the event names a message, whose own event says the same.
fn is_in_a_message(event: &Event) -> bool {
    ["delivery", "messages"].iter().any(|key| event.detail.get(key).is_some())
}
