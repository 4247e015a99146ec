//! Problems of a config file, with their position and advice.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::ser::SerializeStruct;
use stdx::phrase;
use stdx::phrase::{Phrase, Speech};
use stdx::text::Language;

use super::kind::Kind;
use super::mask;
use super::schema::list_secret_keys;

/// Windows programs put it at the start of a text.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// Problems to report of one file.
const MOST_PROBLEMS: usize = 500;

/// The text of a config file, shared by everything that refers to positions in it.
#[derive(Clone)]
pub struct ConfigSource {
    path: PathBuf,
    text: Arc<str>,
    /// The kinds define which keys are secrets.
    kinds: &'static [Kind],
}

impl ConfigSource {
    /// A text, and its name in messages.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> Self {
        Self { path: path.into(), text: text.into(), kinds: &[] }
    }

    /// The same text with the kinds of its tables.
    pub(super) fn with_kinds(self, kinds: &'static [Kind]) -> Self {
        Self { kinds, ..self }
    }

    /// Where the text was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole text including secrets: do not print it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text with literal secrets masked; no byte is moved.
    pub fn masked(&self) -> String {
        mask::blot_secrets_of(&self.text, &list_secret_keys(self.kinds))
    }

    /// The `text` of the value at `span`, or `***` if `masked`, the text of [`ConfigSource::masked`], hides it.
    pub(super) fn shown(&self, masked: &str, span: &Range<usize>, text: &str) -> String {
        let is_secret = masked.get(span.clone()) != self.text.get(span.clone());
        if is_secret { "***".to_owned() } else { text.to_owned() }
    }

    /// Line and column in characters, counted from 1, of a position in the text.
    pub(super) fn line_and_column(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..self.text.floor_char_boundary(at)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        // A byte order mark does not count as a character of the first line.
        let line = before[line_start..].trim_start_matches(BYTE_ORDER_MARK);
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    }
}

impl fmt::Debug for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({})", self.path.display())
    }
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file is valid, but something outside of it that it needs is missing.
    Setup,
    /// The file can be used, but should be improved.
    Warning,
}

/// A problem and its position.
#[derive(Clone, Debug)]
pub struct Problem {
    source: ConfigSource,
    span: Option<Range<usize>>,
    pub severity: Severity,
    /// In one sentence without a full stop.
    pub message: Phrase,
    /// A remark below the position, often the correction.
    pub label: Option<Phrase>,
    pub hint: Option<Phrase>,
}

impl Problem {
    /// An error at `span` of `source`.
    pub fn at(source: &ConfigSource, span: Range<usize>, message: Phrase) -> Self {
        let text = &source.text;
        let span = Some(text.floor_char_boundary(span.start)..text.ceil_char_boundary(span.end));
        Self { source: source.clone(), span, severity: Severity::Error, message, label: None, hint: None }
    }

    /// An error of the file as a whole.
    pub fn of_file(path: impl Into<PathBuf>, message: Phrase) -> Self {
        Self { span: None, ..Self::at(&ConfigSource::new(path, ""), 0..0, message) }
    }

    /// Turns it into a warning.
    pub fn as_warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Turns it into a problem outside of the file: something that it needs has to be set up.
    pub fn as_setup(mut self) -> Self {
        self.severity = Severity::Setup;
        self
    }

    /// Adds a remark below the position.
    pub fn with_label(mut self, label: Phrase) -> Self {
        self.label = Some(label);
        self
    }

    /// Adds advice.
    pub fn with_hint(mut self, hint: Phrase) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.source.path
    }

    /// The line, from 1; 0 if the problem concerns the whole file.
    pub fn line(&self) -> usize {
        self.span.as_ref().map_or(0, |span| self.source.line_and_column(span.start).0)
    }

    /// The column in characters, from 1; 0 if the problem concerns the whole file.
    pub fn column(&self) -> usize {
        self.span.as_ref().map_or(0, |span| self.source.line_and_column(span.start).1)
    }

    /// The problem in English, with the line of the file and the position underlined.
    pub fn render(&self, colour: Colour) -> String {
        self.render_shown(&self.source.masked(), Language::En, colour)
    }

    /// The same, given the text of its file with secrets masked.
    fn render_shown(&self, shown: &str, language: Language, colour: Colour) -> String {
        let speech = Speech { language, zone: None };
        let level = match self.severity {
            Severity::Error => Level::ERROR.with_name(speech.choose("error", "エラー")),
            Severity::Setup => Level::WARNING.with_name(speech.choose("needs setup", "設定不足")),
            Severity::Warning => Level::WARNING.with_name(speech.choose("warning", "警告")),
        };
        let label = self.label.as_ref().map(|label| speech.phrase(label));
        let path = self.source.path.display().to_string();
        let title = level.primary_title(speech.phrase(&self.message));
        let mut group = match &self.span {
            Some(span) => {
                // Only the affected lines are passed to the renderer: that is fast for a long file, and other lines
                // cannot be printed.
                let lines = self.lines_around(span);
                let mark = AnnotationKind::Primary
                    .span(span.start - lines.start..span.end - lines.start)
                    .label(label.as_deref());
                title.element(
                    Snippet::source(shown[lines.clone()].to_owned())
                        .line_start(self.source.line_and_column(lines.start).0)
                        .path(path)
                        .annotation(mark),
                )
            }
            None => title.element(annotate_snippets::Origin::path(path)),
        };
        if let Some(hint) = &self.hint {
            group = group
                .element(Level::HELP.with_name(speech.choose("hint", "ヒント")).message(speech.phrase(hint)));
        }
        let renderer = match colour {
            Colour::Never => Renderer::plain(),
            Colour::Always => Renderer::styled(),
        };
        super::redact::redact(&renderer.render(&[group])).into_owned()
    }

    /// The whole lines of `span`.
    fn lines_around(&self, span: &Range<usize>) -> Range<usize> {
        let text = &self.source.text;
        let mark = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
        let start = text[..span.start].rfind('\n').map_or(mark.min(span.start), |newline| newline + 1);
        let end = text[span.end..].find('\n').map_or(text.len(), |newline| span.end + newline);
        // The renderer would print the first half of a CRLF.
        start..if text[span.end..end].ends_with('\r') { end - 1 } else { end }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Colour::Never))
    }
}

impl std::error::Error for Problem {}

impl serde::Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Problem", 7)?;
        out.serialize_field("severity", &self.severity)?;
        out.serialize_field("file", &self.source.path.display().to_string())?;
        out.serialize_field("line", &self.line())?;
        out.serialize_field("column", &self.column())?;
        out.serialize_field("message", &self.message)?;
        out.serialize_field("label", &self.label)?;
        out.serialize_field("hint", &self.hint)?;
        out.end()
    }
}

/// Whether diagnostics carry colour codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// With ANSI colours.
    Always,
}

/// All problems of a file, in the order of the file.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(transparent)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many things are wrong.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// In the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// Limits the number of problems, with a note that there are more; rendering each one scans the file.
    pub(super) fn bounded(mut self) -> Self {
        if let Some(first_left_out) = self.0.get(MOST_PROBLEMS).cloned() {
            self.truncate(MOST_PROBLEMS);
            self.push(Problem {
                message: phrase!("there are more problems from here on", "ここから先にも問題があります"),
                label: None,
                hint: Some(phrase!("they show once those before are mended", "前の問題を直すと表示されます")),
                ..first_left_out
            });
        }
        self
    }

    /// Keeps only the first problem of each line.
    pub(super) fn keep_first_of_each_line(&mut self) {
        self.0.dedup_by_key(|problem| problem.line());
    }

    /// Keeps the first `count` problems.
    pub(super) fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }

    /// Adds one problem.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Adds the problems of a failed step and continues.
    pub fn note<T>(&mut self, step: Result<T, impl Into<Problems>>) -> Option<T> {
        match step {
            Ok(value) => Some(value),
            Err(problems) => {
                self.0.extend(problems.into().0);
                None
            }
        }
    }

    /// Both values, or the problems of both.
    pub fn both<A, B>(
        one: Result<A, impl Into<Problems>>,
        other: Result<B, impl Into<Problems>>,
    ) -> Result<(A, B), Problems> {
        let mut problems = Problems::default();
        match (problems.note(one), problems.note(other)) {
            (Some(one), Some(other)) => Ok((one, other)),
            _ => Err(problems),
        }
    }

    /// The value, if there are no problems.
    pub fn unless_any<T>(self, value: T) -> Result<T, Problems> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }

    /// All problems in English.
    pub fn render(&self, colour: Colour) -> String {
        self.render_in(Language::En, colour)
    }

    /// All problems in `language`.
    pub fn render_in(&self, language: Language, colour: Colour) -> String {
        // Masking secrets scans the whole file, so do it once and not for each problem.
        let mut masked: Option<(&Arc<str>, String)> = None;
        let mut rendered = Vec::new();
        for problem in &self.0 {
            let text = &problem.source.text;
            let shown = match masked.take() {
                Some(known) if Arc::ptr_eq(known.0, text) => known,
                _ => (text, problem.source.masked()),
            };
            rendered.push(problem.render_shown(&shown.1, language, colour));
            masked = Some(shown);
        }
        rendered.join("\n\n")
    }

    /// Sorted by position, without duplicates.
    pub fn in_order(mut self) -> Self {
        let place = |problem: &Problem| problem.span.as_ref().map(|span| (span.start, span.end));
        self.0.sort_by_key(|problem| place(problem));
        self.0.dedup_by(|one, other| place(one) == place(other) && one.message == other.message);
        self
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl FromIterator<Problem> for Problems {
    fn from_iter<I: IntoIterator<Item = Problem>>(problems: I) -> Self {
        Self(problems.into_iter().collect())
    }
}

impl Extend<Problem> for Problems {
    fn extend<I: IntoIterator<Item = Problem>>(&mut self, problems: I) {
        self.0.extend(problems);
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Colour::Never))
    }
}

impl std::error::Error for Problems {}
