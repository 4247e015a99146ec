//! Messages that need a person.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::channel::outbox::{self, DeliveryFilter, State};
use crate::db::{self, Tx};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// Older failures appear only in the listing.
const RECENT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Failed messages that are counted one by one.
const MAX_LISTED: usize = 1_000;

/// How many messages need a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Messages that wait for a decision.
    pub held: i64,
    /// Messages that failed for good in the last days.
    pub failed: i64,
}

/// Messages that need a person, by job.
pub fn list_waiting(tx: &mut Tx<'_>, now: Timestamp) -> db::Result<BTreeMap<String, Waiting>> {
    let mut waiting: BTreeMap<String, Waiting> = BTreeMap::new();
    let mut any_failed = false;
    for tally in outbox::tally(tx)? {
        match tally.state {
            State::Held => waiting.entry(tally.job_name).or_default().held += tally.count,
            State::Failed => any_failed = true,
            _ => {}
        }
    }
    if any_failed {
        let since = now.minus(RECENT);
        let failed = DeliveryFilter { state: Some(State::Failed), ..DeliveryFilter::default() };
        for row in outbox::list(tx, &failed, MAX_LISTED)? {
            if row.last_attempt_at.unwrap_or(row.created_at) >= since {
                waiting.entry(row.job_name.to_string()).or_default().failed += 1;
            }
        }
    }
    Ok(waiting)
}

/// The sum over all jobs.
pub fn sum<'a>(waiting: impl IntoIterator<Item = &'a Waiting>) -> Waiting {
    waiting.into_iter().fold(Waiting::default(), |sum, one| Waiting {
        held: sum.held + one.held,
        failed: sum.failed + one.failed,
    })
}

impl Waiting {
    /// "3 held messages" in words; `None` if there are none.
    pub fn held_phrase(self) -> Option<Phrase> {
        let count = self.held;
        (count > 0)
            .then(|| phrase!("{count message} on hold until you decide", "確認待ちのメッセージ {count} 件"))
    }

    /// The same for failed messages.
    pub fn failed_phrase(self) -> Option<Phrase> {
        let count = self.failed;
        (count > 0).then(|| {
            phrase!(
                "{count message} failed and will not be sent",
                "送信に失敗し、再送されないメッセージ {count} 件"
            )
        })
    }
}
