//! `/healthz`: whether the process is up and its database answers.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::Pages;

/// 200 when the database answers, 503 when it does not; says nothing that a stranger could use.
pub(super) async fn show(State(pages): State<Pages>) -> Response {
    match pages.db.read(|tx| Ok(tx.now())).await {
        Ok(_) => (StatusCode::OK, "ok\n").into_response(),
        Err(error) => {
            tracing::warn!("The health check failed: {error}");
            (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n").into_response()
        }
    }
}
