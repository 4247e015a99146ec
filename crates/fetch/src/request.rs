//! Requests of pipelines: what to fetch, and under which conditions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::percent_decode_str;
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::error::Error;
use super::guard::AllowPrivate;
use super::limits::Limits;
use super::polite::Manners;
use super::validators::Validators;
use stdx::phrase;
use stdx::phrase::Phrase;

/// A request. Its secrets are sent only to its own origin and never shown.
#[derive(Clone)]
pub struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) secret_headers: HeaderMap,
    pub(super) secret_query: Vec<(String, SecretString)>,
    pub(super) validators: Validators,
    pub(super) allow_private: AllowPrivate,
    pub(super) limits: Option<Limits>,
    pub(super) manners: Option<Manners>,
    pub(super) once: bool,
    pub(super) has_own_errors: bool,
    problem: Option<Phrase>,
}

/// How to authenticate.
#[derive(Clone, Debug)]
pub enum Credential {
    /// `Authorization: Bearer …`.
    Bearer(SecretString),
    /// `Authorization: Basic …`.
    Basic { user: String, password: SecretString },
    /// A header of the service, such as `PRIVATE-TOKEN`.
    Header { name: &'static str, value: SecretString },
}

impl Request {
    /// A GET request.
    pub fn get(url: Url) -> Self {
        Self::new(Method::GET, url)
    }

    /// A HEAD request.
    pub fn head(url: Url) -> Self {
        Self::new(Method::HEAD, url)
    }

    fn new(method: Method, mut url: Url) -> Self {
        let userinfo = take_userinfo(&mut url);
        url.set_fragment(None);
        let request = Self {
            method,
            url,
            headers: HeaderMap::new(),
            secret_headers: HeaderMap::new(),
            secret_query: Vec::new(),
            validators: Validators::default(),
            allow_private: AllowPrivate::none(),
            limits: None,
            manners: None,
            once: false,
            has_own_errors: false,
            problem: None,
        };
        match userinfo {
            Some(credential) => request.credential(&credential),
            None => request,
        }
    }

    /// Makes it conditional: only a newer version than that of `validators` is sent.
    pub fn validators(mut self, validators: &Validators) -> Self {
        self.validators = validators.clone();
        self
    }

    /// Allows addresses beyond the public internet.
    pub fn allow_private(mut self, allowed: &AllowPrivate) -> Self {
        self.allow_private = allowed.clone();
        self
    }

    /// Replaces the default limits for this request.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Replaces the default limits of requests to a host for this request.
    pub fn manners(mut self, manners: Manners) -> Self {
        self.manners = Some(manners);
        self
    }

    /// Sends it only once and on a new connection, for requests that are counted against a quota.
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Treats a 500, 502 or 504 as an error of this resource, which does not pause the host. The caller has to slow
    /// down when the host answers nothing else.
    pub fn own_errors(mut self) -> Self {
        self.has_own_errors = true;
        self
    }

    /// Sets `Accept`.
    pub fn accept(self, media_types: &str) -> Self {
        self.header(ACCEPT, media_types)
    }

    /// Adds a header without secrets; it is sent on every hop.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => {
                self.headers.insert(name, value);
            }
            Err(_) => {
                self.problem = Some(phrase!(
                    "the value for header `{name}` cannot be sent",
                    "ヘッダー `{name}` の値は送信できません",
                    name = name.as_str()
                ));
            }
        }
        self
    }

    /// Adds a header with a secret; it is sent only to the origin of the request.
    pub fn secret_header(mut self, name: HeaderName, value: &SecretString) -> Self {
        match HeaderValue::from_str(value.expose_secret()) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.secret_headers.insert(name, value);
            }
            Err(_) => {
                self.problem = Some(phrase!(
                    "the secret for header `{name}` cannot be sent",
                    "ヘッダー `{name}` の秘密情報は送信できません",
                    name = name.as_str()
                ));
            }
        }
        self
    }

    /// Adds a query parameter with a secret; no address that we return, print or store contains it.
    pub fn secret_query(mut self, name: &str, value: &SecretString) -> Self {
        self.secret_query.push((name.to_owned(), value.clone()));
        self
    }

    /// Authenticates at the origin of the request, and nowhere else.
    pub fn credential(self, credential: &Credential) -> Self {
        match credential {
            Credential::Bearer(token) => {
                self.secret_header(AUTHORIZATION, &format!("Bearer {}", token.expose_secret()).into())
            }
            Credential::Basic { user, password } => {
                let pair = BASE64.encode(format!("{user}:{}", password.expose_secret()));
                self.secret_header(AUTHORIZATION, &format!("Basic {pair}").into())
            }
            Credential::Header { name, value } => match HeaderName::from_bytes(name.as_bytes()) {
                Ok(name) => self.secret_header(name, value),
                Err(_) => Self {
                    problem: Some(phrase!(
                        "`{name}` is not a header name",
                        "`{name}` はヘッダー名ではありません"
                    )),
                    ..self
                },
            },
        }
    }

    /// A mistake made while building, reported when the request is sent.
    pub(super) fn check(&self) -> Result<(), Error> {
        match &self.problem {
            Some(why) => Err(Error::BadUrl { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// The first address to request, with its secret parameters.
    pub(super) fn url_with_secrets(&self) -> Url {
        let mut url = self.url.clone();
        if !self.secret_query.is_empty() {
            url.query_pairs_mut()
                .extend_pairs(self.secret_query.iter().map(|(name, value)| (name, value.expose_secret())));
        }
        url
    }

    /// `url` without the secret parameters, even if a server has repeated them.
    pub(super) fn without_secrets(&self, url: &Url) -> Url {
        let is_secret = |text: &str| self.secret_query.iter().any(|(_, value)| text == value.expose_secret());
        if self.secret_query.is_empty() || !url.query_pairs().any(|(_, value)| is_secret(&value)) {
            return url.clone();
        }
        let kept: Vec<(String, String)> =
            url.query_pairs().into_owned().filter(|(_, value)| !is_secret(value)).collect();
        let mut shown = url.clone();
        shown.set_query(None);
        if !kept.is_empty() {
            shown.query_pairs_mut().extend_pairs(kept);
        }
        shown
    }
}

/// Shows the request without credentials.
impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

/// Removes `user:password@` from `url`.
fn take_userinfo(url: &mut Url) -> Option<Credential> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = decode(url.username());
    let password = decode(url.password().unwrap_or_default()).into();
    url.set_username("").and_then(|()| url.set_password(None)).ok()?;
    Some(Credential::Basic { user, password })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn userinfo_becomes_a_credential_and_leaves_the_address() {
        let request = Request::get(Url::parse("https://me:p%40ss@a.example/x#top").unwrap());
        assert_eq!(request.url.as_str(), "https://a.example/x");
        assert_eq!(
            request.secret_headers[AUTHORIZATION],
            format!("Basic {}", BASE64.encode("me:p@ss")).as_str()
        );
        assert!(!format!("{request:?}").contains("ss"), "{request:?}");
    }

    #[test]
    fn secret_parameters_are_sent_but_never_shown() {
        let request = Request::get(Url::parse("https://a.example/v1?q=rust").unwrap())
            .secret_query("key", &SecretString::from("s3 cret"));
        assert_eq!(request.url_with_secrets().as_str(), "https://a.example/v1?q=rust&key=s3+cret");
        assert_eq!(request.without_secrets(&request.url_with_secrets()), request.url);
        let echoed = Url::parse("https://b.example/?k=s3%20cret&page=2").unwrap();
        assert_eq!(request.without_secrets(&echoed).as_str(), "https://b.example/?page=2");
    }

    #[test]
    fn a_secret_that_cannot_be_sent_is_told_without_telling_it() {
        let request = Request::get(Url::parse("https://a.example/").unwrap())
            .credential(&Credential::Bearer(SecretString::from("se\ncret")));
        let error = request.check().unwrap_err().to_string();
        assert!(
            error.contains("authorization") && !error.contains("cret`") && !error.contains("se\n"),
            "{error}"
        );
    }
}
