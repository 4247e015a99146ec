//! `/{slug}`: a page that a pipeline brings along.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;

use super::blocks::PageBody;
use super::{Visit, layout, missing, unavailable};
use crate::web::Pages;

/// Reads the page in one transaction and renders its blocks.
pub(super) async fn show(State(pages): State<Pages>, Path(slug): Path<String>, visit: Visit) -> Response {
    let Some(finder) = pages.finder().map(Arc::new) else { return missing(&pages, &visit) };
    let Some(page) = finder.pages.iter().copied().find(|page| page.slug == slug) else {
        return missing(&pages, &visit);
    };
    let (reading, query) = (Arc::clone(&finder), visit.query.clone());
    match pages.db.read(move |tx| (page.load)(&reading, tx, &query)).await {
        Ok(view) => {
            let r = visit.renderer(&finder);
            let title = r.plain(&view.title);
            layout::respond(&finder, &visit, &title, &PageBody { r: &r, view: &view })
        }
        Err(error) => unavailable(&pages, &visit, &error),
    }
}
