//! HTTP requests to channels: the answer, or whether the request may have arrived.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::header::HeaderValue;
use url::Url;

use super::error::{Accepted, SendError};
use super::kind::Ctx;
use super::{ChannelEnv, Check, Progress};
use crate::config::Secret;
use crate::fetch::{ApiReply, NoAnswer, header, quote};
use crate::phrase::Phrase;
use crate::{fail, fetch, phrase};

/// Answers are read up to this size.
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;
/// Width of the quote of an answer in an error message.
const QUOTE: usize = 200;
/// How long to wait if the server asks us to but does not say how long.
const USUAL_WAIT: Duration = Duration::from_secs(60);

/// The status of an answer and the beginning of its body, on one line.
pub(super) fn answered(reply: &ApiReply, name: &Phrase) -> Phrase {
    let status = reply.status;
    match quote_body(reply) {
        text if text.is_empty() => {
            phrase!("HTTP {status} from {name}", "{name}の応答：HTTP {status}")
        }
        text => phrase!("HTTP {status} from {name}: {text}", "{name}の応答：HTTP {status}：{text}"),
    }
}

/// The body of an answer on one line; if it is JSON with a single text, as Mastodon's `{"error": "…"}`, that text.
fn quote_body(reply: &ApiReply) -> String {
    let only: Option<BTreeMap<String, String>> = serde_json::from_slice(&reply.body).ok();
    let only = only.filter(|fields| fields.len() == 1).and_then(|fields| fields.into_values().next());
    quote(&only.unwrap_or_else(|| reply.text()), QUOTE)
}

/// The record of an accepted message if the server gives it no id: the beginning of the answer.
pub(super) fn accepted(reply: &ApiReply) -> Accepted {
    let answer = match quote_body(reply) {
        text if text.is_empty() => format!("HTTP {}", reply.status),
        text => format!("HTTP {}: {text}", reply.status),
    };
    Accepted { remote_id: Some(answer), pause_until: None }
}

/// Success, or what a status means for a sender, unless the channel knows better.
pub(super) fn judge(reply: &ApiReply, name: &Phrase) -> Result<(), SendError> {
    let why = answered(reply, name);
    match reply.status {
        200..=299 => Ok(()),
        401 | 403 | 407 => Err(SendError::Locked { why }),
        429 => Err(SendError::Busy { why, after: reply.retry_after.unwrap_or(USUAL_WAIT) }),
        408 | 425 | 500..=599 => Err(SendError::Later { why, after: reply.retry_after }),
        300..=399 => Err(SendError::later(phrase!(
            "{why}; redirects are not followed, correct the address",
            "{why}。リダイレクトには従いません。アドレスを修正してください"
        ))),
        _ => Err(SendError::Refused { why }),
    }
}

/// Sends one request within the channel's timeout; reports to `progress` when it may have arrived.
///
/// Only the status matters; a body that breaks off changes nothing.
pub(super) async fn call(
    ctx: Ctx<'_>,
    request: reqwest::Request,
    progress: Option<&Progress>,
) -> Result<ApiReply, SendError> {
    let (ChannelEnv { clients, clock }, settings) = (ctx.env, &ctx.channel.settings);
    let client = clients
        .client_for(request.url(), &settings.allow_private)
        .map_err(|error| SendError::later(error.describe()))?;
    if let Some(progress) = progress {
        if !progress.may_go_on() {
            return Err(SendError::later(out_of_time()));
        }
        progress.hand_over();
    }
    fail::point("http.before");
    let called = fetch::call(&client, request, clock, settings.timeout, MAX_ANSWER_BYTES).await;
    fail::point("http.after");
    called.map_err(|NoAnswer { why, may_have_arrived }| {
        if may_have_arrived {
            return SendError::unknown(why);
        }
        if let Some(progress) = progress {
            progress.take_back();
        }
        SendError::later(why)
    })
}

/// The lease would expire before the message is sent.
pub(super) fn out_of_time() -> Phrase {
    phrase!("there was no time left to send it", "送信に使える時間が残っていませんでした")
}

/// The key of the message is not a valid header value.
pub(super) fn damaged_key() -> SendError {
    SendError::refused(phrase!("its key is damaged", "キーが壊れています"))
}

/// The secret as a header value that is not logged.
pub(super) fn secret_header(secret: &Secret, prefix: &str) -> Result<HeaderValue, SendError> {
    header::secret(secret, prefix).map_err(SendError::locked)
}

/// The secret's text for comparing; empty if it is unavailable.
pub(super) fn secret_text(secret: &Secret) -> String {
    secret.reveal().map(|revealed| revealed.expose().to_owned()).unwrap_or_default()
}

/// The address in a secret; errors do not contain it.
pub(super) fn address(secret: &Secret) -> Result<Url, SendError> {
    let revealed = secret.reveal().map_err(|missing| SendError::locked(missing.phrase()))?;
    let bad =
        || SendError::locked(phrase!("`url` is not a web address", "`url` が Web アドレスではありません"));
    Url::parse(revealed.expose().trim())
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(bad)
}

/// Checks that a secret contains an address that the guard allows.
pub(super) fn check_address(secret: &Secret, ctx: Ctx<'_>) -> Check {
    let url = match address(secret) {
        Ok(url) => url,
        Err(error) => return error.check(Check::ADDRESS),
    };
    match ctx.env.clients.client_for(&url, &ctx.channel.settings.allow_private) {
        Ok(_) => Check::fine(Check::ADDRESS, url.host_str().unwrap_or_default()),
        Err(error) => Check::bad(Check::ADDRESS, error.with_its_hint()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_quoted_by_what_it_says() {
        for (body, expected) in [
            (r#"{ "error": "The access token is invalid" }"#, "The access token is invalid"),
            (
                r#"{"error":"no","details":{"status":["too long"]}}"#,
                r#"{"error":"no","details":{"status":["too long"]}}"#,
            ),
            (r#"{"ok":true}"#, r#"{"ok":true}"#),
            ("invalid_payload\n", "invalid_payload"),
            ("<html><title>Down for maintenance</title>", "Down for maintenance"),
            ("", ""),
        ] {
            let reply = ApiReply { status: 400, body: body.to_owned().into(), ..ApiReply::default() };
            assert_eq!(quote_body(&reply), expected, "{body}");
        }
    }
}
