//! A table of the config file, handed to its owner with everything needed for good messages.

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

/// The file that sections are tables of.
pub(super) struct File {
    pub(super) source: ConfigSource,
    pub(super) kinds: &'static [Kind],
    pub(super) secret_context: Surroundings,
    /// The parsed file while it is read. Afterwards only messages need it, and a long file takes less room as text.
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
/// The owner finds what it says with [`Section::keys`] and reports what serde cannot know with [`Section::problem`].
#[derive(Clone)]
pub struct Section {
    /// The name: of a job its `name`, of `[channel.NAME]` and `[llm.NAME]` the last part of the header.
    pub name: String,
    /// The value of `kind`; empty for tables that have no kinds.
    pub kind: String,
    pub(super) place: TableKind,
    pub(super) file: Arc<File>,
    /// The header line, for what is missing.
    pub(super) span: Range<usize>,
    /// The owner's struct; `None` when it cannot be made.
    pub(super) keys: Option<Arc<dyn Any + Send + Sync>>,
}

impl Section {
    /// The owner's keys, as its kind has read them. Of a table with problems, which have been told, there may be none.
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

    /// The place of the value at a path; what a job does not say itself, `[defaults]` may.
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
    /// Points at the header when there is no such key.
    pub fn problem(&self, key: &str, message: Phrase) -> Problem {
        let span = self.find_span(key).unwrap_or_else(|| self.span.clone());
        Problem::at(&self.file.source, span, message)
    }

    /// An error about a value of `key` that cannot be read.
    pub fn bad_value(&self, key: &str, bad: &BadValue) -> Problem {
        let mut problem = self.problem(key, bad.message().clone());
        problem.hint = bad.hint().cloned();
        problem
    }

    /// An error about the section as a whole.
    pub fn header_problem(&self, message: Phrase) -> Problem {
        Problem::at(&self.file.source, self.span.clone(), message)
    }

    /// An error about a name that stands at `key` but is not among `known`, with the nearest one suggested.
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

    /// The tables of the list `list` that say the same at `key` as one before: the text, and the numbers of both. Works
    /// on tables with problems, too.
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

    /// The owner's keys as the file has them, with literal secrets blotted out.
    pub fn to_json(&self) -> serde_json::Value {
        let masked = self.file.source.masked();
        let shown = |span: &Range<usize>, text: &str| self.file.source.shown(&masked, span, text);
        let root = self.file.tree();
        let own = self.find_table(&root).map(|table| table.only(|key| !self.place.taken().contains(&key)));
        own.unwrap_or_default().to_json(&shown)
    }

    /// A path that the file names: a relative one begins in the directory of the file.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.file.secret_context.directory.join(path)
    }

    /// Whether the file sets `key` in this table.
    pub fn has(&self, key: &str) -> bool {
        self.find_table(&self.file.tree()).is_some_and(|table| table.find(key).is_some())
    }

    /// The header as it stands in the file: `[[job]]`, `[channel.mail]`.
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

/// The word that is meant, probably.
pub fn did_you_mean(word: &str) -> Phrase {
    phrase!("did you mean `{word}`?", "`{word}` ではありませんか？")
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}
