//! `/healthz`: whether the process is up and its database answers. `/readyz`: whether it does its work.

use axum::extract::State;
use axum::http::StatusCode;

use super::Pages;
use super::route::{Access, Route};
use crate::db;

type Said = (StatusCode, &'static str);

/// For whoever watches over the process; they say nothing that a stranger could use.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/healthz", Access::Public, show), Route::get("/readyz", Access::Public, show_ready)]
}

async fn show(State(pages): State<Pages>) -> Said {
    say(pages.db.read(|tx| Ok(tx.now())).await.map(|_| (StatusCode::OK, "ok\n")))
}

/// Nothing runs any more on a database that was moved away.
async fn show_ready(State(pages): State<Pages>) -> Said {
    say(pages.db.read(db::find_moved_away).await.map(|moved| match moved {
        None => (StatusCode::OK, "ready\n"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database was moved away\n"),
    }))
}

fn say(answer: db::Result<Said>) -> Said {
    answer.unwrap_or_else(|error| {
        tracing::warn!("The health check failed: {error}");
        (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n")
    })
}
