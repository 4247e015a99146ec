//! One request to a provider, and what its failures mean: a pause, or nothing to be done with this document.

use std::time::Duration;

use reqwest::header::HeaderValue;
use serde_json::Value as Json;
use url::Url;

use super::File;
use super::config::Tuning;
use super::prompt::Prompt;
use crate::config::Secret;
use crate::fetch::{self, AllowPrivate, ApiReply, Clients, NoAnswer, header};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Clock;

/// More than this of an answer is not read.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// No answer costs more; a count above it is nonsense.
const MOST_TOKENS: u64 = 1_000_000_000;
/// What messages quote of an error, in columns.
const QUOTE: usize = 300;

/// The way to a provider.
pub(super) struct Line<'a> {
    pub(super) clients: &'a Clients,
    pub(super) allow_private: &'a AllowPrivate,
    pub(super) clock: &'a Clock,
}

/// What a provider answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) usage: TokenUsage,
}

/// What an answer says that it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenUsage {
    /// No model was asked.
    Nothing,
    /// So many tokens.
    Tokens { input: u64, output: u64 },
    /// It does not say, so the estimate has to do: a budget must hold with providers that do not count.
    Unsaid,
}

impl TokenUsage {
    /// What `usage` says in the fields of those names; whatever else stands there spoils no good answer.
    pub(super) fn read(usage: &Json, input: &str, outputs: &[&str]) -> Self {
        let count = |name: &str| usage[name].as_u64().unwrap_or(0).min(MOST_TOKENS);
        match (count(input), outputs.iter().map(|name| count(name)).sum()) {
            (0, 0) => TokenUsage::Unsaid,
            (input, output) => TokenUsage::Tokens { input, output },
        }
    }

    /// Tokens that went in and came out; zeros when nobody has said.
    pub(super) fn said(self) -> (u64, u64) {
        match self {
            TokenUsage::Tokens { input, output } => (input, output),
            TokenUsage::Nothing | TokenUsage::Unsaid => (0, 0),
        }
    }
}

/// Why a call brought no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// The provider works; with this document it has no answer for us.
    Unusable { why: Phrase, usage: TokenUsage, repair: Repair },
    /// The provider does not take what we sent, and does not say whether the document or the request is wrong.
    Refused { why: Phrase },
    /// The provider is to be left alone for a while.
    ProviderPause(ProviderPause),
}

/// What may bring a better answer to the same question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// Nothing.
    None,
    /// To say what was wrong.
    Complain,
    /// More room: the answer was cut off.
    MoreRoom,
}

/// One question, and how it is put this time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    pub(super) model: &'a str,
    pub(super) prompt: &'a Prompt,
    pub(super) files: &'a [File],
    pub(super) tuning: Tuning,
    /// What was wrong with the first answer.
    pub(super) complaint: Option<&'a str>,
}

/// Why a provider is paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProviderPause {
    /// Too many requests at this moment; it says, or we guess, how long.
    Busy {
        why: Phrase,
        after: Duration,
        /// Whether it counts tokens, so that one document alone may be too much, whenever it is asked about.
        counts_tokens: bool,
    },
    /// Its quota of the day is used up.
    UsedUp { why: Phrase },
    /// It fails or cannot be reached.
    Down { why: Phrase, after: Option<Duration>, may_have_counted: bool },
    /// It does not accept our key, or we have none.
    Locked { why: Phrase },
    /// It does not take such requests, whatever they are about: an unknown model, a key of the config that it does not
    /// know. The config has to change, and not the key.
    Refused { why: Phrase },
}

impl ProviderPause {
    pub(super) fn down(why: Phrase) -> Self {
        ProviderPause::Down { why, after: None, may_have_counted: false }
    }

    /// An answer came, and it is not what the API promises.
    pub(super) fn unclear() -> Self {
        let why = phrase!("the answer is not what the API promises", "API の仕様と異なる応答です");
        ProviderPause::Down { why, after: None, may_have_counted: true }
    }

    /// Whether the document may be to blame if it happens with the same one again and again.
    pub(super) fn may_be_about_the_document(&self) -> bool {
        matches!(self, ProviderPause::Down { .. } | ProviderPause::Busy { counts_tokens: true, .. })
    }

    /// Why, for people.
    pub(super) fn into_why(self) -> Phrase {
        match self {
            ProviderPause::Busy { why, .. }
            | ProviderPause::UsedUp { why }
            | ProviderPause::Down { why, .. }
            | ProviderPause::Locked { why }
            | ProviderPause::Refused { why } => why,
        }
    }

    /// Whether the provider may have worked on the request all the same.
    pub(super) fn may_have_counted(&self) -> bool {
        matches!(self, ProviderPause::Down { may_have_counted: true, .. })
    }
}

impl From<ProviderPause> for CallError {
    fn from(pause: ProviderPause) -> Self {
        CallError::ProviderPause(pause)
    }
}

impl Line<'_> {
    /// Sends one request and reads its answer within `timeout`; no redirect is followed.
    pub(super) async fn send(
        &self,
        request: reqwest::RequestBuilder,
        timeout: Duration,
    ) -> Result<ApiReply, CallError> {
        let (client, request) = request.build_split();
        let request = request.map_err(|_| {
            ProviderPause::down(phrase!("the request cannot be made", "リクエストを作れません"))
        })?;
        let called = fetch::call(&client, request, self.clock, timeout, MAX_ANSWER_BYTES).await;
        let down =
            |why: Phrase, may_have_counted| ProviderPause::Down { why, after: None, may_have_counted }.into();
        let reply = called.map_err(|NoAnswer { why, may_have_arrived }| down(why, may_have_arrived))?;
        match reply.cut.clone() {
            Some(why) => Err(down(why, true)),
            None => Ok(reply),
        }
    }

    /// The same where only success is an answer; `judge` says what everything else means.
    pub(super) async fn ask(
        &self,
        request: reqwest::RequestBuilder,
        timeout: Duration,
        judge: fn(&ApiReply) -> CallError,
    ) -> Result<ApiReply, CallError> {
        let reply = self.send(request, timeout).await?;
        if reply.is_success() { Ok(reply) } else { Err(judge(&reply)) }
    }

    /// A client for `url`, which the address guard has judged.
    pub(super) fn client(&self, url: &Url) -> Result<reqwest::Client, CallError> {
        self.clients
            .client_for(url, self.allow_private)
            .map_err(|error| ProviderPause::down(error.with_its_hint()).into())
    }
}

/// The secret as a header value that logs do not show.
pub(super) fn secret_header(secret: &Secret, prefix: &str) -> Result<HeaderValue, CallError> {
    header::secret(secret, prefix).map_err(|why| CallError::ProviderPause(ProviderPause::Locked { why }))
}

/// What a service says about a request that it does not take.
pub(super) fn refusal(status: u16, message: &str) -> Phrase {
    phrase!("HTTP {status}: {said}", "HTTP {status}：{said}", said = quote(message))
}

/// The same about a model or an address that it does not know.
pub(super) fn unknown_model(why: Phrase) -> Phrase {
    phrase!("there is no such model or API: {why}", "モデルまたは API がありません：{why}")
}

/// What is wrong with the address of the config.
pub(super) fn bad_base_url(error: &url::ParseError) -> CallError {
    let why = phrase!(
        "`base_url` does not work: {error}",
        "`base_url` が正しくありません：{error}",
        error = error.to_string()
    );
    ProviderPause::down(why).into()
}

/// An answer with nothing in it.
pub(super) fn empty_answer() -> Phrase {
    phrase!("the answer is empty", "回答が空です")
}

/// An answer that a filter held back.
pub(super) fn blocked_answer(reason: &str) -> Phrase {
    phrase!("the answer was blocked ({reason})", "回答がブロックされました（{reason}）")
}

/// An answer that was too long.
pub(super) fn cut_off_answer(reason: &str) -> Phrase {
    phrase!("the answer was cut off ({reason})", "回答が途中で切れました（{reason}）")
}

/// What somebody else wrote, on one short line and without our secrets.
pub(super) fn quote(message: &str) -> String {
    fetch::quote(message, QUOTE)
}
