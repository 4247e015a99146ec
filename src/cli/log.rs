//! Log lines on stderr, for people or as JSON, with every known secret blotted out.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::{Global, LogFormat};
use crate::config::Redacting;

/// Starts logging. `usual` is the level when neither `-q`, `-v` nor `TSUZUKI_LOG` says otherwise.
pub(super) fn start(global: &Global, usual: &str, colour: bool) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (_, true) => "debug",
        _ => usual,
    };
    let filter = EnvFilter::try_from_env("TSUZUKI_LOG")
        .unwrap_or_else(|_| EnvFilter::new(format!("off,tsuzuki={level}")));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Stderr);
    // A second start, as in tests, keeps the first.
    let _ = match global.log_format {
        LogFormat::Json => builder.json().flatten_event(true).with_target(false).try_init(),
        LogFormat::Human => builder.with_ansi(colour).without_time().with_target(false).try_init(),
    };
}

#[derive(Clone, Copy)]
struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Redacting<io::Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        Redacting::new(io::stderr())
    }
}
