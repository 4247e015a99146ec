//! Tokens: 32 hex characters of real randomness that lead to a prompt until they expire.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::store::{self, TokenTarget};
use crate::db::{self, FromCell, Tx, Value};
use crate::hash;
use crate::time::Timestamp;

/// How long a token's row is kept after its end, so that its link answers 410 and not 404.
pub const KEPT_AFTER_END: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Tokens that one run deletes at most.
const PRUNED_AT_ONCE: usize = 500;

/// A key to a prompt: 32 lower-case hex characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(String);

/// A text that cannot be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token has 32 characters, each 0-9 or a-f")]
pub struct NotAToken;

impl Token {
    /// A new token, from the system's source of randomness.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self(hash::to_hex(&bytes)))
    }

    /// The token, for links.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Enough of it to identify it, not enough to use it.
    pub fn prefix(&self) -> &str {
        &self.0[..8]
    }
}

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 32 && text.bytes().all(is_hex) { Ok(Self(text.to_owned())) } else { Err(NotAToken) }
    }
}

/// Logs show no more than the beginning.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.prefix())
    }
}

impl FromCell for Token {
    const WANTED: &'static str = "a token";

    fn from_cell(cell: &Value<'_>) -> Option<Self> {
        String::from_cell(cell)?.parse().ok()
    }
}

/// What a link leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The prompt.
    Works(TokenTarget),
    /// It expired or was revoked at that moment.
    Gone(Timestamp),
    /// It was never issued.
    Unknown,
}

/// Looks up the token of a link. It is invalid from `expires_at` on.
pub fn look_up(tx: &mut Tx<'_>, text: &str, now: Timestamp) -> db::Result<Lookup> {
    let Ok(token) = text.parse::<Token>() else { return Ok(Lookup::Unknown) };
    Ok(match store::find_by_token(tx, &token)? {
        None => Lookup::Unknown,
        Some(found) => match found.revoked_at {
            Some(revoked_at) => Lookup::Gone(revoked_at.min(found.expires_at)),
            None if found.expires_at <= now => Lookup::Gone(found.expires_at),
            None => Lookup::Works(found),
        },
    })
}

/// Deletes some of the tokens that ended more than a year ago; returns how many.
pub fn prune(tx: &mut Tx<'_>, now: Timestamp) -> db::Result<u64> {
    store::prune_tokens(tx, now.minus(KEPT_AFTER_END), PRUNED_AT_ONCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_32_hex_characters_and_never_the_same() {
        let tokens: std::collections::HashSet<String> =
            (0..1000).map(|_| Token::random().unwrap().as_str().to_owned()).collect();
        assert_eq!(tokens.len(), 1000);
        assert!(tokens.iter().all(|token| token.parse::<Token>().is_ok()));
        for bad in [
            "",
            "0123456789abcdef0123456789abcde",
            "0123456789ABCDEF0123456789ABCDEF",
            "../../etc/passwd0123456789abcdef",
            "0123456789abcdef0123456789abcdeg",
        ] {
            assert_eq!(bad.parse::<Token>(), Err(NotAToken), "{bad}");
        }
    }

    #[test]
    fn a_log_shows_only_the_beginning_of_a_token() {
        let token: Token = "0123456789abcdef0123456789abcdef".parse().unwrap();
        assert_eq!(format!("{token:?}"), "01234567…");
    }
}
