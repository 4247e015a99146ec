//! Writes data to stdout as tables or JSON, and messages to stderr; a closed pipe is not an error.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::error::{Error, Exit, Message, Result};
use super::table::{self, Cell, Column, Reader};
use super::{Color, Global};
use tsuzuki::config::{Colour, Problems, redact};
use tsuzuki::phrase;
use tsuzuki::phrase::{Phrase, Speech};
use tsuzuki::text;
use tsuzuki::time::Clock;

/// Where a command writes.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    colour_out: bool,
    colour_err: bool,
    clock: Clock,
    /// Language and time zone before the config is read.
    usual: Speech,
    /// Language and time zone of the config; shared by all clones.
    speech: Arc<OnceLock<Speech>>,
    /// Whether a message was printed; shared by all clones.
    has_spoken: Arc<AtomicBool>,
}

impl Output {
    pub(super) fn new(global: &Global, usual: Speech, clock: Clock) -> Self {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || is_dumb();
        let wanted = |is_terminal: bool| match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && !is_plain,
        };
        Self {
            json: global.json,
            quiet: global.quiet,
            colour_out: wanted(std::io::stdout().is_terminal()),
            colour_err: wanted(std::io::stderr().is_terminal()),
            clock,
            usual,
            speech: Arc::default(),
            has_spoken: Arc::default(),
        }
    }

    /// Sets language and time zone; the first call decides.
    pub(super) fn speak(&self, speech: Speech) {
        let _ = self.speech.set(speech);
    }

    /// The language and time zone of output.
    pub(super) fn speech(&self) -> &Speech {
        self.speech.get().unwrap_or(&self.usual)
    }

    /// Whether to print data as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether to print only problems.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether log lines and messages may be coloured.
    pub(crate) fn colours_messages(&self) -> bool {
        self.colour_err
    }

    /// Writes one or more lines of data, without control sequences.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> Result<()> {
        self.to_stdout(&text::printable(text.as_ref()))
    }

    /// Writes lines of text, wrapped between words on a terminal.
    pub(super) fn prose(&self, text: impl AsRef<str>) -> Result<()> {
        let Some((width, _)) = terminal_size() else { return self.line(text) };
        text.as_ref()
            .split('\n')
            .flat_map(|line| table::wrap_line(line, width))
            .try_for_each(|line| self.line(line))
    }

    fn to_stdout(&self, text: &str) -> Result<()> {
        // With `--json -q` the output is only data, not a message to the user.
        if !(self.json && self.quiet) {
            self.has_spoken.store(true, Ordering::Relaxed);
        }
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{}", redact(text))?;
        Ok(())
    }

    /// Writes complete text unchanged, such as a script.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<()> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(())
    }

    /// Writes a value as indented JSON.
    pub(crate) fn json<T: Serialize + ?Sized>(&self, value: &T) -> Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Error::failed(error.to_string()))?;
        self.to_stdout(&text::printable_json(&text))
    }

    /// Writes a value as JSON with `--json`, else a line.
    pub(crate) fn json_or_line<T: Serialize + ?Sized>(&self, value: &T, line: impl AsRef<str>) -> Result<()> {
        if self.json { self.json(value) } else { self.line(line) }
    }

    /// Ends a command that has nothing to show: as JSON that is `null`.
    pub(crate) fn nothing(&self) -> Result<Exit> {
        if self.json {
            self.json(&())?;
        }
        Ok(Exit::Fine)
    }

    /// Writes a listing: a table for people, an array with `--json`.
    pub(crate) fn listing<T: Serialize>(
        &self,
        columns: &[Column],
        items: &[T],
        row: impl Fn(&T) -> Vec<Cell>,
    ) -> Result<Exit> {
        if self.json {
            self.json(items)?;
        } else if items.is_empty() {
            self.note(phrase!("Nothing to list.", "該当するものはありません。"));
        } else {
            let rows: Vec<Vec<Cell>> = items.iter().map(row).collect();
            self.render_table(columns, &rows).iter().try_for_each(|line| self.to_stdout(line))?;
        }
        Ok(Exit::Fine)
    }

    /// Renders a table as lines, for the terminal if stdout is one.
    pub(super) fn render_table(&self, columns: &[Column], rows: &[Vec<Cell>]) -> Vec<String> {
        let width = terminal_size().map(|(width, _)| width);
        let (speech, now, has_colour) = (self.speech(), self.clock.now(), self.colour_out);
        table::render(columns, rows, &Reader { speech, now, width, has_colour })
    }

    /// Redraws a table and notices in place. A terminal with too few rows shows less of the table, with a note; without
    /// a terminal the lines are appended.
    pub(super) fn redraw(&self, table: &[String], notices: &[String]) -> Result<()> {
        let Some((width, height)) = terminal_size().filter(|_| !self.json && !is_dumb()) else {
            table.iter().chain(notices).try_for_each(|line| self.to_stdout(line))?;
            return self.to_stdout("");
        };
        let notices: Vec<String> = notices.iter().flat_map(|line| table::wrap_line(line, width)).collect();
        let rows = height.saturating_sub(1);
        let mut lines = table.to_vec();
        if lines.len() + notices.len() > rows {
            lines.truncate(rows.saturating_sub(notices.len() + 1));
            let hidden = table.len() - lines.len();
            lines.push(self.speech().phrase(&phrase!(
                "… {hidden line} more; a taller window shows them",
                "… ほか {hidden} 行（ウィンドウを縦に広げると表示されます）"
            )));
        }
        lines.extend(notices);
        let mut screen = String::from("\u{1b}[H");
        for line in lines.iter().take(rows) {
            // Each line is cleared after its end, which avoids flicker.
            screen.push_str(&format!("{}\u{1b}[K\r\n", redact(line)));
        }
        screen.push_str("\u{1b}[J");
        self.raw(screen.as_bytes())
    }

    /// Prints a message, unless `-q` is set.
    pub(crate) fn note(&self, text: impl Into<Phrase>) {
        if !self.quiet {
            self.to_stderr(&wrap_for_stderr(&text::printable(&self.speech().phrase(&text.into()))));
        }
    }

    /// Prints what was done, and ends the command successfully.
    pub(crate) fn done(&self, text: impl Into<Phrase>) -> Result<Exit> {
        self.note(text);
        Ok(Exit::Fine)
    }

    /// Prints a question; the answer follows on the same line.
    pub(super) fn prompt(&self, question: &Phrase) {
        let text = wrap_for_stderr(&text::printable(&self.speech().phrase(question)));
        // If stderr is closed, nobody answers either.
        let _ = write!(std::io::stderr().lock(), "{text}: ");
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: impl Into<Phrase>) {
        self.labelled(&phrase!("warning", "警告"), AnsiColor::Yellow, &text.into());
    }

    /// Prints an error and its hints, as JSON with `--json`.
    pub(crate) fn error(&self, error: &Error) {
        if matches!(error.message, Message::ClosedPipe) {
            return;
        }
        if self.json {
            let text = serde_json::to_string_pretty(&error.to_json()).unwrap_or_default();
            return self.to_stderr(&text::printable_json(&text));
        }
        match &error.message {
            Message::ClosedPipe => {}
            Message::Text(text) => self.labelled(&phrase!("error", "エラー"), AnsiColor::Red, text),
            Message::Problems(problems) => self.problems(problems),
        }
        for hint in &error.hints {
            self.labelled(&phrase!("hint", "ヒント"), AnsiColor::Cyan, hint);
        }
    }

    /// Prints the problems of a config file with their places.
    pub(crate) fn problems(&self, problems: &Problems) {
        let colour = if self.colour_err { Colour::Always } else { Colour::Never };
        if !problems.is_empty() {
            self.to_stderr(problems.render_in(self.speech().language, colour).trim_end());
        }
    }

    /// Prints the meaning of an exit code other than 0 if no message was printed before.
    pub(super) fn conclude(&self, exit: Exit) {
        if let Some(said) = exit.phrase().filter(|_| !self.has_spoken.load(Ordering::Relaxed)) {
            self.error(&Error::new(exit, said));
        }
    }

    fn labelled(&self, label: &Phrase, colour: AnsiColor, text: &Phrase) {
        let style = Style::new().bold().fg_color(Some(colour.into()));
        let (label, text) = (self.speech().phrase(label), text::printable(&self.speech().phrase(text)));
        let said = wrap_for_stderr(&format!("{label}: {text}"));
        match said.strip_prefix(&label).filter(|_| self.colour_err) {
            Some(rest) => self.to_stderr(&format!("{style}{label}{style:#}{rest}")),
            None => self.to_stderr(&said),
        }
    }

    fn to_stderr(&self, text: &str) {
        self.has_spoken.store(true, Ordering::Relaxed);
        // Ignore a closed stderr: there is no other place to report it.
        let _ = writeln!(std::io::stderr().lock(), "{}", redact(text));
    }
}

/// Words for people: on a terminal they break between words.
fn wrap_for_stderr(text: &str) -> String {
    let Some((width, _)) = size_of(std::io::stderr()) else { return text.to_owned() };
    text.split('\n').flat_map(|line| table::wrap_line(line, width)).collect::<Vec<_>>().join("\n")
}

/// Columns and rows of the terminal, if stdout is one.
pub(super) fn terminal_size() -> Option<(usize, usize)> {
    size_of(std::io::stdout())
}

fn size_of(stream: impl std::os::fd::AsFd) -> Option<(usize, usize)> {
    let (width, height) = terminal_size::terminal_size_of(stream)?;
    // A terminal without a known size reports 0.
    let known = |size: u16, usual: usize| if size == 0 { usual } else { usize::from(size) };
    Some((known(width.0, 80), known(height.0, 24)))
}

/// Whether the terminal supports no control sequences.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
