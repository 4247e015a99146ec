//! Addresses beyond the public internet that a job may connect to: the entries of `allow_private`.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use stdx::phrase;
use stdx::phrase::Phrase;
use url::Host;

use super::ranges::range;

/// Addresses beyond the public internet that a job may connect to: `allow_private = ["127.0.0.1", "10.0.0.0/8",
/// "intra.example:8080"]`.
///
/// An entry is an address, a range, a host name or `*.name`, each with an optional port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AllowPrivate(Arc<[AllowRule]>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct AllowRule {
    what: What,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum What {
    Range(IpNet),
    Host(String),
    Below(String),
}

/// An invalid `allow_private` entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnEntry(String);

impl NotAnEntry {
    /// In one sentence.
    pub fn phrase(&self) -> Phrase {
        phrase!(
            "`{entry}` is not an address, a range such as 10.0.0.0/8, a host name or one of these with :port",
            "`{entry}` は IP アドレス、範囲（例：10.0.0.0/8）、ホスト名のいずれでもありません（それぞれ :ポート を付けられます）",
            entry = &self.0
        )
    }
}

stdx::error_in_english!(NotAnEntry);

impl AllowPrivate {
    /// Only the public internet.
    pub fn none() -> Self {
        Self::default()
    }

    /// Parses the entries of an `allow_private` list.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, NotAnEntry> {
        let mut read =
            entries.iter().map(|entry| AllowRule::parse(entry.as_ref())).collect::<Result<Vec<_>, _>>()?;
        read.sort();
        read.dedup();
        Ok(Self(read.into()))
    }

    /// The entries that apply to `port`, without their ports, for a resolver, which knows no port.
    pub(super) fn for_port(&self, port: u16) -> Self {
        if self.0.iter().all(|entry| entry.port.is_none()) {
            return self.clone();
        }
        let mut entries: Vec<AllowRule> = self
            .0
            .iter()
            .filter(|entry| entry.port.is_none_or(|only| only == port))
            .map(|entry| AllowRule { what: entry.what.clone(), port: None })
            .collect();
        entries.sort();
        entries.dedup();
        Self(entries.into())
    }

    pub(super) fn names_port(&self, port: u16) -> bool {
        self.0.iter().any(|entry| entry.port == Some(port))
    }

    pub(super) fn names_host(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        self.0.iter().any(|entry| match &entry.what {
            What::Range(_) => false,
            What::Host(name) => name == host,
            What::Below(name) => host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.')),
        })
    }

    pub(super) fn names_address(&self, address: IpAddr) -> bool {
        let plain = address.to_canonical();
        self.0.iter().any(|entry| match &entry.what {
            What::Range(range) => range.contains(&address) || range.contains(&plain),
            What::Host(_) | What::Below(_) => false,
        })
    }
}

impl AllowRule {
    fn parse(text: &str) -> Result<Self, NotAnEntry> {
        let fail = || NotAnEntry(text.to_owned());
        let text = text.trim();
        if let Some(range) = range(text) {
            return Ok(Self { what: What::Range(range), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, digits)) if !host.contains(':') || host.ends_with(']') => {
                let port = digits.parse::<u16>().ok().filter(|port| *port != 0).ok_or_else(fail)?;
                (host, Some(port))
            }
            _ => (text, None),
        };
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        if let Some(range) = range(bare) {
            return Ok(Self { what: What::Range(range), port });
        }
        let (below, name) = match host.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, host),
        };
        match Host::parse(name.strip_suffix('.').unwrap_or(name)) {
            Ok(Host::Domain(name)) if below => Ok(Self { what: What::Below(name), port }),
            Ok(Host::Domain(name)) => Ok(Self { what: What::Host(name), port }),
            _ => Err(fail()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(entries: &[&str]) -> AllowPrivate {
        AllowPrivate::parse(entries).unwrap()
    }

    #[test]
    fn entries_that_mean_nothing_are_refused() {
        for entry in
            ["", "10.0.0.0/99", "host:0", "host:99999", "a b", "http://x/", "host:port", "*.127.0.0.1"]
        {
            assert!(AllowPrivate::parse(&[entry]).is_err(), "{entry}");
        }
    }

    #[test]
    fn sets_are_equal_whatever_their_order() {
        assert_eq!(allow(&["10.0.0.1", "a.example", "a.example"]), allow(&["A.EXAMPLE", "10.0.0.1"]));
    }
}
