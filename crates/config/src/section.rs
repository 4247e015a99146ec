//! A table of the config file, handed to its owner with everything needed for good messages.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::SecretUse;
use super::diagnostic::{Problem, Problems, Source};
use super::explain::Explainer;
use super::kind::{Kind, TableKind};
use super::lenient::read_lenient;
use super::lookup::has_reference;
use super::secret_context::{Seen, Surroundings};
use super::tree::Table;

/// One table of the file: a job, a channel, an LLM, or `[web]`.
///
/// The owner reads it into a plain struct with [`Section::read`] and reports what serde cannot know
/// with [`Section::problem`].
#[derive(Clone)]
pub struct Section {
    /// The name: of a job its `name`, of `[channel.NAME]` and `[llm.NAME]` the last part of the header.
    pub name: String,
    /// The value of `kind`; empty for tables that have no kinds.
    pub kind: String,
    pub(super) place: TableKind,
    pub(super) source: Source,
    /// The header line, for what is missing.
    pub(super) span: Range<usize>,
    /// All keys, also those that are not the owner's.
    pub(super) table: Arc<Table>,
    /// Keys that someone else reads.
    pub(super) taken: &'static [&'static str],
    pub(super) kinds: &'static [Kind],
    pub(super) secret_context: Surroundings,
}

impl Section {
    /// The owner's keys as `T`, a plain struct with `deny_unknown_fields`; or every problem that they have.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Problems> {
        read_lenient(self).into_result()
    }

    /// The same section with what was read in place of the owner's keys.
    pub(super) fn with_mended(mut self, repaired: Option<Table>) -> Self {
        if let Some(repaired) = repaired {
            let mut table = self.table.only(|key| self.taken.contains(&key));
            repaired.list().iter().for_each(|entry| table.put(entry.clone()));
            self.table = Arc::new(table);
        }
        self
    }

    /// An error about the value of `key`, which may be a path such as `deliver.0` or `blog.2.url`.
    ///
    /// Points at the header when there is no such key.
    pub fn problem(&self, key: &str, message: impl Into<String>) -> Problem {
        let span = self.table.find_span(key).unwrap_or_else(|| self.span.clone());
        Problem::at(&self.source, span, message)
    }

    /// An error about the section as a whole.
    pub fn header_problem(&self, message: impl Into<String>) -> Problem {
        Problem::at(&self.source, self.span.clone(), message)
    }

    /// An error about a name that stands at `key` but is not among `known`, with the nearest one suggested.
    pub fn unknown_name<'a>(
        &self,
        key: &str,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Problem {
        let known: Vec<&str> = known.into_iter().collect();
        let problem = self.problem(key, format!("there is no {what} `{name}`"));
        match stdx::text::nearest(name, known.iter().copied()) {
            Some(near) => problem.with_label(format!("did you mean `{near}`?")),
            None if known.is_empty() => problem.with_hint(format!("this file defines no {what} at all")),
            None => problem.with_hint(format!("known: {}", known.join(", "))),
        }
    }

    /// The owner's keys as the file has them, with literal secrets blotted out.
    pub fn to_json(&self) -> serde_json::Value {
        let masked = self.source.masked();
        let shown = |span: &Range<usize>, text: &str| self.source.shown(&masked, span, text);
        self.table.only(|key| !self.taken.contains(&key)).to_json(&shown)
    }

    /// A path that the file names: a relative one begins in the directory of the file.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.secret_context.directory.join(path)
    }

    /// Whether the file sets the key at a path such as `google_books.api_key`.
    pub fn has_path(&self, path: &str) -> bool {
        self.table.find_span(path).is_some()
    }

    /// Whether the file sets `key` in this table.
    pub fn has(&self, key: &str) -> bool {
        self.table.find(key).is_some()
    }

    /// The header as it stands in the file: `[[job]]`, `[channel.mail]`.
    pub fn header(&self) -> String {
        self.place.header(&self.name)
    }

    pub(super) fn explainer(&self) -> Explainer<'_> {
        Explainer {
            source: &self.source,
            header: &self.span,
            table: &self.table,
            place: self.place,
            kind: &self.kind,
            taken: self.taken,
            kinds: self.kinds,
        }
    }

    /// References in keys of `table` that are no secrets, with their places. They are not filled in; saying so beats
    /// using `${NAME}` as it stands.
    pub(super) fn list_stray_references(
        &self,
        table: &Table,
        secrets: &[Seen],
    ) -> Vec<(Range<usize>, Problem)> {
        let mut stray = Vec::new();
        for entry in table.list().iter().filter(|entry| !self.taken.contains(&&*entry.key)) {
            entry.value.each_text(&mut |span, text| {
                if has_reference(text) && !secrets.iter().any(|seen| seen.text == text) {
                    let message = "`${…}` is filled in only where a secret belongs";
                    let problem = Problem::at(&self.source, span.clone(), message)
                        .with_hint("write the value itself; it is no secret");
                    stray.push((span.clone(), problem));
                }
            });
        }
        stray
    }

    pub(super) fn list_secret_uses(&self, secrets: Vec<Seen>) -> Vec<SecretUse> {
        if secrets.is_empty() {
            return Vec::new();
        }
        let mut places: HashMap<&str, &Range<usize>> = HashMap::new();
        self.table.each_text(&mut |span, text| {
            places.entry(text).or_insert(span);
        });
        let in_file = |seen: Seen| {
            let span = (*places.get(seen.text.as_str())?).clone();
            let path = self.table.find_path_at(&span)?;
            let (owner, key) = match self.kind.is_empty() {
                true => (self.place.key().to_owned(), format!("{}.{path}", self.place.key())),
                false => (self.name.clone(), path.rsplit('.').next().unwrap_or_default().to_owned()),
            };
            let Seen { literal, secret, .. } = seen;
            Some(SecretUse { span, literal, secret, place: self.place, kind: self.kind.clone(), owner, key })
        };
        secrets.into_iter().filter_map(in_file).collect()
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}
