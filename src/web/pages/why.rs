//! `/why/{word}/{name}`: everything known about one thing, its history and its actions.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::render::{Renderer, path_part};
use super::{Visit, layout, missing, unavailable};
use crate::engine::View;
use crate::text::shell_word;
use crate::web::Pages;

#[derive(Template)]
#[template(path = "pages/why.html")]
struct WhyBody<'a> {
    r: &'a Renderer,
    views: &'a [View],
    /// As `why` takes it, for a shell.
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
    layout::respond(
        &pages,
        &finder,
        &visit,
        &title,
        &WhyBody { r: &r, views: &views, name: &shell_word(&about), api },
    )
}

#[cfg(test)]
mod tests {
    use crate::engine::RunOutcome;
    use crate::engine::events::RunEvent;
    use crate::ledger::{Subject, event};
    use crate::web::tests::Site;

    #[tokio::test]
    async fn the_command_of_a_page_does_only_what_it_says_when_it_is_pasted_into_a_shell() {
        let site = Site::serve("").await;
        let (now, about) = (site.clock.now(), Subject::new("entry", "https://a.example/$(id)"));
        let recorded = site.pages.db.write(move |tx| {
            let found =
                RunEvent { code: RunOutcome::Success, message: "x".into(), began_at: None, new_count: 0 };
            event::record(tx, None, &about, &found, now)
        });
        recorded.await.unwrap();
        let page = site.get("/why/entry/https:%2F%2Fa.example%2F$%28id%29", &[]).await;
        let command = "<code>tsuzuki why &#39;entry:https://a.example/$(id)&#39;</code>";
        assert!(page.body.contains(command), "{}", page.body);
    }
}
