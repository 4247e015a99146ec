//! A request to an API that is sent exactly once: the answer, or whether the request may have arrived.
//!
//! For channels and model providers, whose requests must not be repeated, redirected or delayed unnoticed.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use tokio::time::Instant;

use super::cause::deepest;
use super::header;
use config::redact;
use stdx::phrase;
use stdx::phrase::Phrase;
use stdx::text;
use stdx::time::Clock;

/// The answer of a service.
#[derive(Clone, Debug, Default)]
pub struct ApiReply {
    pub status: u16,
    pub headers: HeaderMap,
    /// The body, up to the limits of time and size.
    pub body: Bytes,
    /// Why the body is incomplete; `None` if it only exceeded `max_bytes`.
    pub cut: Option<Phrase>,
    /// The delay that it asks for.
    pub retry_after: Option<Duration>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer {
    /// In words.
    pub why: Phrase,
    /// Whether the service may have received the request nevertheless.
    pub may_have_arrived: bool,
}

impl ApiReply {
    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The beginning of the body as text; for a web page, which proxies send as an error, its title.
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.body[..self.body.len().min(4096)]).into_owned();
        page_title(&text).map(str::to_owned).unwrap_or(text)
    }
}

fn page_title(text: &str) -> Option<&str> {
    let lower = text.trim_start().starts_with('<').then(|| text.to_ascii_lowercase())?;
    let tag = lower.find("<title")?;
    let start = tag + lower[tag..].find('>')? + 1;
    let title = text[start..start + lower[start..].find("</title")?].trim();
    (!title.is_empty()).then_some(title)
}

/// Text from outside on one short line, with secrets redacted, since some servers repeat them.
pub fn quote(words: &str, columns: usize) -> String {
    // Redact before cutting: half a secret would not be recognised.
    text::shorten(&redact(&text::one_line(words)), columns)
}

/// Sends `request` and reads its answer within `timeout` and up to `max_bytes`, without following redirects.
///
/// Take `client` from [`super::Clients::client_for`], which checks the address.
pub async fn call(
    client: &reqwest::Client,
    request: reqwest::Request,
    clock: &Clock,
    timeout: Duration,
    max_bytes: usize,
) -> Result<ApiReply, NoAnswer> {
    let host = request.url().host_str().unwrap_or_default().to_owned();
    let too_slow =
        || phrase!("no answer from {host} within {timeout}", "{host} から{timeout}以内に応答がありません");
    let broke = |error: &reqwest::Error| {
        let why = deepest(error);
        phrase!("no answer from {host}: {why}", "{host} から応答がありません：{why}")
    };
    let deadline = Instant::now() + timeout;
    let mut response = match tokio::time::timeout_at(deadline, client.execute(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            let may_have_arrived = !(error.is_connect() || error.is_builder());
            return Err(NoAnswer { why: broke(&error), may_have_arrived });
        }
        Err(_) => return Err(NoAnswer { why: too_slow(), may_have_arrived: true }),
    };
    let mut body = BytesMut::new();
    let cut = loop {
        match tokio::time::timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(piece))) => {
                body.extend_from_slice(&piece[..piece.len().min(max_bytes - body.len())]);
                if body.len() == max_bytes {
                    break None;
                }
            }
            Ok(Ok(None)) => break None,
            Ok(Err(error)) => break Some(broke(&error)),
            Err(_) => break Some(too_slow()),
        }
    };
    let headers = std::mem::take(response.headers_mut());
    let retry_after = header::retry_after(&headers, clock.now());
    Ok(ApiReply { status: response.status().as_u16(), headers, body: body.freeze(), cut, retry_after })
}
