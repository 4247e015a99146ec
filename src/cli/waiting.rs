//! Messages that wait for a person, said after a run and by `doctor`.

use super::{Output, Result};
use tsuzuki::channel::outbox::{self, DeliveryFilter, State};
use tsuzuki::db::Db;
use tsuzuki::engine::attention::{self, Waiting};
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::time::Timestamp;

/// Messages that are looked at one by one, at most.
const MAX_LISTED: usize = 1_000;

/// What to say of messages that are held, if any are.
pub(super) fn held_sentence(waiting: Waiting) -> Option<Phrase> {
    let said = waiting.held_phrase()?;
    Some(phrase!("{said}: `tsuzuki delivery ls --state held`", "{said}：`tsuzuki delivery ls --state held`"))
}

/// What to say of messages that failed, if any did.
pub(super) fn failed_sentence(waiting: Waiting) -> Option<Phrase> {
    let said = waiting.failed_phrase()?;
    Some(phrase!(
        "{said}: `tsuzuki delivery ls --state failed`",
        "{said}：`tsuzuki delivery ls --state failed`"
    ))
}

/// The outbox at the beginning of a run, to tell what is new from what was there.
pub(super) struct Before {
    newest: i64,
}

impl Before {
    pub(super) async fn note(db: &Db) -> Result<Self> {
        let newest = db.read(|tx| outbox::list(tx, &DeliveryFilter::default(), 1)).await?;
        Ok(Self { newest: newest.first().map_or(0, |row| row.id) })
    }

    /// Warns of what has come to wait since; what waited before is a note, so that `-q` says it once.
    pub(super) async fn warn_of_new(&self, db: &Db, sent: (u64, u64), out: &Output) -> Result<()> {
        let (newest, now) = (self.newest, db.clock().now());
        let (waiting, new) = db
            .read(move |tx| {
                let always = (Timestamp::MIN, Timestamp::MAX);
                let added = outbox::list_after(tx, newest, None, always, MAX_LISTED)?;
                let new = added.iter().filter(|row| row.state == State::Held).count() as u64;
                Ok((attention::sum(attention::list_waiting(tx, now)?.values()), new))
            })
            .await?;
        let (held, failed) = sent;
        for (sentence, is_new) in
            [(held_sentence(waiting), new + held > 0), (failed_sentence(waiting), failed > 0)]
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
