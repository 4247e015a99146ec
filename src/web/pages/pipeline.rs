//! `/{slug}`: a page of a pipeline.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, X_FRAME_OPTIONS};
use axum::response::{Html, IntoResponse as _, Response};

use super::blocks::{self, PageBody};
use super::{Visit, layout, missing, unavailable};
use crate::engine::{Finder, PageView};
use crate::web::Pages;

/// Reads the page in one transaction and renders its blocks.
pub(super) async fn show(State(pages): State<Pages>, Path(slug): Path<String>, visit: Visit) -> Response {
    let Some(finder) = pages.finder().map(Arc::new) else { return missing(&pages, &visit) };
    if let Some(page) = pages.extra.as_ref().filter(|page| page.slug == slug) {
        return match visit.query.find("document") {
            Some(name) => (page.document)(name).map_or_else(|| missing(&pages, &visit), sandboxed),
            None => render(&pages, &finder, &visit, &(page.load)()),
        };
    }
    let Some(page) = finder.pages.iter().copied().find(|page| page.slug == slug) else {
        return missing(&pages, &visit);
    };
    let (reading, query) = (Arc::clone(&finder), visit.query.clone());
    if let (Some(format), Some(sheet)) = (query.find("format").map(str::to_owned), page.sheet) {
        return match pages.db.read(move |tx| sheet(&reading, tx, &query)).await {
            Ok(sheet) => blocks::download(&sheet, &format, &visit.renderer(&finder).speech)
                .unwrap_or_else(|| missing(&pages, &visit)),
            Err(error) => unavailable(&pages, &visit, &error),
        };
    }
    match pages.db.read(move |tx| (page.load)(&reading, tx, &query)).await {
        Ok(view) => render(&pages, &finder, &visit, &view),
        Err(error) => unavailable(&pages, &visit, &error),
    }
}

/// Serves an untrusted document: it runs nothing, loads nothing and has no origin.
fn sandboxed(html: String) -> Response {
    let policy = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline'; \
                  img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
    ([(CONTENT_SECURITY_POLICY, policy), (X_FRAME_OPTIONS, "SAMEORIGIN")], Html(html)).into_response()
}

fn render(pages: &Pages, finder: &Finder, visit: &Visit, view: &PageView) -> Response {
    let r = visit.renderer(finder);
    let title = r.plain(&view.title);
    layout::respond(pages, finder, visit, &title, &PageBody::new(&r, view, &visit.query))
}
