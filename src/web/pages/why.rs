//! `/why/{word}/{name}`: everything known about one thing, its history and its actions.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::render::{Renderer, path_part};
use super::{Visit, layout, missing, unavailable};
use crate::engine::View;
use crate::web::Pages;

#[derive(Template)]
#[template(path = "pages/why.html")]
struct WhyBody<'a> {
    r: &'a Renderer,
    views: &'a [View],
    /// As `why` takes it.
    name: &'a str,
    api: String,
}

/// One thing, or several with the same name.
pub(super) async fn show(
    State(pages): State<Pages>,
    Path((word, name)): Path<(String, String)>,
    visit: Visit,
) -> Response {
    let Some(finder) = pages.finder().map(Arc::new) else { return missing(&pages, &visit) };
    let about = if word == "other" { name.clone() } else { format!("{word}:{name}") };
    let (reading, wanted) = (Arc::clone(&finder), about.clone());
    let views = match pages.db.read(move |tx| reading.find(tx, &wanted)).await {
        Ok(views) if views.is_empty() => return missing(&pages, &visit),
        Ok(views) => views,
        Err(error) => return unavailable(&pages, &visit, &error),
    };
    let r = visit.renderer(&finder);
    let title = r.plain(&views[0].title);
    let api = format!("/api/v1/things/{}/{}", path_part(&word), path_part(&name));
    layout::respond(&pages, &finder, &visit, &title, &WhyBody { r: &r, views: &views, name: &about, api })
}
