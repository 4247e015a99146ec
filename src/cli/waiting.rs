//! Messages that need approval, reported after a run and by `doctor`.

use super::{Output, Result};
use tsuzuki::channel::outbox::{self, DeliveryFilter, State};
use tsuzuki::db::Db;
use tsuzuki::engine::attention::{self, Waiting};
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::time::Timestamp;

/// The most messages that are read one by one.
const MAX_LISTED: usize = 1_000;

/// The sentence about held messages, if there are any.
pub(super) fn held_sentence(waiting: Waiting) -> Option<Phrase> {
    let said = waiting.held_phrase()?;
    Some(phrase!("{said}: `tsuzuki delivery ls --state held`", "{said}：`tsuzuki delivery ls --state held`"))
}

/// The sentence about failed messages, if there are any.
pub(super) fn failed_sentence(waiting: Waiting) -> Option<Phrase> {
    let said = waiting.failed_phrase()?;
    Some(phrase!(
        "{said}: `tsuzuki delivery ls --state failed`",
        "{said}：`tsuzuki delivery ls --state failed`"
    ))
}

/// The outbox at the beginning of a run, to distinguish new messages.
pub(super) struct Before {
    newest: i64,
}

impl Before {
    pub(super) async fn note(db: &Db) -> Result<Self> {
        let newest = db.read(|tx| outbox::list(tx, &DeliveryFilter::default(), 1)).await?;
        Ok(Self { newest: newest.first().map_or(0, |row| row.id) })
    }

    /// Warns of messages that wait since then; those that waited before are a note, so that `-q` reports each once.
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
