//! References such as `${NAME}`, `${file:path}` and `${cred:name}`: parsing and resolving.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use stdx::phrase;
use stdx::phrase::Phrase;

use super::env::Env;
use super::secret::MissingSecret;
use super::value::BadValue;

/// The longest secret in a file.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Where secrets are resolved: relative to the config file and in the environment.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The directory that `${file:path}` is relative to.
    pub directory: PathBuf,
    /// The environment that `${NAME}` is looked up in.
    pub env: Env,
}

/// A part of a secret's text: literal text, or a reference.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SecretPart {
    Text(String),
    Env { name: String, value: Option<String> },
    File { written: String, path: PathBuf },
    Credential { name: String, path: Option<PathBuf> },
}

impl SecretPart {
    pub(super) fn load(&self) -> Result<String, MissingSecret> {
        match self {
            SecretPart::Text(text) => Ok(text.clone()),
            SecretPart::Env { name, value } => value.clone().ok_or_else(|| MissingSecret::Env(name.clone())),
            SecretPart::File { path, .. } => load_secret_file(path),
            SecretPart::Credential { name, path: None } => Err(MissingSecret::NoCredentials(name.clone())),
            SecretPart::Credential { path: Some(path), .. } => load_secret_file(path),
        }
    }
}

/// An invalid `${…}`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadReference(Phrase);

impl BadReference {
    /// In one sentence.
    pub fn phrase(&self) -> &Phrase {
        &self.0
    }

    pub(super) fn for_serde(&self) -> String {
        let hint = phrase!(
            "write {name} for a variable, {file} for a file, {cred} for a systemd credential, {escape} for {open} itself",
            "環境変数は {name}、ファイルは {file}、systemd のクレデンシャルは {cred} と書きます（{open} という文字そのものは {escape}）",
            name = "${NAME}",
            file = "${file:path}",
            cred = "${cred:name}",
            escape = "$${",
            open = "`${`"
        );
        BadValue::new(self.0.clone()).with_hint(hint).for_serde()
    }
}

pub(super) fn parse_parts(text: &str, context: &Surroundings) -> Result<Vec<SecretPart>, BadReference> {
    let bad = |message: Phrase| Err(BadReference(message));
    if text.is_empty() {
        return bad(phrase!("a secret cannot be empty", "秘密情報は空にできません"));
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
            return bad(phrase!(
                "`{open}` is never closed with `{close}`",
                "`{open}` が `{close}` で閉じられていません",
                open = "${",
                close = "}"
            ));
        };
        let name = &rest[at + 2..at + close];
        if !plain.is_empty() {
            parts.push(SecretPart::Text(std::mem::take(&mut plain)));
        }
        parts.push(match name.split_once(':') {
            Some(("file", path)) if !path.is_empty() => {
                SecretPart::File { written: path.to_owned(), path: context.directory.join(path) }
            }
            Some(("cred", name)) if !name.is_empty() && !name.contains('/') && name != ".." => {
                let directory = context.env.find("CREDENTIALS_DIRECTORY").map(PathBuf::from);
                SecretPart::Credential { name: name.to_owned(), path: directory.map(|path| path.join(name)) }
            }
            None if is_variable_name(name) => {
                SecretPart::Env { name: name.to_owned(), value: context.env.find(name) }
            }
            _ => {
                let reference = format!("${{{name}}}");
                return bad(phrase!(
                    "`{reference}` is no reference that is known",
                    "`{reference}` という参照の書き方はありません"
                ));
            }
        });
        rest = &rest[at + close + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(SecretPart::Text(plain));
    }
    Ok(parts)
}

pub(super) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a text contains a reference.
pub(super) fn has_reference(text: &str) -> bool {
    let nowhere = || Surroundings { directory: PathBuf::new(), env: Env::of([]) };
    let is_reference = |part: &SecretPart| !matches!(part, SecretPart::Text(_));
    text.contains("${") && parse_parts(text, &nowhere()).is_ok_and(|parts| parts.iter().any(is_reference))
}

fn load_secret_file(path: &Path) -> Result<String, MissingSecret> {
    use std::io::Read;
    let missing = |why: Phrase| MissingSecret::File { path: path.display().to_string(), why };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|err| missing(Phrase::verbatim(err.to_string())))?;
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|err| missing(Phrase::verbatim(err.to_string())))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(missing(phrase!(
            "it is larger than {most} bytes",
            "{most} バイトを超えています",
            most = MAX_FILE_BYTES
        )));
    }
    let trimmed =
        text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    if trimmed.is_empty() {
        return Err(missing(phrase!("it is empty", "空です")));
    }
    Ok(trimmed.to_owned())
}

#[cfg(unix)]
pub(super) fn is_world_readable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_world_readable(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts as words, for comparing.
    fn parts(text: &str) -> Result<Vec<String>, BadReference> {
        let word = |part: SecretPart| match part {
            SecretPart::Text(text) => format!("text {text}"),
            SecretPart::Env { name, .. } => format!("env {name}"),
            SecretPart::File { path, .. } => format!("file {}", path.display()),
            SecretPart::Credential { name, .. } => format!("cred {name}"),
        };
        let nowhere = Surroundings { directory: PathBuf::new(), env: Env::of([]) };
        Ok(parse_parts(text, &nowhere)?.into_iter().map(word).collect())
    }

    #[test]
    fn references_stand_alone_or_inside_a_text() {
        for (text, expected) in [
            ("${A_1}", vec!["env A_1"]),
            ("${file:a/b c}", vec!["file a/b c"]),
            ("${cred:x}", vec!["cred x"]),
            ("a${B}c${D}", vec!["text a", "env B", "text c", "env D"]),
            ("plain", vec!["text plain"]),
            ("$5 and $ {x}", vec!["text $5 and $ {x}"]),
            ("$${A}", vec!["text ${A}"]),
            ("x$${A}${B}", vec!["text x${A}", "env B"]),
        ] {
            assert_eq!(parts(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for text in [
            "",
            "${",
            "${A",
            "${}",
            "${1A}",
            "${a b}",
            "${file:}",
            "${cred:}",
            "${cred:../x}",
            "${cred:..}",
            "${env:A}",
        ] {
            assert!(parts(text).is_err(), "{text}");
        }
    }
}
