//! Decides when a host may be requested again; pure, without clock and waiting.
//!
//! ```text
//!            429, 503, no connection; third 5xx in a row
//!   open ───────────────────────────────────────────────▶ paused (everybody is told to come later)
//!    ▲                                                        │ the pause is over
//!    └──────────── it answers ──────────── probing ◀──────────┘ (one request at a time)
//! ```

use std::time::Duration;

use super::error::Why;
use super::header::LONGEST_WAIT;
use stdx::time::Timestamp;

/// The limits of requests to one host (scheme, name and port).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// Requests to the host at the same time.
    pub at_once: usize,
    /// Minimum time between the starts of two requests.
    pub spacing: Duration,
}

impl Manners {
    /// For pages and feeds of others: two at once, four per second.
    pub const fn guest() -> Self {
        Self { at_once: 2, spacing: Duration::from_millis(250) }
    }

    /// For an API with our key or account, which reports its own limits.
    pub const fn client() -> Self {
        Self { at_once: 8, spacing: Duration::ZERO }
    }
}

impl Default for Manners {
    fn default() -> Self {
        Self::guest()
    }
}

/// The first pause after a failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause of our own choice.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);
/// Server errors and timeouts in a row that may be the fault of one page rather than of the host.
const FORGIVEN: u32 = 2;

/// The state of one host; small, as there may be ten thousand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostState {
    /// Requests being sent.
    pub in_flight: u32,
    failures: u32,
    pause: Option<Box<Pause>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pause {
    since: Timestamp,
    until: Timestamp,
    why: Why,
}

/// Whether a request to the host may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Go,
    /// Wait until another request to the host has ended.
    Wait,
    Later {
        /// The rest of the pause.
        after: Duration,
        why: Why,
    },
}

/// The outcome of a request for the host's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAnswer {
    /// It answered like a healthy host, even if with "not found".
    Fine,
    /// It answered "too many requests" (429) or "service unavailable" (503).
    Busy { status: u16, retry_after: Option<Duration> },
    /// It answered with another server error.
    Failing { status: u16 },
    /// It accepted the connection but did not answer in time.
    Silent,
    /// It could not be reached at all.
    Unreachable,
}

impl HostAnswer {
    /// What `status` means for the host's health.
    pub fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            429 | 503 => HostAnswer::Busy { status, retry_after },
            500..=599 => HostAnswer::Failing { status },
            _ => HostAnswer::Fine,
        }
    }
}

impl HostState {
    /// Whether a request may start now.
    pub fn admit(&self, manners: &Manners, now: Timestamp) -> Admission {
        if let Some(pause) = &self.pause
            && self.is_paused(now)
        {
            return Admission::Later { after: pause.until.since(now), why: pause.why };
        }
        let at_once = if self.failures > 0 { 1 } else { manners.at_once.max(1) };
        if (self.in_flight as usize) < at_once { Admission::Go } else { Admission::Wait }
    }

    /// Whether the host is paused at `now`; a clock that was set back ends the pause.
    pub fn is_paused(&self, now: Timestamp) -> bool {
        self.pause.as_ref().is_some_and(|pause| pause.since <= now && now < pause.until)
    }

    /// Whether something went wrong since it last answered well.
    pub fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Takes note of an outcome and answers how long the host is now left alone.
    ///
    /// `jitter` in 0..1 spreads the pauses of our own choice, so that a host that recovers does not get all requests at
    /// once.
    pub fn record(&mut self, outcome: HostAnswer, now: Timestamp, jitter: f64) -> Option<Duration> {
        let (forgiven, why, requested) = match outcome {
            HostAnswer::Fine => {
                self.failures = 0;
                self.pause = None;
                return None;
            }
            HostAnswer::Busy { status, retry_after } => (0, Why::of_busy(status, retry_after), retry_after),
            HostAnswer::Failing { status } => (FORGIVEN, Why::Status(status), None),
            HostAnswer::Silent => (FORGIVEN, Why::Unreachable, None),
            HostAnswer::Unreachable => (0, Why::Unreachable, None),
        };
        self.failures = self.failures.saturating_add(1);
        let own = own_pause(self.failures.saturating_sub(forgiven), jitter);
        let span = match requested {
            Some(delay) if !delay.is_zero() => Some(delay.min(LONGEST_WAIT)),
            _ => own,
        }?;
        self.pause = Some(Box::new(Pause { since: now, until: now.plus(span), why }));
        Some(span)
    }
}

fn own_pause(failures: u32, jitter: f64) -> Option<Duration> {
    let doublings = failures.checked_sub(1)?.min(16);
    let span = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
    Some(span.mul_f64(0.75 + 0.5 * jitter.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::MIN;

    fn at(secs: u64) -> Timestamp {
        START.plus(Duration::from_secs(secs))
    }

    /// Records `outcomes` in a row and returns the last pause in seconds.
    fn pause_after(outcomes: &[HostAnswer]) -> Option<u64> {
        let mut host = HostState::default();
        let mut pause = None;
        for outcome in outcomes {
            pause = host.record(*outcome, START, 0.5);
        }
        pause.map(|span| span.as_secs())
    }

    #[test]
    fn pauses_grow_with_failures_and_obey_the_host() {
        let busy =
            |secs: Option<u64>| HostAnswer::Busy { status: 429, retry_after: secs.map(Duration::from_secs) };
        let failing = HostAnswer::Failing { status: 500 };
        let lost = HostAnswer::Unreachable;
        for (outcomes, expected) in [
            (vec![HostAnswer::Fine], None),
            (vec![lost], Some(10)),
            (vec![lost, lost], Some(20)),
            (vec![lost; 20], Some(3600)),
            (vec![lost; 100], Some(3600)),
            (vec![lost, HostAnswer::Fine, lost], Some(10)),
            (vec![failing], None),
            (vec![failing, failing], None),
            (vec![failing, failing, failing], Some(10)),
            (vec![HostAnswer::Silent, HostAnswer::Silent], None),
            (vec![HostAnswer::Silent, failing, HostAnswer::Silent], Some(10)),
            (vec![failing, failing, HostAnswer::Fine, failing], None),
            (vec![busy(None)], Some(10)),
            (vec![busy(Some(120))], Some(120)),
            (vec![busy(Some(0))], Some(10)),
            (vec![busy(Some(999_999))], Some(86_400)),
        ] {
            assert_eq!(pause_after(&outcomes), expected, "{outcomes:?}");
        }
    }

    #[test]
    fn jitter_stays_within_a_quarter() {
        for (jitter, millis) in [(0.0, 7_500), (0.5, 10_000), (1.0, 12_500), (9.0, 12_500)] {
            let pause = HostState::default().record(HostAnswer::Unreachable, START, jitter);
            assert_eq!(pause, Some(Duration::from_millis(millis)));
        }
    }

    #[test]
    fn a_paused_host_is_left_alone_then_probed_then_open() {
        let manners = Manners { at_once: 2, spacing: Duration::ZERO };
        let mut host = HostState::default();
        assert_eq!(host.admit(&manners, at(0)), Admission::Go);
        host.in_flight = 1;
        assert_eq!(host.admit(&manners, at(0)), Admission::Go);
        host.in_flight = 2;
        assert_eq!(host.admit(&manners, at(0)), Admission::Wait);
        host.in_flight = 0;

        host.record(HostAnswer::Unreachable, at(0), 0.5);
        let later = Admission::Later { after: Duration::from_secs(6), why: Why::Unreachable };
        assert_eq!(host.admit(&manners, at(4)), later);

        assert_eq!(host.admit(&manners, at(10)), Admission::Go, "the pause is over: one request probes");
        host.in_flight = 1;
        assert_eq!(host.admit(&manners, at(10)), Admission::Wait, "and the others wait for it");

        let mut worse = host.clone();
        worse.record(HostAnswer::Unreachable, at(11), 0.5);
        assert!(
            matches!(worse.admit(&manners, at(11)), Admission::Later { after, .. } if after.as_secs() == 20)
        );

        host.record(HostAnswer::Fine, at(11), 0.5);
        assert_eq!(host.admit(&manners, at(11)), Admission::Go);
    }

    #[test]
    fn a_clock_set_back_ends_the_pause() {
        let mut host = HostState::default();
        host.record(HostAnswer::Unreachable, at(1_000), 0.5);
        assert_eq!(host.admit(&Manners::default(), at(500)), Admission::Go);
    }
}
