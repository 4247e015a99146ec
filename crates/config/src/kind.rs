//! The kinds of jobs, channels and LLMs that exist, each with the struct that its owner reads.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use super::SecretUse;
use super::diagnostic::{Problem, Problems};
use super::lenient::{Attempt, read_lenient};
use super::overrides::EnvOverride;
use super::section::Section;
use super::tree::Table;

/// The part of the file that a table stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// `[app]`
    App,
    /// `[store]`
    Store,
    /// `[web]`
    Web,
    /// `[quota.NAME]`
    Quota,
    /// `[llm.NAME]`
    Llm,
    /// `[channel.NAME]`
    Channel,
    /// `[defaults]`
    Defaults,
    /// `[[job]]`
    Job,
}

impl TableKind {
    /// All of them, in the order in which a file is best written.
    pub const ALL: [TableKind; 8] = [
        TableKind::App,
        TableKind::Store,
        TableKind::Web,
        TableKind::Quota,
        TableKind::Llm,
        TableKind::Channel,
        TableKind::Defaults,
        TableKind::Job,
    ];

    /// The key of the file that holds these tables.
    pub fn key(self) -> &'static str {
        match self {
            TableKind::App => "app",
            TableKind::Store => "store",
            TableKind::Web => "web",
            TableKind::Quota => "quota",
            TableKind::Llm => "llm",
            TableKind::Channel => "channel",
            TableKind::Defaults => "defaults",
            TableKind::Job => "job",
        }
    }

    /// The word for one of them.
    pub fn word(self) -> &'static str {
        match self {
            TableKind::Llm => "LLM",
            TableKind::App | TableKind::Store | TableKind::Web | TableKind::Defaults => "table",
            place => place.key(),
        }
    }

    /// How a header is written: `[[job]]`, `[channel.mail]`.
    pub fn header(self, name: &str) -> String {
        match self {
            TableKind::Job => "[[job]]".to_owned(),
            TableKind::Quota | TableKind::Llm | TableKind::Channel => format!("[{}.{name}]", self.key()),
            place => format!("[{}]", place.key()),
        }
    }
}

/// A kind of job, channel or LLM: its name, and the struct that its owner reads the table into.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Where it stands.
    pub place: TableKind,
    /// The value of `kind`; empty for `[web]`.
    pub name: &'static str,
    /// Keys that all tables of its place have and that mean nothing to it, each with the reason.
    pub unused: &'static [(&'static str, &'static str)],
    /// Variables of the environment that stand above its keys.
    pub(super) env: &'static [EnvOverride],
    schema: fn(&mut SchemaGenerator) -> Schema,
    read: fn(&Section) -> Attempt<()>,
    check: Option<fn(&Section) -> Problems>,
}

impl Kind {
    /// A kind of job whose own keys are the fields of `T`.
    pub const fn job<T: DeserializeOwned + JsonSchema>(name: &'static str) -> Self {
        Self::new::<T>(TableKind::Job, name)
    }

    /// A kind of channel whose keys are the fields of `T`.
    pub const fn channel<T: DeserializeOwned + JsonSchema>(name: &'static str) -> Self {
        Self::new::<T>(TableKind::Channel, name)
    }

    /// A kind of LLM whose keys are the fields of `T`.
    pub const fn llm<T: DeserializeOwned + JsonSchema>(name: &'static str) -> Self {
        Self::new::<T>(TableKind::Llm, name)
    }

    /// The `[web]` table, whose keys are the fields of `T`.
    pub const fn web<T: DeserializeOwned + JsonSchema>() -> Self {
        Self::new::<T>(TableKind::Web, "")
    }

    const fn new<T: DeserializeOwned + JsonSchema>(place: TableKind, name: &'static str) -> Self {
        Self { place, name, unused: &[], env: &[], schema: T::json_schema, read: read::<T>, check: None }
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
    /// It is asked about tables that `T` can be read from.
    pub const fn with_check(mut self, check: fn(&Section) -> Problems) -> Self {
        self.check = Some(check);
        self
    }

    /// The same kind, which makes no use of these common keys: the key, and why it means nothing here.
    ///
    /// A table that sets one itself is refused; one that has it from `[defaults]` is not.
    pub const fn without(mut self, unused: &'static [(&'static str, &'static str)]) -> Self {
        self.unused = unused;
        self
    }

    /// The same kind, above whose keys these variables of the environment stand.
    pub const fn with_env(mut self, env: &'static [EnvOverride]) -> Self {
        self.env = env;
        self
    }

    /// An error for each key of `own`, the table as it is written, that means nothing to this kind.
    pub(super) fn list_unused(&self, section: &Section, own: &Table) -> Vec<Problem> {
        let set = self.unused.iter().filter(|(key, _)| own.find(key).is_some());
        set.map(|(key, why)| {
            let message = format!("`{key}` has no effect in a {} of kind `{}`", self.place.word(), self.name);
            section.problem(key, message).with_label("remove it").with_hint(*why)
        })
        .collect()
    }

    /// Reads the table as its owner would.
    pub(super) fn check(&self, section: Section) -> Checked {
        let Attempt { value, secrets, mut problems, repaired } = (self.read)(&section);
        let section = value.map(|()| section.with_mended(repaired));
        if let (Some(check), Some(section)) = (self.check, &section) {
            problems.extend(check(section).into_iter().filter(|problem| !problem.is_of_stand_in()));
        }
        Checked { section, secrets, problems }
    }
}

/// What came of a table.
pub(super) struct Checked {
    /// The table as its owner can read it: without what is wrong, if anything is. `None` when that cannot be done.
    pub(super) section: Option<Section>,
    /// The secrets in it.
    pub(super) secrets: Vec<SecretUse>,
    /// Errors and warnings.
    pub(super) problems: Problems,
}

fn read<T: DeserializeOwned>(section: &Section) -> Attempt<()> {
    let Attempt { value, secrets, problems, repaired } = read_lenient::<T>(section);
    Attempt { value: value.map(drop), secrets, problems, repaired }
}
