//! Data to stdout as tables or JSON, words to stderr, and a closed pipe that is nobody's fault.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;

use super::error::{Error, Exit, Message, Result};
use super::{Color, Global};
use crate::config::{Colour, Problems, redact};
use crate::text;

/// Columns that a long text gets on a terminal, however narrow it is.
const NARROWEST: usize = 20;

/// Where a command writes.
#[derive(Clone, Debug)]
pub struct Output {
    json: bool,
    quiet: bool,
    colour_out: bool,
    colour_err: bool,
    /// Whether anything was said that people read; shared by all clones.
    has_spoken: Arc<AtomicBool>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    name: &'static str,
    label: Option<String>,
    alignment: CellAlignment,
    is_long: bool,
}

impl Column {
    /// A column of words.
    pub const fn left(name: &'static str) -> Self {
        Self { name, label: None, alignment: CellAlignment::Left, is_long: false }
    }

    /// A column of numbers.
    pub const fn right(name: &'static str) -> Self {
        Self { name, label: None, alignment: CellAlignment::Right, is_long: false }
    }

    /// A column of texts that are cut where a terminal ends, and never elsewhere.
    pub const fn long(name: &'static str) -> Self {
        Self { name, label: None, alignment: CellAlignment::Left, is_long: true }
    }

    /// The same with a word in brackets behind its name.
    pub fn labelled(self, label: &str) -> Self {
        Self { label: Some(label.to_owned()), ..self }
    }

    fn heading(&self) -> String {
        let name = self.name.to_uppercase();
        self.label.as_ref().map_or(name.clone(), |label| format!("{name} ({label})"))
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
            has_spoken: Arc::default(),
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

    /// Writes a line of data, or several, without what a terminal would obey: whoever wrote the words in it.
    pub fn line(&self, text: impl AsRef<str>) -> Result<()> {
        self.to_stdout(&text::printable(text.as_ref()))
    }

    /// Writes a text of several lines.
    pub fn text(&self, text: &str) -> Result<()> {
        self.line(text)
    }

    fn to_stdout(&self, text: &str) -> Result<()> {
        // Data for programs is no word to whoever reads the mails of cron.
        if !(self.json && self.quiet) {
            self.has_spoken.store(true, Ordering::Relaxed);
        }
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{}", redact(text))?;
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
        self.to_stdout(&text::printable_json(&text))
    }

    /// Ends a command that has nothing to show: as JSON that is `null`.
    pub fn nothing(&self) -> Result<Exit> {
        if self.json {
            self.json(&())?;
        }
        Ok(Exit::Fine)
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
            self.note("Nothing to list.");
            return Ok(());
        }
        let mut rows: Vec<Vec<String>> =
            items.iter().map(|item| row(item).iter().map(|cell| text::one_line(cell)).collect()).collect();
        if let Some(width) = terminal_width() {
            fit(columns, &mut rows, width);
        }
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(columns.iter().map(Column::heading));
        table.add_rows(rows);
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
                true => self.to_stdout(&format!("{bold}{line}{}", bold.render_reset()))?,
                false => self.line(line)?,
            }
        }
        Ok(())
    }

    /// Says something to the user, unless they want quiet.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.to_stderr(&text::printable(text.as_ref()));
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

    /// Says why the program ends as it does if nobody has: an exit code that is not 0 never stands alone.
    pub(super) fn conclude(&self, exit: Exit) {
        if let Some(words) = exit.words().filter(|_| !self.has_spoken.load(Ordering::Relaxed)) {
            self.labelled("error", AnsiColor::Red, words);
        }
    }

    fn labelled(&self, label: &str, colour: AnsiColor, text: &str) {
        let style = Style::new().bold().fg_color(Some(colour.into()));
        let text = text::printable(text);
        match self.colour_err {
            true => self.to_stderr(&format!("{style}{label}{}: {text}", style.render_reset())),
            false => self.to_stderr(&format!("{label}: {text}")),
        }
    }

    fn to_stderr(&self, text: &str) {
        self.has_spoken.store(true, Ordering::Relaxed);
        // If nobody listens on stderr there is nobody to tell about it.
        let _ = writeln!(std::io::stderr().lock(), "{}", redact(text));
    }
}

/// Columns of the terminal that stdout is, if it is one.
fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Cuts the cells of long columns so that the table is not wider than `width`.
fn fit(columns: &[Column], rows: &mut [Vec<String>], width: usize) {
    let widest = |index: usize, column: &Column| {
        let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| text::width(cell));
        cells.max().unwrap_or(0).max(text::width(&column.heading()))
    };
    let (mut taken, mut long) = (2 * columns.len().saturating_sub(1), Vec::new());
    for (index, column) in columns.iter().enumerate() {
        match column.is_long {
            true => long.push(index),
            false => taken += widest(index, column),
        }
    }
    let room = (width.saturating_sub(taken) / long.len().max(1)).max(NARROWEST);
    for row in rows {
        for index in &long {
            if let Some(cell) = row.get_mut(*index) {
                *cell = text::shorten(cell, room);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_get_what_the_terminal_has_left_and_others_are_never_cut() {
        let columns = [Column::left("id"), Column::long("last result"), Column::long("why")];
        let row = || vec!["1234567890".to_owned(), "あ".repeat(40), "b".repeat(70)];
        for (width, room) in [(100, 43), (54, 20), (10, 20), (300, 80)] {
            let mut rows = vec![row()];
            fit(&columns, &mut rows, width);
            assert_eq!(rows[0][0], "1234567890");
            assert_eq!(rows[0][1], text::shorten(&row()[1], room), "{width}");
            assert_eq!(rows[0][2], text::shorten(&row()[2], room), "{width}");
        }
    }
}
