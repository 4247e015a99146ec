//! The config file: parses TOML into typed tables, and reports every mistake with its position and a suggestion.
//!
//! ```text
//! tsuzuki.toml ──parse──▶ spanned tables ──┬─ [app] [store] [quota.*] [defaults]  read here
//!   + environment                          ├─ [[job]]      what all kinds share read here, ┐ the rest into the
//!                                          ├─ [channel.*]                                  ├ struct of its kind,
//!                                          └─ [llm.*] [web]                                ┘ see `Section::keys`
//! ```
//!
//! This crate knows no pipeline. The kinds are passed in as a list of [`Kind`]s; with it the whole file is checked at
//! once, and every problem is reported, not only the first.
//!
//! ```
//! use std::path::Path;
//! use tsuzuki_config::{Colour, Env, parse};
//!
//! let problems = parse("[app]\ntimezome = \"UTC\"", Path::new("tsuzuki.toml"), &[], &Env::of([])).unwrap_err();
//! let text = problems.render(Colour::Never);
//! assert!(text.contains("tsuzuki.toml:2:1") && text.contains("timezone"), "{text}");
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use stdx::phrase;
use stdx::phrase::Phrase;

mod diagnostic;
mod edit;
mod env;
mod explain;
mod flag;
mod kind;
mod lenient;
mod lookup;
mod mask;
mod model;
mod overrides;
mod read;
mod reading;
mod redact;
mod reference;
mod schema;
mod secret;
mod secret_url;
mod section;
mod tree;
pub mod value;
mod web;

pub use diagnostic::{Colour, ConfigSource, Problem, Problems, Severity};
pub use edit::{ConfigFile, ConfigText, EditError, Pairs, read_value};
pub use env::Env;
pub use flag::{Flag, FlagShape};
pub use kind::{Kind, NO_LLM, TableKind, UnusedKey};
pub use model::{App, Job, Quota, ScheduleSpec, Store};
pub use overrides::EnvOverride;
pub use redact::{Redacting, redact};
pub use reference::render_reference;
pub use schema::schema;
pub use secret::{MissingSecret, Revealed, Secret};
pub use secret_url::{BadLocation, Location, SecretUrl};
pub use section::{Section, did_you_mean};
pub use web::{Web, WebAuth};

/// The largest config file: enough for thousands of blogs; a larger one is something else.
const MAX_BYTES: u64 = 4 << 20;

/// The name of the config file.
pub const FILE_NAME: &str = "tsuzuki.toml";

/// A parsed and validated config file.
#[derive(Clone, Debug)]
pub struct Config {
    pub path: PathBuf,
    /// `[app]`
    pub app: App,
    /// `[store]`
    pub store: Store,
    /// Empty if the file has no `[web]`.
    pub web: Section,
    /// `[quota.NAME]`
    pub quotas: BTreeMap<String, Quota>,
    /// `[llm.NAME]`
    pub llms: Vec<Section>,
    /// `[channel.NAME]`
    pub channels: Vec<Section>,
    /// In the order of the file.
    pub jobs: Vec<Job>,
    /// Whether `jobs` has every `[[job]]`: those without a name or a kind are missing.
    pub has_all_jobs: bool,
    /// Possible improvements.
    pub warnings: Problems,
    secrets: Vec<SecretUse>,
    source: ConfigSource,
}

/// A secret and its position.
#[derive(Clone, Debug)]
struct SecretUse {
    span: Range<usize>,
    /// Whether it is written in the file itself.
    literal: bool,
    secret: Secret,
    /// Place, kind and name of its table, and its key.
    place: TableKind,
    kind: String,
    owner: String,
    key: String,
}

/// A missing secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingAt {
    /// The place of its table.
    pub place: TableKind,
    /// The kind of its table, such as `gemini`; empty for `[app]`, `[store]` and `[web]`.
    pub kind: String,
    pub owner: String,
    /// The key; in tables without a kind, the full path: `store.url`, `web.auth.password`.
    pub key: String,
    pub line: usize,
    pub why: Phrase,
}

impl Config {
    /// Redacts every available secret of the file from now on.
    pub fn hide_secrets(&self) {
        for used in &self.secrets {
            let _ = used.secret.reveal();
        }
    }

    /// The problem at the position of a missing secret; `None` if it does not come from the file but from an override.
    pub fn find_missing(&self, missing: &MissingSecret) -> Option<Problem> {
        let in_file = |used: &&SecretUse| !used.span.is_empty();
        let used = self
            .secrets
            .iter()
            .filter(in_file)
            .find(|used| used.secret.reveal().as_ref().err() == Some(missing))?;
        Some(Problem::at(&self.source, used.span.clone(), missing.phrase()))
    }

    /// Every missing secret, with its key and the kind of its table.
    pub fn list_missing_secrets(&self) -> Vec<MissingAt> {
        self.list_needed_setup().into_iter().map(|(missing, _)| missing).collect()
    }

    /// The same, each as a problem outside of the file.
    pub fn list_needed_setup(&self) -> Vec<(MissingAt, Problem)> {
        let of_one = |used: &SecretUse| {
            let SecretUse { span, secret, place, kind, owner, key, .. } = used.clone();
            let line = self.source.line_and_column(span.start).0;
            let source = &self.source;
            secret.list_missing().into_iter().map(move |missing| {
                let why = missing.phrase();
                let problem = Problem::at(source, span.clone(), why.clone()).as_setup();
                let (kind, owner, key) = (kind.clone(), owner.clone(), key.clone());
                (MissingAt { place, kind, owner, key, line, why }, problem)
            })
        };
        self.secrets.iter().flat_map(of_one).collect()
    }

    /// Warnings about how secrets are stored.
    pub fn list_secret_warnings(&self) -> Vec<Phrase> {
        let mut warnings: Vec<Phrase> =
            self.secrets.iter().flat_map(|used| used.secret.list_warnings()).collect();
        warnings.dedup();
        warnings
    }

    /// The text of the file with literal secrets masked.
    pub fn masked_text(&self) -> String {
        self.source.masked()
    }

    /// The file as JSON with literal secrets masked, without environment and defaults.
    pub fn masked_json(&self) -> serde_json::Value {
        let masked = self.source.masked();
        let shown = |span: &Range<usize>, text: &str| self.source.shown(&masked, span, text);
        tree::TomlTable::parse(self.source.text()).unwrap_or_default().to_json(&shown)
    }

    /// The job of that name.
    pub fn find_job(&self, name: &str) -> Option<&Job> {
        self.jobs.iter().find(|job| job.name.as_str() == name)
    }
}

/// Environment variables that are set and override a key, each with that key.
pub fn list_overrides(kinds: &[Kind], env: &Env) -> Vec<(&'static str, String)> {
    overrides::list_keys(kinds).filter(|(variable, _)| env.find(variable).is_some()).collect()
}

/// The path of the config file: from the command line, `$TSUZUKI_CONFIG`, the working directory, the user's XDG
/// directory, or the system's.
///
/// The first two need not exist; the others are used only if they do.
pub fn find_path(from_command_line: Option<&Path>, env: &Env) -> Option<PathBuf> {
    if let Some(path) = from_command_line {
        return Some(path.to_owned());
    }
    if let Some(path) = env.find("TSUZUKI_CONFIG") {
        return Some(PathBuf::from(path));
    }
    let here = PathBuf::from(FILE_NAME);
    std::iter::once(here).chain(xdg_path(env)).chain(system_paths(env)).find(|path| path.is_file())
}

/// The path of a config file for a user: `~/.config/tsuzuki/tsuzuki.toml`.
pub fn xdg_path(env: &Env) -> Option<PathBuf> {
    // The specification says to ignore a relative path.
    let configured = env.find("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = configured.or_else(|| env.find("HOME").map(|home| Path::new(&home).join(".config")))?;
    Some(directory.join("tsuzuki").join(FILE_NAME))
}

/// Paths of the config file of a service: `/etc/tsuzuki/tsuzuki.toml`, or those in `$XDG_CONFIG_DIRS`.
fn system_paths(env: &Env) -> Vec<PathBuf> {
    let directories = env.find("XDG_CONFIG_DIRS").unwrap_or_else(|| "/etc".to_owned());
    let is_absolute = |directory: &&str| Path::new(directory).is_absolute();
    let path = |directory: &str| Path::new(directory).join("tsuzuki").join(FILE_NAME);
    directories.split(':').filter(is_absolute).map(path).collect()
}

/// Loads and validates the file at `path`.
///
/// An empty list of `kinds` accepts every kind and does not parse their keys.
pub fn load(path: &Path, kinds: &'static [Kind], env: &Env) -> Result<Config, Problems> {
    parse(&load_text(path, kinds)?, path, kinds, env)
}

/// All problems of the file at `path`, and the config without the wrong parts.
/// Wrong parts are left out, and a table without a required key has no [`Section::keys`]: enough to check how tables
/// refer to each other, but not to run it. A file that is not TOML has no config.
/// fits together, nothing to run. A file that is not TOML has no config.
pub fn survey(path: &Path, kinds: &'static [Kind], env: &Env) -> (Option<Config>, Problems) {
    match load_text(path, kinds) {
        Ok(text) => read::read_file(ConfigSource::new(path, text).with_kinds(kinds), kinds, env),
        Err(problems) => (None, problems),
    }
}

fn load_text(path: &Path, kinds: &'static [Kind]) -> Result<String, Problems> {
    match load_bytes(path).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(err)) => Err(not_utf8(path, kinds, &err).into()),
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
            Err(Problem::of_file(path, phrase!("there is no such file", "ファイルがありません"))
                .with_hint(phrase!(
                    "`tsuzuki init` writes one; `-c FILE` names another",
                    "`tsuzuki init` で作るか、`-c FILE` で別のファイルを指定してください"
                ))
                .into())
        }
        Err(err) => {
            let why = match err.kind() {
                std::io::ErrorKind::FileTooLarge => phrase!(
                    "it is larger than 4 MiB, so it is no config file",
                    "4 MiB を超えており、設定ファイルではありません"
                ),
                _ => Phrase::verbatim(err.to_string()),
            };
            let message = phrase!("the file cannot be read: {why}", "ファイルを読み込めません：{why}");
            Err(Problem::of_file(path, message).into())
        }
    }
}

/// The problem of a file that is not UTF-8.
fn not_utf8(path: &Path, kinds: &'static [Kind], err: &std::string::FromUtf8Error) -> Problem {
    let (bytes, at) = (err.as_bytes(), err.utf8_error().valid_up_to());
    let problem = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        Problem::of_file(path, phrase!("the file is UTF-16", "ファイルの文字コードが UTF-16 です"))
    } else {
        let shown = ConfigSource::new(path, String::from_utf8_lossy(bytes)).with_kinds(kinds);
        let message = phrase!("the file is not UTF-8", "ファイルの文字コードが UTF-8 ではありません");
        Problem::at(&shown, at..at + 1, message)
    };
    problem.with_hint(phrase!("save it as UTF-8", "UTF-8 で保存してください"))
}

/// The bytes of a config file; a file that is too large is rejected before it is parsed.
fn load_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES { Err(std::io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Validates `text` as the content of `path`.
pub fn parse(text: &str, path: &Path, kinds: &'static [Kind], env: &Env) -> Result<Config, Problems> {
    match read::read_file(ConfigSource::new(path, text).with_kinds(kinds), kinds, env) {
        (Some(config), problems) if problems.is_empty() => Ok(config),
        (_, problems) => Err(problems),
    }
}
