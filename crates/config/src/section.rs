//! A table of the config file, passed to its owner with everything needed for good messages.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::SecretUse;
use super::diagnostic::{ConfigSource, Problem, Problems};
use super::kind::{Kind, TableKind};
use super::lookup::Surroundings;
use super::model::HEAD_KEYS;
use super::reading::SeenSecret;
use super::tree::{TomlTable, TomlValue};
use super::value::BadValue;
use stdx::phrase;
use stdx::phrase::Phrase;

/// The file of the sections.
pub(super) struct File {
    pub(super) source: ConfigSource,
    pub(super) kinds: &'static [Kind],
    pub(super) secret_context: Surroundings,
    /// The parsed file, while it is being read. Later it is only needed for messages, and a long file needs less memory
    /// as text.
    tree: Mutex<Option<Arc<TomlTable>>>,
}

impl File {
    pub(super) fn new(
        source: ConfigSource,
        kinds: &'static [Kind],
        secret_context: Surroundings,
        tree: TomlTable,
    ) -> Self {
        Self { source, kinds, secret_context, tree: Mutex::new(Some(Arc::new(tree))) }
    }

    pub(super) fn tree(&self) -> Arc<TomlTable> {
        let mut tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        let parse = || Arc::new(TomlTable::parse(self.source.text()).unwrap_or_default());
        Arc::clone(tree.get_or_insert_with(parse))
    }

    pub(super) fn forget_tree(&self) {
        *self.tree.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// One table of the file: a job, a channel, an LLM, or `[web]`.
///
/// The owner gets its keys with [`Section::keys`] and reports problems that serde cannot detect with
/// [`Section::problem`].
#[derive(Clone)]
pub struct Section {
    /// Its name: `name` of a job, the last part of the header of `[channel.NAME]` and `[llm.NAME]`.
    pub name: String,
    /// The value of `kind`; empty for tables without kinds.
    pub kind: String,
    pub(super) place: TableKind,
    pub(super) file: Arc<File>,
    /// The header line, for problems about missing keys.
    pub(super) span: Range<usize>,
    /// The owner's struct; `None` if the table has problems.
    pub(super) keys: Option<Arc<dyn Any + Send + Sync>>,
}

impl Section {
    /// The owner's keys, parsed by its kind. Fails for a table with problems, which have been reported.
    ///
    /// # Panics
    ///
    /// If `T` is not the struct of the section's kind.
    pub fn keys<T: 'static>(&self) -> Result<&T, Problems> {
        let keys = self.keys.as_deref().ok_or_else(Problems::default)?;
        Ok(keys.downcast_ref().expect("a section is asked for the struct of its kind"))
    }

    /// Whether it has [`Section::keys`].
    pub fn is_whole(&self) -> bool {
        self.keys.is_some()
    }

    /// The position of the value at a path, which for a job may be in `[defaults]`.
    fn find_span(&self, path: &str) -> Option<Range<usize>> {
        let root = self.file.tree();
        let own = self.find_table(&root).and_then(|table| table.find_span(path));
        let is_shared = || {
            self.place == TableKind::Job && path.split('.').next().is_some_and(|key| HEAD_KEYS.contains(&key))
        };
        own.or_else(|| root.find_table(TableKind::Defaults.word()).filter(|_| is_shared())?.find_span(path))
    }

    fn find_table<'a>(&self, root: &'a TomlTable) -> Option<&'a TomlTable> {
        match self.place {
            TableKind::Job => {
                let jobs = root.find(self.place.word())?.items();
                jobs.iter().find(|job| job.span == self.span)?.as_table()
            }
            place @ (TableKind::Quota | TableKind::Llm | TableKind::Channel) => {
                root.find_table(place.word())?.find_table(&self.name)
            }
            place => root.find_table(place.word()),
        }
    }

    /// An error about the value of `key`, which may be a path such as `deliver.0` or `blog.2.url`.
    ///
    /// Points at the header if there is no such key.
    pub fn problem(&self, key: &str, message: Phrase) -> Problem {
        let span = self.find_span(key).unwrap_or_else(|| self.span.clone());
        Problem::at(&self.file.source, span, message)
    }

    /// An error about an invalid value of `key`.
    pub fn bad_value(&self, key: &str, bad: &BadValue) -> Problem {
        let mut problem = self.problem(key, bad.message().clone());
        problem.hint = bad.hint().cloned();
        problem
    }

    /// An error about the whole section.
    pub fn header_problem(&self, message: Phrase) -> Problem {
        Problem::at(&self.file.source, self.span.clone(), message)
    }

    /// An error about a name in `key` that is not among `known`, with the most similar one suggested.
    pub fn unknown_name<'a>(
        &self,
        key: &str,
        what: Phrase,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Problem {
        let known: Vec<&str> = known.into_iter().collect();
        let problem =
            self.problem(key, phrase!("there is no {what} `{name}`", "{what} `{name}` はありません"));
        match stdx::text::nearest(name, known.iter().copied()) {
            Some(near) => problem.with_label(did_you_mean(near)),
            None if known.is_empty() => problem.with_hint(phrase!(
                "this file defines no {what} at all",
                "この設定ファイルには{what}が 1 つも定義されていません"
            )),
            None => {
                problem.with_hint(phrase!("known: {names}", "定義済み：{names}", names = known.join(", ")))
            }
        }
    }

    /// The tables of the list `list` with the same text at `key` as an earlier one: the text, and the indexes of both.
    /// Includes tables with problems.
    pub fn list_repeats(&self, list: &str, key: &str) -> Vec<(String, [usize; 2])> {
        let root = self.file.tree();
        let items = self.find_table(&root).and_then(|own| own.find(list)).map_or(&[][..], TomlValue::items);
        let mut seen = HashMap::new();
        let repeats = items.iter().enumerate().filter_map(|(number, item)| {
            let text = item.as_table()?.find_text(key)?;
            seen.insert(text, number).map(|before| (text.to_owned(), [before, number]))
        });
        repeats.collect()
    }

    /// The owner's keys as written, with literal secrets masked.
    pub fn to_json(&self) -> serde_json::Value {
        let masked = self.file.source.masked();
        let shown = |span: &Range<usize>, text: &str| self.file.source.shown(&masked, span, text);
        let root = self.file.tree();
        let own = self.find_table(&root).map(|table| table.only(|key| !self.place.taken().contains(&key)));
        own.unwrap_or_default().to_json(&shown)
    }

    /// A path in the file, which is relative to the directory of the file.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.file.secret_context.directory.join(path)
    }

    /// Whether the file sets `key` in this table.
    pub fn has(&self, key: &str) -> bool {
        self.find_table(&self.file.tree()).is_some_and(|table| table.find(key).is_some())
    }

    /// The header in the file: `[[job]]`, `[channel.mail]`.
    pub fn header(&self) -> String {
        self.place.header(&self.name)
    }

    pub(super) fn list_secret_uses(&self, table: &TomlTable, secrets: Vec<SeenSecret>) -> Vec<SecretUse> {
        let in_file = |SeenSecret { span, literal, secret }: SeenSecret| {
            let path = table.find_path_at(&span)?;
            let (owner, key) = if self.kind.is_empty() {
                (self.place.word().to_owned(), format!("{}.{path}", self.place.word()))
            } else {
                (self.name.clone(), path.rsplit('.').next().unwrap_or_default().to_owned())
            };
            Some(SecretUse { span, literal, secret, place: self.place, kind: self.kind.clone(), owner, key })
        };
        secrets.into_iter().filter_map(in_file).collect()
    }
}

/// A suggestion.
pub fn did_you_mean(word: &str) -> Phrase {
    phrase!("did you mean `{word}`?", "`{word}` ではありませんか？")
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}
