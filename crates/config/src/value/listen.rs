//! A listen address, with hints for common mistakes.

use std::net::{IpAddr, SocketAddr};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::BadValue;
use stdx::phrase;

/// The default port of the pages.
pub const PORT: u16 = 8741;

fn parse(text: &str) -> Result<SocketAddr, BadValue> {
    text.parse().map_err(|_| {
        let meant = match (text.parse::<IpAddr>(), text.strip_prefix("localhost")) {
            (Ok(ip), _) => SocketAddr::from((ip, PORT)).to_string(),
            (_, Some(rest)) if rest.starts_with(':') => format!("127.0.0.1{rest}"),
            _ => format!("127.0.0.1:{PORT}"),
        };
        BadValue::new(phrase!(
            "`{text}` is not an address to listen on",
            "`{text}` は待ち受けるアドレスではありません"
        ))
        .with_hint(phrase!(
            "write an IP address and a port: \"{meant}\"",
            "IP アドレスとポートを書きます（例：\"{meant}\"）"
        ))
    })
}

/// Parses a listen address.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(|bad| D::Error::custom(bad.for_serde()))
}

/// Parses an optional listen address.
pub fn deserialize_if_given<'de, D>(deserializer: D) -> Result<Option<SocketAddr>, D::Error>
where
    D: Deserializer<'de>,
{
    deserialize(deserializer).map(Some)
}
