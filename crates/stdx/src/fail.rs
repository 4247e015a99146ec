//! Named points at which a test can kill, stop or panic the process, to check the state after a crash or a stall.
//!
//! Release builds do not contain them.

use std::time::Duration;

/// Aborts the process if `TSUZUKI_FAIL_AT` names this point, stops it if `TSUZUKI_STOP_AT` does, and panics if
/// `TSUZUKI_PANIC_AT` does.
#[inline]
pub fn point(name: &str) {
    #[cfg(debug_assertions)]
    armed::point(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// `usual`, or the milliseconds in the variable `name`, by which a test shortens a wait.
#[inline]
pub fn duration(name: &str, usual: Duration) -> Duration {
    if cfg!(debug_assertions) {
        let millis = std::env::var(name).ok().and_then(|text| text.parse().ok());
        millis.map_or(usual, Duration::from_millis)
    } else {
        usual
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static FAIL: LazyLock<Option<Chosen>> = LazyLock::new(|| Chosen::read("TSUZUKI_FAIL_AT"));
    static STOP: LazyLock<Option<Chosen>> = LazyLock::new(|| Chosen::read("TSUZUKI_STOP_AT"));
    static PANIC: LazyLock<Option<Chosen>> = LazyLock::new(|| Chosen::read("TSUZUKI_PANIC_AT"));

    /// A point, and how often it is passed before: `name` or `name:2`.
    struct Chosen {
        name: String,
        times: u32,
        passed: AtomicU32,
    }

    impl Chosen {
        fn read(variable: &str) -> Option<Self> {
            let wanted = std::env::var(variable).ok()?;
            let (name, times) = wanted.split_once(':').unwrap_or((&wanted, "0"));
            Some(Self { name: name.to_owned(), times: times.parse().unwrap_or(0), passed: AtomicU32::new(0) })
        }

        fn is_here(&self, name: &str) -> bool {
            self.name == name && self.passed.fetch_add(1, Ordering::SeqCst) == self.times
        }
    }

    pub(super) fn point(name: &str) {
        if FAIL.as_ref().is_some_and(|chosen| chosen.is_here(name)) {
            // Like SIGKILL: no destructor runs, nothing is flushed.
            std::process::abort();
        }
        assert!(!PANIC.as_ref().is_some_and(|chosen| chosen.is_here(name)), "asked to panic at `{name}`");
        if STOP.as_ref().is_some_and(|chosen| chosen.is_here(name)) {
            // The signal stops every thread; this one continues after SIGCONT. It is sent by a child process, which
            // ends a while later: wait for that, so that this thread does not run on until the signal has arrived.
            let me = std::process::id().to_string();
            let send = "kill -STOP \"$0\"; sleep 0.5";
            let _ = std::process::Command::new("sh").args(["-c", send, &me]).status();
        }
    }
}
