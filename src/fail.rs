//! Named points at which a test may kill the process, to see what a crash there leaves behind.
//!
//! Release builds have none of them.

/// Kills the process here if `TSUZUKI_FAIL_AT` names this point; does nothing otherwise.
#[inline]
pub fn point(name: &str) {
    #[cfg(debug_assertions)]
    armed::point(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The point to die at, and how often it is to be passed alive: `name` or `name:2`.
    static CHOSEN: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);

    pub(super) fn point(name: &str) {
        let chosen = CHOSEN.get_or_init(|| {
            let wanted = std::env::var("TSUZUKI_FAIL_AT").ok()?;
            let (name, times) = wanted.split_once(':').unwrap_or((&wanted, "0"));
            Some((name.to_owned(), times.parse().unwrap_or(0)))
        });
        if let Some((wanted, times)) = chosen
            && wanted == name
            && PASSED.fetch_add(1, Ordering::SeqCst) == *times
        {
            // As sudden as SIGKILL: no destructor runs, nothing is flushed.
            std::process::abort();
        }
    }
}
