//! Authentication and authorisation: one layer over every route, which denies by default.
//!
//! ```text
//! route ──Public──▶ answer
//!   │
//!   ├── unknown Host ──▶ 421
//!   ├── LogIn ─────────▶ answer
//!   └── who is it?  nobody has to log in ▸ header of a trusted proxy ▸ session ▸ token ▸ password ──▶ answer, 401, 403 or 429
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use url::form_urlencoded;

use super::client::Client;
use super::hosts::{Hosts, name_of};
use super::misses::Misses;
use super::password::Password;
use super::route::{Access, AccessTable};
use super::token::{self, AccessToken, Scope};
use super::{Error, RemoteAddress, login, store};
use crate::config::Web;
use crate::config::value::Network;
use crate::db::{self, Db};

pub(super) struct Guard {
    pub(super) db: Db,
    table: AccessTable,
    hosts: Hosts,
    proxies: Vec<Network>,
    sso_header: Option<HeaderName>,
    pub(super) password: Option<Password>,
    /// Separate from those of prompt pages, so that a crawler of dead links locks nobody out.
    misses: Misses,
    /// The host of `public_url`, if it is `https`.
    tls_host: Option<String>,
}

/// The authenticated caller.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Caller {
    /// No login is required.
    Anybody,
    /// A person who has logged in with the form, and can log out.
    Session,
    /// A person whom a proxy names, or who sends the password with every request.
    Person,
    /// A program.
    Program(AccessToken),
}

/// The result of a login attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Right,
    Wrong,
    /// Throttled: too many wrong passwords from this address.
    Wait(Duration),
}

/// Why a request is refused.
#[derive(Debug)]
enum Refused {
    /// No credentials.
    Nobody,
    /// A wrong password.
    Password,
    /// A token that is unknown, or not accepted in this place.
    Token(&'static str),
    Wait(Duration),
    Scope(Scope),
    Db(db::Error),
}

impl From<db::Error> for Refused {
    fn from(error: db::Error) -> Self {
        Refused::Db(error)
    }
}

impl Guard {
    /// Resolves the password.
    pub(super) fn new(web: &Web, table: AccessTable, db: Db) -> Result<Self, Error> {
        let password = match &web.auth {
            Some(auth) => Some(Password::new(&auth.user, auth.password.reveal()?.expose())?),
            None => None,
        };
        let tls = web.public_url.as_deref().filter(|url| url.scheme() == "https");
        Ok(Self {
            db,
            table,
            hosts: Hosts::new(web),
            proxies: web.trusted_proxies.clone(),
            sso_header: web.sso_header.as_ref().and_then(|name| name.parse().ok()),
            password,
            misses: Misses::default(),
            tls_host: tls.and_then(|url| url.host_str()).map(name_of),
        })
    }

    /// Whether no login is required.
    pub(super) fn is_open(&self) -> bool {
        self.password.is_none() && self.sso_header.is_none()
    }

    /// Whether the client uses TLS.
    pub(super) fn is_https(&self, client: Client, headers: &HeaderMap) -> bool {
        let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
        client.is_https || self.tls_host.as_ref().is_some_and(|known| *known == name_of(host))
    }

    /// Checks a password, unless the address is throttled: then the client does not learn whether this one was right.
    pub(super) async fn try_password(&self, client: Client, user: &str, password: &str) -> Attempt {
        let (wait, now) = (|| self.misses.wait(client.ip, self.db.clock().now()), || self.db.clock().now());
        let Some(known) = &self.password else { return Attempt::Wrong };
        if let Some(wait) = wait() {
            return Attempt::Wait(wait);
        }
        let is_right = known.admits(user, password, || wait().is_none()).await;
        match (is_right, wait()) {
            (true, _) => Attempt::Right,
            (false, Some(wait)) => Attempt::Wait(wait),
            (false, None) => {
                self.misses.add(client.ip, now());
                Attempt::Wrong
            }
        }
    }

    async fn find_caller(
        &self,
        client: Client,
        request: &RequestFacts,
        access: Access,
    ) -> Result<Caller, Refused> {
        if self.is_open() {
            return Ok(Caller::Anybody);
        }
        if client.is_proxied
            && let Some(user) = self.sso_header.as_ref().and_then(|name| find_text(&request.headers, name))
            && !user.is_empty()
        {
            return Ok(Caller::Person);
        }
        if self.has_session(client, &request.headers).await? {
            return Ok(Caller::Session);
        }
        if let Some(secret) = find_credentials(&request.headers, "bearer") {
            let found = self.find_token(secret).await?;
            return admit(found.ok_or(Refused::Token("this token is unknown or revoked\n"))?, access);
        }
        if access == Access::Feed
            && let Some(secret) = find_in_query(&request.uri, "token")
        {
            // URLs are logged and passed on, so a token in one must not allow more than reading feeds.
            let found = self.find_token(&secret).await?.filter(|token| token.scope == Scope::Feed);
            let text = "a token in the address is one with the scope `feed`, and this is none\n";
            return admit(found.ok_or(Refused::Token(text))?, access);
        }
        // A browser first sends a request without a password, which is not a guess.
        let pair = find_credentials(&request.headers, "basic").filter(|_| self.password.is_some());
        let Some(pair) = pair else { return Err(Refused::Nobody) };
        let pair = BASE64.decode(pair).ok().and_then(|pair| String::from_utf8(pair).ok()).unwrap_or_default();
        let (user, password) = pair.split_once(':').unwrap_or_default();
        match self.try_password(client, user, password).await {
            Attempt::Right => Ok(Caller::Person),
            Attempt::Wrong => Err(Refused::Password),
            Attempt::Wait(wait) => Err(Refused::Wait(wait)),
        }
    }

    async fn has_session(&self, client: Client, headers: &HeaderMap) -> db::Result<bool> {
        let Some(password) = &self.password else { return Ok(false) };
        let Some(secret) = login::find_session_cookie(headers, self.is_https(client, headers)) else {
            return Ok(false);
        };
        let (hash, print, now) = (token::hash(secret), password.print.clone(), self.db.clock().now());
        self.db.read(move |tx| store::has_session(tx, &hash, &print, now)).await
    }

    async fn find_token(&self, secret: &str) -> db::Result<Option<AccessToken>> {
        let hash = token::hash(secret);
        self.db.read(move |tx| store::find_token(tx, &hash)).await
    }

    fn refuse(&self, refused: Refused, request: &RequestFacts) -> Response {
        match refused {
            Refused::Nobody | Refused::Password | Refused::Token(_)
                if self.password.is_some() && request.is_browser() =>
            {
                // The login page cannot resend a form.
                let here = request.uri.path_and_query().filter(|_| request.method == Method::GET);
                let next = here.map_or("/", |path| path.as_str());
                let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
                Redirect::to(&format!("{}?next={next}", login::PATH)).into_response()
            }
            Refused::Nobody => {
                let challenge = match self.password {
                    // Scripts of a page whose session has expired continue to send requests: they must not make the
                    // browser open a password dialog.
                    Some(_) if !request.is_script() => BASIC,
                    _ => "Bearer realm=\"tsuzuki\"",
                };
                unauthorized(challenge, "log in\n")
            }
            Refused::Password => unauthorized(BASIC, "the user name or the password is wrong\n"),
            Refused::Token(text) => unauthorized("Bearer realm=\"tsuzuki\", error=\"invalid_token\"", text),
            Refused::Wait(wait) => {
                let after = [(RETRY_AFTER, wait.as_secs().max(1).to_string())];
                (StatusCode::TOO_MANY_REQUESTS, after, "too many wrong passwords; try again later\n")
                    .into_response()
            }
            Refused::Scope(needed) => {
                (StatusCode::FORBIDDEN, format!("this needs a token with the scope `{needed}`\n"))
                    .into_response()
            }
            Refused::Db(error) => {
                tracing::error!("Could not check a login: {error}");
                (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n").into_response()
            }
        }
    }
}

/// The challenge for HTTP Basic.
const BASIC: &str = "Basic realm=\"tsuzuki\", charset=\"UTF-8\"";

fn unauthorized(challenge: &'static str, text: &'static str) -> Response {
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)], text).into_response()
}

/// Whether the scope of a token is sufficient.
fn admit(found: AccessToken, access: Access) -> Result<Caller, Refused> {
    let needed = match access {
        Access::Public | Access::LogIn | Access::Feed => Scope::Feed,
        Access::Read => Scope::Read,
        Access::Act => Scope::Act,
    };
    if found.scope >= needed { Ok(Caller::Program(found)) } else { Err(Refused::Scope(needed)) }
}

/// The parts of a request that are checked.
struct RequestFacts {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl RequestFacts {
    /// Whether a browser loads a page, so that it can be redirected to the login form.
    fn is_browser(&self) -> bool {
        find_text(&self.headers, &ACCEPT).unwrap_or_default().contains("text/html")
    }

    /// Whether a script of a page sent it.
    fn is_script(&self) -> bool {
        self.headers.get("sec-fetch-dest").is_some_and(|dest| dest == "empty")
    }
}

/// The middleware.
pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    ConnectInfo(RemoteAddress(peer)): ConnectInfo<RemoteAddress>,
    mut request: Request,
    next: Next,
) -> Response {
    let client = Client::identify(peer.ip(), request.headers(), &guard.proxies);
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let access = guard.table.find(request.method(), path);
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(Arc::clone(&guard));
    if access == Access::Public {
        return next.run(request).await;
    }
    if !guard.hosts.allow(request.uri(), request.headers()) {
        let text = "this name is not one of mine; `allowed_hosts` in [web] lists further ones\n";
        return (StatusCode::MISDIRECTED_REQUEST, text).into_response();
    }
    if access == Access::LogIn {
        return next.run(request).await;
    }
    let facts = RequestFacts {
        method: request.method().clone(),
        uri: request.uri().clone(),
        headers: request.headers().clone(),
    };
    match guard.find_caller(client, &facts, access).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refused) => guard.refuse(refused, &facts),
    }
}

/// Only determines the client: for public pages.
pub(super) async fn identify(
    State(proxies): State<Arc<[Network]>>,
    ConnectInfo(RemoteAddress(peer)): ConnectInfo<RemoteAddress>,
    mut request: Request,
    next: Next,
) -> Response {
    let client = Client::identify(peer.ip(), request.headers(), &proxies);
    request.extensions_mut().insert(client);
    next.run(request).await
}

fn find_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok())
}

/// The credentials after `scheme` in the `Authorization` header.
fn find_credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    let (found, credentials) = find_text(headers, &AUTHORIZATION)?.split_once(' ')?;
    found.eq_ignore_ascii_case(scheme).then(|| credentials.trim())
}

fn find_in_query(uri: &Uri, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
