//! How long a sender holds a message, by the wall clock and by the boot clock of its kernel, which nobody can set.

use std::time::Duration;

use crate::time::{Timestamp, Uptime};

/// When a sender's lease on a message ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// By the wall clock, which all machines share and which can be set.
    pub(super) until: Timestamp,
    /// By the boot clock of the sender's kernel, if it has one.
    pub(super) uptime: Option<Uptime>,
}

/// The moment at which a lease is judged.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) now: Timestamp,
    /// By the boot clock of our kernel, if it has one.
    pub(super) uptime: Option<Uptime>,
    /// The latest possible end of a lease written at `now`.
    pub(super) latest: Timestamp,
}

impl Lease {
    /// A lease of `length`, starting at `now` and `uptime`.
    pub(super) fn new(now: Timestamp, uptime: Option<&Uptime>, length: Duration) -> Self {
        Self { until: now.plus(length), uptime: uptime.map(|uptime| uptime.plus(length)) }
    }

    /// When it ended, by our wall clock; `None` while it lasts.
    ///
    /// A lease of our own kernel is judged only by the boot clock: the wall clock may have been set since, and then
    /// shows nothing about how long the sender has had. A lease of another kernel is judged by the wall clock; one that
    /// ends implausibly late was written while the clock was ahead, and waiting for its end could take years.
    pub(super) fn ended_at(&self, moment: &Moment) -> Option<Timestamp> {
        let Moment { now, uptime, latest } = moment;
        let past = uptime.as_ref().zip(self.uptime.as_ref()).and_then(|(here, end)| here.millis_after(end));
        match past {
            Some(past) => u64::try_from(past).ok().map(|millis| now.minus(Duration::from_millis(millis))),
            None => (self.until <= *now || self.until > *latest).then(|| self.until.min(*now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_768_435_331_000;
    const HOUR: i64 = 3_600_000;

    #[test]
    fn the_boot_clock_judges_leases_of_our_kernel_and_the_other_clock_all_others() {
        let at = |millis: i64| Timestamp::from_millis(NOW + millis);
        let here = |millis: i64| Some(Uptime::new("here", 500_000 + millis));
        let there = |millis: i64| Some(Uptime::new("there", millis));
        for (what, until, uptime, ours, ended) in [
            ("it lasts", 1, here(1), here(0), None),
            ("it has just ended", 0, here(0), here(0), Some(0)),
            ("it ended a while ago", -9, here(-9), here(0), Some(-9)),
            ("the clock was set ahead", -HOUR, here(7), here(0), None),
            ("the clock was set ahead, and it has ended", -HOUR, here(-7), here(0), Some(-7)),
            ("the clock was set back", HOUR / 2, here(-7), here(0), Some(-7)),
            ("the clock was set back by a year", 9_000 * HOUR, here(7), here(0), None),
            ("the clock was set back by a year, and it has ended", 9_000 * HOUR, here(-7), here(0), Some(-7)),
            ("another kernel's lasts", 1, there(0), here(0), None),
            ("another kernel's has ended", -1, there(9_000_000), here(0), Some(-1)),
            ("another kernel's clock was ahead", 9_000 * HOUR, there(0), here(0), Some(0)),
            ("its kernel has no boot clock", 1, None, here(0), None),
            ("its kernel has no boot clock, and it has ended", -1, None, here(0), Some(-1)),
            ("ours has none", 1, here(-7), None, None),
            ("ours has none, and it has ended", -1, here(7), None, Some(-1)),
        ] {
            let moment = Moment { now: at(0), uptime: ours, latest: at(HOUR) };
            let lease = Lease { until: at(until), uptime };
            assert_eq!(lease.ended_at(&moment), ended.map(at), "{what}");
        }
    }

    #[test]
    fn a_lease_is_as_long_by_both_clocks() {
        let uptime = Uptime::new("here", 7);
        let lease = Lease::new(Timestamp::from_millis(NOW), Some(&uptime), Duration::from_secs(45));
        assert_eq!(lease.until, Timestamp::from_millis(NOW + 45_000));
        assert_eq!(lease.uptime, Some(Uptime::new("here", 45_007)));
        assert_eq!(Lease::new(Timestamp::from_millis(NOW), None, Duration::ZERO).uptime, None);
    }
}
