//! Names and identifiers that are validated when they are created.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::phrase;
use crate::phrase::Phrase;

/// The name of a job, as in the config file and in every table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct JobName(String);

/// An invalid name, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadName(Phrase);

impl BadName {
    fn new(text: &str, why: Phrase) -> Self {
        let text: String = text.chars().take(80).collect();
        Self(phrase!("`{text}` is not a usable name: {why}", "`{text}` は名前に使えません：{why}"))
    }

    /// In one sentence.
    pub fn phrase(&self) -> &Phrase {
        &self.0
    }
}

impl JobName {
    /// The longest name, in characters.
    pub const MAX_CHARS: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for JobName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let bad = |why| Err(BadName::new(text, why));
        if text.is_empty() {
            return bad(phrase!("it is empty", "空です"));
        }
        if text.chars().count() > Self::MAX_CHARS {
            return bad(phrase!("it is longer than 64 characters", "64 文字を超えています"));
        }
        if text.starts_with('-') {
            return bad(phrase!(
                "it starts with a dash, which the command line reads as an option",
                "先頭の `-` はコマンドラインでオプションと解釈されます"
            ));
        }
        match text.chars().find(|c| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
            Some(_) => bad(phrase!(
                "letters, digits, `-`, `_` and `.` are allowed",
                "使えるのは文字、数字、`-`、`_`、`.` です"
            )),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for JobName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de> serde::Deserialize<'de> for JobName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(|bad: BadName| serde::de::Error::custom(bad.0.to_stored()))
    }
}

/// The id of a bulk run: a UUID v4, as in the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunId(Uuid);

impl RunId {
    /// A new, random id.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for RunId {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        match Uuid::try_parse(text) {
            Ok(id) if id.get_version_num() == 4 && text.len() == 36 => Ok(Self(id)),
            _ => Err(BadName::new(
                text,
                phrase!(
                    "a run id looks like 550e8400-e29b-41d4-a716-446655440000",
                    "収集の ID は 550e8400-e29b-41d4-a716-446655440000 のような形です"
                ),
            )),
        }
    }
}

/// The host name of this machine, if it has one.
pub fn host_name() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .or_else(|| std::env::var("HOSTNAME").ok())
}

/// A process of this program, as the owner of leases: `host/pid/kernel-random`.
///
/// `kernel` identifies the boot and the process table in which the process id is valid: two containers may have the
/// same host name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner(String);

impl Owner {
    /// An owner for this process; two calls return different owners.
    pub fn this_process() -> Self {
        let host = host_name().unwrap_or_else(|| "localhost".to_owned());
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let table = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let table: String = table.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        let boot = boot.split('-').next().unwrap_or_default();
        let random = Uuid::new_v4().simple().to_string();
        Self(format!("{host}/{}/{boot}.{table}-{}", std::process::id(), &random[..8]))
    }

    /// The owner as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_names_are_words_in_any_script() {
        for good in ["blogs", "ai-books", "総務省", "a.b_c", "2026"] {
            assert_eq!(good.parse::<JobName>().unwrap().as_str(), good);
        }
        for bad in ["", " ", "a b", "-x", "a/b", "a\nb", "a'b", &"x".repeat(65)] {
            assert!(bad.parse::<JobName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn run_ids_are_uuid_v4_in_hyphenated_form() {
        let id = RunId::random();
        assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
        assert!("550e8400-e29b-41d4-a716-446655440000".parse::<RunId>().is_ok());
        assert!("550e8400e29b41d4a716446655440000".parse::<RunId>().is_err());
        assert!("01890a5d-ac96-774b-bcce-b302099a8057".parse::<RunId>().is_err(), "v7 is not v4");
    }

    #[test]
    fn two_owners_differ() {
        assert_ne!(Owner::this_process(), Owner::this_process());
    }
}
