//! A new job, from flags or from a form: its keys, and how it comes to stand in the config file.

use std::path::Path;

use super::App;
use crate::config::{Config, ConfigFile, EditError, Env};
use crate::db::{self, Db, DbUrl, Open};
use crate::engine::pipeline::{Flag, FlagShape};
use crate::time::Clock;

/// The keys of a table, in the order in which they are written.
pub type Keys = Vec<(String, toml::Value)>;

/// What a person wants.
#[derive(Clone, Default)]
pub struct NewJob {
    /// What it does.
    pub kind: String,
    /// What it is called.
    pub name: String,
    /// How often it runs.
    pub every: Option<String>,
    /// When it runs.
    pub cron: Option<String>,
    /// Channels that it notifies.
    pub deliver: Vec<String>,
    /// What the first run sends.
    pub first_run: Option<String>,
    /// The flags that a pipeline has of its own, each with what was given.
    pub own: Vec<(&'static Flag, Vec<String>)>,
    /// Any other keys.
    pub set: Keys,
}

/// Why it cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// There is one of that name.
    #[error("there is a job `{0}` already")]
    Known(String),
    /// A flag has a value that it cannot have.
    #[error("{0}")]
    Value(String),
    /// The file cannot be changed, or would not be right.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The jobs of the file could not be made any more.
    #[error(transparent)]
    App(#[from] super::Error),
    /// There is no memory for a look.
    #[error(transparent)]
    Db(#[from] db::Error),
}

impl NewJob {
    /// The keys of its table, in the order in which a person would write them.
    pub fn keys(&self) -> Result<Keys, String> {
        let mut keys: Keys =
            vec![("name".into(), self.name.as_str().into()), ("kind".into(), self.kind.as_str().into())];
        for (flag, values) in &self.own {
            let last = values.last().cloned().unwrap_or_default();
            let value = match flag.shape {
                FlagShape::Text => toml::Value::from(last),
                FlagShape::List => toml::Value::from(values.clone()),
                FlagShape::Variable => toml::Value::from(format!("${{{last}}}")),
                FlagShape::Made(make) => make(values)?,
            };
            keys.push((flag.key.to_owned(), value));
        }
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

    /// Puts it at the end of the file, if all jobs of the file can be made then; answers what the file says now.
    pub async fn add_to(&self, path: &Path, env: &Env, clock: &Clock) -> Result<Config, AddError> {
        let keys = self.keys().map_err(AddError::Value)?;
        let mut file = ConfigFile::open(path)?;
        if file.read(super::kinds(), env).is_ok_and(|config| config.find_job(&self.name).is_some()) {
            return Err(AddError::Known(self.name.clone()));
        }
        let borrowed: Vec<(&str, toml::Value)> =
            keys.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        file.document.add_job(&borrowed)?;
        App::preview(&file.read(super::kinds(), env)?, clock).await?;
        Ok(file.save(super::kinds(), env)?)
    }
}

impl App {
    /// Everything, on an empty database in memory, for a config that is not in use: its jobs can be made, or an error says why
    /// not. Nothing is fetched, so a secret of the way out need not be there.
    pub async fn preview(config: &Config, clock: &Clock) -> Result<Self, AddError> {
        let db = Db::open(DbUrl::Memory, Open::Create, clock.clone()).await?;
        Ok(Self::without_ways_out(config, db)?)
    }

    /// Everything, for a look that fetches nothing: a secret of the way out need not be there.
    pub fn without_ways_out(config: &Config, db: Db) -> Result<Self, super::Error> {
        if config.app.proxy.as_ref().is_some_and(|proxy| proxy.reveal().is_err()) {
            let mut without = config.clone();
            without.app.proxy = None;
            return Self::new(&without, db);
        }
        Self::new(config, db)
    }
}
