//! Error responses for programs: problem details (RFC 9457).

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::db;

pub(super) const PROBLEM_JSON: &str = "application/problem+json";

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    status: u16,
    title: String,
    detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or_default().to_owned();
        Self { status: status.as_u16(), title, detail: detail.into() }
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }
}

impl From<db::Error> for Problem {
    fn from(error: db::Error) -> Self {
        tracing::error!("Could not answer an API request: {error}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer; the log says why")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        (status, [(CONTENT_TYPE, PROBLEM_JSON)], body).into_response()
    }
}

/// Longer texts are truncated.
const MAX_WORDS: usize = 4 * 1024;

/// Gives every error under `/api/` this format, whether it comes from the guard, the router or an extractor.
pub(super) async fn shape(request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with("/api/");
    let response = next.run(request).await;
    let status = response.status();
    let is_shaped = response.headers().get(CONTENT_TYPE).is_some_and(|value| value == PROBLEM_JSON);
    if !is_api || is_shaped || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let words = to_bytes(body, MAX_WORDS).await.unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    let detail = match words.trim() {
        "" if status == StatusCode::METHOD_NOT_ALLOWED => "`Allow` names the methods of this address",
        words => words,
    };
    let mut shaped = Problem::new(status, detail).into_response();
    let kept = parts.headers.into_iter().filter_map(|(name, value)| Some((name?, value)));
    shaped.headers_mut().extend(kept.filter(|(name, _)| *name != CONTENT_TYPE && *name != CONTENT_LENGTH));
    shaped
}
