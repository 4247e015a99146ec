//! `/`: what needs a person, every job, the newest things, today's limits.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::render::Renderer;
use super::{Visit, layout, missing, unavailable};
use crate::engine::Overview;
use crate::web::Pages;

#[derive(Template)]
#[template(path = "pages/overview.html")]
struct OverviewBody<'a> {
    r: &'a Renderer,
    overview: &'a Overview,
}

/// The first page.
pub(super) async fn show(State(pages): State<Pages>, visit: Visit) -> Response {
    let Some(finder) = pages.finder().map(Arc::new) else { return missing(&pages, &visit) };
    let reading = Arc::clone(&finder);
    match pages.db.read(move |tx| Overview::find(&reading, tx)).await {
        Ok(overview) => {
            let r = visit.renderer(&finder);
            let body = OverviewBody { r: &r, overview: &overview };
            layout::respond(&finder, &visit, r.say("Overview", "概要"), &body)
        }
        Err(error) => unavailable(&pages, &visit, &error),
    }
}
