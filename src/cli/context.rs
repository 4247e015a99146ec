//! The context of every command: options, config, database, output, and cancellation.

use std::path::PathBuf;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::error::{Error, Exit, Result};
use super::{Global, Output};
use tsuzuki::app::{self, App};
use tsuzuki::config::{self, BadLocation, Config, Env, Problems};
use tsuzuki::db::{self, Db, DbUrl, Open};
use tsuzuki::phrase;
use tsuzuki::phrase::Speech;
use tsuzuki::text::Language;
use tsuzuki::time::Clock;

/// The context of a command. Config and database are opened on first use.
pub(crate) struct Context {
    pub out: Output,
    /// The time.
    pub clock: Clock,
    /// The environment.
    pub env: Env,
    /// Cancelled by Ctrl-C and SIGTERM.
    pub stop: CancellationToken,
    pub(super) global: Global,
    config: OnceCell<Config>,
    db: OnceCell<Db>,
}

impl Context {
    pub(super) fn new(global: Global) -> Self {
        let (env, clock) = (Env::of_process(), global.now.map_or_else(Clock::system, Clock::starting_at));
        let language = global.lang.or_else(|| env.find_language()).unwrap_or(Language::En);
        let usual = Speech { language, zone: None };
        Self {
            out: Output::new(&global, usual, clock.clone()),
            clock,
            env,
            stop: CancellationToken::new(),
            global,
            config: OnceCell::new(),
            db: OnceCell::new(),
        }
    }

    /// With this config file.
    pub(super) fn at(&self, config: PathBuf) -> Self {
        let global = Global { config: Some(config), ..self.global.clone() };
        let (out, clock, stop) = (self.out.clone(), self.clock.clone(), self.stop.clone());
        Self { out, clock, stop, ..Self::new(global) }
    }

    /// With this config file, and without the user's environment, so that no variable overrides it.
    pub(super) fn apart(&self, config: PathBuf) -> Self {
        Self { env: Env::of([]), ..self.at(config) }
    }

    /// The path of the config file, or an error with a hint how to create one.
    pub(crate) fn config_path(&self) -> Result<PathBuf> {
        config::find_path(self.global.config.as_deref(), &self.env).ok_or_else(|| {
            let message = phrase!(
                "there is no config file: no ./tsuzuki.toml, none in the XDG directory, none in /etc/tsuzuki",
                "設定ファイルがありません（./tsuzuki.toml、XDG ディレクトリ、/etc/tsuzuki を探しました）"
            );
            Error::new(Exit::Config, message).hint(phrase!(
                "run `tsuzuki init` to write one, or name it with -c FILE",
                "`tsuzuki init` で作るか、-c FILE で指定してください"
            ))
        })
    }

    /// The config file, read and checked once.
    pub(crate) async fn config(&self) -> Result<&Config> {
        self.config.get_or_try_init(|| async { self.load_config() }).await
    }

    /// The language and time zone of output, from the config.
    pub(super) async fn speech(&self) -> Result<Speech> {
        self.config().await?;
        Ok(self.out.speech().clone())
    }

    /// The config file, read again.
    pub(crate) fn load_config(&self) -> Result<Config> {
        let (config, problems) = config::survey(&self.config_path()?, app::kinds(), &self.env);
        if let Some(config) = &config {
            self.speak_as_in(config);
        }
        let config = config.filter(|_| problems.is_empty()).ok_or(problems)?;
        config.hide_secrets();
        Ok(config)
    }

    /// Uses the language and time zone of a config from now on, even if it has problems.
    pub(super) fn speak_as_in(&self, config: &Config) {
        let language = self.global.lang.or(config.app.language).or_else(|| self.env.find_language());
        let zone = Some(config.app.timezone.time_zone().clone());
        self.out.speak(Speech { language: language.unwrap_or(Language::En), zone });
    }

    /// The address of the configured database.
    pub(crate) async fn place(&self) -> Result<DbUrl> {
        place_of(self.config().await?)
    }

    /// The configured database, created and migrated if necessary.
    pub(crate) async fn db(&self) -> Result<&Db> {
        self.open_db(Open::Create).await
    }

    /// The configured database, opened in the given mode. A command uses one mode only.
    pub(crate) async fn open_db(&self, how: Open) -> Result<&Db> {
        self.db
            .get_or_try_init(|| async {
                let place = self.place().await?;
                Ok(Db::open(place, how, self.clock.clone()).await?)
            })
            .await
    }

    pub(crate) async fn app(&self, how: Open) -> Result<App> {
        let db = self.open_db(how).await?.clone();
        Ok(App::new(self.config().await?, db)?)
    }

    /// The app on a read-only database. If none exists, an empty one in memory takes its place, so that nothing is
    /// created.
    pub(crate) async fn read_only_app(&self) -> Result<App> {
        match self.find_db().await? {
            Some(db) => Ok(App::without_ways_out(self.config().await?, db.clone())?),
            None => self.app_on_scratch().await,
        }
    }

    /// The configured database, read-only: nothing is created or changed. If none exists, an empty one in memory takes
    /// its place.
    pub(super) async fn view(&self) -> Result<Db> {
        match self.find_db().await? {
            Some(db) => Ok(db.clone()),
            None => Ok(self.scratch().await?),
        }
    }

    /// The configured database, read-only; `None` if it does not exist.
    pub(super) async fn find_db(&self) -> Result<Option<&Db>> {
        let place = self.place().await?;
        match self.db.get_or_try_init(|| Db::open(place, Open::ReadOnly, self.clock.clone())).await {
            Ok(db) => Ok(Some(db)),
            Err(db::Error::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the configured database exists; a server always counts as existing.
    pub(super) async fn database_exists(&self) -> Result<bool> {
        Ok(match self.place().await? {
            DbUrl::File(path) => path.exists(),
            DbUrl::Memory | DbUrl::Server(_) => true,
        })
    }

    /// The app on an empty database in memory, to show what would happen on a new one.
    pub(super) async fn app_on_scratch(&self) -> Result<App> {
        self.preview(self.config().await?).await
    }

    /// The same for another config: its jobs can be made, or an error gives the reason.
    pub(super) async fn preview(&self, config: &Config) -> Result<App> {
        Ok(App::without_ways_out(config, self.scratch().await?)?)
    }

    async fn scratch(&self) -> Result<Db> {
        Ok(Db::open(DbUrl::Memory, Open::Create, self.clock.clone()).await?)
    }

    /// Runs read-only `work` until it is done or interrupted by the user.
    pub(super) async fn unless_stopped(&self, work: impl Future<Output = Result>) -> Result {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Ok(Exit::Interrupted),
            done = work => done,
        }
    }

    /// Closes the database, so that the WAL is removed.
    pub(super) async fn close(&mut self) {
        if let Some(db) = self.db.take() {
            db.close().await;
        }
    }
}

pub(super) fn place_of(config: &Config) -> Result<DbUrl> {
    let location = config.store.location().map_err(|error| {
        let (exit, place) = match &error {
            BadLocation::Secret(missing) => (Exit::Credentials, config.find_missing(missing)),
            BadLocation::Address { .. } => (Exit::Config, None),
        };
        match place {
            Some(problem) => {
                let problem = problem.with_hint(phrase!(
                    "the address of the database needs it",
                    "データベースのアドレスに必要です"
                ));
                Error { exit, ..Problems::from(problem).into() }
            }
            None => {
                let why = error.phrase();
                Error::new(exit, phrase!("`url` in [store]: {why}", "[store] の `url`：{why}"))
            }
        }
    })?;
    Ok(DbUrl::from(&location))
}
