//! The host names that the dashboard accepts: this prevents DNS rebinding, by which a name of another site points to
//! this machine.

use std::net::IpAddr;

use axum::http::header::HOST;
use axum::http::{HeaderMap, Uri};

use crate::config::Web;

#[derive(Clone, Debug)]
pub(super) struct Hosts {
    names: Vec<String>,
    listen: IpAddr,
}

impl Hosts {
    pub(super) fn new(web: &Web) -> Self {
        let public = web.public_url.iter().filter_map(|url| url.host_str());
        let allowed = web.allowed_hosts.iter().map(String::as_str);
        let names = public.chain(allowed).chain(["localhost"]);
        Self { names: names.map(name_of).collect(), listen: web.listen.ip().to_canonical() }
    }

    /// Whether the host of a request is accepted.
    pub(super) fn allow(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let named = headers.get_all(HOST).iter().collect::<Vec<_>>();
        let host = match (uri.authority(), named.as_slice()) {
            (Some(authority), _) => authority.as_str(),
            (None, [host]) => host.to_str().unwrap_or_default(),
            // Missing or repeated: no browser sends that.
            _ => return false,
        };
        let name = name_of(host);
        match name.parse::<IpAddr>() {
            Ok(ip) => self.allow_ip(ip.to_canonical()),
            Err(_) => self.names.contains(&name),
        }
    }

    /// Unlike a name, an address cannot be rebound, so if we listen on all addresses, all are accepted.
    fn allow_ip(&self, ip: IpAddr) -> bool {
        let is_named = self.names.iter().any(|name| name.parse::<IpAddr>().is_ok_and(|known| known == ip));
        is_named || ip == self.listen || ip.is_loopback() || self.listen.is_unspecified()
    }
}

/// The host without its port, without the brackets of IPv6, in lower case.
pub(super) fn name_of(host: &str) -> String {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None if host.parse::<IpAddr>().is_ok() => host,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(web: &Web, host: &str) -> bool {
        let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
        Hosts::new(web).allow(&Uri::from_static("/"), &headers)
    }

    #[test]
    fn a_name_that_points_at_this_machine_is_not_enough() {
        let web = Web {
            public_url: Some("https://tsuzuki.example/x".parse().unwrap()),
            allowed_hosts: vec!["NAS.local".into()],
            ..Web::default()
        };
        for ours in [
            "localhost",
            "localhost:8741",
            "LOCALHOST.",
            "127.0.0.1:8741",
            "[::1]:8741",
            "tsuzuki.example",
            "tsuzuki.example:443",
            "nas.local:8741",
        ] {
            assert!(allow(&web, ours), "{ours}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "evil.example:8741",
            "tsuzuki.example.evil",
            "192.0.2.1",
            "",
            ":8741",
            "127.0.0.1.evil.example",
            "user@localhost@evil.example",
            "2130706433",
        ] {
            assert!(!allow(&web, foreign), "{foreign}");
        }
        let none = HeaderMap::new();
        assert!(!Hosts::new(&web).allow(&Uri::from_static("/"), &none));
        let twice = HeaderMap::from_iter([(HOST, "localhost".parse().unwrap())]);
        let mut two = twice.clone();
        two.append(HOST, "evil.example".parse().unwrap());
        assert!(!Hosts::new(&web).allow(&Uri::from_static("/"), &two));
        assert!(!Hosts::new(&web).allow(&Uri::from_static("http://evil.example/"), &twice));
    }

    #[test]
    fn where_we_listen_on_every_address_every_address_is_ours() {
        let open = Web { listen: "0.0.0.0:8741".parse().unwrap(), ..Web::default() };
        assert!(allow(&open, "192.0.2.1:8741") && allow(&open, "[2001:db8::1]:8741"));
        assert!(!allow(&open, "evil.example"));
        let public_url = Some("https://[2001:db8::2]/".parse().unwrap());
        let named = Web { public_url, allowed_hosts: vec!["2001:db8::3".into()], ..Web::default() };
        assert!(allow(&named, "[2001:db8::2]") && allow(&named, "[2001:db8::3]:8741"));
        assert!(!allow(&named, "[2001:db8::4]"));
        let one = Web { listen: "192.0.2.1:8741".parse().unwrap(), ..Web::default() };
        assert!(allow(&one, "192.0.2.1:8741") && !allow(&one, "192.0.2.2:8741"));
    }
}
