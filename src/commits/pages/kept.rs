//! Counts of many commits, kept in memory: reading a million of them takes seconds, and a page is opened again and again.
//!
//! A count is kept until a branch or a run has moved since, and in any case so long that counting takes a small share of the time.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::commits::stats::{self, Counting, Series};
use crate::commits::store::reading::{self, Scope};
use crate::config::Config;
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::time::Timestamp;

/// Fewer commits are counted anew each time.
const FEW: i64 = 20_000;
/// How many counts are kept.
const MAX_KEPT: usize = 4;
/// A count is good for so long after each of its commits, whatever happened since: some twenty times what reading one takes.
const FRESH_PER_COMMIT: Duration = Duration::from_micros(40);
/// What no branch and no run shows, such as lines that came later, is seen after this at the latest.
const STALE: Duration = Duration::from_secs(600);

struct KeptCounts {
    /// Whoever reads the config again begins anew: people and zone are of the config.
    config: Weak<Config>,
    scope: Scope,
    with_merges: bool,
    stamp: String,
    counted_at: Timestamp,
    series: Arc<Series>,
}

static KEPT: Mutex<Vec<KeptCounts>> = Mutex::new(Vec::new());

/// The series of what is counted.
pub(super) fn find(finder: &Finder, tx: &mut Tx<'_>, counting: &Counting) -> db::Result<Arc<Series>> {
    let stamp = reading::find_stamp(tx)?;
    let config = Arc::downgrade(&finder.config);
    let is_meant = |kept: &KeptCounts| {
        kept.config.ptr_eq(&config)
            && kept.scope == counting.scope
            && kept.with_merges == counting.with_merges
    };
    let found = KEPT.lock().iter().find(|kept| is_meant(kept)).and_then(|kept| {
        let age = finder.now.since(kept.counted_at);
        is_good(age, kept.stamp == stamp, kept.series.commits()).then(|| Arc::clone(&kept.series))
    });
    if let Some(series) = found {
        return Ok(series);
    }
    // The lock is not held while we count: others may look at what is kept.
    let series = Arc::new(stats::find_series(tx, counting)?);
    if series.commits() >= FEW {
        let (scope, with_merges) = (counting.scope.clone(), counting.with_merges);
        let mut kept = KEPT.lock();
        kept.retain(|kept| !is_meant(kept) && kept.config.strong_count() > 0);
        if kept.len() == MAX_KEPT {
            kept.remove(0);
        }
        let series = Arc::clone(&series);
        kept.push(KeptCounts { config, scope, with_merges, stamp, counted_at: finder.now, series });
    }
    Ok(series)
}

fn is_good(age: Duration, is_unmoved: bool, commits: i64) -> bool {
    let fresh = FRESH_PER_COMMIT * u32::try_from(commits).unwrap_or(u32::MAX);
    age < fresh || (is_unmoved && age < STALE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_good_while_nothing_moved_and_a_little_longer_if_it_was_dear() {
        let secs = Duration::from_secs;
        for (age, is_unmoved, commits, is_good_expected) in [
            (secs(30), true, 20_000, true),
            (secs(30), false, 20_000, false),
            (secs(30), false, 1_000_000, true),
            (secs(41), false, 1_000_000, false),
            (secs(601), true, 1_000_000, false),
        ] {
            assert_eq!(is_good(age, is_unmoved, commits), is_good_expected, "{age:?} {commits}");
        }
    }
}
