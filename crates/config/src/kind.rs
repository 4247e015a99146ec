//! The kinds of jobs, channels and LLMs that exist, each with the struct that its owner reads.

use std::any::Any;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use stdx::word_enum;

use super::SecretUse;
use super::diagnostic::{Problem, Problems};
use super::lenient::{Lenient, read_lenient};
use super::model::HEAD_KEYS;
use super::overrides::EnvOverride;
use super::section::Section;
use super::tree::TomlTable;
use stdx::phrase;
use stdx::phrase::Phrase;

word_enum! {
    /// The part of the file that a table stands in, by its key; in the order in which a file is best written.
    pub enum TableKind {
        /// `[app]`
        App = "app",
        /// `[store]`
        Store = "store",
        /// `[web]`
        Web = "web",
        /// `[quota.NAME]`
        Quota = "quota",
        /// `[llm.NAME]`
        Llm = "llm",
        /// `[channel.NAME]`
        Channel = "channel",
        /// `[defaults]`
        Defaults = "defaults",
        /// `[[job]]`
        Job = "job",
    }
}

impl TableKind {
    /// The keys that are not the owner's.
    pub(super) fn taken(self) -> &'static [&'static str] {
        match self {
            TableKind::Job => HEAD_KEYS,
            TableKind::Channel | TableKind::Llm => &["kind"],
            _ => &[],
        }
    }

    /// The word for one of them.
    pub fn noun(self) -> Phrase {
        match self {
            TableKind::Llm => phrase!("LLM", "LLM "),
            TableKind::Quota => phrase!("quota", "上限"),
            TableKind::Channel => phrase!("channel", "チャンネル"),
            TableKind::Job => phrase!("job", "ジョブ"),
            TableKind::App | TableKind::Store | TableKind::Web | TableKind::Defaults => {
                phrase!("table", "表")
            }
        }
    }

    /// How a header is written: `[[job]]`, `[channel.mail]`.
    pub fn header(self, name: &str) -> String {
        match self {
            TableKind::Job => "[[job]]".to_owned(),
            TableKind::Quota | TableKind::Llm | TableKind::Channel => format!("[{}.{name}]", self.word()),
            place => format!("[{}]", place.word()),
        }
    }
}

/// In place of the name of an LLM: none is asked. Whether a kind can do without is its own business.
pub const NO_LLM: &str = "none";

/// A key that means nothing to a kind, and why.
pub type UnusedKey = (&'static str, fn() -> Phrase);

/// A kind of job, channel or LLM: its name, and the struct that its owner reads the table into.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Where it stands.
    pub place: TableKind,
    /// The value of `kind`; empty for `[web]`.
    pub name: &'static str,
    /// Keys that all tables of its place have and that mean nothing to it, each with the reason.
    pub unused: &'static [UnusedKey],
    /// Variables of the environment that stand above its keys.
    pub(super) env: &'static [EnvOverride],
    schema: fn(&mut SchemaGenerator) -> Schema,
    read: fn(&Section, &TomlTable) -> Lenient<Keys>,
    check: Option<fn(&Section) -> Problems>,
    /// Keys that name another table of the file.
    pub(super) names: &'static [(&'static str, TableKind)],
    /// A quota that is there without a table of its own.
    pub(super) quota: Option<&'static str>,
}

type Keys = Arc<dyn Any + Send + Sync>;

/// What a struct must be for the keys of a kind.
pub trait KeysOfKind: DeserializeOwned + JsonSchema + Send + Sync + 'static {}

impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> KeysOfKind for T {}

impl Kind {
    /// A kind of job whose own keys are the fields of `T`.
    pub const fn job<T: KeysOfKind>(name: &'static str) -> Self {
        Self::new::<T>(TableKind::Job, name)
    }

    /// A kind of channel whose keys are the fields of `T`.
    pub const fn channel<T: KeysOfKind>(name: &'static str) -> Self {
        Self::new::<T>(TableKind::Channel, name)
    }

    /// A kind of LLM whose keys are the fields of `T`.
    pub const fn llm<T: KeysOfKind>(name: &'static str) -> Self {
        Self::new::<T>(TableKind::Llm, name)
    }

    /// The `[web]` table, whose keys are the fields of `T`.
    pub const fn web<T: KeysOfKind>() -> Self {
        Self::new::<T>(TableKind::Web, "")
    }

    const fn new<T: KeysOfKind>(place: TableKind, name: &'static str) -> Self {
        Self {
            place,
            name,
            unused: &[],
            env: &[],
            schema: T::json_schema,
            read: read::<T>,
            check: None,
            names: &[],
            quota: None,
        }
    }

    /// The schema of the struct.
    pub(super) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }

    /// Whether the struct has that key.
    pub(super) fn has_key(&self, key: &str) -> bool {
        let schema = (self.schema)(&mut SchemaGenerator::default());
        schema.get("properties").and_then(|properties| properties.get(key)).is_some()
    }

    /// The same kind with a check of what serde cannot know, such as two keys that do not go together.
    ///
    /// It is asked about every table of the kind, also about one that has other problems and so no [`Section::keys`].
    pub const fn with_check(mut self, check: fn(&Section) -> Problems) -> Self {
        self.check = Some(check);
        self
    }

    /// The same kind, which makes no use of these common keys: the key, and why it means nothing here.
    ///
    /// A table that sets one itself is refused; one that has it from `[defaults]` is not.
    pub const fn without(mut self, unused: &'static [UnusedKey]) -> Self {
        self.unused = unused;
        self
    }

    /// The same kind, above whose keys these variables of the environment stand.
    pub const fn with_env(mut self, env: &'static [EnvOverride]) -> Self {
        self.env = env;
        self
    }

    /// The same kind, some keys of which name another table: the key, and where that table stands.
    pub const fn naming(mut self, names: &'static [(&'static str, TableKind)]) -> Self {
        self.names = names;
        self
    }

    /// The same kind, which has a quota of that name even if the file has no table for it.
    pub const fn with_quota(mut self, quota: &'static str) -> Self {
        self.quota = Some(quota);
        self
    }

    /// An error for each key of `own`, the table as it is written, that means nothing to this kind.
    pub(super) fn list_unused(&self, section: &Section, own: &TomlTable) -> Vec<Problem> {
        let set = self.unused.iter().filter(|(key, _)| own.find(key).is_some());
        set.map(|(key, why)| {
            let message = phrase!(
                "`{key}` has no effect in a {what} of kind `{kind}`",
                "種類 `{kind}` の{what}では `{key}` は無視されます",
                what = self.place.noun(),
                kind = self.name
            );
            section
                .problem(key, message)
                .with_label(phrase!("remove it", "削除してください"))
                .with_hint(why())
        })
        .collect()
    }

    /// Reads `table` for its owner into `section`; answers the secrets in it, and what is wrong.
    pub(super) fn read(&self, section: &mut Section, table: &TomlTable) -> (Vec<SecretUse>, Problems) {
        let Lenient { value, is_shifted, secrets, mut problems } = (self.read)(section, table);
        section.keys = value.filter(|_| !is_shifted);
        problems.extend(self.check.map(|check| check(section)).into_iter().flatten());
        (secrets, problems)
    }
}

fn read<T: KeysOfKind>(section: &Section, table: &TomlTable) -> Lenient<Keys> {
    let Lenient { value, is_shifted, secrets, problems } =
        read_lenient::<T>(section, table, section.place.taken());
    Lenient { value: value.map(|keys| Arc::new(keys) as Keys), is_shifted, secrets, problems }
}
