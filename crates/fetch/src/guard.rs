//! The address guard: which hosts we may connect to, checked before every hop and for every resolved address.
//!
//! Only addresses of the public internet are allowed, unless `allow_private` of the job contains them.
//! The address is checked as the `url` crate parses it, which is also how it is connected to: octal, hexadecimal, short
//! and full-width spellings are normalised by then.

use std::collections::BTreeMap;
use std::net::IpAddr;

use stdx::phrase;
use stdx::phrase::Phrase;
use url::{Host, Url};

pub use super::allow::{AllowPrivate, NotAnEntry};
use super::error::Error;
use super::ranges::{Reach, reach, special_phrase};

/// Why an address or a host was rejected, and what would allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{target} is refused: {why}")]
pub struct Denied {
    /// The host or address.
    pub target: Phrase,
    /// The rule, in words.
    pub why: Phrase,
    /// The `allow_private` entry that would allow it, if any.
    pub allow: Option<String>,
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        Error::Blocked { target: denied.target, why: denied.why, allow: denied.allow }
    }
}

/// The error for an address with another scheme.
pub(super) fn bad_scheme(url: &Url) -> Phrase {
    phrase!(
        "the scheme `{scheme}` is not http or https",
        "スキーム `{scheme}` は http でも https でもありません",
        scheme = url.scheme()
    )
}

/// Checks everything about `url` that does not need DNS: scheme, port, and a literal address.
pub(super) fn check_url(url: &Url, allow: &AllowPrivate) -> Result<(), Error> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::BadUrl { why: bad_scheme(url) });
    }
    let Some(host) = url.host() else {
        return Err(Error::BadUrl { why: phrase!("it has no host", "ホストがありません") });
    };
    let port = url.port_or_known_default().unwrap_or(80);
    if port == 0 || (BAD_PORTS.contains(&port) && !allow.names_port(port)) {
        return Err(Denied {
            target: phrase!("port {port} of {host}", "{host} のポート {port}", host = host.to_string()),
            why: phrase!("that port belongs to another protocol", "別のプロトコル用のポートです"),
            allow: (port != 0).then(|| format!("{host}:{port}")),
        }
        .into());
    }
    let address = match host {
        Host::Domain(_) => return Ok(()),
        Host::Ipv4(address) => IpAddr::V4(address),
        Host::Ipv6(address) => IpAddr::V6(address),
    };
    let refused = match reach(address) {
        Reach::Global => None,
        Reach::Translated(_) => Some("an address of a NAT64 translator"),
        Reach::Special(what) => Some(what),
    };
    match refused {
        Some(what) if !allow.for_port(port).names_address(address) => {
            let entry = address.to_canonical().to_string();
            Err(denied(&address.to_string(), what, address, entry).into())
        }
        _ => Ok(()),
    }
}

/// Checks the addresses of `host`; `allow` contains only entries that apply to the port.
///
/// One address that is not allowed rejects the name: a public name that also resolves to a private address is an attack
/// or a mistake. DNS64 networks return every IPv4 host in `64:ff9b::/96`; there, the embedded address is checked.
pub(super) fn check_resolved(host: &str, addresses: &[IpAddr], allow: &AllowPrivate) -> Result<(), Denied> {
    if allow.names_host(host) {
        return Ok(());
    }
    for address in addresses {
        let refused = match reach(*address) {
            Reach::Global => None,
            Reach::Translated(inner) => match reach(IpAddr::V4(inner)) {
                Reach::Special(what) => Some(what),
                _ => None,
            },
            Reach::Special(what) => Some(what),
        };
        if let Some(what) = refused
            && !allow.names_address(*address)
        {
            return Err(denied(host, what, *address, host.to_owned()));
        }
    }
    Ok(())
}

fn denied(target: &str, what: &'static str, address: IpAddr, entry: String) -> Denied {
    let why = phrase!(
        "{address} is {what}, not a place on the open internet",
        "{address} は{what}で、インターネット上の公開アドレスではありません",
        address = address.to_string(),
        what = special_phrase(what)
    );
    Denied { target: target.into(), why, allow: Some(entry) }
}

/// Names that always mean this machine, whatever a resolver says (RFC 6761).
pub(super) fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let last = host.rsplit('.').next().unwrap_or(host);
    last.eq_ignore_ascii_case("localhost")
}

/// The decision of the guard about an address.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct GuardVerdict {
    pub verdict: Ruling,
    pub why: Phrase,
}

/// Whether we may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruling {
    Allow,
    Deny,
}

/// Decides about `url`, given the results of name resolution in `resolve`; uses no network.
pub fn opinion(url: &str, resolve: &BTreeMap<String, Vec<IpAddr>>, allow: &AllowPrivate) -> GuardVerdict {
    match judge(url, resolve, allow) {
        Ok(why) => GuardVerdict { verdict: Ruling::Allow, why },
        Err(error) => GuardVerdict { verdict: Ruling::Deny, why: error.phrase() },
    }
}

fn judge(text: &str, resolve: &BTreeMap<String, Vec<IpAddr>>, allow: &AllowPrivate) -> Result<Phrase, Error> {
    let url = Url::parse(text.trim()).map_err(|error| Error::BadUrl { why: error.to_string().into() })?;
    check_url(&url, allow)?;
    let Some(Host::Domain(host)) = url.host() else {
        let host = url.host_str().unwrap_or_default();
        return Ok(phrase!("{host} may be reached", "{host} に接続できます"));
    };
    let bare = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let addresses = if is_localhost(host) {
        LOOPBACK.to_vec()
    } else {
        let as_unicode = idna::domain_to_unicode(host).0;
        resolve
            .iter()
            .find(|(name, _)| bare(name) == bare(host) || bare(name) == bare(&as_unicode))
            .map(|(_, addresses)| addresses.clone())
            .filter(|addresses| !addresses.is_empty())
            .ok_or_else(|| Error::Dns {
                host: host.to_owned(),
                why: phrase!("it does not resolve", "名前解決できません"),
            })?
    };
    check_resolved(host, &addresses, &allow.for_port(url.port_or_known_default().unwrap_or(80)))?;
    Ok(phrase!("every address of {host} may be reached", "{host} のどのアドレスにも接続できます"))
}

/// The addresses of localhost names.
pub(super) const LOOPBACK: [IpAddr; 2] =
    [IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)];

/// Ports of other protocols that could misinterpret an HTTP request; the list of browsers.
const BAD_PORTS: &[u16] = &[
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
    109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
    526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
    3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(entries: &[&str]) -> AllowPrivate {
        AllowPrivate::parse(entries).unwrap()
    }

    fn names(pairs: &[(&str, &[&str])]) -> BTreeMap<String, Vec<IpAddr>> {
        pairs
            .iter()
            .map(|(host, ips)| ((*host).to_owned(), ips.iter().map(|ip| ip.parse().unwrap()).collect()))
            .collect()
    }

    fn ruling(url: &str, entries: &[&str]) -> Ruling {
        let resolve = names(&[
            ("public.example", &["93.184.215.14", "2606:4700::1111"]),
            ("inside.example", &["10.1.2.3"]),
            ("mixed.example", &["93.184.215.14", "127.0.0.1"]),
            ("dns64.example", &["64:ff9b::808:808"]),
            ("dns64-inside.example", &["64:ff9b::a00:1"]),
            ("xn--r8jz45g.example", &["93.184.215.14"]),
        ]);
        opinion(url, &resolve, &allow(entries)).verdict
    }

    #[test]
    fn no_spelling_of_a_private_address_passes() {
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://127.0.1/",
            "http://0177.0.0.1/",
            "http://0x7f.0.0.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://127.0.0.1:80/",
            "http://1.1.1.1@127.0.0.1/",
            "http://1.1.1.1:80@127.0.0.1:80/",
            "http://127.0.0.1\\@1.1.1.1/",
            "http://127.0.0.1#@1.1.1.1/",
            "http://１２７.０.０.１/",
            "http://127。0。0。1/",
            "http://①②⑦.⓪.⓪.①/",
            "http://%31%32%37.0.0.1/",
            "http://127.0.0.1%2e/",
            "http:/\\127.0.0.1/",
            "http:127.0.0.1",
            "HTTP://0/",
            "http://0.0.0.0/",
            "http://10.0.0.1/",
            "http://169.254.169.254/latest/meta-data/",
            "http://0xa9fea9fe/",
            "http://[::1]/",
            "http://[::]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::127.0.0.1]/",
            "http://[64:ff9b::8.8.8.8]/",
            "http://[2002:7f00:1::]/",
            "http://[2001:0:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fd12:3456::1]/",
            "http://localhost/",
            "http://LocalHost./",
            "http://a.b.localhost/",
            "http://ｌｏｃａｌｈｏｓｔ/",
            "http://inside.example/",
            "http://INSIDE.example./",
            "http://mixed.example/",
            "http://dns64-inside.example/",
            "http://unknown.example/",
            "http://public.example:25/",
            "http://public.example:0/",
            "http://127.0.0.1.:8080/",
            "http://[fe80::1%25eth0]/",
            "http://256.256.256.256/",
            "http:///",
            "file:///etc/passwd",
            "ftp://public.example/",
            "gopher://public.example/",
            "data:text/plain,x",
            "javascript:alert(1)",
            "//public.example/",
            "",
        ] {
            assert_eq!(ruling(url, &[]), Ruling::Deny, "{url}");
        }
    }

    #[test]
    fn the_open_internet_is_open() {
        for url in [
            "http://public.example/",
            "https://PUBLIC.example.:8443/x",
            "https://user:secret@public.example/",
            "http://1.1.1.1/",
            "http://0x01010101/",
            "http://[2606:4700::1111]/",
            "http://dns64.example/",
            "http://例え.example/",
            " https://public.example/ ",
        ] {
            assert_eq!(ruling(url, &[]), Ruling::Allow, "{url}");
        }
    }

    #[test]
    fn an_entry_allows_what_it_names_and_nothing_else() {
        use Ruling::{Allow, Deny};
        for (entry, url, expected) in [
            ("127.0.0.1", "http://127.0.0.1:8080/", Allow),
            ("127.0.0.1", "http://127.0.0.2/", Deny),
            ("127.0.0.1", "http://0x7f.1/", Allow),
            ("127.0.0.1", "http://[::ffff:127.0.0.1]/", Allow),
            ("127.0.0.1", "http://[::1]/", Deny),
            ("127.0.0.1", "http://localhost/", Deny),
            ("localhost", "http://localhost/", Allow),
            ("localhost", "http://127.0.0.1/", Deny),
            ("127.0.0.1:8080", "http://127.0.0.1:8080/", Allow),
            ("127.0.0.1:8080", "http://127.0.0.1:8081/", Deny),
            ("[::1]:8080", "http://[::1]:8080/", Allow),
            ("[::1]:8080", "http://[::1]/", Deny),
            ("::1", "http://[::1]/", Allow),
            ("10.0.0.0/8", "http://inside.example/", Allow),
            ("10.0.0.0/8", "http://mixed.example/", Deny),
            ("inside.example", "http://inside.example./", Allow),
            ("Inside.Example.", "http://inside.example/", Allow),
            ("inside.example:443", "https://inside.example/", Allow),
            ("inside.example:443", "http://inside.example/", Deny),
            ("*.example", "http://inside.example/", Allow),
            ("*.example", "http://mixed.example/", Allow),
            ("*.ample", "http://inside.example/", Deny),
            ("inside.example", "http://10.1.2.3/", Deny),
            ("0.0.0.0/0", "http://169.254.169.254/", Allow),
            ("0.0.0.0/0", "http://public.example:25/", Deny),
            ("public.example:25", "http://public.example:25/", Allow),
            ("127.0.0.1", "file:///etc/passwd", Deny),
        ] {
            assert_eq!(ruling(url, &[entry]), expected, "{entry} for {url}");
        }
    }

    #[test]
    fn a_refusal_names_the_entry_that_would_allow_it() {
        let url = Url::parse("http://0x7f.1:8080/").unwrap();
        let error = check_url(&url, &AllowPrivate::none()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "127.0.0.1 is refused: 127.0.0.1 is this machine (loopback), not a place on the open internet"
        );
        assert_eq!(
            error.hint().unwrap(),
            "if you trust it, add `allow_private = [\"127.0.0.1\"]` where its address stands in the config: \
             [[job]], [channel.NAME] or [llm.NAME]"
        );
    }
}
