//! The layout of every page, and its response.

use askama::Template;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::render::{Markup, Renderer};
use super::visit::{self, Visit};
use crate::engine::Finder;
use crate::web::{Pages, assets};

/// Allows only our own style, script, frames, requests and forms.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

#[derive(Template)]
#[template(path = "pages/layout.html")]
struct Layout<'a> {
    r: &'a Renderer,
    visit: &'a Visit,
    title: &'a str,
    links: Vec<NavLink>,
    flash: Option<Markup>,
    body: &'a str,
    style: &'a str,
    script: &'a str,
    icon: &'a str,
    /// The feed of this page, without the extension.
    feed: Option<String>,
}

impl Layout<'_> {
    /// The code of the language and of the other one.
    fn codes(&self) -> (&'static str, &'static str) {
        self.r.language().choose(("en", "ja"), ("ja", "en"))
    }
}

/// A link of the navigation.
struct NavLink {
    path: String,
    text: String,
    /// The key after `g`.
    key: String,
    is_current: bool,
}

/// A page inside the layout.
pub(super) fn respond(
    pages: &Pages,
    finder: &Finder,
    visit: &Visit,
    title: &str,
    body: &impl Template,
) -> Response {
    respond_with(pages, finder, visit, (StatusCode::OK, title), body)
}

/// A short message instead of a page.
#[derive(Template)]
#[template(path = "pages/message.html")]
struct MessageBody<'a> {
    title: &'a str,
    text: &'a str,
}

/// A page with a short message.
pub(super) fn message(pages: &Pages, visit: &Visit, status: StatusCode, title: &str, text: &str) -> Response {
    let Some(finder) = pages.finder() else { return (status, "not found\n").into_response() };
    respond_with(pages, &finder, visit, (status, title), &MessageBody { title, text })
}

fn respond_with(
    pages: &Pages,
    finder: &Finder,
    visit: &Visit,
    (status, title): (StatusCode, &str),
    body: &impl Template,
) -> Response {
    let body = match body.render() {
        Ok(body) => body,
        Err(error) => return broken(&error),
    };
    let r = visit.renderer(finder);
    let layout = Layout {
        r: &r,
        visit,
        title,
        links: list_links(pages, finder, visit, &r),
        flash: visit.flash.as_ref().map(|text| r.phrase(text)),
        body: &body,
        style: &assets::STYLE.path,
        script: &assets::SCRIPT.path,
        icon: &assets::ICON.path,
        feed: find_feed(visit),
    };
    let html = match layout.render() {
        Ok(html) => html,
        Err(error) => return broken(&error),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)] {
        headers.insert(name, axum::http::HeaderValue::from_static(value));
    }
    let response = (status, headers, html);
    match visit.flash {
        Some(_) => ([visit::clear_flash()], response).into_response(),
        None => response.into_response(),
    }
}

/// The feed of a job's results.
fn find_feed(visit: &Visit) -> Option<String> {
    let here = visit.address.split('?').next().unwrap_or_default();
    let name = here.strip_prefix("/job/").filter(|name| !name.contains('/'))?;
    Some(format!("/feeds/job/{name}"))
}

fn list_links(pages: &Pages, finder: &Finder, visit: &Visit, r: &Renderer) -> Vec<NavLink> {
    let here = visit.address.split('?').next().unwrap_or_default();
    let link = |path: String, key: &str, text: String| NavLink {
        is_current: path == here,
        path,
        key: key.to_owned(),
        text,
    };
    let mut links = vec![link("/".to_owned(), "o", r.say("Overview", "概要").to_owned())];
    let of_pipelines = finder.pages.iter().map(|page| (page.slug, page.title));
    for (slug, title) in of_pipelines.chain(pages.extra.iter().map(|page| (page.slug, page.title))) {
        // The first letter of the address that is not used by an earlier link.
        let is_free = |letter: &char| links.iter().all(|link| !link.key.starts_with(*letter));
        let key = slug.chars().find(is_free).map(String::from).unwrap_or_default();
        links.push(link(format!("/{slug}"), &key, r.plain(&title())));
    }
    if visit.may_act {
        links.push(link("/settings".to_owned(), "s", r.say("Settings", "設定").to_owned()));
    }
    links
}

fn broken(error: &askama::Error) -> Response {
    tracing::error!("A page cannot be rendered: {error}");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}
