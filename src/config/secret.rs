//! Secrets: named in the config file, looked up when needed, never printed.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret, SecretString};

use super::env::Env;
use super::redact;

/// The longest secret we read from a file.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// What stands where a secret would.
pub(super) const REDACTED: &str = "[redacted]";

/// Where secrets are looked up: beside the config file and in the environment.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The directory that `${file:path}` is relative to.
    pub directory: PathBuf,
    /// The environment that `${NAME}` is looked up in.
    pub env: Env,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self { directory: PathBuf::from("."), env: Env::of_process() }
    }
}

/// A secret that the config file names: `"${ENV}"`, `"${file:path}"`, `"${cred:name}"`, text around such
/// references, or the secret itself.
///
/// It is looked up only by [`Secret::reveal`], so commands that do not need it work without it.
#[derive(Clone)]
pub struct Secret {
    parts: Vec<Part>,
    hides: Hides,
    surroundings: Surroundings,
}

/// What of a text must not be seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hides {
    /// All of it.
    Whole,
    /// The password in an address; host and database may be seen.
    Password,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Env(String),
    File(PathBuf),
    Credential(String),
}

/// A secret that was looked up; it prints as `[redacted]`, and so does every log line that contains it.
#[derive(Clone)]
pub struct Revealed(SecretString);

/// A secret that is named but cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingSecret {
    /// The environment lacks a variable.
    #[error("the environment variable `{0}` is not set")]
    Env(String),
    /// A file cannot be read.
    #[error("the secret file `{path}` cannot be read: {why}")]
    File {
        /// The file, as looked for.
        path: String,
        /// What the system said.
        why: String,
    },
    /// We were not started by systemd with credentials.
    #[error("the credential `{0}` is not there: `$CREDENTIALS_DIRECTORY` is not set")]
    NoCredentials(String),
}

impl Secret {
    /// A secret from its text in the config file.
    pub fn parse(text: &str, surroundings: &Surroundings) -> Result<Self, BadReference> {
        Self::parse_hiding(text, Hides::Whole, surroundings)
    }

    pub(super) fn parse_hiding(
        text: &str,
        hides: Hides,
        surroundings: &Surroundings,
    ) -> Result<Self, BadReference> {
        Ok(Self { parts: parse_parts(text)?, hides, surroundings: surroundings.clone() })
    }

    /// Whether the secret itself stands in the file.
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// Looks the secret up and makes every log writer hide it from now on.
    pub fn reveal(&self) -> Result<Revealed, MissingSecret> {
        let values = self.parts.iter().map(|part| self.look_up(part)).collect::<Result<Vec<_>, _>>()?;
        let whole = values.concat();
        match (self.hides, url::Url::parse(&whole)) {
            (Hides::Password, Ok(address)) => register_passwords(&address),
            _ => {
                let referred =
                    self.parts.iter().zip(&values).filter(|(part, _)| !matches!(part, Part::Text(_)));
                referred.for_each(|(_, value)| redact::register(value));
                redact::register(&whole);
            }
        }
        Ok(Revealed(whole.into()))
    }

    /// What `check` should say about how the secret is kept; does not complain about its absence.
    pub fn list_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for part in &self.parts {
            if let Part::File(path) = part {
                let path = self.surroundings.directory.join(path);
                if is_world_readable(&path) {
                    warnings.push(format!(
                        "everyone on this machine can read the secret file `{0}`; `chmod 600 {0}` ends that",
                        path.display()
                    ));
                }
            }
        }
        if self.hides == Hides::Whole
            && let Ok(revealed) = self.reveal()
        {
            let value = revealed.expose();
            if value.chars().count() < redact::SHORTEST {
                warnings.push("the secret is too short to be hidden in logs".to_owned());
            }
            if value.trim() != value {
                warnings.push("the secret begins or ends with white space".to_owned());
            }
        }
        warnings
    }

    fn look_up(&self, part: &Part) -> Result<String, MissingSecret> {
        match part {
            Part::Text(text) => Ok(text.clone()),
            Part::Env(name) => {
                self.surroundings.env.find(name).ok_or_else(|| MissingSecret::Env(name.clone()))
            }
            Part::File(path) => load_secret_file(&self.surroundings.directory.join(path)),
            Part::Credential(name) => {
                let directory = self.surroundings.env.find("CREDENTIALS_DIRECTORY");
                let directory = directory.ok_or_else(|| MissingSecret::NoCredentials(name.clone()))?;
                load_secret_file(&Path::new(&directory).join(name))
            }
        }
    }

    /// The text as it may be shown: references as written, everything else hidden.
    fn shown(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(_) => REDACTED.to_owned(),
            Part::Env(name) => format!("${{{name}}}"),
            Part::File(path) => format!("${{file:{}}}", path.display()),
            Part::Credential(name) => format!("${{cred:{name}}}"),
        });
        parts.collect()
    }
}

impl Revealed {
    /// The secret itself: for the request that needs it, nothing else.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.shown())
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl serde::Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for Revealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Revealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl<'de> serde::Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_str(SecretTextVisitor)?;
        let secret = Secret::parse(&text, &current_surroundings())
            .map_err(|err| serde::de::Error::custom(err.with_hint()))?;
        note_seen(Seen { literal: secret.is_literal(), text, secret: secret.clone() });
        Ok(secret)
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A secret: \"${ENV}\", \"${file:path}\" or \"${cred:name}\"",
        })
    }
}

/// Reads a text without ever repeating a wrong value in the error, as serde's own visitors would.
pub(super) struct SecretTextVisitor;

impl serde::de::Visitor<'_> for SecretTextVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret in quotes")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<String, E> {
        Err(E::custom("a secret is a text: put it in quotes"))
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<String, E> {
        Err(E::custom("a secret is a text: put it in quotes"))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<String, E> {
        Err(E::custom("a secret is a text: put it in quotes"))
    }
}

/// A `${…}` that names nothing we know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadReference {
    message: String,
}

impl BadReference {
    pub(super) fn with_hint(&self) -> String {
        format!(
            "{}\nhint: write ${{NAME}} for a variable, ${{file:path}} for a file, ${{cred:name}} for a systemd credential, $${{ for `${{` itself",
            self.message
        )
    }
}

fn parse_parts(text: &str) -> Result<Vec<Part>, BadReference> {
    let bad = |message: String| Err(BadReference { message });
    if text.is_empty() {
        return bad("a secret cannot be empty".to_owned());
    }
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            plain.push_str(&rest[..at - 1]);
            plain.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        plain.push_str(&rest[..at]);
        let Some(close) = rest[at..].find('}') else {
            return bad("`${` is never closed with `}`".to_owned());
        };
        let name = &rest[at + 2..at + close];
        if !plain.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut plain)));
        }
        parts.push(match name.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Part::File(PathBuf::from(path)),
            Some(("cred", name)) if !name.is_empty() && !name.contains('/') && name != ".." => {
                Part::Credential(name.to_owned())
            }
            None if is_variable_name(name) => Part::Env(name.to_owned()),
            _ => return bad(format!("`${{{name}}}` is no reference that is known")),
        });
        rest = &rest[at + close + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Ok(parts)
}

fn register_passwords(address: &url::Url) {
    let in_query = address.query_pairs().filter(|(key, _)| key.ends_with("password"));
    in_query.for_each(|(_, value)| redact::register(&value));
    if let Some(password) = address.password() {
        redact::register(password);
        redact::register(&percent_encoding::percent_decode_str(password).decode_utf8_lossy());
    }
}

fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a text names something to be filled in.
pub(super) fn has_reference(text: &str) -> bool {
    parse_parts(text).is_ok_and(|parts| parts.iter().any(|part| !matches!(part, Part::Text(_))))
}

fn load_secret_file(path: &Path) -> Result<String, MissingSecret> {
    use std::io::Read;
    let missing = |why: String| MissingSecret::File { path: path.display().to_string(), why };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|err| missing(err.to_string()))?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|err| missing(err.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(missing(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    let trimmed =
        text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    if trimmed.is_empty() {
        return Err(missing("it is empty".to_owned()));
    }
    Ok(trimmed.to_owned())
}

#[cfg(unix)]
fn is_world_readable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn is_world_readable(_: &Path) -> bool {
    false
}

/// A secret that was met while a table was read.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) text: String,
    pub(super) literal: bool,
    pub(super) secret: Secret,
}

struct Reading {
    surroundings: Surroundings,
    seen: Vec<Seen>,
}

thread_local! {
    // serde hands no context to a value; a table is read on one thread without a pause, so this does.
    static READING: RefCell<Vec<Reading>> = const { RefCell::new(Vec::new()) };
}

/// Runs `read`, during which secrets learn their surroundings; answers which ones were met.
pub(super) fn reading<T>(surroundings: &Surroundings, read: impl FnOnce() -> T) -> (T, Vec<Seen>) {
    READING.with_borrow_mut(|stack| {
        stack.push(Reading { surroundings: surroundings.clone(), seen: Vec::new() });
    });
    let value = read();
    let reading = READING.with_borrow_mut(Vec::pop);
    (value, reading.map(|reading| reading.seen).unwrap_or_default())
}

pub(super) fn note_seen(seen: Seen) {
    READING.with_borrow_mut(|stack| {
        if let Some(reading) = stack.last_mut() {
            reading.seen.push(seen);
        }
    });
}

pub(super) fn current_surroundings() -> Surroundings {
    READING.with_borrow(|stack| stack.last().map(|one| one.surroundings.clone())).unwrap_or_default()
}
