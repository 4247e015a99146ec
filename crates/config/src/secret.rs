//! Secrets: named in the config file, resolved when needed, never printed.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret, SecretString};
use stdx::phrase;
use stdx::phrase::Phrase;

use super::lookup::{BadReference, SecretPart, Surroundings, is_world_readable, parse_parts};
use super::redact;

/// Printed instead of a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// Shorter parts of a secret address are not redacted separately.
const SHORTEST_PIECE: usize = 8;
/// Longer parts of an address are certainly not ordinary words.
const SURELY_REVEALING: usize = 16;

/// A secret in the config file: `"${ENV}"`, `"${file:path}"`, `"${cred:name}"`, text around such references, or the
/// secret itself.
///
/// It is resolved only by [`Secret::reveal`], so commands that do not need it work without it.
#[derive(Clone)]
pub struct Secret {
    parts: Vec<SecretPart>,
    hides: Hides,
}

/// The name of a newtype by which a secret, or an address with one, requests its [`SecretParts`] during
/// deserialisation, as serde passes no context to a value.
pub(super) const SECRET: &str = "$secret";
pub(super) const SECRET_URL: &str = "$secret-url";

/// The text of a secret, and its references.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct SecretParts {
    pub(super) text: String,
    pub(super) parts: Vec<SecretPart>,
}

impl SecretParts {
    pub(super) fn parse(text: &str, context: &Surroundings) -> Result<Self, BadReference> {
        Ok(Self { text: text.to_owned(), parts: parse_parts(text, context)? })
    }
}

/// Which part of a text is secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hides {
    Whole,
    /// The password in an address; host and database may be shown.
    Password,
}

/// A resolved secret; it prints as `[redacted]`, and is redacted in log lines.
#[derive(Clone)]
pub struct Revealed(SecretString);

/// Why a secret is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingSecret {
    /// An environment variable is not set.
    Env(String),
    /// A file cannot be read.
    File { path: String, why: Phrase },
    /// The process was not started by systemd with credentials.
    NoCredentials(String),
}

impl MissingSecret {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            Self::Env(name) => phrase!("{name} is not set", "{name} が設定されていません"),
            Self::File { path, why } => phrase!(
                "the secret file `{path}` cannot be read: {why}",
                "秘密情報のファイル `{path}` を読み込めません：{why}"
            ),
            Self::NoCredentials(name) => phrase!(
                "the credential `{name}` is not there: `$CREDENTIALS_DIRECTORY` is not set",
                "クレデンシャル `{name}` がありません（`$CREDENTIALS_DIRECTORY` が設定されていません）"
            ),
        }
    }
}

stdx::error_in_english!(MissingSecret);

impl Secret {
    /// Parses a secret in the config file.
    pub fn parse(text: &str, secret_context: &Surroundings) -> Result<Self, BadReference> {
        SecretParts::parse(text, secret_context).map(|found| Self::of(found.parts, Hides::Whole))
    }

    pub(super) fn of(parts: Vec<SecretPart>, hides: Hides) -> Self {
        Self { parts, hides }
    }

    /// Whether it is written in the file itself.
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, SecretPart::Text(_)))
    }

    /// Resolves the secret and redacts it in logs from now on.
    pub fn reveal(&self) -> Result<Revealed, MissingSecret> {
        let values = self.parts.iter().map(SecretPart::load).collect::<Result<Vec<_>, _>>()?;
        let whole = values.concat();
        match (self.hides, url::Url::parse(&whole)) {
            (Hides::Password, Ok(address)) => register_passwords(&address),
            _ => {
                let referred =
                    self.parts.iter().zip(&values).filter(|(part, _)| !matches!(part, SecretPart::Text(_)));
                referred.for_each(|(_, value)| redact::register(value));
                redact::register(&whole);
                if let Ok(address) = url::Url::parse(whole.trim())
                    && address.has_host()
                {
                    register_passwords(&address);
                    register_pieces(&address);
                }
            }
        }
        Ok(Revealed(whole.into()))
    }

    /// All references that cannot be resolved; [`Secret::reveal`] stops at the first.
    pub fn list_missing(&self) -> Vec<MissingSecret> {
        let mut missing: Vec<MissingSecret> =
            self.parts.iter().filter_map(|part| part.load().err()).collect();
        missing.dedup();
        missing
    }

    /// Warnings of `check` about how the secret is stored; a missing one is not reported here.
    pub fn list_warnings(&self) -> Vec<Phrase> {
        let mut warnings = Vec::new();
        for part in &self.parts {
            if let SecretPart::File { path, .. } = part
                && is_world_readable(path)
            {
                warnings.push(phrase!(
                    "everyone on this machine can read the secret file `{path}`; `chmod 600 {path}` ends that",
                    "秘密情報のファイル `{path}` はこのマシンの誰でも読めます。`chmod 600 {path}` で制限できます"));
            }
        }
        if self.hides == Hides::Whole
            && let Ok(revealed) = self.reveal()
        {
            let (name, value) = (self.shown(), revealed.expose());
            if value.chars().count() < redact::SHORTEST {
                warnings.push(phrase!(
                    "{name} is too short to be hidden in logs",
                    "{name} は短すぎるため、ログで伏せられません"
                ));
            }
            if value.trim() != value {
                warnings.push(phrase!(
                    "{name} begins or ends with white space",
                    "{name} の先頭か末尾に空白があります"
                ));
            }
        }
        warnings
    }

    /// The text for messages: references as written, everything else hidden.
    fn shown(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            SecretPart::Text(_) => REDACTED.to_owned(),
            SecretPart::Env { name, .. } => format!("${{{name}}}"),
            SecretPart::File { written, .. } => format!("${{file:{written}}}"),
            SecretPart::Credential { name, .. } => format!("${{cred:{name}}}"),
        });
        parts.collect()
    }
}

impl Revealed {
    /// The secret itself: only for the request that needs it.
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
        #[derive(serde::Deserialize)]
        #[serde(rename = "$secret")]
        struct SecretText(SecretParts);
        SecretText::deserialize(deserializer).map(|SecretText(found)| Self::of(found.parts, Hides::Whole))
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

/// Redacts the parts of a secret address after its host: others may repeat its path without the host, or a part of it.
fn register_pieces(address: &url::Url) {
    let path = address.path().trim_matches('/');
    let with_query = address.query().map(|query| format!("{path}?{query}"));
    let values = address.query_pairs().map(|(_, value)| value.into_owned());
    let pieces = [Some(path.to_owned()), with_query, address.query().map(str::to_owned)];
    let pieces = pieces.into_iter().flatten().chain(path.split('/').map(str::to_owned)).chain(values);
    for piece in pieces.filter(|piece| is_revealing(piece)) {
        redact::register(&piece);
        redact::register(&percent_encoding::percent_decode_str(&piece).decode_utf8_lossy());
    }
}

/// Whether a part of an address may be the secret: `services`, `v2` and `2016-06-01` are not, and redacting them would
/// hide much of the output.
fn is_revealing(piece: &str) -> bool {
    let has = |is: fn(&char) -> bool| piece.chars().any(|c| is(&c));
    let is_mixed =
        has(char::is_ascii_uppercase) || (has(char::is_ascii_digit) && has(char::is_ascii_lowercase));
    let length = piece.chars().count();
    length >= SHORTEST_PIECE && (is_mixed || length >= SURELY_REVEALING)
}

fn register_passwords(address: &url::Url) {
    let in_query = address.query_pairs().filter(|(key, _)| key.ends_with("password"));
    in_query.for_each(|(_, value)| redact::register(&value));
    if let Some(password) = address.password() {
        redact::register(password);
        redact::register(&percent_encoding::percent_decode_str(password).decode_utf8_lossy());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_telling_pieces_of_a_secret_address_are_hidden() {
        let nowhere = Surroundings { directory: ".".into(), env: super::super::env::Env::of([]) };
        for address in [
            "https://hooks.example.com/services/T0PIECES/B0PIECES/xyzPIECES",
            "https://hook-user:pw-of-pieces@example.com/catch/1/piece%2Fof%20ten?sig=q_PIECES-value&v=2016-06-01",
        ] {
            Secret::parse(address, &nowhere).unwrap().reveal().unwrap();
        }
        for (said, shown) in [
            ("Cannot POST /services/T0PIECES/B0PIECES/xyzPIECES", "Cannot POST /[redacted]"),
            ("no team T0PIECES", "no team [redacted]"),
            ("bad token xyzPIECES.", "bad token [redacted]."),
            ("piece/of ten", "[redacted]"),
            ("sig q_PIECES-value", "sig [redacted]"),
            ("pw-of-pieces", "[redacted]"),
            // Words that occur in many addresses and in ordinary text.
            ("services since 2016-06-01", "services since 2016-06-01"),
            ("hooks.example.com answered", "hooks.example.com answered"),
        ] {
            assert_eq!(redact::redact(said), shown);
        }
    }
}
