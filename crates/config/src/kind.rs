//! The kinds of jobs, channels and LLMs, each with the struct of its table.

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
    /// The keys that are read by `config` itself.
    pub(super) fn taken(self) -> &'static [&'static str] {
        match self {
            TableKind::Job => HEAD_KEYS,
            TableKind::Channel | TableKind::Llm => &["kind"],
            _ => &[],
        }
    }

    /// The word for such a table.
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

    /// Its header: `[[job]]`, `[channel.mail]`.
    pub fn header(self, name: &str) -> String {
        match self {
            TableKind::Job => "[[job]]".to_owned(),
            TableKind::Quota | TableKind::Llm | TableKind::Channel => format!("[{}.{name}]", self.word()),
            place => format!("[{}]", place.word()),
        }
    }
}

/// Used instead of the name of an LLM if none should be used. Whether a kind allows that is its own decision.
pub const NO_LLM: &str = "none";

/// A key without effect for a kind, and why.
pub type UnusedKey = (&'static str, fn() -> Phrase);

/// A kind of job, channel or LLM: its name, and the struct of its table.
#[derive(Clone, Copy)]
pub struct Kind {
    pub place: TableKind,
    /// The value of `kind`; empty for `[web]`.
    pub name: &'static str,
    /// Common keys of such tables without effect for this kind, each with the reason.
    pub unused: &'static [UnusedKey],
    /// Environment variables that override its keys.
    pub(super) env: &'static [EnvOverride],
    schema: fn(&mut SchemaGenerator) -> Schema,
    read: fn(&Section, &TomlTable) -> Lenient<Keys>,
    check: Option<fn(&Section) -> Problems>,
    /// Keys whose value is the name of another table.
    pub(super) names: &'static [(&'static str, TableKind)],
    /// A quota that exists without a table in the file.
    pub(super) quota: Option<&'static str>,
}

type Keys = Arc<dyn Any + Send + Sync>;

/// The requirements for the struct of a kind.
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

    pub(super) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }

    pub(super) fn has_key(&self, key: &str) -> bool {
        let schema = (self.schema)(&mut SchemaGenerator::default());
        schema.get("properties").and_then(|properties| properties.get(key)).is_some()
    }

    /// Adds a check that serde cannot do, such as two keys that exclude each other.
    ///
    /// It is called for every table of the kind, including those with other problems, which have no [`Section::keys`].
    pub const fn with_check(mut self, check: fn(&Section) -> Problems) -> Self {
        self.check = Some(check);
        self
    }

    /// Declares common keys without effect for this kind, each with the reason.
    ///
    /// A table that sets one itself is rejected; one that has it from `[defaults]` is not.
    pub const fn without(mut self, unused: &'static [UnusedKey]) -> Self {
        self.unused = unused;
        self
    }

    /// Adds environment variables that override keys.
    pub const fn with_env(mut self, env: &'static [EnvOverride]) -> Self {
        self.env = env;
        self
    }

    /// Declares keys whose value is the name of another table, and its place.
    pub const fn naming(mut self, names: &'static [(&'static str, TableKind)]) -> Self {
        self.names = names;
        self
    }

    /// Adds a quota that exists even without a table in the file.
    pub const fn with_quota(mut self, quota: &'static str) -> Self {
        self.quota = Some(quota);
        self
    }

    /// An error for each key in `own`, the table as written, without effect for this kind.
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

    /// Parses `table` into `section`; returns the secrets in it, and the problems.
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
