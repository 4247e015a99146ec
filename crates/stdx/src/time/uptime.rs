//! Uptime: the only clock that nobody can set, and that continues while the machine sleeps.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A time by the boot clock of one kernel. Those of different kernels cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uptime {
    kernel: String,
    millis: i64,
}

/// An invalid text of an uptime.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an uptime such as 1c9f6a02-9f0e-4a51-8f60-6a1e8f2f9c11.4026531834@91827364")]
pub struct NotAnUptime(String);

impl Uptime {
    /// So many milliseconds after the start of `kernel`.
    pub fn new(kernel: &str, millis: i64) -> Self {
        Self { kernel: kernel.to_owned(), millis }
    }

    /// The present uptime, if the system reports it.
    pub(super) fn now() -> Option<Self> {
        of_this_kernel()
    }

    /// Adds a duration.
    pub fn plus(&self, span: Duration) -> Self {
        let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self { kernel: self.kernel.clone(), millis: self.millis.saturating_add(span) }
    }

    /// By how many milliseconds this is later than `other`, negative if earlier; `None` for different kernels.
    pub fn millis_after(&self, other: &Uptime) -> Option<i64> {
        (self.kernel == other.kernel).then(|| self.millis.saturating_sub(other.millis))
    }

    /// The duration since `earlier`; zero for another kernel.
    pub fn since(&self, earlier: &Uptime) -> Duration {
        let millis = self.millis_after(earlier).and_then(|millis| u64::try_from(millis).ok());
        Duration::from_millis(millis.unwrap_or(0))
    }
}

#[cfg(target_os = "linux")]
fn of_this_kernel() -> Option<Uptime> {
    use std::sync::OnceLock;

    /// The boot, and the time namespace: a container may have its own boot clock.
    static KERNEL: OnceLock<Option<String>> = OnceLock::new();
    let kernel = KERNEL.get_or_init(|| {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
        let namespace: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        Some(format!("{}.{namespace}", boot.trim())).filter(|_| !boot.trim().is_empty())
    });
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let millis = i64::try_from(Duration::try_from(time).ok()?.as_millis()).ok()?;
    Some(Uptime::new(kernel.as_deref()?, millis))
}

#[cfg(not(target_os = "linux"))]
fn of_this_kernel() -> Option<Uptime> {
    None
}

impl fmt::Display for Uptime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.kernel, self.millis)
    }
}

impl FromStr for Uptime {
    type Err = NotAnUptime;

    fn from_str(text: &str) -> Result<Self, NotAnUptime> {
        let parts = text.rsplit_once('@').and_then(|(kernel, millis)| Some((kernel, millis.parse().ok()?)));
        parts
            .filter(|(kernel, _)| !kernel.is_empty())
            .map(|(kernel, millis)| Self::new(kernel, millis))
            .ok_or_else(|| NotAnUptime(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uptime_reads_back_and_is_compared_within_one_kernel_only() {
        let moment = Uptime::new("boot.1", 5_000);
        assert_eq!(moment.to_string().parse(), Ok(moment.clone()));
        for bad in ["", "boot", "boot@", "@5", "boot@x"] {
            assert!(bad.parse::<Uptime>().is_err(), "{bad}");
        }
        let later = moment.plus(Duration::from_secs(2));
        assert_eq!((later.millis_after(&moment), moment.millis_after(&later)), (Some(2_000), Some(-2_000)));
        assert_eq!((later.since(&moment), moment.since(&later)), (Duration::from_secs(2), Duration::ZERO));
        let other = Uptime::new("boot.2", 9_000);
        assert_eq!((other.millis_after(&moment), other.since(&moment)), (None, Duration::ZERO));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_kernel_has_a_boot_clock_that_goes_on() {
        let (first, second) = (Uptime::now().unwrap(), Uptime::now().unwrap());
        assert!(second.millis_after(&first).is_some_and(|millis| millis >= 0), "{first} {second}");
    }
}
