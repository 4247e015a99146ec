//! `/login` and `/logout`: the form and the session cookie.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::header::{COOKIE, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use serde::Deserialize;

use super::client::Client;
use super::guard::{Attempt, Guard};
use super::route::{Access, Route};
use super::small::{self, LoginPage};
use super::token::{self, NewSecret};
use super::{Pages, language, store};
use crate::text::Language;

pub(super) const PATH: &str = "/login";
/// How long a session lasts.
const SESSION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| small::policy("", "'self'"));

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, Access::LogIn, show),
        Route::post(PATH, Access::LogIn, log_in),
        Route::act("/logout", log_out),
    ]
}

/// A browser accepts a `__Host-` cookie over TLS only, and binds it to this host.
fn cookie_name(is_https: bool) -> &'static str {
    if is_https { "__Host-tsuzuki" } else { "tsuzuki" }
}

/// The value of the session cookie.
pub(super) fn find_session_cookie(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    find_cookie(headers, cookie_name(is_https))
}

/// The value of the cookie with that name.
pub(super) fn find_cookie<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

fn set_cookie(value: &str, is_https: bool, lasts: Duration) -> [(axum::http::HeaderName, String); 1] {
    let (name, secure) = (cookie_name(is_https), if is_https { "; Secure" } else { "" });
    let max_age = lasts.as_secs();
    [(SET_COOKIE, format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={max_age}{secure}"))]
}

#[derive(Debug, Deserialize)]
struct NextPage {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    user: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    next: String,
}

/// `next` if it is one of our pages, else the first page: prevents open redirects.
pub(super) fn checked(next: &str) -> &str {
    let is_ours = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        && !next.contains(|c: char| c.is_ascii_control());
    if is_ours { next } else { "/" }
}

async fn show(
    State(pages): State<Pages>,
    Extension(guard): Extension<Arc<Guard>>,
    headers: HeaderMap,
    Query(query): Query<NextPage>,
) -> Response {
    match guard.password {
        None => Redirect::to("/").into_response(),
        Some(_) => form(StatusCode::OK, &query.next, language::choose(&headers, pages.language)),
    }
}

async fn log_in(
    State(pages): State<Pages>,
    Extension(guard): Extension<Arc<Guard>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    Form(given): Form<Given>,
) -> Response {
    let language = language::choose(&headers, pages.language);
    let Some(password) = &guard.password else { return Redirect::to("/").into_response() };
    match guard.try_password(client, &given.user, &given.password).await {
        Attempt::Right => {}
        Attempt::Wrong => return form(StatusCode::UNAUTHORIZED, &given.next, language),
        Attempt::Wait(wait) => {
            let after = [(RETRY_AFTER, wait.as_secs().max(1).to_string())];
            return (after, form(StatusCode::TOO_MANY_REQUESTS, &given.next, language)).into_response();
        }
    }
    let (user, print, now) = (given.user, password.print.clone(), pages.clock.now());
    let opened = async {
        let NewSecret { secret, hash } = NewSecret::session()?;
        let added =
            pages.db.write(move |tx| store::add_session(tx, &hash, &user, &print, now.plus(SESSION), now));
        added.await.map(|()| secret).map_err(std::io::Error::other)
    };
    match opened.await {
        Ok(secret) => {
            let cookie = set_cookie(&secret, guard.is_https(client, &headers), SESSION);
            (cookie, Redirect::to(checked(&given.next))).into_response()
        }
        Err(error) => {
            tracing::error!("Could not check a login: {error}");
            form(StatusCode::SERVICE_UNAVAILABLE, &given.next, language)
        }
    }
}

async fn log_out(
    State(pages): State<Pages>,
    Extension(guard): Extension<Arc<Guard>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Response {
    let is_https = guard.is_https(client, &headers);
    if let Some(hash) = find_session_cookie(&headers, is_https).map(token::hash)
        && let Err(error) = pages.db.write(move |tx| store::delete_session(tx, &hash)).await
    {
        tracing::error!("Could not end a session: {error}");
        return (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n").into_response();
    }
    (set_cookie("", is_https, Duration::ZERO), Redirect::to(PATH)).into_response()
}

fn form(status: StatusCode, next: &str, language: Language) -> Response {
    let say = |en: &'static str, ja: &'static str| language.choose(en, ja);
    let problem = match status {
        StatusCode::OK => None,
        StatusCode::UNAUTHORIZED => {
            Some(say("The user name or the password is wrong.", "ユーザー名またはパスワードが違います。"))
        }
        StatusCode::TOO_MANY_REQUESTS => Some(say(
            "Too many wrong passwords. Try again in a moment.",
            "失敗が続きました。少し時間をおいてください。",
        )),
        _ => Some(say(
            "The database does not answer. Try again in a moment.",
            "データベースが応答しません。少し時間をおいてください。",
        )),
    };
    let page = LoginPage {
        lang: language.word(),
        next: checked(next),
        problem,
        heading: say("Log in", "ログイン"),
        user: say("User name", "ユーザー名"),
        password: say("Password", "パスワード"),
        button: say("Log in", "ログイン"),
    };
    small::respond(status, &page, &POLICY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_elsewhere() {
        for ours in ["/", "/job/x?y=1", "/why/a:b"] {
            assert_eq!(checked(ours), ours);
        }
        for elsewhere in
            ["", "x", "https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil.example"]
        {
            assert_eq!(checked(elsewhere), "/", "{elsewhere}");
        }
    }
}
