//! One hop of a fetch: its request, waiting for the answer, and what a failure means for the host's health.

use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use url::Url;

use super::cause;
use super::coding;
use super::error::Error;
use super::limits::{Limits, Pace};
use super::polite::HostAnswer;
use super::redirect::Trail;
use super::request::Request;

/// The request of one hop: secrets only for the first origin, validators only for their own resource.
pub(super) fn outgoing(request: &Request, trail: &Trail, conditional: bool) -> reqwest::Request {
    let mut outgoing = reqwest::Request::new(request.method.clone(), trail.url.clone());
    let headers = outgoing.headers_mut();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(coding::ACCEPTED));
    headers.extend(request.headers.clone());
    if !trail.left_origin {
        headers.extend(request.secret_headers.clone());
    }
    if conditional {
        request.validators.write_to(headers);
    }
    outgoing
}

/// Waits for the response headers within the limits.
pub(super) async fn in_time(
    sending: impl Future<Output = reqwest::Result<reqwest::Response>>,
    limits: &Limits,
    spent: Duration,
    url: &Url,
) -> Result<reqwest::Response, Error> {
    let left = limits.in_all.saturating_sub(spent);
    match tokio::time::timeout(limits.to_headers.min(left), sending).await {
        Ok(answered) => {
            answered.map_err(|error| cause::from_client(&error, url.host_str().unwrap_or_default()))
        }
        Err(_) if left < limits.to_headers => Err(Error::TooSlow { limit: Pace::InAll(limits.in_all) }),
        Err(_) => Err(Error::TooSlow { limit: Pace::Headers(limits.to_headers) }),
    }
}

pub(super) fn is_broken(answered: &Result<reqwest::Response, Error>) -> bool {
    matches!(answered, Err(Error::Broken { .. }))
}

/// What a failure before the headers means for the host's health.
pub(super) fn failure(error: &Error) -> Option<HostAnswer> {
    match error {
        Error::Connect { .. } | Error::Dns { .. } | Error::BadTls { .. } => Some(HostAnswer::Unreachable),
        Error::TooSlow { .. } | Error::Broken { .. } => Some(HostAnswer::Silent),
        _ => None,
    }
}

/// The size of `headers` in HTTP/1.1.
pub(super) fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}
