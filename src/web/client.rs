//! The client of a request: the peer of the connection, or the address that a trusted proxy names.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;

use crate::config::value::Network;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) ip: IpAddr,
    /// Whether the request comes through a trusted proxy.
    pub(super) is_proxied: bool,
    /// Whether that proxy reports TLS.
    pub(super) is_https: bool,
}

impl Client {
    /// Reads the headers of proxies, if the connection comes from a `trusted` one.
    ///
    /// The last address in `X-Forwarded-For` that is not a trusted proxy counts: earlier ones may be forged by the
    /// client. The header `Forwarded` is not read: hardly any proxy writes it, and one that does not write it passes on
    /// what the client wrote.
    pub(super) fn identify(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> Self {
        let is_trusted = |ip: IpAddr| trusted.iter().any(|network| network.contains(ip));
        let mut ip = peer.to_canonical();
        if !is_trusted(ip) {
            return Self { ip, is_proxied: false, is_https: false };
        }
        for named in list(headers, "x-forwarded-for").into_iter().rev() {
            let Some(named) = parse(named) else { break };
            ip = named;
            if !is_trusted(ip) {
                break;
            }
        }
        let proto = list(headers, "x-forwarded-proto");
        let is_https = proto.last().is_some_and(|proto| proto.eq_ignore_ascii_case("https"));
        Self { ip, is_proxied: true, is_https }
    }
}

/// The values of a header that may come more than once and have several values each.
fn list<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).collect()
}

/// An address, with or without a port.
fn parse(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    with_port().or_else(|| bare.parse().ok()).map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn identify(peer: &str, lines: &[(&'static str, &str)]) -> Client {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let trusted = ["127.0.0.1".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
        Client::identify(peer.parse().unwrap(), &headers, &trusted)
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let said = [("x-forwarded-for", "198.51.100.7"), ("x-forwarded-proto", "https")];
        let direct = identify("192.0.2.1", &said);
        assert_eq!(direct.ip.to_string(), "192.0.2.1");
        assert!(!direct.is_proxied && !direct.is_https);
        let proxied = identify("::ffff:127.0.0.1", &said);
        assert_eq!(proxied.ip.to_string(), "198.51.100.7");
        assert!(proxied.is_proxied && proxied.is_https);
    }

    #[test]
    fn what_a_stranger_wrote_before_the_proxy_counts_for_nothing() {
        for (lines, expected) in [
            (&[("x-forwarded-for", "1.1.1.1, 198.51.100.7, 10.0.0.9")][..], "198.51.100.7"),
            (&[("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "198.51.100.7")], "198.51.100.7"),
            (&[("x-forwarded-for", "198.51.100.7:4711")], "198.51.100.7"),
            (&[("x-forwarded-for", "[2001:db8::1]:4711")], "2001:db8::1"),
            (&[("x-forwarded-for", "198.51.100.7, unknown")], "127.0.0.1"),
            (&[("x-forwarded-for", "10.0.0.1, 10.0.0.2")], "10.0.0.1"),
            (&[("forwarded", "for=1.1.1.1")], "127.0.0.1"),
            (&[], "127.0.0.1"),
        ] {
            assert_eq!(identify("127.0.0.1", lines).ip.to_string(), expected, "{lines:?}");
        }
    }
}
