//! Generated secrets: tokens for programs, and values of session cookies.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use super::store;
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::pipeline::Thing;
use crate::engine::view::{State, View};
use crate::hash::sha256_hex;
use crate::ledger::Subject;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::word_enum;

/// The prefix of every token for programs, so that people and secret scanners recognise one.
const PREFIX: &str = "tsuzuki_";

word_enum! {
    /// The scope of a token; each includes those before it.
    #[derive(PartialOrd, Ord)]
    pub enum Scope {
        /// Feeds and badges, also with the token in the address.
        Feed = "feed",
        Read = "read",
        Act = "act",
    }
}

crate::db::from_text!(Scope = "a scope");

impl Scope {
    pub fn phrase(self) -> Phrase {
        match self {
            Scope::Feed => phrase!("read feeds and badges", "フィードとバッジの閲覧"),
            Scope::Read => phrase!("read everything", "すべての閲覧"),
            Scope::Act => phrase!("read and do everything", "すべての閲覧と操作"),
        }
    }
}

/// Tokens of programs, by name.
pub static TOKEN: Thing = Thing::new("token", find, "token ls");

fn find(_: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let tokens = store::list_tokens(tx)?;
    Ok(tokens.iter().filter(|token| token.name == name).map(render).collect())
}

fn render(token: &AccessToken) -> View {
    let name = &token.name;
    let title = phrase!("token {name} of a program", "プログラム用トークン {name}");
    let data = serde_json::to_value(token).unwrap_or_default();
    let mut view = View::new(TOKEN.word, Subject::new(TOKEN.word, name), title, data);
    view.state = Some(State::Ok);
    view.fact(phrase!("may", "権限"), token.scope.phrase());
    view.fact(phrase!("made", "作成"), token.created_at);
    view.command(phrase!("end it", "失効させる"), format!("token revoke {name}"));
    view
}

/// A token for a program, without its secret.
#[derive(Clone, Debug, PartialEq, serde::Serialize, crate::db::FromRow)]
pub struct AccessToken {
    pub name: String,
    pub scope: Scope,
    pub created_at: Timestamp,
}

/// A secret, and its stored hash.
pub struct NewSecret {
    /// Shown once.
    pub secret: String,
    /// For the database.
    pub hash: String,
}

impl NewSecret {
    /// A token for a program.
    pub fn token() -> io::Result<Self> {
        Self::new(PREFIX)
    }

    /// The value of a session cookie.
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

/// The stored hash of a secret. The secret is long and random and cannot be guessed from its hash, so no salt and no
/// slow hash are needed.
pub(super) fn hash(secret: &str) -> String {
    sha256_hex(secret)
}
