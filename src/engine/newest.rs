//! What happened last, for whoever looks in: what jobs found, decided and sent, not that they ran.

use std::collections::HashSet;

use super::Finder;
use crate::channel::outbox::events::DeliveryCode;
use crate::db::{self, Tx};
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// Events that are looked at.
const LOOKED_AT: usize = 200;

/// The last thing that happened to somebody, and to how many others.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest {
    pub at: Timestamp,
    /// To whom.
    pub about: Subject,
    /// What people call it.
    pub title: Phrase,
    /// For whom.
    pub job: Option<String>,
    /// What.
    pub text: Phrase,
    /// The same happened to so many others of the job right before.
    pub others: usize,
}

/// What happened last to each of the newest things, newest first, at most `limit`; the same code in a row of one job is one.
pub fn list(finder: &Finder, tx: &mut Tx<'_>, limit: usize) -> db::Result<Vec<Newest>> {
    let finder = &Finder { limit: 1, ..finder.clone() };
    let mut newest: Vec<Newest> = Vec::new();
    let mut seen = HashSet::new();
    let mut last: Option<(Option<String>, String)> = None;
    for event in event::list_newest(tx, LOOKED_AT)?.iter().filter(|event| is_of_interest(event)) {
        // What was decided before is on the way to what is known of it now.
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

/// What a thing is called where it is explained, without its story.
fn find_title(finder: &Finder, tx: &mut Tx<'_>, about: &Subject) -> db::Result<Phrase> {
    let found = finder.find_exactly(tx, about.as_str())?.into_iter().next();
    Ok(match found {
        Some(view) => view.headline.map_or(view.title, Phrase::verbatim),
        None => about.phrase(),
    })
}

/// How runs ended is shown with the jobs; that a message is on its way is known once it has arrived.
fn is_of_interest(event: &Event) -> bool {
    let is_of_a_run = ["job", "run"].iter().any(|kind| event.subject.name_of(kind).is_some());
    !is_of_a_run && event.code != DeliveryCode::Ready.word()
}

/// Whether the messages that it names say the same.
fn is_in_a_message(event: &Event) -> bool {
    ["delivery", "messages"].iter().any(|key| event.detail.get(key).is_some())
}
