//! `/preferences`: the language and the theme that a reader chose, kept in cookies.

use axum::Form;
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::visit::{LANGUAGE, THEME, set_cookie};
use crate::web::login::checked;

/// How long a choice is stored, in seconds.
const A_YEAR: u32 = 365 * 24 * 60 * 60;

#[derive(Deserialize)]
pub(super) struct Chosen {
    lang: Option<String>,
    theme: Option<String>,
    #[serde(default)]
    next: String,
}

/// Stores the choice and redirects back.
pub(super) async fn put(Form(chosen): Form<Chosen>) -> Response {
    let known = |given: Option<String>, known: &'static [&'static str]| {
        known.iter().copied().find(|known| given.as_deref() == Some(known))
    };
    let language = known(chosen.lang, &["en", "ja"]).map(|value| set_cookie(LANGUAGE, value, A_YEAR));
    let theme = known(chosen.theme, &["light", "dark", "auto"]).map(|value| set_cookie(THEME, value, A_YEAR));
    let cookies: Vec<_> = [language, theme].into_iter().flatten().collect();
    (AppendHeaders(cookies), Redirect::to(checked(&chosen.next))).into_response()
}
