//! Log lines on stderr, as text or JSON, with every known secret redacted.

use std::fmt::{self, Write as _};
use std::io;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use super::{Global, LogFormat, progress};
use tsuzuki::config::Redacting;
use tsuzuki::engine::runner::VERBATIM;

/// Starts logging. `usual` is the level without `-q`, `-v` and `TSUZUKI_LOG`.
pub(super) fn start(global: &Global, usual: &str, colour: bool) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (_, true) => "debug",
        _ => usual,
    };
    let filter = EnvFilter::try_from_env("TSUZUKI_LOG")
        .unwrap_or_else(|_| EnvFilter::new(format!("off,tsuzuki={level}")));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Stderr);
    // A second start, as in tests, has no effect.
    let _ = match global.log_format {
        LogFormat::Json => builder.json().flatten_event(true).with_target(false).try_init(),
        LogFormat::Human => builder.with_ansi(colour).event_format(ForPeople::new()).try_init(),
    };
}

/// Lines with a level; those of the `VERBATIM` target, which operators search for, are printed without one.
struct ForPeople(Format<Full, ()>);

impl ForPeople {
    fn new() -> Self {
        Self(Format::default().without_time().with_target(false))
    }
}

impl<S, N> FormatEvent<S, N> for ForPeople
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().target() != VERBATIM {
            return self.0.format_event(context, writer, event);
        }
        let mut text = EventText(String::new());
        event.record(&mut text);
        writeln!(writer, "{}", text.0)
    }
}

/// The text of an event without its fields.
struct EventText(String);

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string cannot fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[derive(Clone, Copy)]
struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Redacting<Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        Redacting::new(Stderr)
    }
}

/// Hides progress bars while a line is written.
impl io::Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() { Ok(0) } else { progress::above(|| io::stderr().write(bytes)) }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
