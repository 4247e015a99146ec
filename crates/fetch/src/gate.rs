//! Admits requests: by the limits of the host, by the total limit, and depending on the host's health.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use url::Url;

use super::error::Error;
use super::polite::{Admission, HostAnswer, HostState, Manners};
use stdx::time::Clock;

/// Hosts remembered at once; beyond it, even pauses are forgotten.
const HOSTS: usize = 20_000;
/// From so many on, hosts of which there is nothing to remember are forgotten.
const TIDY_FROM: usize = 1_000;
/// A second request this soon after the first makes it worth keeping the connection.
const SOON: Duration = Duration::from_secs(10);

/// Admits requests, host by host.
#[derive(Debug)]
pub(super) struct Gate {
    clock: Clock,
    hosts: Mutex<HashMap<Box<str>, Host>>,
    /// So many hosts are tidied next time.
    tidy_at: AtomicUsize,
    places: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Host {
    state: HostState,
    waiting: u32,
    /// Wakes waiting requests; `None` for most hosts.
    freed: Option<Arc<Notify>>,
    next_start: Option<Instant>,
    last_start: Option<Instant>,
}

/// The admission of one request; dropping it ends the request.
#[derive(Debug)]
pub(super) struct Pass {
    gate: Arc<Gate>,
    key: Box<str>,
    place: Option<OwnedSemaphorePermit>,
    /// Whether the connection should be kept open for further requests to this host.
    pub(super) keep_connection: bool,
}

impl Gate {
    pub(super) fn new(clock: Clock, at_once: usize) -> Self {
        let places = Arc::new(Semaphore::new(at_once.max(1)));
        Self { clock, hosts: Mutex::default(), tidy_at: AtomicUsize::new(TIDY_FROM), places }
    }

    /// Waits until a request to the host of `url` may start, or fails if the host is paused.
    ///
    /// The host comes first, so that requests waiting for one host do not use up the total limit.
    pub(super) async fn enter(self: &Arc<Self>, url: &Url, manners: &Manners) -> Result<Pass, Error> {
        let key: Box<str> = url.origin().ascii_serialization().into();
        let (mut pass, start_in) = self.take_turn(&key, url, manners).await?;
        if !start_in.is_zero() {
            tokio::time::sleep(start_in).await;
        }
        pass.place = Arc::clone(&self.places).acquire_owned().await.ok();
        Ok(pass)
    }

    async fn take_turn(
        self: &Arc<Self>,
        key: &str,
        url: &Url,
        manners: &Manners,
    ) -> Result<(Pass, Duration), Error> {
        let mut queued = None;
        loop {
            let freed = {
                let mut hosts = self.hosts.lock();
                self.prune(&mut hosts, key);
                let host = hosts.entry(key.into()).or_default();
                let now = self.clock.now();
                match host.state.admit(manners, now) {
                    Admission::Go => {
                        let (start_in, keep_connection) = host.start(manners, Instant::now());
                        if host.waiting > 0 && host.state.admit(manners, now) == Admission::Go {
                            host.wake_one();
                        }
                        let pass =
                            Pass { gate: Arc::clone(self), key: key.into(), place: None, keep_connection };
                        return Ok((pass, start_in));
                    }
                    Admission::Later { after, why } => {
                        let host = url.host_str().unwrap_or_default().to_owned();
                        return Err(Error::Later { host, after, why, is_sent: false });
                    }
                    Admission::Wait => {
                        queued.get_or_insert_with(|| {
                            host.waiting += 1;
                            Queued { gate: self, key }
                        });
                        Arc::clone(host.freed.get_or_insert_default()).notified_owned()
                    }
                }
            };
            freed.await;
        }
    }

    /// Records the outcome of a request in the host's health; returns how long the host is paused now.
    fn record(&self, key: &str, outcome: HostAnswer) -> Option<Duration> {
        let mut hosts = self.hosts.lock();
        let host = hosts.get_mut(key)?;
        let pause = host.state.record(outcome, self.clock.now(), jitter());
        if let Some(freed) = host.freed.as_ref().filter(|_| pause.is_some()) {
            freed.notify_waiters();
        }
        pause
    }

    fn leave(&self, key: &str) {
        if let Some(host) = self.hosts.lock().get_mut(key) {
            host.state.in_flight = host.state.in_flight.saturating_sub(1);
            host.wake_one();
        }
    }

    fn prune(&self, hosts: &mut HashMap<Box<str>, Host>, key: &str) {
        if hosts.len() < self.tidy_at.load(Ordering::Relaxed) || hosts.contains_key(key) {
            return;
        }
        let now = Instant::now();
        hosts.retain(|_, host| host.is_used() || host.state.has_failed() || host.is_spaced(now));
        if hosts.len() >= HOSTS {
            let now = self.clock.now();
            hosts.retain(|_, host| host.is_used() || host.state.is_paused(now));
        }
        if hosts.len() >= HOSTS {
            hosts.retain(|_, host| host.is_used());
        }
        // Twice as many as are left: a look at all of them for each new one would take longer and longer.
        self.tidy_at.store((2 * hosts.len()).clamp(TIDY_FROM, HOSTS), Ordering::Relaxed);
    }
}

impl Host {
    fn is_used(&self) -> bool {
        self.state.in_flight > 0 || self.waiting > 0
    }

    /// Whether its next request still has to wait for the spacing.
    fn is_spaced(&self, now: Instant) -> bool {
        self.next_start.is_some_and(|next| next > now)
    }

    /// Wakes one of those who wait, if there are any.
    fn wake_one(&self) {
        if let Some(freed) = self.freed.as_ref().filter(|_| self.waiting > 0) {
            freed.notify_one();
        }
    }

    /// Schedules the next start; returns how long to wait for it and whether to keep the connection open.
    fn start(&mut self, manners: &Manners, now: Instant) -> (Duration, bool) {
        let start = self.next_start.map_or(now, |next| next.max(now));
        let keep = self.is_used() || self.last_start.is_some_and(|last| now.duration_since(last) < SOON);
        self.state.in_flight += 1;
        self.next_start = Some(start + manners.spacing);
        self.last_start = Some(start);
        (start - now, keep)
    }
}

impl Pass {
    /// Records the outcome of the request; returns how long the host is paused now.
    pub(super) fn record(&self, outcome: HostAnswer) -> Option<Duration> {
        self.gate.record(&self.key, outcome)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.leave(&self.key);
    }
}

/// Counts a request as waiting until it is dropped.
struct Queued<'a> {
    gate: &'a Gate,
    key: &'a str,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if let Some(host) = self.gate.hosts.lock().get_mut(self.key) {
            host.waiting = host.waiting.saturating_sub(1);
        }
    }
}

/// A random number in 0..1.
fn jitter() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_hosts_take_a_megabyte() {
        assert!(size_of::<(Box<str>, Host)>() <= 80, "{}", size_of::<(Box<str>, Host)>());
    }

    #[tokio::test]
    async fn hosts_at_rest_are_forgotten_before_they_fill_the_memory() {
        let gate = Arc::new(Gate::new(Clock::manual(stdx::time::Timestamp::MIN), 10));
        let url = |host: usize| Url::parse(&format!("http://h{host}.example/")).unwrap();
        let manners = Manners { spacing: Duration::ZERO, ..Manners::default() };
        let busy = gate.enter(&url(0), &manners).await.unwrap();
        gate.enter(&url(1), &manners).await.unwrap().record(HostAnswer::Unreachable);
        let spaced = Manners { spacing: Duration::from_secs(60), ..manners };
        drop(gate.enter(&url(2), &spaced).await.unwrap());
        for host in 3..2 * TIDY_FROM {
            drop(gate.enter(&url(host), &manners).await.unwrap());
        }
        assert!(gate.hosts.lock().contains_key("http://h2.example"), "its spacing is not over");
        assert!(gate.hosts.lock().len() <= TIDY_FROM, "{}", gate.hosts.lock().len());
        assert!(matches!(gate.enter(&url(1), &manners).await, Err(Error::Later { .. })), "a pause is kept");
        drop(busy);
        assert!(!gate.hosts.lock().values().any(Host::is_used));
        for host in 0..HOSTS + 10 {
            gate.enter(&url(host + HOSTS), &manners).await.unwrap().record(HostAnswer::Unreachable);
        }
        assert!(gate.hosts.lock().len() <= HOSTS, "{}", gate.hosts.lock().len());
    }

    #[tokio::test]
    async fn a_connection_is_kept_only_for_a_host_that_is_asked_again() {
        let gate = Arc::new(Gate::new(Clock::system(), 10));
        let manners = Manners::client();
        let at = |text: &str| Url::parse(text).unwrap();
        let first = gate.enter(&at("http://a.example/1"), &manners).await.unwrap();
        let second = gate.enter(&at("http://a.example/2"), &manners).await.unwrap();
        let other = gate.enter(&at("http://a.example:81/"), &manners).await.unwrap();
        assert_eq!([first, second, other].map(|pass| pass.keep_connection), [false, true, false]);
        let again = gate.enter(&at("http://a.example:81/"), &manners).await.unwrap();
        assert!(again.keep_connection);
    }
}
