//! The dashboard: pages that render the views, tables and blocks of the engine, in the language of the reader.
//!
//! ```text
//! request ──▶ Visit (language, theme, flash) ──▶ one db.read ──▶ body ──▶ layout ──▶ answer
//! ```

mod act;
mod blocks;
mod job;
mod layout;
mod markup;
mod overview;
mod pipeline;
mod preferences;
mod render;
mod runs;
mod search;
mod settings;
mod visit;
mod why;

use axum::http::StatusCode;
use axum::response::Response;

use super::Pages;
use super::route::{Access, Route};
use crate::db;
use visit::Visit;

pub(super) use render::why_path;

/// Every page.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/", Access::Read, overview::show),
        Route::get("/job/{name}", Access::Read, job::show),
        Route::get("/why/{word}/{name}", Access::Read, why::show),
        Route::get("/search", Access::Read, search::show),
        Route::get("/{slug}", Access::Read, pipeline::show),
        Route::get("/settings", Access::Act, settings::show),
        Route::act("/settings/jobs", settings::add),
        Route::act("/act", act::post),
        Route::post("/preferences", Access::Read, preferences::put),
    ]
}

/// The response when nothing has that name.
fn missing(pages: &Pages, visit: &Visit) -> Response {
    let (title, text) = visit.choose(
        ("Not found", "There is no such page. The navigation above leads to those there are."),
        ("見つかりません", "このページはありません。上のメニューからお探しください。"),
    );
    layout::message(pages, visit, StatusCode::NOT_FOUND, title, text)
}

/// The response when the database does not respond.
fn unavailable(pages: &Pages, visit: &Visit, error: &db::Error) -> Response {
    tracing::error!("A page cannot be shown: {error}");
    let (title, text) = visit.choose(
        ("Not now", "The database does not answer. Reload in a moment; the log says more."),
        (
            "表示できません",
            "データベースが応答しません。少し待って再読み込みしてください。詳細はログにあります。",
        ),
    );
    layout::message(pages, visit, StatusCode::SERVICE_UNAVAILABLE, title, text)
}
