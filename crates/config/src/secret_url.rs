//! A database address, of which only the password is secret.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use stdx::phrase;
use stdx::phrase::Phrase;

use super::env::Env;
use super::lookup::{BadReference, Surroundings};
use super::mask;
use super::model::Store;
use super::secret::{Hides, MissingSecret, Revealed, Secret, SecretParts};

/// An address such as `postgres://u:${PGPASS}@h/db` or `sqlite:tsuzuki.db`.
///
/// It can be printed: references are shown as written, and a literal password is masked.
#[derive(Clone)]
pub struct SecretUrl {
    text: String,
    secret: Secret,
}

/// Where the database is.
#[derive(Debug)]
pub enum Location {
    Sqlite(PathBuf),
    /// A server, with an address that may contain a password.
    Postgres(Revealed),
}

/// Why a database address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadLocation {
    /// A secret in it is missing.
    Secret(MissingSecret),
    /// It is not the address of a supported database.
    Address {
        /// Without its password.
        shown: String,
        why: Phrase,
    },
}

impl BadLocation {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            Self::Secret(missing) => missing.phrase(),
            Self::Address { shown, why } => phrase!(
                "`{shown}` is not a database address: {why}",
                "`{shown}` はデータベースのアドレスではありません：{why}"
            ),
        }
    }
}

stdx::error_in_english!(BadLocation);

impl From<MissingSecret> for BadLocation {
    fn from(missing: MissingSecret) -> Self {
        Self::Secret(missing)
    }
}

impl SecretUrl {
    /// Parses an address in the config file.
    pub fn parse(text: &str, secret_context: &Surroundings) -> Result<Self, BadReference> {
        SecretParts::parse(text, secret_context).map(Self::of)
    }

    fn of(found: SecretParts) -> Self {
        Self { text: found.text, secret: Secret::of(found.parts, Hides::Password) }
    }

    /// The address with resolved secrets; the password is redacted in logs from now on.
    pub fn reveal(&self) -> Result<Revealed, MissingSecret> {
        self.secret.reveal()
    }

    /// Whether a password is written in the file itself.
    pub fn has_literal_password(&self) -> bool {
        mask::blot_secrets(&self.text) != self.text
    }

    /// Checks an address without secrets right away.
    pub(super) fn check(&self) -> Result<(), BadLocation> {
        let scheme_known = self.text.find("${").is_none_or(|at| self.text[..at].contains(':'));
        if scheme_known { locate(&self.text, Path::new("."), &self.to_string()).map(drop) } else { Ok(()) }
    }
}

impl Store {
    /// The location of the database, with resolved secrets and an absolute path.
    pub fn location(&self) -> Result<Location, BadLocation> {
        let revealed = self.url.reveal()?;
        Ok(match locate(revealed.expose(), &self.directory, &self.url.to_string())? {
            Some(path) => Location::Sqlite(path),
            None => Location::Postgres(revealed),
        })
    }
}

impl SecretUrl {
    /// A database given on the command line, as an address or as a path, and its location; paths are relative to the
    /// working directory.
    pub fn named(text: &str, env: &Env) -> Result<(Self, Location), Phrase> {
        let is_address =
            ["sqlite:", "postgres://", "postgresql://"].iter().any(|word| text.starts_with(word));
        let text =
            if is_address || text.contains("://") { text.to_owned() } else { format!("sqlite:{text}") };
        let secret_context = Surroundings { directory: PathBuf::from("."), env: env.clone() };
        let url = Self::parse(&text, &secret_context).map_err(|error| error.phrase().clone())?;
        let directory = std::env::current_dir().map_err(|error| Phrase::verbatim(error.to_string()))?;
        let store = Store { url, directory, keep_history: None };
        let location = store.location().map_err(|error| error.phrase())?;
        Ok((store.url, location))
    }

    /// Its form in the config file of `directory`; a file gets the shortest path relative to it.
    pub fn written_for(&self, location: &Location, directory: &Path) -> String {
        match location {
            Location::Postgres(_) => self.text.clone(),
            Location::Sqlite(path) => {
                let absolute = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
                let path = absolute(path).unwrap_or_else(|_| path.clone());
                let inside = absolute(directory).ok().and_then(|directory| path.strip_prefix(directory).ok());
                format!("sqlite:{}", inside.unwrap_or(&path).display())
            }
        }
    }
}

/// The file of a `sqlite:` address, `None` for a PostgreSQL server.
fn locate(address: &str, directory: &Path, shown: &str) -> Result<Option<PathBuf>, BadLocation> {
    let bad = |why| Err(BadLocation::Address { shown: shown.to_owned(), why });
    if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        return Ok(None);
    }
    let Some(path) = address.strip_prefix("sqlite:") else {
        return bad(phrase!(
            "it begins with neither `sqlite:` nor `postgres://`",
            "`sqlite:` でも `postgres://` でも始まっていません"
        ));
    };
    let path = match path.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => {
            return bad(phrase!(
                "write `sqlite:PATH`, or `sqlite:///PATH` for an absolute one",
                "`sqlite:PATH` と書きます（絶対パスなら `sqlite:///PATH`）"
            ));
        }
        None => path,
    };
    match path {
        "" => bad(phrase!("the path is missing", "パスがありません")),
        ":memory:" => bad(phrase!(
            "what is kept in memory is forgotten at the end; name a file",
            "メモリ上のデータは終了時に失われます。ファイルを指定してください"
        )),
        path if path.contains(['?', '#']) => {
            bad(phrase!("a path takes no options", "パスにオプションは付けられません"))
        }
        path => Ok(Some(directory.join(path))),
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask::blot_secrets(&self.text))
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretUrl({self})")
    }
}

impl serde::Serialize for SecretUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for SecretUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename = "$secret-url")]
        struct SecretUrlText(SecretParts);
        let SecretUrlText(found) = SecretUrlText::deserialize(deserializer)?;
        let url = Self::of(found);
        url.check().map_err(|bad| serde::de::Error::custom(bad.phrase().to_stored()))?;
        Ok(url)
    }
}

impl JsonSchema for SecretUrl {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SecretUrl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "a database address; secrets in it as \"${ENV}\", \"${file:path}\" or \"${cred:name}\"",
            "examples": ["sqlite:tsuzuki.db", "postgres://tsuzuki:${PGPASSWORD}@db.example/tsuzuki"],
        })
    }
}
