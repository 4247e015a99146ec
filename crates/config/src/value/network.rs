//! Addresses of machines: one, or a range.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::{BadValue, text_value};
use stdx::phrase;

/// An address or a range of addresses: `127.0.0.1`, `10.0.0.0/8`, `fd00::/8`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Whether it contains the address; an IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let one = || text.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
        let network = text.parse::<IpNet>().or_else(|_| one()).map_err(|_| {
            BadValue::new(phrase!(
                "`{text}` is not an address or a range of addresses",
                "`{text}` は IP アドレスでもその範囲でもありません"
            ))
            .with_hint(phrase!(
                "write \"127.0.0.1\", or a range such as \"10.0.0.0/8\"",
                "\"127.0.0.1\" か、\"10.0.0.0/8\" のような範囲を書きます"
            ))
        })?;
        Ok(Self(network.trunc()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

text_value!(Network, "an address or a range of addresses", "IP アドレスまたはその範囲", "10.0.0.0/8");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_addresses_however_they_are_written() {
        for (network, inside, outside) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("127.0.0.1", "::ffff:127.0.0.1", "::1"),
            ("::ffff:10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.1.2.3/8", "10.255.0.1", "11.0.0.1"),
            ("fd00::/8", "fd12::1", "fe80::1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
        }
        for wrong in ["", "localhost", "10.0.0.0/33", "10.0.0", "*"] {
            assert!(wrong.parse::<Network>().unwrap_err().hint().is_some(), "{wrong}");
        }
    }
}
