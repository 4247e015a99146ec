//! A story as lines: a title, facts, and sections below them.

use super::super::times::Times;
use crate::text::one_line;

/// Columns of the names of facts.
const NAMES: usize = 16;

/// What is told about one thing, line by line.
pub(super) struct Page<'a> {
    pub(super) times: &'a Times,
    lines: Vec<String>,
}

impl<'a> Page<'a> {
    pub(super) fn new(times: &'a Times) -> Self {
        Self { times, lines: Vec::new() }
    }

    /// What it is.
    pub(super) fn title(&mut self, text: impl AsRef<str>) {
        self.lines.push(one_line(text.as_ref()));
    }

    /// Something about it; nothing for what is not known.
    pub(super) fn fact(&mut self, name: &str, value: impl Into<Option<String>>) {
        if let Some(value) = value.into() {
            self.lines.push(format!("  {name:<NAMES$}{}", one_line(&value)));
        }
    }

    /// Several lines of one kind; nothing when there are none.
    pub(super) fn section(&mut self, name: &str, lines: impl IntoIterator<Item = String>) {
        let mut lines = lines.into_iter().peekable();
        if lines.peek().is_some() {
            self.lines.push(format!("  {name}"));
            self.lines.extend(lines.map(|line| format!("    {line}")));
        }
    }

    /// The lines, in order.
    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines
    }
}
