//! Positions of tables, keys and comments in the text of a config file, for edits.

use std::ops::Range;

use super::ConfigText;
use crate::tree::{Data, TomlEntry, TomlValue};

impl ConfigText {
    /// The line ending that the file uses.
    pub(super) fn newline(&self) -> &'static str {
        if self.text().contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// Whether a table was opened by a header line.
    pub(super) fn is_header(&self, value: &TomlValue) -> bool {
        matches!(value.data, Data::TomlTable(_)) && self.text()[value.span.clone()].starts_with('[')
    }

    pub(super) fn is_inline(&self, value: &TomlValue) -> bool {
        matches!(value.data, Data::TomlTable(_)) && self.text()[value.span.clone()].starts_with('{')
    }

    /// Whether a table only exists because of dotted keys.
    pub(super) fn is_dotted(&self, value: &TomlValue) -> bool {
        matches!(value.data, Data::TomlTable(_)) && !self.is_header(value) && !self.is_inline(value)
    }

    pub(super) fn is_list_of_headers(&self, value: &TomlValue) -> bool {
        matches!(&value.data, Data::Array(items) if items.iter().any(|item| self.is_header(item)))
    }

    /// Whether a value is written in several places: below headers, or by dotted keys.
    pub(super) fn is_spread(&self, value: &TomlValue) -> bool {
        self.is_header(value) || self.is_list_of_headers(value) || self.is_dotted(value)
    }

    /// The text between two items of an array, after the comma: a line break if the file uses them.
    pub(super) fn gap(&self, items: &[TomlValue], array: &Range<usize>) -> String {
        let last = items.last().map_or(array.start, |item| item.span.start);
        let line_start = self.line_start(last);
        let before = &self.text()[line_start..last];
        if before.trim().is_empty() && line_start > array.start {
            format!("{}{before}", self.newline())
        } else {
            " ".to_owned()
        }
    }

    /// Whether the key is the last part of a dotted one.
    pub(super) fn is_dotted_key(&self, entry: &TomlEntry) -> bool {
        self.text()[..entry.key_span.start].trim_end_matches([' ', '\t']).ends_with('.')
    }

    /// The end of the last value in the lines of this entry; `None` if it has its own headers.
    pub(super) fn end_of_pair(&self, entry: &TomlEntry) -> Option<usize> {
        let value = &entry.value;
        match &value.data {
            Data::TomlTable(inner) if self.is_dotted(value) => {
                inner.list().iter().filter_map(|entry| self.end_of_pair(entry)).max()
            }
            _ if self.is_header(value) || self.is_list_of_headers(value) => None,
            _ => Some(value.span.end),
        }
    }

    /// The end of a table including the tables inside it.
    pub(super) fn last_place(&self, value: &TomlValue) -> usize {
        let inner = match &value.data {
            Data::TomlTable(table) => table.list().iter().map(|entry| self.last_place(&entry.value)).max(),
            Data::Array(items) => items.iter().map(|item| self.last_place(item)).max(),
            Data::Text(_) | Data::Plain(_) => None,
        };
        inner.unwrap_or(0).max(value.span.end)
    }

    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text()[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The position after the newline that ends the line of `at`.
    pub(super) fn line_end(&self, at: usize) -> usize {
        self.text()[at..].find('\n').map_or(self.text().len(), |newline| at + newline + 1)
    }

    /// The lines of `range`; at the end of a file without a final newline, the newline before instead of the one after.
    pub(super) fn whole_lines(&self, range: Range<usize>) -> Range<usize> {
        let (start, end) = (self.line_start(range.start), self.line_end(range.end));
        if self.text()[..end].ends_with('\n') {
            return start..end;
        }
        let before = self.text()[..start].strip_suffix('\n').map_or(start, str::len);
        let before = self.text()[..before].strip_suffix('\r').map_or(before, str::len);
        before..end
    }

    /// The start of the comment lines directly above a line.
    pub(super) fn start_of_comment_above(&self, line_start: usize) -> usize {
        let mut start = line_start;
        while start > 0 {
            let above = self.line_start(start - 1);
            if !self.text()[above..start].trim_start().starts_with('#') {
                break;
            }
            start = above;
        }
        start
    }

    /// Whether the comment line at `at` is directly above a header, and so belongs to it.
    pub(super) fn is_comment_of_next_table(&self, at: usize) -> bool {
        let mut lines = self.text()[at..].lines().skip_while(|line| line.trim_start().starts_with('#'));
        lines.next().is_some_and(|line| line.trim_start().starts_with('['))
    }

    /// `range` with the blank lines after it or, at the end of the file, those before it.
    pub(super) fn with_blank_lines(&self, range: Range<usize>) -> Range<usize> {
        let Range { mut start, mut end } = range;
        for line in self.text()[end..].split_inclusive('\n') {
            if !line.trim().is_empty() {
                return start..end;
            }
            end += line.len();
        }
        while start > 0 {
            let above = self.line_start(start - 1);
            if !self.text()[above..start].trim().is_empty() {
                break;
            }
            start = above;
        }
        start..end
    }
}

/// The item that starts at `start`, with its comma.
pub(super) fn item_with_comma(places: &[Range<usize>], start: usize) -> Range<usize> {
    let index = places.iter().position(|place| place.start == start).unwrap_or(0);
    match (index.checked_sub(1).and_then(|before| places.get(before)), places.get(index + 1)) {
        (Some(before), _) => before.end..places[index].end,
        (None, Some(next)) => start..next.start,
        (None, None) => places[index].clone(),
    }
}
