//! `/badge/NAME.svg`: the state of a job as a badge for other pages.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use super::problem::Problem;
use super::route::{Access, Route};
use super::{Pages, language};
use crate::engine::{Overview, State as Standing};
use crate::phrase::Speech;
use crate::text::{escape_html, one_line, width};

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/badge/{name}", Access::Feed, show)]
}

async fn show(
    State(pages): State<Pages>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let missing = || Problem::not_found("a badge is named like a job: /badge/NAME.svg");
    let job = name.strip_suffix(".svg").ok_or_else(missing)?.to_owned();
    let finder = pages.finder().ok_or_else(missing)?;
    let overview = pages.db.read(move |tx| Overview::find(&finder, tx)).await?;
    let found = overview.jobs.iter().find(|known| known.job == job).ok_or_else(missing)?;
    let speech = Speech { language: language::choose(&headers, pages.language), zone: None };
    let state = found.standing.state;
    let svg = render(&job, &format!("{} {}", state.mark(), speech.phrase(&state.phrase())), colour(state));
    Ok(([(CONTENT_TYPE, "image/svg+xml; charset=utf-8"), (CACHE_CONTROL, "no-cache")], svg).into_response())
}

/// Dark enough for white text.
fn colour(state: Standing) -> &'static str {
    match state {
        Standing::Ok | Standing::Done => "#1a7f37",
        Standing::Running | Standing::Due | Standing::New => "#1f5fbf",
        Standing::Waiting | Standing::Quota | Standing::Approval => "#8a5a00",
        Standing::Failing | Standing::Setup => "#b3261e",
        Standing::Paused | Standing::Disabled => "#5b6570",
    }
}

fn render(label: &str, state: &str, colour: &str) -> String {
    let (label, state) = (one_line(label), one_line(state));
    let (left, right) = (width(&label) * 7 + 12, width(&state) * 7 + 12);
    let (all, middle) = (left + right, left + 6);
    let (label, state) = (escape_html(&label), escape_html(&state));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all}\" height=\"20\" role=\"img\" \
         aria-label=\"{label}: {state}\"><title>{label}: {state}</title>\
         <rect width=\"{all}\" height=\"20\" rx=\"3\" fill=\"#3d444d\"/>\
         <rect x=\"{left}\" width=\"{right}\" height=\"20\" rx=\"3\" fill=\"{colour}\"/>\
         <g fill=\"#fff\" font-family=\"sans-serif\" font-size=\"12\">\
         <text x=\"6\" y=\"14\">{label}</text><text x=\"{middle}\" y=\"14\">{state}</text></g></svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_shown_and_do_nothing() {
        let svg = render("</text><script>alert(1)</script>\u{202e}\"'&", "● OK", "#000");
        assert!(!svg.contains("<script") && !svg.contains('\u{202e}'), "{svg}");
        assert!(svg.contains("&lt;/text&gt;") && svg.contains("&quot;&#39;&amp;") && svg.contains("● OK"));
    }
}
