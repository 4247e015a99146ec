//! Requests to channels: one answer, or the knowledge of whether the request can have arrived.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, HeaderValue};
use url::Url;

use super::error::SendError;
use super::{ChannelEnv, Progress, Settings};
use crate::config::{Secret, redact};
use crate::fetch::{deepest, header};
use crate::time::Timestamp;
use crate::{fail, text};

/// More than this of an answer is not read.
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;
/// What an error message quotes of an answer, in columns.
const QUOTE: usize = 200;
/// How long to wait when the other side asks us to but does not say how long.
const USUAL_WAIT: Duration = Duration::from_secs(60);

/// What the other side answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    /// The beginning of the answer on one line, for error messages; without our secrets, which some servers repeat.
    pub(super) fn quote(&self) -> String {
        let text = text::one_line(&String::from_utf8_lossy(&self.body[..self.body.len().min(4096)]));
        // Before it is cut: half a secret would not be recognised.
        let text = redact(&text);
        match text.is_empty() {
            true => format!("status {}", self.status),
            false => format!("status {}: {}", self.status, text::shorten(&text, QUOTE)),
        }
    }

    /// How long it asks us to wait.
    pub(super) fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        header::retry_after(&self.headers, now)
    }

    /// Success, or what a status means to a sender when the channel knows nothing better.
    pub(super) fn judge(&self, name: &str, now: Timestamp) -> Result<(), SendError> {
        let why = format!("{name} answered with {}", self.quote());
        match self.status {
            200..=299 => Ok(()),
            401 | 403 | 407 => Err(SendError::Locked { why }),
            429 => Err(SendError::Busy { why, after: self.retry_after(now).unwrap_or(USUAL_WAIT) }),
            408 | 425 | 500..=599 => Err(SendError::Later { why, after: self.retry_after(now) }),
            300..=399 => {
                Err(SendError::later(format!("{why}; redirects are not followed, correct the address")))
            }
            _ => Err(SendError::Refused { why }),
        }
    }
}

/// Sends one request within the channel's time; `progress` learns when it can have arrived.
pub(super) async fn call(
    channel_env: &ChannelEnv,
    settings: &Settings,
    request: reqwest::Request,
    progress: Option<&Progress>,
) -> Result<Answer, SendError> {
    let host = request.url().host_str().unwrap_or_default().to_owned();
    let client = channel_env
        .clients
        .client_for(request.url(), &settings.allow_private)
        .map_err(|error| SendError::later(error.to_string()))?;
    if let Some(progress) = progress {
        if !progress.may_go_on() {
            return Err(SendError::later("there was no time left to send it"));
        }
        progress.hand_over();
    }
    fail::point("http.before");
    let asked = tokio::time::timeout(settings.timeout, client.execute(request)).await;
    fail::point("http.after");
    let response = match asked {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            let never_left = error.is_connect() || error.is_builder();
            let why = format!("no answer from {host}: {}", deepest(&error));
            if never_left {
                if let Some(progress) = progress {
                    progress.take_back();
                }
                return Err(SendError::later(why));
            }
            return Err(SendError::unknown(why));
        }
        Err(_) => return Err(SendError::unknown(format!("no answer from {host} in time"))),
    };
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    // The status has decided; a body that breaks off changes nothing.
    let body = read_body(response, settings.timeout).await;
    Ok(Answer { status, headers, body })
}

async fn read_body(mut response: reqwest::Response, timeout: Duration) -> Bytes {
    let mut body = BytesMut::new();
    let reading = async {
        while let Ok(Some(piece)) = response.chunk().await {
            let room = MAX_ANSWER_BYTES - body.len();
            body.extend_from_slice(&piece[..piece.len().min(room)]);
            if body.len() >= MAX_ANSWER_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(timeout, reading).await;
    body.freeze()
}

/// The secret as a header value that logs do not show.
pub(super) fn secret_header(secret: &Secret, prefix: &str) -> Result<HeaderValue, SendError> {
    header::secret(secret, prefix).map_err(|why| SendError::Locked { why })
}

/// The secret's text for comparing, empty when it cannot be had.
pub(super) fn secret_text(secret: &Secret) -> String {
    secret.reveal().map(|revealed| revealed.expose().to_owned()).unwrap_or_default()
}

/// Whether the guard lets a channel reach `url`.
pub(super) fn check_address(channel_env: &ChannelEnv, settings: &Settings, url: &Url) -> Result<(), String> {
    channel_env.clients.client_for(url, &settings.allow_private).map(drop).map_err(|error| {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{error}{hint}")
    })
}
