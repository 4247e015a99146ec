//! `POST /act`: a button does what the command next to it does, and redirects to a page that shows the result.

use askama::Template;
use axum::Form;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};

use super::render::{Markup, Renderer};
use super::{Visit, layout, missing, unavailable, visit};
use crate::engine::{ActionOutcome, Deed, Verb};
use crate::phrase;
use crate::phrase::Phrase;
use crate::web::login::checked;
use crate::web::{Pages, act};

/// The most things that one click can act on.
const MAX_THINGS: usize = 100;

/// The confirmation of a destructive action.
#[derive(Template)]
#[template(path = "pages/confirm.html")]
struct ConfirmBody<'a> {
    r: &'a Renderer,
    forgets: Markup,
    about: &'a str,
    verb: Verb,
    next: &'a str,
}

/// Runs the action on each thing of the form.
pub(super) async fn post(
    State(pages): State<Pages>,
    visit: Visit,
    Form(fields): Form<Vec<(String, String)>>,
) -> Response {
    let find = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let next = checked(find("next").unwrap_or_default());
    let Some(verb) = find("verb").and_then(|verb| verb.parse::<Verb>().ok()) else {
        return missing(&pages, &visit);
    };
    let deed = Deed { verb, is_confirmed: find("yes").is_some() };
    let mut results = Vec::new();
    for (_, about) in fields.iter().filter(|(name, _)| name == "about").take(MAX_THINGS) {
        match act::perform(&pages, about, deed).await {
            Ok(ActionOutcome::Done(done)) => results.push(done),
            Ok(ActionOutcome::Refused(why)) => results.push(why),
            Ok(ActionOutcome::Unconfirmed(forgets)) => {
                return confirm(&pages, &visit, &forgets, (verb, about), next);
            }
            Ok(ActionOutcome::Start(_) | ActionOutcome::Unknown) => {
                results.push(phrase!(
                    "{about}: nothing there to {verb}",
                    "{about} には「{verb}」できるものがありません",
                    verb = verb.word()
                ));
            }
            Err(error) => return unavailable(&pages, &visit, &error),
        }
    }
    if results.is_empty() {
        missing(&pages, &visit)
    } else {
        ([visit::set_flash(&Phrase::list(results))], Redirect::to(next)).into_response()
    }
}

fn confirm(
    pages: &Pages,
    visit: &Visit,
    forgets: &Phrase,
    (verb, about): (Verb, &str),
    next: &str,
) -> Response {
    let Some(finder) = pages.finder() else { return StatusCode::NOT_FOUND.into_response() };
    let r = visit.renderer(&finder);
    let body = ConfirmBody { r: &r, forgets: r.phrase(forgets), about, verb, next };
    layout::respond(pages, &finder, visit, r.say("Are you sure?", "実行しますか？"), &body)
}
