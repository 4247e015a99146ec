//! Edits of the config file that preserve all other bytes: comments, order, line endings, spacing.
//!
//! An edit replaces a part of the text at a position known from the parser; the file is never rewritten as a whole.

use std::ops::Range;

use super::diagnostic::{ConfigSource, Problem, Problems};
use super::read::not_toml;
use super::tree::{Data, TomlTable, TomlValue};
use stdx::phrase;
use stdx::phrase::Phrase;

mod places;
mod save;
mod tables;
#[cfg(test)]
mod tests;

use places::item_with_comma;
pub use save::ConfigFile;
pub use tables::Pairs;

/// Why an edit failed.
#[derive(Debug)]
pub enum EditError {
    /// The file has problems, now or after the edit.
    Problems(Problems),
    /// No job has that name.
    NoSuchJob(String),
    /// The job does not set that key.
    NoSuchKey { job: String, key: String },
    /// The format at this position is too unusual to be edited automatically.
    ByHand { key: String, line: usize },
    /// The file was changed since it was read.
    Changed(String),
    /// The file cannot be read or written.
    File { path: String, why: String },
}

impl EditError {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            Self::Problems(problems) => Phrase::verbatim(problems.to_string()),
            Self::NoSuchJob(name) => {
                phrase!("there is no job `{name}`", "ジョブ `{name}` はありません")
            }
            Self::NoSuchKey { job, key } => phrase!(
                "the job `{job}` does not set `{key}`",
                "ジョブ `{job}` に `{key}` の設定はありません"
            ),
            Self::ByHand { key, line } => phrase!(
                "`{key}` is written in a way that has to be edited by hand, in line {line}",
                "`{key}`（{line} 行目）は自動では変更できない書き方です。エディターで編集してください"
            ),
            Self::Changed(path) => phrase!(
                "`{path}` was changed by someone else meanwhile; nothing was written",
                "`{path}` がほかから変更されたため、書き込みませんでした"
            ),
            Self::File { path, why } => {
                phrase!("`{path}` cannot be changed: {why}", "`{path}` を変更できません：{why}")
            }
        }
    }
}

stdx::error_in_english!(EditError);

/// The text of a config file, being edited.
pub struct ConfigText {
    text: String,
    root: TomlTable,
}

impl ConfigText {
    /// Parses a text that is valid TOML, with or without other problems.
    pub fn parse(text: &str) -> Result<Self, EditError> {
        let problems = |errors: Vec<toml::de::Error>| {
            let source = ConfigSource::new(super::FILE_NAME, text);
            let of_one =
                |error: &toml::de::Error| Problem::at(&source, error.span().unwrap_or(0..0), not_toml(error));
            EditError::Problems(errors.iter().take(1).map(of_one).collect())
        };
        Ok(Self { text: text.to_owned(), root: TomlTable::parse(text).map_err(problems)? })
    }

    /// The text as it is now.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Adds a job at the end.
    pub fn add_job(&mut self, keys: &[(&str, toml::Value)]) -> Result<(), EditError> {
        if let Some(TomlValue { span, data: Data::Array(items) }) = self.root.find("job")
            && !items.iter().any(|item| self.is_header(item))
        {
            let (span, items, item) = (span.clone(), items.clone(), self.inline(keys));
            return self.push_item(&span, &items, &item);
        }
        self.add_block("[[job]]", keys)
    }

    /// Appends a table such as `[channel.NAME]`, which must not exist yet.
    pub fn add_table(&mut self, path: &[&str], keys: &[(&str, toml::Value)]) -> Result<(), EditError> {
        let steps: Vec<String> = path.iter().map(|step| render_key(step)).collect();
        self.add_block(&format!("[{}]", steps.join(".")), keys)
    }

    /// Whether there is a table at that path.
    pub fn has_table(&self, path: &[&str]) -> bool {
        path.iter().try_fold(&self.root, |table, step| table.find_table(step)).is_some()
    }

    /// Appends a header and its keys, after an empty line.
    fn add_block(&mut self, header: &str, keys: &[(&str, toml::Value)]) -> Result<(), EditError> {
        let newline = self.newline();
        let gap = match self.text.as_str() {
            "" => String::new(),
            text if text.ends_with('\n') => newline.to_owned(),
            _ => newline.repeat(2),
        };
        let block = format!("{gap}{header}{newline}{}", self.lines_of(keys));
        let end = self.text.len();
        self.splice(end..end, &block)
    }

    /// Sets a key of a job; `key` may be a path such as `google_books.langRestrict`.
    pub fn set(&mut self, job: &str, key: &str, value: &toml::Value) -> Result<(), EditError> {
        let steps: Vec<&str> = key.split('.').collect();
        let (mut table, mut rest) = (self.find_job(job)?, steps.as_slice());
        // Descend to the innermost table with its own header or braces: a dotted key has siblings in the table above
        // it, and a new one belongs there.
        while let [step, below @ ..] = rest
            && !below.is_empty()
            && let Some(inner) =
                table.find(step).filter(|inner| self.is_header(inner) || self.is_inline(inner))
        {
            (table, rest) = (inner, below);
        }
        match rest.iter().try_fold(table, |value, step| value.find(step)) {
            Some(found) if self.is_spread(found) => Err(self.commands(key, &found.span)),
            Some(found) => {
                let span = found.span.clone();
                self.splice(span, &self.render_value(value))
            }
            None => match table.find(rest[0]).filter(|first| first.as_table().is_none()) {
                Some(first) => Err(self.commands(key, &first.span)),
                None => self.insert_pair(&table.clone(), &self.render_pair(&rest.join("."), value)),
            },
        }
    }

    /// Sets a key of a top-level table such as `[store]`, which is added if it is missing.
    pub fn set_in(&mut self, table: &str, key: &str, value: &toml::Value) -> Result<(), EditError> {
        let Some(found) = self.root.find(table).cloned() else {
            return self.add_table(&[table], &[(key, value.clone())]);
        };
        let Data::TomlTable(inner) = &found.data else { return Err(self.commands(table, &found.span)) };
        match inner.find(key) {
            Some(old) => {
                let span = old.span.clone();
                self.splice(span, &self.render_value(value))
            }
            None if self.is_dotted(&found) => Err(self.commands(&format!("{table}.{key}"), &found.span)),
            None => self.insert_pair(&found, &self.render_pair(key, value)),
        }
    }

    /// Removes a key of a job, with the comment on its line.
    pub fn unset(&mut self, job: &str, key: &str) -> Result<(), EditError> {
        let mut table = self.find_job(job)?;
        let missing = || EditError::NoSuchKey { job: job.to_owned(), key: key.to_owned() };
        let steps: Vec<&str> = key.split('.').collect();
        let (last, above) = steps.split_last().ok_or_else(missing)?;
        let mut is_inline = self.is_inline(table);
        for step in above {
            table = table.find(step).ok_or_else(missing)?;
            is_inline |= self.is_inline(table);
        }
        let inner = table.as_table().ok_or_else(missing)?;
        let entry = inner.find_entry(last).ok_or_else(missing)?;
        let found = &entry.value;
        if self.is_spread(found) {
            return Err(self.commands(key, &found.span));
        }
        let range = match is_inline {
            true if self.is_dotted_key(entry) => return Err(self.commands(key, &found.span)),
            true => {
                let mut places: Vec<Range<usize>> =
                    inner.list().iter().map(|entry| entry.key_span.start..entry.value.span.end).collect();
                places.sort_by_key(|place| place.start);
                item_with_comma(&places, entry.key_span.start)
            }
            false => self.whole_lines(entry.key_span.start..found.span.end),
        };
        self.splice(range, "")
    }

    /// Removes a job with all of its tables and the comment directly above it.
    pub fn remove_job(&mut self, job: &str) -> Result<(), EditError> {
        let (item, items) = (self.find_job(job)?.clone(), self.list_jobs().to_vec());
        self.remove_item(&items, &item)
    }

    /// Removes an item of a list: a table with a header, or an item with its comma.
    fn remove_item(&mut self, items: &[TomlValue], item: &TomlValue) -> Result<(), EditError> {
        if self.is_header(item) {
            return self.remove_block(item);
        }
        let places: Vec<Range<usize>> = items.iter().map(|item| item.span.clone()).collect();
        self.splice(item_with_comma(&places, item.span.start), "")
    }

    /// Removes a table with a header, everything in it, and the comment directly above it.
    fn remove_block(&mut self, value: &TomlValue) -> Result<(), EditError> {
        let start = self.start_of_comment_above(self.line_start(value.span.start));
        let mut end = self.line_end(self.last_place(value));
        while let Some(line) = self.text[end..].split_inclusive('\n').next()
            && line.trim_start().starts_with('#')
            && !self.is_comment_of_next_table(end)
        {
            end += line.len();
        }
        self.splice(self.with_blank_lines(start..end), "")
    }

    fn list_jobs(&self) -> &[TomlValue] {
        self.root.find("job").map_or(&[], TomlValue::items)
    }

    fn find_job(&self, name: &str) -> Result<&TomlValue, EditError> {
        let is_named = |job: &&TomlValue| job.as_table().and_then(|job| job.find_text("name")) == Some(name);
        let found = self.list_jobs().iter().find(is_named);
        found.ok_or_else(|| EditError::NoSuchJob(name.to_owned()))
    }

    /// Inserts `key = value` into a job or a table inside it, after the existing keys.
    fn insert_pair(&mut self, table: &TomlValue, pair: &str) -> Result<(), EditError> {
        let Data::TomlTable(inner) = &table.data else { return Err(self.commands(pair, &table.span)) };
        let last = inner.list().iter().filter_map(|entry| self.end_of_pair(entry)).max();
        if self.is_inline(table) {
            return match last {
                Some(end) => self.splice(end..end, &format!(", {pair}")),
                None => self.splice(table.span.clone(), &format!("{{ {pair} }}")),
            };
        }
        let newline = self.newline();
        let after = last.unwrap_or(table.span.end);
        let line = &self.text[self.line_start(after)..after];
        let indent: String = line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
        let at = self.line_end(after);
        if self.text[..at].ends_with('\n') {
            self.splice(at..at, &format!("{indent}{pair}{newline}"))
        } else {
            self.splice(at..at, &format!("{newline}{indent}{pair}"))
        }
    }

    /// Adds an item to the array `job = [ … ]`.
    fn push_item(&mut self, array: &Range<usize>, items: &[TomlValue], item: &str) -> Result<(), EditError> {
        let Some(last) = items.last() else { return self.splice(array.clone(), &format!("[{item}]")) };
        let tail = &self.text[last.span.end..array.end];
        let comma = tail.find(',').filter(|at| tail[..*at].trim().is_empty());
        let at = last.span.end + comma.map_or(0, |at| at + 1);
        let gap = self.gap(items, array);
        match comma {
            Some(_) => self.splice(at..at, &format!("{gap}{item},")),
            None => self.splice(at..at, &format!(",{gap}{item}")),
        }
    }

    fn render_pair(&self, key: &str, value: &toml::Value) -> String {
        let steps: Vec<String> = key.split('.').map(render_key).collect();
        format!("{} = {}", steps.join("."), self.render_value(value))
    }

    /// The keys of a table, a line each.
    fn lines_of(&self, keys: &[(&str, toml::Value)]) -> String {
        let newline = self.newline();
        keys.iter().map(|(key, value)| format!("{}{newline}", self.render_pair(key, value))).collect()
    }

    /// The keys of a table as an inline one.
    fn inline(&self, keys: &[(&str, toml::Value)]) -> String {
        let pairs: Vec<String> = keys.iter().map(|(key, value)| self.render_pair(key, value)).collect();
        format!("{{ {} }}", pairs.join(", "))
    }

    /// A value on one line, except that a list of tables has one line for each.
    fn render_value(&self, value: &toml::Value) -> String {
        match value {
            toml::Value::Array(items) if items.len() > 1 && items.iter().all(toml::Value::is_table) => {
                let newline = self.newline();
                let lines: String = items.iter().map(|item| format!("  {item},{newline}")).collect();
                format!("[{newline}{lines}]")
            }
            value => value.to_string(),
        }
    }

    /// Replaces a part of the text and parses the result, so that the next edit has the new positions.
    fn splice(&mut self, range: Range<usize>, with: &str) -> Result<(), EditError> {
        let mut text = self.text.clone();
        text.replace_range(range, with);
        *self = Self::parse(&text)?;
        Ok(())
    }

    fn commands(&self, key: &str, span: &Range<usize>) -> EditError {
        let line = self.text[..span.start].matches('\n').count() + 1;
        EditError::ByHand { key: key.to_owned(), line }
    }
}

fn render_key(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if bare { key.to_owned() } else { toml::Value::from(key).to_string() }
}

/// Interprets an argument of the command line: as TOML if it is valid, else as a text.
pub fn read_value(text: &str) -> toml::Value {
    let parsed = toml::de::ValueDeserializer::parse(text).ok();
    let value = parsed.and_then(|value| <toml::Value as serde::Deserialize>::deserialize(value).ok());
    value.unwrap_or_else(|| toml::Value::from(text))
}
