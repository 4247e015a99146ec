//! Small pages that need nothing but themselves.

use std::sync::LazyLock;

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use minijinja::{Environment, Value};
use sha2::{Digest, Sha256};

/// The style of all of them.
pub(super) const STYLE: &str = include_str!("prompt.css");

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    for (name, text) in [
        ("prompt.html", include_str!("prompt.html")),
        ("message.html", include_str!("message.html")),
        ("login.html", include_str!("login.html")),
    ] {
        templates.add_template(name, text).expect("our own template is well formed");
    }
    templates
});

/// Exactly our style and `script` may run, and a form may be sent to `form_action`; nothing may be loaded.
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

/// The page of a template.
pub(super) fn render(status: StatusCode, template: &str, values: Value, policy: &HeaderValue) -> Response {
    match TEMPLATES.get_template(template).and_then(|template| template.render(values)) {
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
