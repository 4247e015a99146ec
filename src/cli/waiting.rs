//! Messages that wait for a person, said wherever people look: after a run, in `status`, by `doctor`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Output, Result};
use crate::channel::outbox::{self, Filter, State};
use crate::db::{self, Db, Tx};
use crate::ledger::pause::{self, Pause};
use crate::text::counted;
use crate::time::Timestamp;

/// A message that failed longer ago is in the listing only.
const RECENT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Messages that are looked at one by one, at most.
const LOOKED_AT: usize = 1_000;

/// How many messages need a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Those that nobody has decided about.
    pub(super) held: i64,
    /// Those that failed for good, not long ago.
    pub(super) failed: i64,
}

/// What needs a person, by job.
pub(super) fn list(tx: &mut Tx<'_>, now: Timestamp) -> db::Result<BTreeMap<String, Waiting>> {
    let mut waiting: BTreeMap<String, Waiting> = BTreeMap::new();
    let mut any_failed = false;
    for tally in outbox::tally(tx)? {
        match State::parse(&tally.state) {
            Some(State::Held) => waiting.entry(tally.job_name).or_default().held += tally.count,
            Some(State::Failed) => any_failed = true,
            _ => {}
        }
    }
    if any_failed {
        let since = now.minus(RECENT);
        let failed = Filter { state: Some(State::Failed), ..Filter::default() };
        for row in outbox::list(tx, &failed, LOOKED_AT)? {
            if row.last_attempt_at.unwrap_or(row.created_at) >= since {
                waiting.entry(row.job_name.to_string()).or_default().failed += 1;
            }
        }
    }
    Ok(waiting)
}

/// The channels that are paused until their credentials change while messages wait for them.
pub(super) fn list_locked(tx: &mut Tx<'_>, now: Timestamp) -> db::Result<BTreeMap<String, Pause>> {
    let rests = pause::list(tx, now)?;
    let mut locked: BTreeMap<String, Pause> = rests
        .into_iter()
        .filter(|rest| rest.paused_until.is_none())
        .filter_map(|rest| Some((rest.name.name_of("channel")?.to_owned(), rest)))
        .collect();
    let waiting: BTreeSet<String> = outbox::tally(tx)?
        .into_iter()
        .filter(|tally| {
            matches!(State::parse(&tally.state), Some(State::Ready | State::Sending | State::Unknown))
        })
        .map(|tally| tally.channel)
        .collect();
    locked.retain(|channel, _| waiting.contains(channel));
    Ok(locked)
}

/// What to say of such a channel: whether a secret is missing or was refused stands in the reason.
pub(super) fn locked_sentence(channel: &str, why: &str) -> String {
    format!("channel {channel} is paused: {why} (see `tsuzuki doctor`)")
}

/// The same of all jobs together.
pub(super) fn sum<'a>(waiting: impl IntoIterator<Item = &'a Waiting>) -> Waiting {
    waiting.into_iter().fold(Waiting::default(), |sum, one| Waiting {
        held: sum.held + one.held,
        failed: sum.failed + one.failed,
    })
}

impl Waiting {
    /// What to say of messages that are held, if any are.
    pub(super) fn held_sentence(self) -> Option<String> {
        let word = if self.held == 1 { "waits" } else { "wait" };
        let count = counted(self.held, "message");
        (self.held > 0)
            .then(|| format!("{count} {word} for your decision: `tsuzuki delivery ls --state held`"))
    }

    /// What to say of messages that failed, if any did.
    pub(super) fn failed_sentence(self) -> Option<String> {
        let count = counted(self.failed, "message");
        (self.failed > 0)
            .then(|| format!("{count} failed and will not be sent: `tsuzuki delivery ls --state failed`"))
    }
}

/// The outbox at the beginning of a run, to tell what is new from what was there.
pub(super) struct Before {
    newest: i64,
}

impl Before {
    pub(super) async fn note(db: &Db) -> Result<Self> {
        let newest = db.read(|tx| outbox::list(tx, &Filter::default(), 1)).await?;
        Ok(Self { newest: newest.first().map_or(0, |row| row.id) })
    }

    /// Warns of what has come to wait since; what waited before is a note, so that `-q` says it once.
    pub(super) async fn tell(&self, db: &Db, sent: (u64, u64), out: &Output) -> Result<()> {
        let (newest, now) = (self.newest, db.clock().now());
        let (waiting, new) = db
            .read(move |tx| {
                let always = (Timestamp::MIN, Timestamp::MAX);
                let added = outbox::list_after(tx, newest, None, always, LOOKED_AT)?;
                let new = added.iter().filter(|row| row.state == State::Held).count() as u64;
                Ok((sum(list(tx, now)?.values()), new))
            })
            .await?;
        let (held, failed) = sent;
        for (sentence, is_new) in
            [(waiting.held_sentence(), new + held > 0), (waiting.failed_sentence(), failed > 0)]
        {
            match sentence {
                Some(sentence) if is_new => out.warn(sentence),
                Some(sentence) => out.note(sentence),
                None => {}
            }
        }
        Ok(())
    }
}
