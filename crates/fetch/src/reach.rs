//! Whether an address answers: one short request that changes nothing there.

use std::time::Duration;

use stdx::phrase;
use stdx::phrase::Phrase;
use url::Url;

use super::{AllowPrivate, Fetcher, Limits, Manners, Request};

/// How long an address has to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// One thing that `doctor` looked at.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    pub what: Phrase,
    /// Whether it is as it should be.
    pub is_fine: bool,
    /// Whether it works, but not as somebody meant it.
    pub is_warning: bool,
    /// Whether a credential of ours is missing or not accepted.
    pub is_locked: bool,
    /// What was seen, or what is wrong and what to do.
    pub detail: Phrase,
}

/// What several rooms look at.
impl Check {
    pub const ADDRESS: Phrase = Phrase::of_words("address", "アドレス");
    pub const SERVER: Phrase = Phrase::of_words("server", "サーバー");
    pub const TOKEN: Phrase = Phrase::of_words("token", "トークン");
}

impl Check {
    /// It is as it should be.
    pub fn fine(what: impl Into<Phrase>, detail: impl Into<Phrase>) -> Self {
        Self { what: what.into(), is_fine: true, is_warning: false, is_locked: false, detail: detail.into() }
    }

    /// It works, but not as somebody meant it.
    pub fn warning(what: impl Into<Phrase>, detail: impl Into<Phrase>) -> Self {
        Self { is_warning: true, ..Self::fine(what, detail) }
    }

    /// It is not.
    pub fn bad(what: impl Into<Phrase>, detail: impl Into<Phrase>) -> Self {
        Self { what: what.into(), is_fine: false, is_warning: false, is_locked: false, detail: detail.into() }
    }

    /// It is not, because a credential of ours is missing or not accepted.
    pub fn locked(what: impl Into<Phrase>, detail: impl Into<Phrase>) -> Self {
        Self { is_locked: true, ..Self::bad(what, detail) }
    }
}

/// A secret that somebody has to get from somewhere else.
#[derive(Clone, Copy, Debug)]
pub struct SecretHint {
    /// The key that it stands at in the config file.
    pub key: &'static str,
    /// The check that finds it missing or not accepted; empty when every check that finds such a thing means it.
    pub check: &'static str,
    /// Where to get it, and what it has to be allowed to do, in English.
    pub en: &'static str,
    /// The same in Japanese.
    pub ja: &'static str,
}

impl SecretHint {
    /// Where to get it.
    pub fn phrase(&self) -> Phrase {
        Phrase::of_words(self.en, self.ja)
    }
}

/// What counts as an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Any status: somebody is there.
    Anything,
    /// Success: this very document can be read.
    Document,
}

impl Fetcher {
    /// Whether `url` answers, and in time.
    pub async fn reach(
        &self,
        what: impl Into<Phrase>,
        url: &Url,
        allowed: &AllowPrivate,
        wanted: Wanted,
    ) -> Check {
        let request = match wanted {
            Wanted::Anything => Request::head(url.clone()),
            Wanted::Document => Request::get(url.clone()),
        };
        self.reach_with(what, request.allow_private(allowed), wanted).await
    }

    /// The same with a request that says who we are.
    pub async fn reach_with(&self, what: impl Into<Phrase>, request: Request, wanted: Wanted) -> Check {
        let host = request.url.host_str().unwrap_or_default().to_owned();
        let limits = Limits { to_headers: PATIENCE, in_all: PATIENCE, ..Limits::default() };
        let request = request.manners(Manners::client()).limits(limits).once();
        // Names are looked up outside of the limits.
        let asked = tokio::time::timeout(PATIENCE * 2, self.fetch_api(&request)).await;
        match asked {
            Err(_) => {
                let secs = PATIENCE.as_secs() * 2;
                let detail = phrase!(
                    "{host} does not answer within {secs} s",
                    "{host} から {secs} 秒以内に応答がありません"
                );
                Check::bad(what, detail)
            }
            Ok(Err(error)) => Check::bad(what, error.with_its_hint()),
            Ok(Ok(answer)) if wanted == Wanted::Anything || answer.head.is_success() => {
                Check::fine(what, phrase!("{host} answers", "{host} から応答あり"))
            }
            Ok(Ok(answer)) => {
                let status = answer.head.status;
                let detail = phrase!("HTTP {status} from {host}", "{host} の応答は HTTP {status}");
                Check::bad(what, detail)
            }
        }
    }
}
