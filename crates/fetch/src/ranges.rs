//! Which addresses belong to the public internet: a table of the special-purpose ranges.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use ipnet::IpNet;
use stdx::phrase;
use stdx::phrase::Phrase;

/// A range of addresses, or a single one.
pub(super) fn range(text: &str) -> Option<IpNet> {
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// A public address.
    Global,
    /// It embeds an IPv4 address behind a translator (RFC 6052), as in DNS64.
    Translated(Ipv4Addr),
    /// It has a special purpose, in words that follow "it is".
    Special(&'static str),
}

/// A special purpose in both languages, in words that follow "it is".
pub(super) fn special_phrase(what: &'static str) -> Phrase {
    macro_rules! words {
        ($($en:literal => $ja:literal,)+) => {
            match what {
                $($en => phrase!($en, $ja),)+
                other => Phrase::verbatim(other),
            }
        };
    }
    words! {
        "an address of \"this network\"" => "「このネットワーク」のアドレス",
        "a private address" => "プライベートアドレス",
        "a shared address behind a provider's NAT" => "プロバイダーの NAT で共有されるアドレス",
        "this machine (loopback)" => "このマシン自身（ループバック）",
        "a link-local address" => "リンクローカルアドレス",
        "a site-local address" => "サイトローカルアドレス",
        "an address for protocol assignments" => "プロトコル用に予約されたアドレス",
        "a documentation address" => "文書用のアドレス",
        "a 6to4 relay" => "6to4 リレー",
        "a 6to4 tunnel" => "6to4 トンネル",
        "a Teredo tunnel" => "Teredo トンネル",
        "a benchmarking address" => "ベンチマーク用のアドレス",
        "a multicast address" => "マルチキャストアドレス",
        "the broadcast address" => "ブロードキャストアドレス",
        "a reserved address" => "予約済みのアドレス",
        "the unspecified address" => "未指定アドレス",
        "an IPv4 address in IPv6 clothes (mapped)" => "IPv6 の形をした IPv4 アドレス（mapped）",
        "an IPv4 address in IPv6 clothes (translated)" => "IPv6 の形をした IPv4 アドレス（translated）",
        "an IPv4 address in IPv6 clothes (compatible)" => "IPv6 の形をした IPv4 アドレス（compatible）",
        "an address of a NAT64 translator" => "NAT64 変換用のアドレス",
        "an address of a local NAT64 translator" => "ローカルな NAT64 変換用のアドレス",
        "a discard-only address" => "破棄専用のアドレス",
        "a dummy prefix" => "ダミーのプレフィックス",
        "a segment-routing address" => "セグメントルーティング用のアドレス",
    }
}

/// Public exceptions within special ranges, then the ranges; the first match decides. Only `2000::/3` of IPv6 is in
/// public use; everything else ends in the last row.
const RANGES: &[(&str, Option<&str>)] = &[
    ("192.0.0.9/32", None),
    ("192.0.0.10/32", None),
    ("0.0.0.0/8", Some("an address of \"this network\"")),
    ("10.0.0.0/8", Some("a private address")),
    ("100.64.0.0/10", Some("a shared address behind a provider's NAT")),
    ("127.0.0.0/8", Some("this machine (loopback)")),
    ("169.254.0.0/16", Some("a link-local address")),
    ("172.16.0.0/12", Some("a private address")),
    ("192.0.0.0/24", Some("an address for protocol assignments")),
    ("192.0.2.0/24", Some("a documentation address")),
    ("192.88.99.0/24", Some("a 6to4 relay")),
    ("192.168.0.0/16", Some("a private address")),
    ("198.18.0.0/15", Some("a benchmarking address")),
    ("198.51.100.0/24", Some("a documentation address")),
    ("203.0.113.0/24", Some("a documentation address")),
    ("224.0.0.0/4", Some("a multicast address")),
    ("255.255.255.255/32", Some("the broadcast address")),
    ("240.0.0.0/4", Some("a reserved address")),
    ("::/128", Some("the unspecified address")),
    ("::1/128", Some("this machine (loopback)")),
    ("::ffff:0:0/96", Some("an IPv4 address in IPv6 clothes (mapped)")),
    ("::ffff:0:0:0/96", Some("an IPv4 address in IPv6 clothes (translated)")),
    ("::/96", Some("an IPv4 address in IPv6 clothes (compatible)")),
    ("64:ff9b:1::/48", Some("an address of a local NAT64 translator")),
    ("100::/64", Some("a discard-only address")),
    ("100:0:0:1::/64", Some("a dummy prefix")),
    ("2001:1::1/128", None),
    ("2001:1::2/128", None),
    ("2001:1::3/128", None),
    ("2001:3::/32", None),
    ("2001:4:112::/48", None),
    ("2001:20::/28", None),
    ("2001:30::/28", None),
    ("2001::/32", Some("a Teredo tunnel")),
    ("2001:2::/48", Some("a benchmarking address")),
    ("2001::/23", Some("an address for protocol assignments")),
    ("2001:db8::/32", Some("a documentation address")),
    ("2002::/16", Some("a 6to4 tunnel")),
    ("3ffe::/16", Some("a reserved address")),
    ("3fff::/20", Some("a documentation address")),
    ("5f00::/16", Some("a segment-routing address")),
    ("fc00::/7", Some("a private address")),
    ("fe80::/10", Some("a link-local address")),
    ("fec0::/10", Some("a site-local address")),
    ("ff00::/8", Some("a multicast address")),
    ("2000::/3", None),
    ("::/0", Some("a reserved address")),
];

/// Whether `address` is public.
pub(super) fn reach(address: IpAddr) -> Reach {
    static KNOWN: LazyLock<Vec<(IpNet, Option<&str>)>> = LazyLock::new(|| {
        RANGES.iter().map(|(text, special)| (range(text).expect("every row is a range"), *special)).collect()
    });
    if let IpAddr::V6(address) = address
        && let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments()
    {
        return Reach::Translated(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    }
    let known = KNOWN.iter().find(|(range, _)| range.contains(&address));
    known.and_then(|(_, special)| *special).map_or(Reach::Global, Reach::Special)
}

#[cfg(test)]
mod tests {
    use stdx::phrase::Speech;
    use stdx::text::Language;

    use super::*;

    fn is_global(address: &str) -> bool {
        reach(address.parse().unwrap()) == Reach::Global
    }

    #[test]
    fn special_ranges_end_exactly_where_the_registry_ends_them() {
        // Each row: the last address before, the first and last inside, the first after; `-` where there is none or
        // where a neighbouring special range begins.
        for row in [
            "-               0.0.0.0         0.255.255.255   1.0.0.0",
            "9.255.255.255   10.0.0.0        10.255.255.255  11.0.0.0",
            "100.63.255.255  100.64.0.0      100.127.255.255 100.128.0.0",
            "126.255.255.255 127.0.0.0       127.255.255.255 128.0.0.0",
            "169.253.255.255 169.254.0.0     169.254.255.255 169.255.0.0",
            "172.15.255.255  172.16.0.0      172.31.255.255  172.32.0.0",
            "191.255.255.255 192.0.0.0       192.0.0.8       192.0.0.9",
            "192.0.0.10      192.0.0.11      192.0.0.255     192.0.1.0",
            "192.0.1.255     192.0.2.0       192.0.2.255     192.0.3.0",
            "192.88.98.255   192.88.99.0     192.88.99.255   192.88.100.0",
            "192.167.255.255 192.168.0.0     192.168.255.255 192.169.0.0",
            "198.17.255.255  198.18.0.0      198.19.255.255  198.20.0.0",
            "198.51.99.255   198.51.100.0    198.51.100.255  198.51.101.0",
            "203.0.112.255   203.0.113.0     203.0.113.255   203.0.114.0",
            "223.255.255.255 224.0.0.0       255.255.255.255 -",
            "-               2001::          2001:1::        2001:1::1",
            "2001:1::3       2001:1::4       2001:2:0:ffff:ffff:ffff:ffff:ffff -",
            "2001:3::        2001:4::        2001:4:111:ffff:ffff:ffff:ffff:ffff 2001:4:112::",
            "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff 2001:40:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff 2001:200::",
            "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9::",
            "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2003::",
            "3ffd:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3ffe:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000::",
            "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 4000:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff -",
            "-               ::              1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2000::",
        ] {
            let [before, first, last, after] = row.split_whitespace().collect::<Vec<_>>()[..] else {
                panic!("{row}")
            };
            assert!(before == "-" || is_global(before), "{before} is outside");
            assert!(!is_global(first), "{first} is inside");
            assert!(!is_global(last), "{last} is inside");
            assert!(after == "-" || is_global(after), "{after} is outside");
        }
    }

    #[test]
    fn every_special_purpose_has_japanese_words() {
        let japanese = Speech { language: Language::Ja, zone: None };
        for what in RANGES.iter().filter_map(|(_, what)| *what) {
            assert_ne!(japanese.phrase(&special_phrase(what)), what);
        }
    }

    #[test]
    fn ordinary_addresses_are_global() {
        for address in
            ["1.1.1.1", "8.8.8.8", "93.184.215.14", "192.31.196.1", "2606:4700::1111", "2a00:1450::1"]
        {
            assert!(is_global(address), "{address}");
        }
    }

    #[test]
    fn ipv4_in_ipv6_clothes_is_recognised() {
        for (address, words) in [
            ("::ffff:127.0.0.1", "mapped"),
            ("::ffff:8.8.8.8", "mapped"),
            ("::ffff:0:127.0.0.1", "translated"),
            ("::127.0.0.1", "compatible"),
            ("2002:7f00:1::", "6to4"),
            ("2001:0:7f00:1::", "Teredo"),
            ("64:ff9b:1::7f00:1", "local NAT64"),
            ("fd00::1", "private"),
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
            ("5f00::1", "segment"),
            ("100::1", "discard"),
        ] {
            let Reach::Special(what) = reach(address.parse().unwrap()) else { panic!("{address}") };
            assert!(what.contains(words), "{address} is {what}");
        }
        let inner = Ipv4Addr::new(127, 0, 0, 1);
        assert_eq!(reach("64:ff9b::7f00:1".parse().unwrap()), Reach::Translated(inner));
    }

    #[test]
    fn ranges_are_read_and_hold_their_own_family() {
        for (text, inside, outside) in [
            ("10.1.2.3/8", "10.255.0.1", "11.0.0.1"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("0.0.0.0/0", "1.2.3.4", "::1"),
            ("::1", "::1", "::2"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("::/0", "::1", "1.2.3.4"),
        ] {
            let range = range(text).unwrap();
            assert!(range.contains(&inside.parse::<IpAddr>().unwrap()), "{text} {inside}");
            assert!(!range.contains(&outside.parse::<IpAddr>().unwrap()), "{text} {outside}");
        }
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/+8", "10.0.0.0/", "example"] {
            assert!(range(text).is_none(), "{text}");
        }
    }
}
