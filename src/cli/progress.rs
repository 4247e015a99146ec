//! A progress bar per running job on a terminal, removed when the job ends; nothing without a terminal.

use std::collections::HashMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use parking_lot::{Mutex, MutexGuard};

use super::Output;
use tsuzuki::engine::{Progress, Update};
use tsuzuki::id::JobName;

/// The template while the total is unknown.
const UNCOUNTED: &str = "{prefix:16} {wide_msg}";
const COUNTED: &str = "{prefix:16} {bar:30} {pos}/{len} {rate} {left} {wide_msg}";

/// The bars on the terminal of this process, for code that writes lines above them.
static DRAWN: OnceLock<MultiProgress> = OnceLock::new();

/// Progress that is drawn on stderr if it is a terminal.
pub(super) fn drawn(out: &Output) -> Progress {
    Bars::new(out).progress()
}

/// Writes to the terminal while bars are hidden.
pub(super) fn above<T>(write: impl FnOnce() -> T) -> T {
    match DRAWN.get() {
        Some(all) => all.suspend(write),
        None => write(),
    }
}

/// The bars of all jobs; none without a terminal.
#[derive(Clone)]
pub(super) struct Bars(Option<Arc<Drawn>>);

struct Drawn {
    all: MultiProgress,
    /// `None` for a job that has ended.
    by_job: Mutex<HashMap<JobName, Option<ProgressBar>>>,
}

impl Bars {
    pub(super) fn new(out: &Output) -> Self {
        let is_watched = !out.is_quiet() && !out.is_json() && std::io::stderr().is_terminal();
        Self(is_watched.then(|| {
            let all = DRAWN.get_or_init(MultiProgress::new).clone();
            Arc::new(Drawn { all, by_job: Mutex::default() })
        }))
    }

    /// Progress that is drawn as these bars.
    pub(super) fn progress(&self) -> Progress {
        let Some(drawn) = self.0.clone() else { return Progress::default() };
        Progress::new(move |job, update| {
            let mut by_job = drawn.by_job();
            let bar = by_job.entry(job.clone()).or_insert_with(|| {
                let bar = ProgressBar::no_length().with_style(style(UNCOUNTED)).with_prefix(job.to_string());
                Some(drawn.all.add(bar))
            });
            if let Some(bar) = bar {
                draw(bar, update);
            }
        })
    }

    /// Removes the bar of `job` and writes in its place, while the others are hidden.
    pub(super) fn end<T>(&self, job: &JobName, write: impl FnOnce() -> T) -> T {
        let Some(drawn) = &self.0 else { return write() };
        if let Some(bar) = drawn.by_job().insert(job.clone(), None).flatten() {
            bar.finish_and_clear();
            drawn.all.remove(&bar);
        }
        drawn.all.suspend(write)
    }
}

impl Drawn {
    fn by_job(&self) -> MutexGuard<'_, HashMap<JobName, Option<ProgressBar>>> {
        self.by_job.lock()
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        for bar in self.by_job().drain().filter_map(|(_, bar)| bar) {
            bar.finish_and_clear();
        }
    }
}

/// A total restarts the count. Steps beyond an estimated total do not exceed it.
fn draw(bar: &ProgressBar, update: Update) {
    match update {
        Update::Total(0) => {}
        Update::Total(total) => {
            bar.set_position(0);
            bar.set_length(total);
            bar.set_style(style(COUNTED));
        }
        Update::Done(more) => {
            let most = bar.length().unwrap_or(u64::MAX);
            bar.set_position(bar.position().saturating_add(more).min(most));
        }
        Update::Now(what) => bar.set_message(tsuzuki::text::shorten(&tsuzuki::text::one_line(&what), 120)),
    }
}

/// The style of a bar. `{rate}` and `{left}` are empty until they are known.
pub(super) fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let rate = |state: &ProgressState, out: &mut dyn Write| {
        let rate = state.per_sec();
        let _ = match state.pos() {
            0 => Ok(()),
            _ if rate < 10.0 => write!(out, "{rate:.1}/s"),
            _ => write!(out, "{rate:.0}/s"),
        };
    };
    let left = |state: &ProgressState, out: &mut dyn Write| {
        if state.pos() > 0 {
            let _ = write!(out, "{:#}", HumanDuration(state.eta()));
        }
    };
    style.with_key("rate", rate).with_key("left", left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_never_exceeds_its_total_and_a_new_total_begins_anew() {
        let bar = ProgressBar::hidden();
        for (update, shown) in [
            (Update::Now("reading".into()), (0, None)),
            (Update::Total(0), (0, None)),
            (Update::Total(40), (0, Some(40))),
            (Update::Done(30), (30, Some(40))),
            (Update::Done(30), (40, Some(40))),
            (Update::Total(3), (0, Some(3))),
            (Update::Done(1), (1, Some(3))),
        ] {
            draw(&bar, update);
            assert_eq!((bar.position(), bar.length()), shown);
        }
    }
}
