//! What happened last, for whoever looks in: what jobs found, decided and sent, not that they ran.

use super::Finder;
use crate::db::{self, Tx};
use crate::ledger::Subject;
use crate::ledger::event::{self, Event};
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// Events that are looked at.
const LOOKED_AT: usize = 200;

/// One thing that happened, and how often in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest {
    /// When, the last time.
    pub at: Timestamp,
    /// To whom, the last time.
    pub about: Subject,
    /// For whom.
    pub job: Option<String>,
    /// What.
    pub text: Phrase,
    /// The same happened to so many others right before.
    pub others: usize,
}

/// The newest things, newest first, at most `limit`; the same code in a row of one job is one.
pub fn list(finder: &Finder, tx: &mut Tx<'_>, limit: usize) -> db::Result<Vec<Newest>> {
    let mut newest: Vec<Newest> = Vec::new();
    let mut last: Option<(Option<String>, String)> = None;
    for event in event::list_newest(tx, LOOKED_AT)?.iter().filter(|event| is_of_interest(event)) {
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
            about: event.subject.clone(),
            job: event.job_name.clone(),
            text: finder.words(event),
            others: 0,
        });
    }
    Ok(newest)
}

/// How runs ended is shown with the jobs.
fn is_of_interest(event: &Event) -> bool {
    event.subject.name_of("job").is_none()
}
