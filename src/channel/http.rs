//! Requests to channels: one answer, or the knowledge of whether the request can have arrived.

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

/// More than this of an answer is not read.
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;
/// What an error message quotes of an answer, in columns.
const QUOTE: usize = 200;
/// How long to wait when the other side asks us to but does not say how long.
const USUAL_WAIT: Duration = Duration::from_secs(60);

/// That `name` answered so, with the beginning of the answer on one line.
pub(super) fn answered(reply: &ApiReply, name: &Phrase) -> Phrase {
    let status = reply.status;
    match said(reply) {
        text if text.is_empty() => {
            phrase!("HTTP {status} from {name}", "{name}の応答：HTTP {status}")
        }
        text => phrase!("HTTP {status} from {name}: {text}", "{name}の応答：HTTP {status}：{text}"),
    }
}

/// What an answer says, on one line: of JSON that says one thing only, that, as Mastodon's `{"error": "…"}`.
fn said(reply: &ApiReply) -> String {
    let only: Option<BTreeMap<String, String>> = serde_json::from_slice(&reply.body).ok();
    let only = only.filter(|fields| fields.len() == 1).and_then(|fields| fields.into_values().next());
    quote(&only.unwrap_or_else(|| reply.text()), QUOTE)
}

/// What the other side said when it took a message to which it gives no name of its own.
pub(super) fn accepted(reply: &ApiReply) -> Accepted {
    let said = match said(reply) {
        text if text.is_empty() => format!("HTTP {}", reply.status),
        text => format!("HTTP {}: {text}", reply.status),
    };
    Accepted { remote_id: Some(said), pause_until: None }
}

/// Success, or what a status means to a sender when the channel knows nothing better.
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

/// Sends one request within the channel's time; `progress` learns when it can have arrived.
///
/// The status decides; a body that breaks off changes nothing.
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

/// The lease would be over before the message is.
pub(super) fn out_of_time() -> Phrase {
    phrase!("there was no time left to send it", "送信に使える時間が残っていませんでした")
}

/// The key of a message cannot stand in a header.
pub(super) fn damaged_key() -> SendError {
    SendError::refused(phrase!("its key is damaged", "キーが壊れています"))
}

/// The secret as a header value that logs do not show.
pub(super) fn secret_header(secret: &Secret, prefix: &str) -> Result<HeaderValue, SendError> {
    header::secret(secret, prefix).map_err(SendError::locked)
}

/// The secret's text for comparing, empty when it cannot be had.
pub(super) fn secret_text(secret: &Secret) -> String {
    secret.reveal().map(|revealed| revealed.expose().to_owned()).unwrap_or_default()
}

/// The address that a secret holds; an error never repeats it.
pub(super) fn address(secret: &Secret) -> Result<Url, SendError> {
    let revealed = secret.reveal().map_err(|missing| SendError::locked(missing.phrase()))?;
    let bad =
        || SendError::locked(phrase!("`url` is not a web address", "`url` が Web アドレスではありません"));
    Url::parse(revealed.expose().trim())
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(bad)
}

/// Whether a secret holds an address that the guard lets a channel reach.
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
            assert_eq!(said(&reply), expected, "{body}");
        }
    }
}
