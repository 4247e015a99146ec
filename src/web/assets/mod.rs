//! `/assets/…`: our style, script and icon, inside the program. Names contain a hash of the content, so that browsers
//! cache them indefinitely.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use super::route::{Access, Route};
use crate::hash::sha256_hex;

const STYLES: &str = concat!(
    include_str!("style.css"),
    include_str!("../pages/blocks/blocks.css"),
    include_str!("../chart/chart.css")
);
const SCRIPTS: &str = concat!(include_str!("app.js"), include_str!("../pages/blocks/blocks.js"));

/// One file.
pub(super) struct Asset {
    /// Where it is: `/assets/style-0123456789ab.css`.
    pub(super) path: String,
    media_type: &'static str,
    text: &'static str,
}

/// The style of the dashboard.
pub(super) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("style", "css", "text/css; charset=utf-8", STYLES));
/// Its script.
pub(super) static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("app", "js", "text/javascript; charset=utf-8", SCRIPTS));
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("icon.svg")));

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/assets/{name}", Access::Read, show)]
}

impl Asset {
    fn new(name: &str, extension: &str, media_type: &'static str, text: &'static str) -> Self {
        let hash = &sha256_hex(text)[..12];
        Self { path: format!("/assets/{name}-{hash}.{extension}"), media_type, text }
    }
}

async fn show(Path(name): Path<String>) -> Response {
    let named =
        |asset: &&&'static LazyLock<Asset>| asset.path.strip_prefix("/assets/") == Some(name.as_str());
    let Some(asset) = [&STYLE, &SCRIPT, &ICON].iter().find(named).copied() else {
        return (StatusCode::NOT_FOUND, "not found\n").into_response();
    };
    let head = [(CONTENT_TYPE, asset.media_type), (CACHE_CONTROL, "private, max-age=31536000, immutable")];
    (head, asset.text).into_response()
}
