//! Checks whether an address answers: one short request without side effects.

use std::time::Duration;

use stdx::phrase;
use stdx::phrase::Phrase;
use url::Url;

use super::{AllowPrivate, Fetcher, Limits, Manners, Request};

/// How long an address may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The result of one check by `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    pub what: Phrase,
    pub is_fine: bool,
    /// Whether it works, but probably not as intended.
    pub is_warning: bool,
    /// Whether a credential is missing or rejected.
    pub is_locked: bool,
    /// The observation, or the problem and what to do.
    pub detail: Phrase,
}

/// Subjects checked by several modules.
impl Check {
    pub const ADDRESS: Phrase = Phrase::of_words("address", "アドレス");
    pub const SERVER: Phrase = Phrase::of_words("server", "サーバー");
    pub const TOKEN: Phrase = Phrase::of_words("token", "トークン");
}

impl Check {
    /// Everything is all right.
    pub fn fine(what: impl Into<Phrase>, detail: impl Into<Phrase>) -> Self {
        Self { what: what.into(), is_fine: true, is_warning: false, is_locked: false, detail: detail.into() }
    }

    /// It works, but probably not as intended.
    pub fn warning(what: impl Into<Phrase>, detail: impl Into<Phrase>) -> Self {
        Self { is_warning: true, ..Self::fine(what, detail) }
    }

    /// It does not work.
    pub fn bad(what: impl Into<Phrase>, detail: impl Into<Phrase>) -> Self {
        Self { what: what.into(), is_fine: false, is_warning: false, is_locked: false, detail: detail.into() }
    }

    /// It does not work because a credential is missing or rejected.
    pub fn locked(what: impl Into<Phrase>, detail: impl Into<Phrase>) -> Self {
        Self { is_locked: true, ..Self::bad(what, detail) }
    }
}

/// Where to get a secret.
#[derive(Clone, Copy, Debug)]
pub struct SecretHint {
    /// Its key in the config file.
    pub key: &'static str,
    /// The check that reports it as missing or rejected; empty if all such checks of the section do.
    pub check: &'static str,
    /// Where to get it and which permissions it needs, in English.
    pub en: &'static str,
    pub ja: &'static str,
}

impl SecretHint {
    /// In words.
    pub fn phrase(&self) -> Phrase {
        Phrase::of_words(self.en, self.ja)
    }
}

/// What counts as an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Any status: the server is there.
    Anything,
    /// Success: the document itself can be read.
    Document,
}

impl Fetcher {
    /// Whether `url` answers in time.
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
        // DNS lookups are not part of the limits.
        let answer = tokio::time::timeout(PATIENCE * 2, self.fetch_api(&request)).await;
        match answer {
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
