//! `[web]`: where `serve` listens, and how others reach its pages.

use std::net::{Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::Deserialize;

use super::kind::Kind;
use super::overrides::EnvOverride;
use super::secret::Secret;
use super::value::{HttpUrl, listen};

/// The keys of `[web]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Web {
    /// Where the dashboard listens; an address beyond this machine needs `[web.auth]`.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "listen::deserialize")]
    pub listen: SocketAddr,
    /// Where the prompt pages listen besides; it may be public and serves nothing else.
    #[schemars(with = "Option<String>")]
    #[serde(deserialize_with = "listen::deserialize_if_given")]
    pub prompt_listen: Option<SocketAddr>,
    /// How readers of mails reach the prompt pages. `COPY_PAGE_BASE_URL` overrides it.
    pub public_url: Option<HttpUrl>,
    /// Who may see the dashboard.
    pub auth: Option<WebAuth>,
}

/// `[web.auth]`: who may see the dashboard.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebAuth {
    /// The user name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

impl Default for Web {
    fn default() -> Self {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, listen::PORT));
        Self { listen, prompt_listen: None, public_url: None, auth: None }
    }
}

impl Web {
    /// The table, for the list of kinds.
    pub const KIND: Kind =
        Kind::web::<Self>().with_env(&[EnvOverride::new("COPY_PAGE_BASE_URL", "public_url", |value, _| {
            value.parse().map(|_: HttpUrl| value.into())
        })]);

    /// Whether links to prompt pages work on this machine alone.
    pub fn links_are_local(&self) -> bool {
        let is_local = |ip: std::net::IpAddr| ip.to_canonical().is_loopback() || ip.is_unspecified();
        match self.public_url.as_ref().and_then(|base| base.url().host()) {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(url::Host::Ipv4(ip)) => is_local(ip.into()),
            Some(url::Host::Ipv6(ip)) => is_local(ip.into()),
            None => is_local(self.prompt_listen.unwrap_or(self.listen).ip()),
        }
    }

    /// The address of a prompt page; without `public_url` it works on this machine only.
    pub fn prompt_url(&self, token: &str) -> String {
        match &self.public_url {
            Some(base) => format!("{}/p/{token}", base.as_str().trim_end_matches('/')),
            None => format!("http://{}/p/{token}", self.prompt_listen.unwrap_or(self.listen)),
        }
    }
}
