//! Credentials for the servers of a blog: a login, headers, cookies.

use reqwest::header::{AUTHORIZATION, COOKIE, HeaderName};

use super::config::{Blog, BlogKeys};
use crate::config::{MissingSecret, Secret};
use crate::fetch::{Credential, Request};
use crate::parse::url::Url;
use crate::phrase;
use crate::phrase::Phrase;

/// The credentials; secrets are resolved when a request is made.
#[derive(Debug)]
pub struct BlogAccess {
    login: Option<(String, Secret)>,
    headers: Vec<(HeaderName, Secret)>,
}

impl BlogAccess {
    /// Reads the table of a blog; the error is the invalid key with the reason.
    pub(super) fn read(keys: &BlogKeys) -> Result<Option<Self>, (String, Phrase)> {
        let mut headers = Vec::new();
        for (name, value) in &keys.headers {
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
                let why =
                    phrase!("`{name}` is not the name of a header", "`{name}` はヘッダー名ではありません");
                (format!("headers.{name}"), why)
            })?;
            headers.push((header, value.clone()));
        }
        headers.extend(keys.cookies.as_deref().map(|cookies| (COOKIE, cookies.clone())));
        let login = keys.login.clone().map(|login| (login.user, login.password));
        if login.is_some() && headers.iter().any(|(name, _)| *name == AUTHORIZATION) {
            return Err((
                "login".into(),
                phrase!(
                    "`login` and the header `Authorization` say the same thing twice",
                    "`login` とヘッダー `Authorization` が重複しています"
                ),
            ));
        }
        let is_needed = login.is_some() || !headers.is_empty();
        Ok(is_needed.then_some(Self { login, headers }))
    }
}

impl Blog {
    /// Adds the credentials to a request if it goes to a server that the config names.
    pub(super) fn authorized(&self, mut request: Request, url: &Url) -> Result<Request, MissingSecret> {
        let Some(access) = &self.access else { return Ok(request) };
        let mut own = [Some(&self.url), self.feed.as_ref(), self.sitemap.as_ref()].into_iter().flatten();
        if !own.any(|own| own.origin() == url.origin()) {
            return Ok(request);
        }
        if let Some((user, password)) = &access.login {
            let password = password.reveal()?.expose().into();
            request = request.credential(&Credential::Basic { user: user.clone(), password });
        }
        for (name, value) in &access.headers {
            request = request.secret_header(name.clone(), &value.reveal()?.expose().into());
        }
        Ok(request)
    }
}
