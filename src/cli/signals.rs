//! Ctrl-C and SIGTERM, received on a thread of their own: a command that is busy or waits for its input cannot miss them.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Exit, Output};

/// How long a command that loses nothing may take to end by itself.
const GRACE: Duration = Duration::from_millis(500);

/// What becomes of a command when the first signal comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopping {
    /// It is cut off if it does not end at once: it only reads, or writes in one step.
    CutOff,
    /// It saves what it has, and ends by itself.
    Graceful,
}

/// Cancels `stop` on the first signal; the second ends the program at once, and so does the first where nothing is lost.
pub(super) fn listen(stop: CancellationToken, out: Output, stopping: Stopping) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let watch = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let Ok(mut signals) = Signals::new() else { return };
            let _ = ready.send(());
            signals.next().await;
            stop.cancel();
            match stopping {
                Stopping::CutOff => drop(tokio::time::timeout(GRACE, signals.next()).await),
                Stopping::Graceful => signals.next().await,
            }
            out.conclude(Exit::Interrupted);
            #[allow(
                clippy::disallowed_methods,
                reason = "asked twice, or nothing to lose: what is saved is saved"
            )]
            std::process::exit(i32::from(Exit::Interrupted as u8));
        });
    };
    // Without the thread signals do what the system does with them, which is to end the program.
    if std::thread::Builder::new().name("signals".to_owned()).spawn(watch).is_ok() {
        let _ = is_ready.recv();
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
