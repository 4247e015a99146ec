//! Small self-contained pages, without assets and without a dashboard; they may be public.

use askama::Template;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest, Sha256};

/// The style of all of them.
pub(super) const STYLE: &str = include_str!("prompt.css");
/// The script of the prompt page.
pub(super) const SCRIPT: &str = include_str!("prompt.js");

/// A prompt to copy.
#[derive(Template)]
#[template(path = "small/prompt.html")]
pub(super) struct PromptPage<'a> {
    pub(super) lang: &'a str,
    pub(super) heading: &'a str,
    pub(super) title: &'a str,
    pub(super) prompt: &'a str,
    pub(super) copy: &'a str,
    pub(super) copied: &'a str,
    pub(super) selected: &'a str,
    pub(super) how: &'a str,
    pub(super) until: String,
}

#[derive(Template)]
#[template(path = "small/message.html")]
pub(super) struct MessagePage<'a> {
    pub(super) lang: &'a str,
    pub(super) heading: &'a str,
    pub(super) first: String,
    pub(super) text: &'a str,
}

/// The form to log in.
#[derive(Template)]
#[template(path = "small/login.html")]
pub(super) struct LoginPage<'a> {
    pub(super) lang: &'a str,
    pub(super) next: &'a str,
    /// Why the last attempt failed.
    pub(super) problem: Option<&'a str>,
    pub(super) heading: &'a str,
    pub(super) user: &'a str,
    pub(super) password: &'a str,
    pub(super) button: &'a str,
}

/// Allows only our style and `script`, and forms to `form_action`; nothing may be loaded.
pub(super) fn policy(script: &str, form_action: &str) -> HeaderValue {
    let hash = |text: &str| BASE64.encode(Sha256::digest(text));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; frame-ancestors 'none'; \
         base-uri 'none'; form-action {form_action}",
        hash(script),
        hash(STYLE)
    );
    HeaderValue::from_str(&policy).expect("base64 and our own words")
}

/// A page as an answer.
pub(super) fn respond(status: StatusCode, page: &impl Template, policy: &HeaderValue) -> Response {
    match page.render() {
        Ok(html) => {
            let headers = [
                (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
                (CONTENT_SECURITY_POLICY, policy.clone()),
            ];
            (status, headers, html).into_response()
        }
        Err(error) => {
            tracing::error!("A page cannot be rendered: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
