//! A bar per job on a terminal; nothing elsewhere.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::Output;
use crate::engine::{Progress, Update};
use crate::id::JobName;

const STYLE: &str = "{prefix:16} {bar:30} {pos}/{len} {per_sec} {eta} {wide_msg}";

/// Progress that is drawn on stderr if a person is watching.
pub(super) fn drawn(out: &Output) -> Progress {
    if out.is_quiet() || out.is_json() || !std::io::stderr().is_terminal() {
        return Progress::default();
    }
    let bars = MultiProgress::new();
    let by_job: Mutex<HashMap<JobName, ProgressBar>> = Mutex::default();
    Progress::new(move |job, update| {
        let mut by_job = by_job.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = by_job.entry(job.clone()).or_insert_with(|| {
            let style = ProgressStyle::with_template(STYLE).unwrap_or_else(|_| ProgressStyle::default_bar());
            bars.add(ProgressBar::new(0).with_style(style).with_prefix(job.to_string()))
        });
        match update {
            Update::Total(total) => bar.set_length(total),
            Update::Done(more) => bar.inc(more),
            Update::Now(what) => bar.set_message(crate::text::shorten(&crate::text::one_line(&what), 60)),
        }
    })
}
