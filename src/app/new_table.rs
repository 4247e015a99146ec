//! A new job, channel or model provider from flags, answers or a form: its keys, and adding it to the config file.

use std::path::Path;

use super::{App, find_pipeline};
use crate::channel::ChannelKind;
use crate::config::{Config, ConfigFile, EditError, Env, Flag, TableKind};
use crate::db::{self, Db, DbUrl, Open};
use crate::llm::ProviderKind;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Clock;

/// The keys of a table in their order.
pub type TableKeys = Vec<(String, toml::Value)>;

/// The settings of a new job.
#[derive(Clone, Default)]
pub struct NewJob {
    pub kind: String,
    pub name: String,
    pub every: Option<String>,
    pub cron: Option<String>,
    pub deliver: Vec<String>,
    pub first_run: Option<String>,
    /// The pipeline's own flags, each with its values.
    pub own: Vec<(&'static Flag, Vec<String>)>,
    pub set: TableKeys,
}

/// Why a table cannot be added.
#[derive(Debug)]
pub enum AddError {
    /// The name is taken.
    Known {
        /// A job, a channel or a provider.
        what: Phrase,
        name: String,
    },
    /// A flag has an invalid value.
    Value(Phrase),
    /// The file cannot be changed, or would be invalid.
    Edit(EditError),
    /// The jobs of the file could not be created.
    App(super::Error),
    /// There is no memory for a look.
    Db(db::Error),
}

impl AddError {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            Self::Known { what, name } => {
                phrase!("there is a {what} `{name}` already", "{what} `{name}` はすでにあります")
            }
            Self::Value(why) => why.clone(),
            Self::Edit(error) => error.phrase(),
            Self::App(error) => error.phrase(),
            Self::Db(error) => error.phrase(),
        }
    }
}

crate::error_in_english!(AddError);

impl From<EditError> for AddError {
    fn from(error: EditError) -> Self {
        Self::Edit(error)
    }
}

impl From<super::Error> for AddError {
    fn from(error: super::Error) -> Self {
        Self::App(error)
    }
}

impl From<db::Error> for AddError {
    fn from(error: db::Error) -> Self {
        Self::Db(error)
    }
}

impl NewJob {
    /// The keys of its table, in the usual order.
    pub fn keys(&self) -> Result<TableKeys, Phrase> {
        let mut keys: TableKeys =
            vec![("name".into(), self.name.as_str().into()), ("kind".into(), self.kind.as_str().into())];
        let flags = find_pipeline(&self.kind).map_or(&[][..], |pipeline| pipeline.flags);
        keys.extend(Flag::keys(flags, &self.own)?);
        let text = |value: &Option<String>| value.as_deref().map(toml::Value::from);
        let deliver = (!self.deliver.is_empty()).then(|| toml::Value::from(self.deliver.clone()));
        let common = [
            ("every", text(&self.every)),
            ("cron", text(&self.cron)),
            ("deliver", deliver),
            ("first_run", text(&self.first_run)),
        ];
        keys.extend(common.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        keys.extend(self.set.iter().cloned());
        Ok(keys)
    }

    /// Appends it to the file if all jobs of the file can be created then; returns the new config.
    pub async fn add_to(&self, path: &Path, env: &Env, clock: &Clock) -> Result<Config, AddError> {
        let keys = self.keys().map_err(AddError::Value)?;
        let mut file = ConfigFile::open(path)?;
        if file.read(super::kinds(), env).is_ok_and(|config| config.find_job(&self.name).is_some()) {
            return Err(AddError::Known { what: TableKind::Job.noun(), name: self.name.clone() });
        }
        file.document.add_job(&borrow(&keys))?;
        save(file, env, clock).await
    }
}

/// The settings of a new channel or model provider.
pub struct NewTable {
    /// `channel` or `llm`.
    pub table: &'static str,
    pub kind: &'static str,
    pub flags: &'static [Flag],
    pub name: String,
    /// The values of each flag.
    pub own: Vec<(&'static Flag, Vec<String>)>,
    pub set: TableKeys,
}

impl NewTable {
    /// A new channel, with the values of its flags.
    pub fn channel(kind: &'static ChannelKind, name: &str, own: Vec<(&'static Flag, Vec<String>)>) -> Self {
        let name = name.to_owned();
        Self { table: "channel", kind: kind.keys.name, flags: kind.flags, name, own, set: Vec::new() }
    }

    /// A model provider with the name of its kind.
    pub fn llm(kind: &'static ProviderKind, own: Vec<(&'static Flag, Vec<String>)>) -> Self {
        let (table, kind, flags) = ("llm", kind.keys.name, kind.flags);
        Self { table, kind, flags, name: kind.to_owned(), own, set: Vec::new() }
    }

    /// The keys of its table, in the usual order.
    pub fn keys(&self) -> Result<TableKeys, Phrase> {
        let mut keys: TableKeys = vec![("kind".into(), self.kind.into())];
        let own = Flag::keys(self.flags, &self.own)?;
        // A key in `set` replaces the one of a flag.
        keys.extend(own.into_iter().filter(|(key, _)| !self.set.iter().any(|(known, _)| known == key)));
        keys.extend(self.set.iter().cloned());
        Ok(keys)
    }

    /// Appends it to the file if the file is valid then; returns the new config.
    pub async fn add_to(&self, path: &Path, env: &Env, clock: &Clock) -> Result<Config, AddError> {
        let keys = self.keys().map_err(AddError::Value)?;
        let mut file = ConfigFile::open(path)?;
        if file.document.has_table(&[self.table, &self.name]) {
            return Err(AddError::Known {
                what: if self.table == TableKind::Channel.word() {
                    TableKind::Channel.noun()
                } else {
                    TableKind::Llm.noun()
                },
                name: self.name.clone(),
            });
        }
        file.document.add_table(&[self.table, &self.name], &borrow(&keys))?;
        save(file, env, clock).await
    }
}

fn borrow(keys: &TableKeys) -> Vec<(&str, toml::Value)> {
    keys.iter().map(|(key, value)| (key.as_str(), value.clone())).collect()
}

/// Saves the file if everything in it can be created.
async fn save(file: ConfigFile, env: &Env, clock: &Clock) -> Result<Config, AddError> {
    App::preview(&file.read(super::kinds(), env)?, clock).await?;
    Ok(file.save(super::kinds(), env)?)
}

impl App {
    /// Creates everything on an empty database in memory, to check a config that is not in use. Nothing is fetched, so
    /// the proxy's secret may be missing.
    pub async fn preview(config: &Config, clock: &Clock) -> Result<Self, AddError> {
        let db = Db::open(DbUrl::Memory, Open::Create, clock.clone()).await?;
        Ok(Self::without_ways_out(config, db)?)
    }

    /// The same on `db`, for a process that fetches nothing: the proxy's secret may be missing.
    pub fn without_ways_out(config: &Config, db: Db) -> Result<Self, super::Error> {
        if config.app.proxy.as_ref().is_some_and(|proxy| proxy.reveal().is_err()) {
            let mut without = config.clone();
            without.app.proxy = None;
            return Self::new(&without, db);
        }
        Self::new(config, db)
    }
}
