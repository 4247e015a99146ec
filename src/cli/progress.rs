//! A bar per job on a terminal; nothing elsewhere.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::Output;
use crate::engine::{Progress, Update};
use crate::id::JobName;

const STYLE: &str = "{prefix:16} {bar:30} {pos}/{len} {per_sec} {eta} {wide_msg}";

/// Progress that is drawn on stderr if a person is watching.
pub(super) fn drawn(out: &Output) -> Progress {
    Bars::new(out).progress()
}

/// The bars of all jobs; none if nobody is watching.
#[derive(Clone)]
pub(super) struct Bars(Option<Arc<Drawn>>);

#[derive(Default)]
struct Drawn {
    all: MultiProgress,
    by_job: Mutex<HashMap<JobName, ProgressBar>>,
}

impl Bars {
    pub(super) fn new(out: &Output) -> Self {
        let is_watched = !out.is_quiet() && !out.is_json() && std::io::stderr().is_terminal();
        Self(is_watched.then(Arc::default))
    }

    /// Progress that is drawn as these bars.
    pub(super) fn progress(&self) -> Progress {
        let Some(drawn) = self.0.clone() else { return Progress::default() };
        Progress::new(move |job, update| {
            let mut by_job = drawn.by_job();
            let bar = by_job.entry(job.clone()).or_insert_with(|| {
                let style =
                    ProgressStyle::with_template(STYLE).unwrap_or_else(|_| ProgressStyle::default_bar());
                drawn.all.add(ProgressBar::new(0).with_style(style).with_prefix(job.to_string()))
            });
            match update {
                Update::Total(total) => bar.set_length(total),
                Update::Done(more) => bar.inc(more),
                Update::Now(what) => bar.set_message(crate::text::shorten(&crate::text::one_line(&what), 60)),
            }
        })
    }

    /// Takes the bar of `job` away and writes in its place, while the others stand back.
    pub(super) fn end<T>(&self, job: &JobName, write: impl FnOnce() -> T) -> T {
        let Some(drawn) = &self.0 else { return write() };
        if let Some(bar) = drawn.by_job().remove(job) {
            bar.finish_and_clear();
        }
        drawn.all.suspend(write)
    }
}

impl Drawn {
    fn by_job(&self) -> MutexGuard<'_, HashMap<JobName, ProgressBar>> {
        self.by_job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
