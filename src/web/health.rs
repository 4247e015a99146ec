//! `/healthz`: whether the process runs and its database responds. `/readyz`: whether it also runs jobs.

use axum::extract::State;
use axum::http::StatusCode;

use super::Pages;
use super::route::{Access, Route};
use crate::db;

type HealthAnswer = (StatusCode, &'static str);

/// Public, for monitoring: the responses contain nothing confidential.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/healthz", Access::Public, show), Route::get("/readyz", Access::Public, show_ready)]
}

async fn show(State(pages): State<Pages>) -> HealthAnswer {
    respond(pages.db.read(|tx| Ok(tx.now())).await.map(|_| (StatusCode::OK, "ok\n")))
}

/// No jobs run on a retired database.
async fn show_ready(State(pages): State<Pages>) -> HealthAnswer {
    respond(pages.db.read(db::find_moved_away).await.map(|moved| match moved {
        None => (StatusCode::OK, "ready\n"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database was moved away\n"),
    }))
}

fn respond(answer: db::Result<HealthAnswer>) -> HealthAnswer {
    answer.unwrap_or_else(|error| {
        tracing::warn!("The health check failed: {error}");
        (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n")
    })
}
