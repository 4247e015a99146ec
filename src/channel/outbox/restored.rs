//! Messages decided after a restore, which may repeat those of the time that the restored database has lost.

use std::time::Duration;

use super::model::Suspicion;
use super::store;
use crate::db::{self, Restore, Tx};
use crate::time::Timestamp;

/// A restore that is older than this makes nothing suspect.
const AT_MOST: Duration = Duration::from_secs(30 * 24 * 3600);

/// How the things in a message were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// By comparing a source with its state at that moment; `None`: without an earlier state.
    Since(Option<Timestamp>),
    /// By reading a long list step by step.
    Gradually,
}

/// Whether things found in this way may have been announced before the restore.
///
/// A source that was checked since the restore has a complete state again: everything found by later checks is new. A
/// long list is read again from the position in the copy, and that takes as long as it did before.
fn may_have_been_sent(found: Provenance, restore: &Restore, now: Timestamp) -> bool {
    let since = now.since(restore.restored_at);
    match found {
        _ if since > AT_MOST => false,
        Provenance::Since(known) => known.is_none_or(|known| known < restore.restored_at),
        Provenance::Gradually => since <= restore.restored_at.since(restore.made_at),
    }
}

/// Since when they may have been announced, if so: the age of the oldest copy that counts.
pub(super) fn find_suspicion(
    tx: &mut Tx<'_>,
    found: Provenance,
    now: Timestamp,
) -> db::Result<Option<Timestamp>> {
    notice_restore(tx, now)?;
    let restores = db::list_restores(tx, now.minus(AT_MOST))?;
    let suspect = restores.iter().filter(|restore| may_have_been_sent(found, restore, now));
    Ok(suspect.map(|restore| restore.made_at).min())
}

/// Marks every waiting message as suspect if this database turns out to be a restored copy; returns how many, or `None`
/// if it is not a copy, or if that was noticed before.
pub fn notice_restore(tx: &mut Tx<'_>, now: Timestamp) -> db::Result<Option<u64>> {
    if db::notice_restore(tx, now)? {
        store::suspect(tx, Suspicion::Restored, now).map(Some)
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_by_an_old_memory_is_doubted_and_what_came_later_is_not() {
        const DAY: i64 = 24 * 3600 * 1000;
        let at = |days: i64| Timestamp::from_millis(1_768_435_331_000 + days * DAY);
        // The copy is of day 0 and in use since day 3.
        let restore = Restore { made_at: at(0), restored_at: at(3) };
        for (what, found, now, suspected) in [
            ("found before the copy was made", Provenance::Since(Some(at(-1))), 4, true),
            ("found by comparing with what the copy knew", Provenance::Since(Some(at(0))), 4, true),
            ("of a source that the copy did not know", Provenance::Since(None), 4, true),
            (
                "found since the last look, which was after the restore",
                Provenance::Since(Some(at(3))),
                4,
                false,
            ),
            ("told long after it was found", Provenance::Since(Some(at(0))), 30, true),
            ("told much longer after it was found", Provenance::Since(Some(at(0))), 34, false),
            ("read again on the way", Provenance::Gradually, 4, true),
            ("read again as far as it was read before", Provenance::Gradually, 6, true),
            ("read further", Provenance::Gradually, 7, false),
            ("by a clock that was set back", Provenance::Gradually, 2, true),
        ] {
            assert_eq!(may_have_been_sent(found, &restore, at(now)), suspected, "{what}");
        }
    }
}
