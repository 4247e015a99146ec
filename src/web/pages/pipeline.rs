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

#[cfg(test)]
mod tests {
    use crate::web::tests::Site;

    #[tokio::test]
    async fn changes_of_one_blog_stand_above_that_blog_alone() {
        let blog = |id: &str| format!("{{ id = \"{id}\", url = \"https://{id}.example\" }}");
        let job = format!("[[job]]\nname = \"x\"\nkind = \"blogs\"\nblog = [{}, {}]\n", blog("a"), blog("b"));
        let site = Site::serve(&job).await;
        for (path, has_other) in [("/changes", true), ("/changes?blog=a", false)] {
            let page = site.get(path, &[]).await.body;
            assert!(page.contains("/why/blog/a\""), "{path}: {page}");
            assert_eq!(page.contains("/why/blog/b\""), has_other, "{path}: {page}");
        }
    }

    #[tokio::test]
    async fn a_page_without_messages_says_whether_there_are_none_or_none_of_the_sort() {
        let site = Site::serve("").await;
        for (path, said) in [
            ("/deliveries", "ジョブの新着は、送信が決まると"),
            ("/deliveries?state=failed", "該当するメッセージはありません"),
            ("/deliveries?job=x", "該当するメッセージはありません"),
        ] {
            let page = site.get(path, &[]).await.body;
            assert!(page.contains(said), "{path}: {page}");
        }
    }
}
