//! `[web]`: where `serve` listens, and how others reach its pages.

use std::net::{Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::Deserialize;
use stdx::phrase;

use super::diagnostic::Problems;
use super::kind::Kind;
use super::overrides::EnvOverride;
use super::secret::Secret;
use super::section::Section;
use super::value::{HttpUrl, Network, listen};

/// The keys of `[web]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Web {
    /// Where the dashboard listens; a non-loopback address needs `[web.auth]`.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "listen::deserialize")]
    pub listen: SocketAddr,
    /// Where the prompt pages listen besides; it may be public and serves nothing else.
    #[schemars(with = "Option<String>")]
    #[serde(deserialize_with = "listen::deserialize_if_given")]
    pub prompt_listen: Option<SocketAddr>,
    /// How readers of mails reach the prompt pages. `COPY_PAGE_BASE_URL` overrides it.
    pub public_url: Option<HttpUrl>,
    /// Proxies in front of the pages: only they are believed about who asks, and from where.
    pub trusted_proxies: Vec<Network>,
    /// The header in which such a proxy names whoever has logged in there, such as `Remote-User`.
    pub sso_header: Option<String>,
    /// Names under which the dashboard is reached, besides `localhost`, its own address and that of `public_url`.
    pub allowed_hosts: Vec<String>,
    /// Whether jobs can be added to this file on the dashboard; those who may only read never can.
    pub edit: bool,
    /// Who may see the dashboard.
    pub auth: Option<WebAuth>,
}

/// `[web.auth]`: who may see the dashboard.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebAuth {
    /// The user name.
    pub user: String,
    /// The password, or its hash as `tsuzuki config hash-password` prints it.
    pub password: Secret,
}

/// Problems of combined settings.
fn check(section: &Section) -> Problems {
    let Ok(web) = section.keys::<Web>() else { return Problems::default() };
    let is_header = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let problem = match &web.sso_header {
        Some(name) if !is_header(name) => section
            .problem(
                "sso_header",
                phrase!("`{name}` is not the name of a header", "`{name}` はヘッダー名ではありません"),
            )
            .with_hint(phrase!("write one such as \"Remote-User\"", "\"Remote-User\" のように書きます")),
        Some(_) if web.trusted_proxies.is_empty() => section
            .problem(
                "sso_header",
                phrase!(
                    "anybody could write this header: no proxy is trusted to",
                    "信頼するプロキシの指定がないため、誰でもこのヘッダーを偽装できます"
                ),
            )
            .with_hint(phrase!(
                "name the proxy that logs people in in `trusted_proxies`, such as \"127.0.0.1\"",
                "ログインを担うプロキシを `trusted_proxies` に指定してください（例：\"127.0.0.1\"）"
            )),
        _ => return Problems::default(),
    };
    problem.into()
}

impl Default for Web {
    fn default() -> Self {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, listen::PORT));
        Self {
            listen,
            prompt_listen: None,
            public_url: None,
            trusted_proxies: Vec::new(),
            sso_header: None,
            allowed_hosts: Vec::new(),
            edit: true,
            auth: None,
        }
    }
}

impl Web {
    /// The table, for the list of kinds.
    pub const KIND: Kind = Kind::web::<Self>()
        .with_env(&[EnvOverride::new("COPY_PAGE_BASE_URL", "public_url", |value, _| {
            value.parse().map(|_: HttpUrl| value.into())
        })])
        .with_check(check);

    /// Whether links to prompt pages work on this machine only.
    pub fn links_are_local(&self) -> bool {
        let is_local = |ip: std::net::IpAddr| ip.to_canonical().is_loopback() || ip.is_unspecified();
        match self.public_url.as_ref().and_then(|base| base.host()) {
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
