//! Data to stdout as tables or JSON, words to stderr, and a closed pipe that is nobody's fault.

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;

use super::error::{Error, Message, Result};
use super::{Color, Global};
use crate::config::{Colour, Problems, redact};

/// Where a command writes.
#[derive(Clone, Debug)]
pub struct Output {
    json: bool,
    quiet: bool,
    colour_out: bool,
    colour_err: bool,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    name: &'static str,
    alignment: CellAlignment,
}

impl Column {
    /// A column of words.
    pub const fn left(name: &'static str) -> Self {
        Self { name, alignment: CellAlignment::Left }
    }

    /// A column of numbers.
    pub const fn right(name: &'static str) -> Self {
        Self { name, alignment: CellAlignment::Right }
    }
}

impl Output {
    pub(super) fn new(global: &Global) -> Self {
        let wanted = |is_terminal: bool| match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        Self {
            json: global.json,
            quiet: global.quiet,
            colour_out: wanted(std::io::stdout().is_terminal()),
            colour_err: wanted(std::io::stderr().is_terminal()),
        }
    }

    /// Whether data is wanted as JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether nothing is to be said when all is well.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether log lines and messages may be coloured.
    pub fn colours_messages(&self) -> bool {
        self.colour_err
    }

    /// Writes a line of data.
    pub fn line(&self, text: impl AsRef<str>) -> Result<()> {
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{}", redact(text.as_ref()))?;
        Ok(())
    }

    /// Writes text that already ends as it should, such as a script.
    pub fn raw(&self, bytes: &[u8]) -> Result<()> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(())
    }

    /// Writes a value as indented JSON.
    pub fn json<T: Serialize + ?Sized>(&self, value: &T) -> Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Error::failed(error.to_string()))?;
        self.line(text)
    }

    /// Writes a listing: a table for people, an array with `--json`.
    pub fn listing<T: Serialize>(
        &self,
        columns: &[Column],
        items: &[T],
        row: impl Fn(&T) -> Vec<String>,
    ) -> Result<()> {
        if self.json {
            return self.json(items);
        }
        if items.is_empty() {
            return Ok(());
        }
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(columns.iter().map(|column| column.name.to_uppercase()));
        for item in items {
            table.add_row(row(item).into_iter().map(|cell| crate::text::one_line(&cell)));
        }
        for (index, column) in columns.iter().enumerate() {
            if let Some(shown) = table.column_mut(index) {
                shown.set_cell_alignment(column.alignment);
                shown.set_padding(if index == 0 { (0, 1) } else { (1, 1) });
            }
        }
        for (number, line) in table.lines().enumerate() {
            let line = line.trim_end();
            let bold = Style::new().bold();
            match number == 0 && self.colour_out {
                true => self.line(format!("{bold}{line}{}", bold.render_reset()))?,
                false => self.line(line)?,
            }
        }
        Ok(())
    }

    /// Says something to the user, unless they want quiet.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.to_stderr(text.as_ref());
        }
    }

    /// Says that something is not as it should be, though the command goes on.
    pub fn warn(&self, text: impl AsRef<str>) {
        self.labelled("warning", AnsiColor::Yellow, text.as_ref());
    }

    /// Prints an error and its hints.
    pub fn error(&self, error: &Error) {
        match &error.message {
            Message::ClosedPipe => return,
            Message::Text(text) => self.labelled("error", AnsiColor::Red, text),
            Message::Problems(problems) => self.problems(problems),
        }
        for hint in &error.hints {
            self.labelled("hint", AnsiColor::Cyan, hint);
        }
    }

    /// Prints what is wrong with a config file, and where.
    pub fn problems(&self, problems: &Problems) {
        let colour = if self.colour_err { Colour::Always } else { Colour::Never };
        if !problems.is_empty() {
            self.to_stderr(problems.render(colour).trim_end());
        }
    }

    fn labelled(&self, label: &str, colour: AnsiColor, text: &str) {
        let style = Style::new().bold().fg_color(Some(colour.into()));
        match self.colour_err {
            true => self.to_stderr(&format!("{style}{label}{}: {text}", style.render_reset())),
            false => self.to_stderr(&format!("{label}: {text}")),
        }
    }

    fn to_stderr(&self, text: &str) {
        // If nobody listens on stderr there is nobody to tell about it.
        let _ = writeln!(std::io::stderr().lock(), "{}", redact(text));
    }
}
