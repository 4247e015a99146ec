//! Who reads a page and how: language, theme, where to come back to, and what the last action said.

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

/// The cookie that remembers the language.
pub(super) const LANGUAGE: &str = "lang";
/// The cookie that remembers the theme.
pub(super) const THEME: &str = "theme";
/// The cookie that carries the answer to an action over the redirect.
const FLASH: &str = "flash";
/// The longest answer that is carried; a browser keeps cookies of 4 kB.
const MAX_FLASH: usize = 2_000;

/// One reader at one moment.
pub(super) struct Visit {
    pub(super) language: Language,
    /// `light` or `dark`; as the system has it when nothing was chosen.
    pub(super) theme: Option<&'static str>,
    /// The page with its query, to come back to.
    pub(super) address: String,
    pub(super) query: PageQuery,
    /// What the last action said.
    pub(super) flash: Option<Phrase>,
    /// Whether there is a session to end.
    pub(super) is_logged_in: bool,
    /// Whether this reader may change something.
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
    /// One of two, by the language.
    pub(super) fn choose<T>(&self, en: T, ja: T) -> T {
        self.language.choose(en, ja)
    }

    /// Writes what this reader reads, with moments in the zone of the config.
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

/// What the reader chose, what the address asks for, what the browser asks for, what the config says.
fn choose_language(
    cookie: Option<&str>,
    asked: Option<&str>,
    headers: &HeaderMap,
    otherwise: Language,
) -> Language {
    let known = [cookie, asked].into_iter().flatten().find_map(|word| word.parse().ok());
    known.unwrap_or_else(|| language::choose(headers, otherwise))
}

/// A cookie that lasts for `max_age` seconds.
pub(super) fn set_cookie(name: &str, value: &str, max_age: u32) -> (HeaderName, String) {
    (SET_COOKIE, format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={max_age}"))
}

/// Carries an answer over the redirect.
pub(super) fn set_flash(said: &Phrase) -> (HeaderName, String) {
    let mut stored = said.to_stored();
    if stored.len() > MAX_FLASH {
        stored = said.to_string().chars().take(MAX_FLASH / 4).collect();
    }
    set_cookie(FLASH, &BASE64.encode(stored), 60)
}

/// Forgets the answer once it was shown.
pub(super) fn clear_flash() -> (HeaderName, String) {
    set_cookie(FLASH, "", 0)
}

fn decode_flash(value: &str) -> Option<Phrase> {
    let stored = String::from_utf8(BASE64.decode(value).ok()?).ok()?;
    (!stored.is_empty()).then(|| Phrase::from_stored(&stored))
}
