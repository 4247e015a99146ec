//! Secrets that we make up: tokens for programs, and what the cookie of a session holds.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use crate::hash::sha256_hex;
use crate::time::Timestamp;
use crate::word_enum;

/// How every token for programs begins, so that people and scanners of leaks know one when they see it.
const PREFIX: &str = "tsuzuki_";

word_enum! {
    /// What a token may be used for; each may do what those before it may.
    #[derive(PartialOrd, Ord)]
    pub enum Scope {
        /// Feeds and badges, also with the token in the address.
        Feed = "feed",
        /// Everything that can be seen.
        Read = "read",
        /// Everything that can be done.
        Act = "act",
    }
}

crate::db::from_text!(Scope = "a scope");

/// A token for a program, without its secret.
#[derive(Clone, Debug, PartialEq, serde::Serialize, crate::db::FromRow)]
pub struct AccessToken {
    /// What people call it.
    pub name: String,
    /// What it may be used for.
    pub scope: Scope,
    /// Since when it works.
    pub created_at: Timestamp,
}

/// A secret, and the hash that is kept of it.
pub struct NewSecret {
    /// For whoever asked, once.
    pub secret: String,
    /// For the database.
    pub hash: String,
}

impl NewSecret {
    /// A token for a program.
    pub fn token() -> io::Result<Self> {
        Self::new(PREFIX)
    }

    /// What the cookie of a session holds.
    pub(super) fn session() -> io::Result<Self> {
        Self::new("")
    }

    fn new(prefix: &str) -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let secret = format!("{prefix}{}", BASE64.encode(bytes));
        Ok(Self { hash: hash(&secret), secret })
    }
}

/// What is kept of a secret. It is random and long, so that nobody can guess it from its hash: no salt, no slowness.
pub(super) fn hash(secret: &str) -> String {
    sha256_hex(secret)
}
