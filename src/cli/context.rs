//! What every command is handed: options, config, database, output, and the wish to stop.

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

/// The surroundings of a command. Config and database are opened when first asked for.
pub(crate) struct Context {
    /// Where it writes.
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

    /// The same with this config file.
    pub(super) fn at(&self, config: PathBuf) -> Self {
        let global = Global { config: Some(config), ..self.global.clone() };
        let (out, clock, stop) = (self.out.clone(), self.clock.clone(), self.stop.clone());
        Self { out, clock, stop, ..Self::new(global) }
    }

    /// The same with this config file, and without the user's environment: no variable changes what it says.
    pub(super) fn apart(&self, config: PathBuf) -> Self {
        Self { env: Env::of([]), ..self.at(config) }
    }

    /// Where the config file is, or an error that says how to make one.
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

    /// How to speak to whoever runs the command, as the config says.
    pub(super) async fn speech(&self) -> Result<Speech> {
        self.config().await?;
        Ok(self.out.speech().clone())
    }

    /// The config file, read anew.
    pub(crate) fn load_config(&self) -> Result<Config> {
        let (config, problems) = config::survey(&self.config_path()?, app::kinds(), &self.env);
        if let Some(config) = &config {
            self.speak_as_in(config);
        }
        let config = config.filter(|_| problems.is_empty()).ok_or(problems)?;
        config.hide_secrets();
        Ok(config)
    }

    /// Speaks as a config says from now on; one with problems says it, too.
    pub(super) fn speak_as_in(&self, config: &Config) {
        let language = self.global.lang.or(config.app.language).or_else(|| self.env.find_language());
        let zone = Some(config.app.timezone.time_zone().clone());
        self.out.speak(Speech { language: language.unwrap_or(Language::En), zone });
    }

    /// The place of the database that the config names.
    pub(crate) async fn place(&self) -> Result<DbUrl> {
        place_of(self.config().await?)
    }

    /// The database of the config, created and migrated if need be.
    pub(crate) async fn db(&self) -> Result<&Db> {
        self.open_db(Open::Create).await
    }

    /// The database of the config, opened in the given way. A command opens it in one way only.
    pub(crate) async fn open_db(&self, how: Open) -> Result<&Db> {
        self.db
            .get_or_try_init(|| async {
                let place = self.place().await?;
                Ok(Db::open(place, how, self.clock.clone()).await?)
            })
            .await
    }

    /// Everything, put together.
    pub(crate) async fn app(&self, how: Open) -> Result<App> {
        let db = self.open_db(how).await?.clone();
        Ok(App::new(self.config().await?, db)?)
    }

    /// Everything, on a database that refuses every write. One that does not exist yet is stood in for by an empty
    /// one in memory, so that nothing is created.
    pub(crate) async fn read_only_app(&self) -> Result<App> {
        match self.find_db().await? {
            Some(db) => Ok(App::without_ways_out(self.config().await?, db.clone())?),
            None => self.app_on_scratch().await,
        }
    }

    /// The database of the config, to read in: nothing is created or changed. One that does not exist yet is stood in
    /// for by an empty one in memory.
    pub(super) async fn view(&self) -> Result<Db> {
        match self.find_db().await? {
            Some(db) => Ok(db.clone()),
            None => Ok(self.scratch().await?),
        }
    }

    /// The database of the config, opened to look only; `None` when nothing has made it yet.
    pub(super) async fn find_db(&self) -> Result<Option<&Db>> {
        let place = self.place().await?;
        match self.db.get_or_try_init(|| Db::open(place, Open::ReadOnly, self.clock.clone())).await {
            Ok(db) => Ok(Some(db)),
            Err(db::Error::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the database of the config is there; a server always counts as there.
    pub(super) async fn database_exists(&self) -> Result<bool> {
        Ok(match self.place().await? {
            DbUrl::File(path) => path.exists(),
            DbUrl::Memory | DbUrl::Server(_) => true,
        })
    }

    /// Everything, on an empty database in memory: for a look at what would happen on a new one.
    pub(super) async fn app_on_scratch(&self) -> Result<App> {
        self.preview(self.config().await?).await
    }

    /// The same for a config that is not in use: its jobs can be made, or an error says why not.
    pub(super) async fn preview(&self, config: &Config) -> Result<App> {
        Ok(App::without_ways_out(config, self.scratch().await?)?)
    }

    async fn scratch(&self) -> Result<Db> {
        Ok(Db::open(DbUrl::Memory, Open::Create, self.clock.clone()).await?)
    }

    /// Does `work`, which only looks, until it is done or the user has had enough.
    pub(super) async fn unless_stopped(&self, work: impl Future<Output = Result>) -> Result {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Ok(Exit::Interrupted),
            done = work => done,
        }
    }

    /// Closes the database, so that the WAL is tidied away.
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
