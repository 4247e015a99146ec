//! The context of a page request: language, theme, address to return to, and the result of the last action.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{HeaderName, SET_COOKIE};
use axum::http::request::Parts as RequestHead;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use url::form_urlencoded;

use super::render::Renderer;
use crate::engine::{Finder, PageQuery};
use crate::phrase::{Phrase, Speech};
use crate::text::Language;
use crate::web::guard::Caller;
use crate::web::token::Scope;
use crate::web::{Pages, language, login};

/// The cookie of the language.
pub(super) const LANGUAGE: &str = "lang";
/// The cookie of the theme.
pub(super) const THEME: &str = "theme";
/// The cookie that carries the result of an action over the redirect.
const FLASH: &str = "flash";
/// The longest result that is carried; a browser stores cookies of 4 kB.
const MAX_FLASH: usize = 2_000;

pub(super) struct Visit {
    pub(super) language: Language,
    /// `light` or `dark`; `None` follows the system.
    pub(super) theme: Option<&'static str>,
    /// The page with its query, to return to.
    pub(super) address: String,
    pub(super) query: PageQuery,
    /// The result of the last action.
    pub(super) flash: Option<Phrase>,
    pub(super) is_logged_in: bool,
    pub(super) may_act: bool,
}

impl FromRequestParts<Pages> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(head: &mut RequestHead, pages: &Pages) -> Result<Self, Infallible> {
        let pairs = form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
        let query: PageQuery = pairs.into_owned().collect();
        let cookie = |name| login::find_cookie(&head.headers, name);
        let caller = head.extensions.get::<Caller>();
        Ok(Self {
            language: choose_language(cookie(LANGUAGE), query.find("lang"), &head.headers, pages.language),
            theme: ["light", "dark"].into_iter().find(|known| cookie(THEME) == Some(known)),
            address: head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            query,
            flash: cookie(FLASH).and_then(decode_flash),
            is_logged_in: caller == Some(&Caller::Session),
            may_act: !matches!(caller, Some(Caller::Program(token)) if token.scope < Scope::Act),
        })
    }
}

impl Visit {
    /// Selects by the language.
    pub(super) fn choose<T>(&self, en: T, ja: T) -> T {
        self.language.choose(en, ja)
    }

    /// A renderer for this reader, with moments in the zone of the config.
    pub(super) fn renderer(&self, finder: &Finder) -> Renderer {
        let zone = Some(finder.config.app.timezone.time_zone().clone());
        Renderer {
            speech: Speech { language: self.language, zone },
            now: finder.now,
            address: self.address.clone(),
            may_act: self.may_act,
        }
    }
}

/// The language by cookie, address, browser or config, in this order.
fn choose_language(
    cookie: Option<&str>,
    requested: Option<&str>,
    headers: &HeaderMap,
    otherwise: Language,
) -> Language {
    let known = [cookie, requested].into_iter().flatten().find_map(|word| word.parse().ok());
    known.unwrap_or_else(|| language::choose(headers, otherwise))
}

/// A cookie that lasts for `max_age` seconds.
pub(super) fn set_cookie(name: &str, value: &str, max_age: u32) -> (HeaderName, String) {
    (SET_COOKIE, format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={max_age}"))
}

/// Carries a result over the redirect.
pub(super) fn set_flash(text: &Phrase) -> (HeaderName, String) {
    let mut stored = text.to_stored();
    if stored.len() > MAX_FLASH {
        stored = text.to_string().chars().take(MAX_FLASH / 4).collect();
    }
    set_cookie(FLASH, &BASE64.encode(stored), 60)
}

/// Clears the result once it was shown.
pub(super) fn clear_flash() -> (HeaderName, String) {
    set_cookie(FLASH, "", 0)
}

fn decode_flash(value: &str) -> Option<Phrase> {
    let stored = String::from_utf8(BASE64.decode(value).ok()?).ok()?;
    (!stored.is_empty()).then(|| Phrase::from_stored(&stored))
}
