//! One request to a provider, and what its failures mean: pause the provider, or give up on this document.

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

/// Answers are read up to this size.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// No answer costs more; a larger count is nonsense.
const MOST_TOKENS: u64 = 1_000_000_000;
/// Width of the quote of an error in messages.
const QUOTE: usize = 300;

/// The connection settings of a provider.
pub(super) struct Line<'a> {
    pub(super) clients: &'a Clients,
    pub(super) allow_private: &'a AllowPrivate,
    pub(super) clock: &'a Clock,
}

/// An answer of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) usage: TokenUsage,
}

/// The cost of an answer, as reported in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenUsage {
    /// No model was called.
    Nothing,
    Tokens {
        input: u64,
        output: u64,
    },
    /// Not reported: count the estimate, since budgets must hold with such providers, too.
    Unreported,
}

impl TokenUsage {
    /// Reads `usage` from the fields of those names; anything unexpected in it is ignored.
    pub(super) fn read(usage: &Json, input: &str, outputs: &[&str]) -> Self {
        let count = |name: &str| usage[name].as_u64().unwrap_or(0).min(MOST_TOKENS);
        match (count(input), outputs.iter().map(|name| count(name)).sum()) {
            (0, 0) => TokenUsage::Unreported,
            (input, output) => TokenUsage::Tokens { input, output },
        }
    }

    /// Input and output tokens; zeros if not reported.
    pub(super) fn counts(self) -> (u64, u64) {
        match self {
            TokenUsage::Tokens { input, output } => (input, output),
            TokenUsage::Nothing | TokenUsage::Unreported => (0, 0),
        }
    }
}

/// Why a call brought no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// The provider works, but has no usable answer for this document.
    Unusable { why: Phrase, usage: TokenUsage, repair: Repair },
    /// The provider rejects the request without saying whether the document or the request is wrong.
    Refused { why: Phrase },
    /// The provider should not be called for a while.
    ProviderPause(ProviderPause),
}

/// What to change to get a better answer to the same question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    None,
    /// Describe what was wrong.
    Complain,
    /// Allow more tokens: the answer was cut off.
    MoreRoom,
}

/// One request to a model.
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
    /// Too many requests now; the duration comes from the provider or is a default.
    Busy {
        why: Phrase,
        after: Duration,
        /// Whether it limits tokens, so that one document alone may always exceed the limit.
        counts_tokens: bool,
    },
    /// Its daily quota is used up.
    UsedUp { why: Phrase },
    /// It fails or cannot be reached.
    Down { why: Phrase, after: Option<Duration>, may_have_counted: bool },
    /// It rejects our key, or we have none.
    Locked { why: Phrase },
    /// It rejects such requests, whatever document they contain: an unknown model, or an option that it does not know.
    /// The config has to change, but not the key.
    Refused { why: Phrase },
}

impl ProviderPause {
    pub(super) fn down(why: Phrase) -> Self {
        ProviderPause::Down { why, after: None, may_have_counted: false }
    }

    /// The answer does not follow the API.
    pub(super) fn unclear() -> Self {
        let why = phrase!("the answer is not what the API promises", "API の仕様と異なる応答です");
        ProviderPause::Down { why, after: None, may_have_counted: true }
    }

    /// Whether the document may be the cause if the failure repeats with the same one.
    pub(super) fn may_be_about_the_document(&self) -> bool {
        matches!(self, ProviderPause::Down { .. } | ProviderPause::Busy { counts_tokens: true, .. })
    }

    /// In words.
    pub(super) fn into_why(self) -> Phrase {
        match self {
            ProviderPause::Busy { why, .. }
            | ProviderPause::UsedUp { why }
            | ProviderPause::Down { why, .. }
            | ProviderPause::Locked { why }
            | ProviderPause::Refused { why } => why,
        }
    }

    /// Whether the provider may have processed the request nevertheless.
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
    /// Sends one request and reads its answer within `timeout`, without following redirects.
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

    /// The same, but any status except success is an error; `judge` decides which.
    pub(super) async fn ask(
        &self,
        request: reqwest::RequestBuilder,
        timeout: Duration,
        judge: fn(&ApiReply) -> CallError,
    ) -> Result<ApiReply, CallError> {
        let reply = self.send(request, timeout).await?;
        if reply.is_success() { Ok(reply) } else { Err(judge(&reply)) }
    }

    /// A client for `url`, after the address guard has accepted it.
    pub(super) fn client(&self, url: &Url) -> Result<reqwest::Client, CallError> {
        self.clients
            .client_for(url, self.allow_private)
            .map_err(|error| ProviderPause::down(error.with_its_hint()).into())
    }
}

/// The secret as a header value that is not logged.
pub(super) fn secret_header(secret: &Secret, prefix: &str) -> Result<HeaderValue, CallError> {
    header::secret(secret, prefix).map_err(|why| CallError::ProviderPause(ProviderPause::Locked { why }))
}

/// A service's explanation of why it rejects a request.
pub(super) fn refusal(status: u16, message: &str) -> Phrase {
    phrase!("HTTP {status}: {message}", "HTTP {status}：{message}", message = quote(message))
}

/// The same for a model or an address that it does not know.
pub(super) fn unknown_model(why: Phrase) -> Phrase {
    phrase!("there is no such model or API: {why}", "モデルまたは API がありません：{why}")
}

pub(super) fn bad_base_url(error: &url::ParseError) -> CallError {
    let why = phrase!(
        "`base_url` does not work: {error}",
        "`base_url` が正しくありません：{error}",
        error = error.to_string()
    );
    ProviderPause::down(why).into()
}

pub(super) fn empty_answer() -> Phrase {
    phrase!("the answer is empty", "回答が空です")
}

pub(super) fn blocked_answer(reason: &str) -> Phrase {
    phrase!("the answer was blocked ({reason})", "回答がブロックされました（{reason}）")
}

pub(super) fn cut_off_answer(reason: &str) -> Phrase {
    phrase!("the answer was cut off ({reason})", "回答が途中で切れました（{reason}）")
}

/// Text from outside on one short line, with secrets redacted.
pub(super) fn quote(message: &str) -> String {
    fetch::quote(message, QUOTE)
}
