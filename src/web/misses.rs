//! Throttles guesses of tokens or passwords: a bucket of misses per address, in limited memory.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::time::Timestamp;
use parking_lot::Mutex;

/// The size of a bucket.
const BURST: u32 = 20;
/// How often a bucket loses one miss.
const FORGIVEN_EVERY: Duration = Duration::from_secs(6);
/// The most addresses that are stored; enough for a household, a company and a crawler, in about half a megabyte.
const REMEMBERED: usize = 10_000;

/// The buckets by address.
#[derive(Debug, Default)]
pub(super) struct Misses(Mutex<HashMap<IpAddr, Bucket>>);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The misses in the bucket at `at`.
    count: u32,
    at: Timestamp,
}

impl Bucket {
    /// The bucket at `now`; unchanged if the clock steps back.
    fn at(self, now: Timestamp) -> Self {
        let forgiven = now.since(self.at).as_secs() / FORGIVEN_EVERY.as_secs();
        let forgiven = u32::try_from(forgiven).unwrap_or(u32::MAX);
        match self.count.saturating_sub(forgiven) {
            0 => Self { count: 0, at: now },
            count => Self { count, at: self.at.plus(FORGIVEN_EVERY * forgiven) },
        }
    }
}

impl Misses {
    /// How long `address` has to wait; `None` if it need not.
    pub(super) fn wait(&self, address: IpAddr, now: Timestamp) -> Option<Duration> {
        let buckets = self.0.lock();
        let bucket = buckets.get(&key(address))?.at(now);
        (bucket.count >= BURST).then(|| FORGIVEN_EVERY.saturating_sub(now.since(bucket.at)))
    }

    /// Counts a wrong guess of `address`.
    pub(super) fn add(&self, address: IpAddr, now: Timestamp) {
        let mut buckets = self.0.lock();
        if buckets.len() >= REMEMBERED {
            buckets.retain(|_, bucket| bucket.at(now).count > 0);
        }
        let key = key(address);
        if buckets.len() >= REMEMBERED && !buckets.contains_key(&key) {
            // With so many guessing addresses one more does not matter; the length of the token or password protects.
            return;
        }
        let bucket = buckets.entry(key).or_insert(Bucket { count: 0, at: now });
        *bucket = bucket.at(now);
        bucket.count = (bucket.count + 1).min(BURST);
    }
}

/// One client may have a whole /64 of IPv6, so that is the key.
fn key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mut segments = address.segments();
            segments[4..].fill(0);
            IpAddr::V6(segments.into())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guesser_is_slowed_down_and_forgiven_in_time() {
        let misses = Misses::default();
        let now = Timestamp::from_millis(0);
        let (guesser, other): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        for _ in 0..BURST {
            assert_eq!(misses.wait(guesser, now), None);
            misses.add(guesser, now);
        }
        assert_eq!(misses.wait(guesser, now), Some(FORGIVEN_EVERY));
        assert_eq!(misses.wait(other, now), None);
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        assert!(misses.wait(mapped, now).is_some(), "the same address in other words");
        let later = now.plus(FORGIVEN_EVERY);
        assert_eq!(misses.wait(guesser, later), None);
        misses.add(guesser, later);
        assert!(misses.wait(guesser, later).is_some(), "one was forgiven, not all");
        assert_eq!(misses.wait(guesser, later.plus(FORGIVEN_EVERY * BURST)), None);
    }

    #[test]
    fn a_neighbourhood_counts_as_one_and_memory_is_bounded() {
        let misses = Misses::default();
        let now = Timestamp::from_millis(0);
        for number in 0..BURST {
            misses.add(format!("2001:db8::{number:x}").parse().unwrap(), now);
        }
        assert!(misses.wait("2001:db8::ffff".parse().unwrap(), now).is_some());
        for number in 0..u32::try_from(REMEMBERED).unwrap() + 500 {
            misses.add(IpAddr::V4(number.into()), now);
        }
        assert!(misses.0.lock().len() <= REMEMBERED);
    }
}
