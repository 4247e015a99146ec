//! Creates HTTP clients: one TLS configuration, guarded DNS, no proxies from the environment, no cookies.
//!
//! `llm` and `channel` use these clients, too, so that the guard applies to them.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::HeaderValue;
use rustls::client::Resumption;
use tokio::sync::Semaphore;
use url::Url;

use super::error::Error;
use super::guard::{self, AllowPrivate};
use super::tls;

/// DNS lookups at the same time; each blocks a thread.
const LOOK_UPS: usize = 64;
/// Cached clients: one pair for each `allow_private` set, of which configs have few.
const CLIENTS: usize = 64;
/// Higher than our documented limit, so that ours is reached first and reported.
const HTTP2_HEADERS: u32 = 256 * 1024;
/// Idle connections are closed after this time; many servers do so after five seconds.
const IDLE: Duration = Duration::from_secs(4);

/// The settings of clients.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The `User-Agent` header, with a way to reach the operator.
    pub user_agent: String,
    /// A PEM file of further certificate authorities to trust.
    pub extra_ca: Option<PathBuf>,
    /// A proxy for all requests; it resolves names, and has to check them, itself.
    pub proxy: Option<Url>,
    /// How names are resolved.
    pub names: Names,
}

impl Default for ClientConfig {
    fn default() -> Self {
        let user_agent = concat!("tsuzuki/", env!("CARGO_PKG_VERSION")).to_owned();
        Self { user_agent, extra_ca: None, proxy: None, names: Names::System }
    }
}

/// How names are resolved.
#[derive(Debug, Clone, Default)]
pub enum Names {
    /// The system's resolver.
    #[default]
    System,
    /// A fixed table; other names do not exist.
    Fixed(Arc<HashMap<String, Vec<IpAddr>>>),
}

/// Creates HTTP clients; cheap to clone.
#[derive(Debug, Clone)]
pub struct Clients(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: ClientConfig,
    /// Created with the first client: the system's certificates are hundreds of files, and most commands fetch nothing.
    tls: OnceLock<rustls::ClientConfig>,
    look_ups: Arc<Semaphore>,
    made: Mutex<HashMap<AllowPrivate, Pair>>,
}

/// The clients for one `allow_private` set: one keeps connections open, the other closes them after use.
#[derive(Debug, Clone)]
struct Pair {
    keeping: reqwest::Client,
    closing: reqwest::Client,
}

impl Clients {
    /// Creates the factory; fails if the settings are invalid.
    pub fn new(config: ClientConfig) -> Result<Self, Error> {
        let is_plain = config.extra_ca.is_none()
            && config.proxy.is_none()
            && HeaderValue::from_str(&config.user_agent).is_ok();
        let look_ups = Arc::new(Semaphore::new(LOOK_UPS));
        let inner = Inner { config, tls: OnceLock::new(), look_ups, made: Mutex::default() };
        let clients = Self(Arc::new(inner));
        if !is_plain {
            clients.build(&AllowPrivate::none(), true)?;
        }
        Ok(clients)
    }

    fn tls(&self) -> Result<rustls::ClientConfig, Error> {
        if let Some(tls) = self.0.tls.get() {
            return Ok(tls.clone());
        }
        let made = tls::config(self.0.config.extra_ca.as_deref())?;
        Ok(self.0.tls.get_or_init(|| made).clone())
    }

    /// The TLS configuration for a mail server; `ca_file` is a PEM file of a further authority to trust.
    pub fn mail_tls(&self, ca_file: Option<&Path>) -> Result<rustls::ClientConfig, Error> {
        let mut config = if ca_file.is_some() { tls::config(ca_file)? } else { self.tls()? };
        config.alpn_protocols.clear();
        Ok(config)
    }

    /// A client for requests to `url`, which is checked first; it follows no redirects and decodes nothing.
    ///
    /// Call it for every address: the client's own guard sees only names, no literal addresses or ports.
    pub fn client_for(&self, url: &Url, allow: &AllowPrivate) -> Result<reqwest::Client, Error> {
        guard::check_url(url, allow)?;
        self.pick(url, allow, true)
    }

    /// Resolves `host` and checks the addresses, for protocols other than HTTP.
    pub async fn resolve(
        &self,
        host: &str,
        port: u16,
        allow: &AllowPrivate,
    ) -> Result<Vec<SocketAddr>, Error> {
        let allow = allow.for_port(port);
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let addresses = match bare.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => {
                let inner = &self.0;
                let look_ups = Arc::clone(&inner.look_ups);
                let names = inner.config.names.clone();
                Guarded { names, look_ups, allow: allow.clone(), proxy_host: None }
                    .look_up(host)
                    .await
                    .map_err(|error| Error::Dns { host: host.to_owned(), why: error.to_string().into() })?
            }
        };
        guard::check_resolved(host, &addresses, &allow)?;
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }

    /// The client for an address that was checked.
    pub(super) fn pick(&self, url: &Url, allow: &AllowPrivate, keep: bool) -> Result<reqwest::Client, Error> {
        let allow = allow.for_port(url.port_or_known_default().unwrap_or(80));
        let mut made = self.0.made.lock();
        let pair = match made.get(&allow) {
            Some(pair) => pair,
            None => {
                if made.len() >= CLIENTS {
                    made.clear();
                }
                let pair = Pair { keeping: self.build(&allow, true)?, closing: self.build(&allow, false)? };
                made.entry(allow).or_insert(pair)
            }
        };
        Ok(if keep { pair.keeping.clone() } else { pair.closing.clone() })
    }

    fn build(&self, allow: &AllowPrivate, keep: bool) -> Result<reqwest::Client, Error> {
        let inner = &self.0;
        let mut tls = self.tls()?;
        tls.resumption = Resumption::in_memory_sessions(256);
        let proxy_host = inner.config.proxy.as_ref().and_then(Url::host_str).map(str::to_owned);
        let resolver = Guarded {
            names: inner.config.names.clone(),
            look_ups: Arc::clone(&inner.look_ups),
            allow: allow.clone(),
            proxy_host,
        };
        let mut builder = reqwest::Client::builder()
            .user_agent(&inner.config.user_agent)
            .tls_backend_preconfigured(tls)
            .dns_resolver(resolver)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(Duration::from_secs(15))
            .pool_max_idle_per_host(if keep { 4 } else { 0 })
            .pool_idle_timeout(IDLE)
            .tcp_keepalive(None)
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http2_max_header_list_size(HTTP2_HEADERS)
            .http2_initial_stream_window_size(256 * 1024)
            .http2_initial_connection_window_size(1024 * 1024);
        if let Some(proxy) = &inner.config.proxy {
            let proxy = reqwest::Proxy::all(proxy.clone()).map_err(|error| setup(&error))?;
            builder = builder.proxy(proxy);
        }
        builder.build().map_err(|error| setup(&error))
    }
}

fn setup(error: &reqwest::Error) -> Error {
    Error::Setup { why: super::cause::deepest(error) }
}

/// Resolves names and rejects those with addresses that are not allowed.
#[derive(Debug, Clone)]
struct Guarded {
    names: Names,
    look_ups: Arc<Semaphore>,
    allow: AllowPrivate,
    proxy_host: Option<String>,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let addresses = this.look_up(host).await?;
            if this.proxy_host.as_deref() != Some(host) {
                guard::check_resolved(host, &addresses, &this.allow)?;
            }
            Ok(Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

impl Guarded {
    async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if guard::is_localhost(host) {
            return Ok(guard::LOOPBACK.to_vec());
        }
        let found = match &self.names {
            Names::Fixed(table) => table.get(host.trim_end_matches('.')).cloned().unwrap_or_default(),
            Names::System => {
                // The permit is released when the thread has finished, even if nobody waits for the result any more.
                let permit = Arc::clone(&self.look_ups).acquire_owned().await.map_err(io::Error::other)?;
                let host = host.to_owned();
                tokio::task::spawn_blocking(move || {
                    let found =
                        (host.as_str(), 0).to_socket_addrs().map(|all| all.map(|at| at.ip()).collect());
                    drop(permit);
                    found
                })
                .await??
            }
        };
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_that_makes_no_client_is_told_at_once() {
        let bad = ClientConfig { user_agent: "line\nbreak".to_owned(), ..ClientConfig::default() };
        assert!(matches!(Clients::new(bad), Err(Error::Setup { .. })));
    }

    #[test]
    fn clients_are_shared_by_equal_permissions_and_their_number_is_bounded() {
        let clients = Clients::new(ClientConfig::default()).unwrap();
        let url = Url::parse("http://a.example/").unwrap();
        let count = || clients.0.made.lock().len();
        for entries in [["10.0.0.1", "b.example"], ["b.example", "10.0.0.1"], ["b.example:80", "10.0.0.1"]] {
            clients.client_for(&url, &AllowPrivate::parse(&entries).unwrap()).unwrap();
        }
        assert_eq!(count(), 1);
        for last in 0..=CLIENTS {
            let allow = AllowPrivate::parse(&[format!("10.1.0.{last}")]).unwrap();
            clients.client_for(&url, &allow).unwrap();
        }
        assert!(count() <= CLIENTS);
    }
}
