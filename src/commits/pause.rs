//! The pause that a host has asked for, stored in the database so that the next process obeys it, too.

use super::GitSource;
use super::host::Host;
use crate::db::{self, Db};
use crate::fetch::header::LONGEST_WAIT;
use crate::ledger::{Subject, pause};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

impl GitSource {
    /// The host, as pauses and events refer to it.
    pub fn subject(&self) -> Subject {
        Subject::provider(&self.host)
    }

    /// The end of the pause of the host, if it is not over. Ignores an end beyond [`LONGEST_WAIT`], which a wrong clock
    /// wrote.
    pub async fn find_pause(&self, db: &Db, now: Timestamp) -> db::Result<Option<Timestamp>> {
        let name = self.subject();
        let pause = db.read(move |tx| pause::find(tx, &name, now)).await?;
        Ok(pause.and_then(|pause| pause.paused_until).filter(|until| *until <= now.plus(LONGEST_WAIT)))
    }

    /// The line about the pause.
    pub(super) fn waiting(&self, until: Timestamp) -> Phrase {
        let host = &self.host;
        phrase!("{host} asked us to wait until {until}", "{host} から {until} まで待つよう指示がありました")
    }

    /// Stores the pause that the host has asked for, if any.
    pub(super) async fn keep_pause(&self, db: &Db, client: &dyn Host) -> db::Result<()> {
        let (name, pause) = (self.subject(), client.find_pause());
        db.write(move |tx| match &pause {
            Some((until, why)) => pause::put(tx, &name, Some(*until), why, tx.now()).map(drop),
            None => pause::forget_ended(tx, &name, tx.now()),
        })
        .await
    }
}
