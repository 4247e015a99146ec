//! How long a kernel has been running: the one clock that nobody can set, and that counts while the machine sleeps.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A moment by the boot clock of one kernel. Those of two kernels say nothing about each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uptime {
    kernel: String,
    millis: i64,
}

/// A text is not an uptime in the form that we write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an uptime such as 1c9f6a02-9f0e-4a51-8f60-6a1e8f2f9c11.4026531834@91827364")]
pub struct NotAnUptime(String);

impl Uptime {
    /// That many milliseconds after `kernel` started.
    pub fn new(kernel: &str, millis: i64) -> Self {
        Self { kernel: kernel.to_owned(), millis }
    }

    /// The present moment, where the system can tell.
    pub(super) fn now() -> Option<Self> {
        of_this_kernel()
    }

    /// This moment moved on by `span`.
    pub fn plus(&self, span: Duration) -> Self {
        let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self { kernel: self.kernel.clone(), millis: self.millis.saturating_add(span) }
    }

    /// How many milliseconds this moment is later than `other`, less than none if it is earlier; `None` between kernels.
    pub fn millis_after(&self, other: &Uptime) -> Option<i64> {
        (self.kernel == other.kernel).then(|| self.millis.saturating_sub(other.millis))
    }

    /// The span since `earlier`; none if that is of another kernel.
    pub fn since(&self, earlier: &Uptime) -> Duration {
        let millis = self.millis_after(earlier).and_then(|millis| u64::try_from(millis).ok());
        Duration::from_millis(millis.unwrap_or(0))
    }
}

#[cfg(target_os = "linux")]
fn of_this_kernel() -> Option<Uptime> {
    use std::sync::OnceLock;

    /// The boot, and the time namespace: a container may have a boot clock of its own.
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
