//! Ctrl-C, SIGTERM and the end of a terminal, received on a separate thread: a command that is busy or waits for input
//! cannot miss them.

use std::io::IsTerminal as _;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Exit, Output};

/// How long a read-only command may take to end by itself.
const GRACE: Duration = Duration::from_millis(500);

/// What the first signal does to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopping {
    /// Ends it after a moment: it only reads, or writes in one step.
    CutOff,
    /// It saves its work and ends by itself.
    Graceful,
    /// The same, but a SIGHUP without a terminal reloads its config.
    Daemon,
}

impl Stopping {
    /// Whether SIGHUP, the end of its terminal, stops it. Under `nohup` it does not.
    fn by_hangup(self) -> bool {
        (self != Stopping::Daemon || has_terminal()) && !ignores_hangups()
    }
}

/// Whether the program was started in a terminal, and not as a daemon.
pub(super) fn has_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Whether SIGHUP is ignored; true if that cannot be determined.
fn ignores_hangups() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & HANGUP != 0)
}

/// Cancels `stop` on the first signal. The second ends the program at once; so does the first if nothing is lost.
pub(super) fn listen(stop: CancellationToken, out: Output, stopping: Stopping) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let watch = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let Ok(mut signals) = Signals::new(stopping.by_hangup()) else { return };
            let _ = ready.send(());
            signals.next().await;
            stop.cancel();
            match stopping {
                Stopping::CutOff => drop(tokio::time::timeout(GRACE, signals.next()).await),
                Stopping::Graceful | Stopping::Daemon => signals.next().await,
            }
            out.conclude(Exit::Interrupted);
            #[allow(
                clippy::disallowed_methods,
                reason = "a second signal, or nothing to lose: saved data stays saved"
            )]
            std::process::exit(i32::from(Exit::Interrupted as u8));
        });
    };
    // Without the thread signals have their default action, which ends the program.
    if std::thread::Builder::new().name("signals".to_owned()).spawn(watch).is_ok() {
        let _ = is_ready.recv();
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new(by_hangup: bool) -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: by_hangup.then(|| signal(SignalKind::hangup())).transpose()?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hangup(&mut self.hangup) => {}
        }
    }
}

/// Waits for a SIGHUP; for ever if there is no handler.
#[cfg(unix)]
async fn hangup(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new(_by_hangup: bool) -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
