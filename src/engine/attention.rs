//! Messages that need a person.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::channel::outbox::{self, DeliveryFilter, State};
use crate::db::{self, Tx};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// A message that failed longer ago is in the listing only.
const RECENT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Messages that are looked at one by one, at most.
const MAX_LISTED: usize = 1_000;

/// How many messages need a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Those that nobody has decided about.
    pub held: i64,
    /// Those that failed for good, not long ago.
    pub failed: i64,
}

/// What needs a person, by job.
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

/// The same of all jobs together.
pub fn sum<'a>(waiting: impl IntoIterator<Item = &'a Waiting>) -> Waiting {
    waiting.into_iter().fold(Waiting::default(), |sum, one| Waiting {
        held: sum.held + one.held,
        failed: sum.failed + one.failed,
    })
}

impl Waiting {
    /// What to say of messages that are held, if any are.
    pub fn held_phrase(self) -> Option<Phrase> {
        let count = self.held;
        (count > 0)
            .then(|| phrase!("{count message} on hold until you decide", "確認待ちのメッセージ {count} 件"))
    }

    /// What to say of messages that failed, if any did.
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
