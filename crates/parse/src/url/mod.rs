//! Addresses: resolving against a base, and one normal form for comparison.
//!
//! There are two forms. [`normalize`]: is this the same address in another spelling?
//! [`comparison_key`]: is this the same page, even after its site moved from `http` to `https`?
//! Both are only compared; the address that is fetched and shown is the original.

mod key;

use ::url::Position;
pub use ::url::Url;

use key::without_root_dot;
pub use key::{comparison_key, normalize};
pub(crate) use key::{escaped_byte, is_unreserved};

/// Longer addresses in documents are dropped: no server accepts them.
pub const MAX_BYTES: usize = 8 * 1024;

/// `href` as an absolute address, parsed like in browsers; `None` if it is invalid.
///
/// White space is trimmed like in browsers: controls and ASCII spaces at both ends, tabs and line ends everywhere; an
/// ideographic space is part of the address.
pub fn resolve(base: Option<&Url>, href: &str) -> Option<Url> {
    match base {
        Some(base) => base.join(in_same_site(base, href).unwrap_or(href)).ok(),
        None => Url::parse(href).ok(),
    }
}

/// The path (and query) of an address on the site of `base`: nearly all links of a site are such, and parsing the same
/// host repeatedly would be most of the work.
fn in_same_site<'a>(base: &Url, href: &'a str) -> Option<&'a str> {
    if !is_web(base) {
        return None;
    }
    let path = href.strip_prefix(&base[..Position::BeforePath])?;
    // `//…` alone would begin a host, and tabs and line ends inside an address are ignored.
    match path.as_bytes() {
        [b'/', b'/' | b'\\' | b'\t' | b'\n' | b'\r', ..] => None,
        [b'/', ..] => Some(path),
        _ => None,
    }
}

/// The [`comparison_key`] of an address on the site of `base` in normal form, which most links of feeds are; `None` if
/// it has to be parsed.
pub fn plain_key<'a>(base: &Url, href: &'a str) -> Option<&'a str> {
    let path = in_same_site(base, href)?;
    let host = base.host_str()?;
    let has_plain_host =
        without_root_dot(host) == host && base.username().is_empty() && base.password().is_none();
    let is_plain = has_plain_host
        && path.bytes().all(|byte| is_unreserved(byte) || byte == b'/')
        && !path.contains("/.");
    is_plain.then(|| &href[base.scheme().len() + ":".len()..])
}

/// Like [`resolve`], but only for addresses that can be fetched: `http` and `https` with a host.
pub fn resolve_web(base: Option<&Url>, href: &str) -> Option<Url> {
    resolve(base, href).filter(is_web)
}

/// A pasted address in a form that can be requested: without brackets and punctuation of the text around it, `http://`
/// for `feed://`, and `https://` before a bare name.
pub fn pasted(text: &str) -> String {
    const AROUND: [char; 12] = ['<', '>', '"', '\'', '「', '」', '『', '』', '（', '）', '。', '、'];
    let text = text.trim().trim_matches(AROUND);
    let scheme = |name: &str| {
        let rest = text.get(name.len()..)?;
        text[..name.len()].eq_ignore_ascii_case(name).then_some(rest)
    };
    for name in ["feed://", "rss://", "podcast://", "itpc://", "pcast://"] {
        if let Some(rest) = scheme(name) {
            return format!("http://{rest}");
        }
    }
    let text = scheme("feed:").or_else(|| scheme("view-source:")).unwrap_or(text);
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let is_bare = name.contains('.')
        && !host.contains('@')
        && !host.contains(char::is_whitespace)
        && port.bytes().all(|byte| byte.is_ascii_digit());
    if is_bare { format!("https://{text}") } else { text.to_owned() }
}

/// Whether the address can be fetched over HTTP.
pub fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}
/// Schemes that some software links without `//`.
const LINKED_SCHEMES: [&str; 11] =
    ["xmpp", "magnet", "mailto", "javascript", "data", "tel", "sms", "sip", "bitcoin", "acct", "web+ap"];

/// The start of the scheme that ends at `colon`, if some software would link it: `https://a.example`, `xmpp:a@host`,
/// but not a time or a ratio (`10:30`).
pub fn scheme_before(text: &str, colon: usize) -> Option<usize> {
    let (before, after) = (text.get(..colon)?, text.get(colon..)?.strip_prefix(':')?);
    if after.starts_with('/') {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        return Some(before.trim_end_matches(is_part).len());
    }
    let ends_with = |scheme: &&str| {
        let start = colon.checked_sub(scheme.len());
        start.is_some_and(|start| before.as_bytes()[start..].eq_ignore_ascii_case(scheme.as_bytes()))
    };
    let scheme = LINKED_SCHEMES.iter().copied().find(ends_with)?;
    after.starts_with(|c: char| !c.is_whitespace()).then(|| colon - scheme.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(text: &str) -> String {
        normalize(&Url::parse(text).unwrap())
    }

    #[test]
    fn spellings_of_one_address_are_equal() {
        for (text, expected) in [
            ("HTTP://Example.COM:80", "http://example.com/"),
            ("https://example.com:443/a/./b/../c", "https://example.com/a/c"),
            ("https://example.com./a", "https://example.com/a"),
            ("https://日本語.jp/ニュース", "https://xn--wgv71a119e.jp/%E3%83%8B%E3%83%A5%E3%83%BC%E3%82%B9"),
            ("https://example.com/%7euser/%e3%81%82%2f", "https://example.com/~user/%E3%81%82%2F"),
            ("https://example.com/100%", "https://example.com/100%25"),
            ("https://example.com/a?", "https://example.com/a"),
            ("https://example.com/a?b=2&a=1&b=1", "https://example.com/a?a=1&b=2&b=1"),
            ("https://example.com/a?&&x&", "https://example.com/a?x"),
            ("https://example.com/a?UTM_Source=x&id=3&fbclid=y", "https://example.com/a?id=3"),
            ("https://example.com/a?utm%5Fsource=x", "https://example.com/a"),
            ("https://example.com/a;jsessionid=0A1B.node2?b=1", "https://example.com/a?b=1"),
            ("https://example.com/a?PHPSESSID=0a1b&b=1", "https://example.com/a?b=1"),
            ("https://example.com/a?ref=rss&source=RSS", "https://example.com/a"),
            ("https://example.com/a?ref=main&source=rss-1a2b------2", "https://example.com/a?ref=main"),
            ("https://example.com/t?sid=0123456789abcdef0123456789abcdef&t=7", "https://example.com/t?t=7"),
            ("https://example.com/a#top", "https://example.com/a"),
            ("https://example.com/#!/news/3", "https://example.com/#!/news/3"),
            ("https://u:p@example.com:8443/", "https://u:p@example.com:8443/"),
            ("mailto:A@Example.com#x", "mailto:A@Example.com"),
            ("file://host\\c:/a#b", "file:///c:/a"),
        ] {
            assert_eq!(normal(text), expected, "{text}");
            assert_eq!(normal(expected), expected, "again");
        }
    }

    #[test]
    fn different_pages_stay_different() {
        for (one, other) in [
            ("https://example.com/a", "https://example.com/a/"),
            ("https://example.com/a", "https://example.com/A"),
            ("https://example.com/?p=1", "https://example.com/?p=2"),
            ("https://example.com/?a=1&a=2", "https://example.com/?a=2&a=1"),
            ("https://example.com/a%2Fb", "https://example.com/a/b"),
            ("https://example.com/a", "https://www.example.com/a"),
            ("https://example.com/?ref=3", "https://example.com/"),
            ("https://example.com/?sid=3", "https://example.com/?sid=4"),
            ("https://example.com/a;v=1", "https://example.com/a"),
            ("https://example.com/a;jsessionid=1/b", "https://example.com/a"),
        ] {
            assert_ne!(normal(one), normal(other), "{one} {other}");
        }
    }

    #[test]
    fn a_site_that_moves_to_https_offers_nothing_new() {
        let key = |text| comparison_key(&Url::parse(text).unwrap());
        assert_eq!(key("http://example.com/a?utm_id=1"), key("https://example.com:443/a"));
        assert_ne!(key("http://example.com:8080/a"), key("https://example.com/a"));
        assert_eq!(key("ftp://example.com/a#b"), "ftp://example.com/a");
    }

    #[test]
    fn addresses_are_trimmed_as_browsers_trim_them() {
        let base = Url::parse("https://example.com/dir/page").unwrap();
        for (href, expected) in [
            ("\t\n next\r\n", "https://example.com/dir/next"),
            ("ne\nxt", "https://example.com/dir/next"),
            ("//other.example/x", "https://other.example/x"),
            ("", "https://example.com/dir/page"),
            ("?q", "https://example.com/dir/page?q"),
            ("..\\up", "https://example.com/up"),
            ("\u{3000}a", "https://example.com/dir/%E3%80%80a"),
        ] {
            assert_eq!(resolve(Some(&base), href).unwrap().as_str(), expected, "{href:?}");
        }
        assert!(resolve(None, "relative").is_none());
        assert!(resolve_web(Some(&base), "javascript:alert(1)").is_none());
        assert!(resolve_web(Some(&base), "mailto:a@example.com").is_none());
    }

    #[test]
    fn plain_links_of_a_site_need_no_reading_and_all_others_do() {
        let base = Url::parse("https://example.com/").unwrap();
        for (href, expected) in [
            ("https://example.com/2026/a-b_c~d.html", Some("//example.com/2026/a-b_c~d.html")),
            ("https://example.com/", Some("//example.com/")),
            ("https://example.com", None),
            ("http://example.com/a", None),
            ("https://example.com:8443/a", None),
            ("https://example.com/a/../b", None),
            ("https://example.com/a?b", None),
            ("https://example.com/a#b", None),
            ("https://example.com/%7Ea", None),
            ("https://example.com/あ", None),
            ("/a", None),
        ] {
            assert_eq!(plain_key(&base, href), expected, "{href}");
        }
        let rooted = Url::parse("https://example.com./").unwrap();
        assert_eq!(plain_key(&rooted, "https://example.com./a"), None);
    }

    proptest! {
        #[test]
        fn normalising_twice_is_normalising_once(
            text in r"https?://[a-zA-Z0-9.\-あ]{1,12}(:[0-9]{1,4})?(/[ -~あé%]{0,20}){0,4}(\?[ -~あ%&=]{0,30})?(#[!-~]{0,9})?"
        ) {
            if let Ok(url) = Url::parse(&text) {
                let once = normalize(&url);
                let again = Url::parse(&once).unwrap();
                prop_assert_eq!(&normalize(&again), &once);
                prop_assert_eq!(comparison_key(&again), comparison_key(&url));
            }
        }

        #[test]
        fn a_link_into_the_same_site_is_read_as_if_it_stood_alone(
            site in r"https?://(me@)?[a-z.]{1,9}(:8[0-9]?)?",
            rest in r"[/\\?#:@. \t\nab%あ]{0,12}"
        ) {
            if let Ok(base) = Url::parse(&format!("{site}/dir/page?q#f")) {
                let href = format!("{site}{rest}");
                prop_assert_eq!(resolve(Some(&base), &href), Url::parse(&href).ok(), "{}", href);
            }
        }

        #[test]
        fn an_address_in_its_normal_form_is_its_own_key(
            site in r"https?://(me@)?[a-z.]{1,9}(:8[0-9]?)?",
            rest in r"(/[a-z.~%\\?# あ-]{0,3}){0,4}"
        ) {
            if let Ok(base) = Url::parse(&format!("{site}/dir/page?q#f")) {
                let href = format!("{site}{rest}");
                if let Some(key) = plain_key(&base, &href) {
                    let read = Url::parse(&href).unwrap();
                    prop_assert_eq!(read.as_str(), &href);
                    prop_assert_eq!(comparison_key(&read), key);
                }
            }
        }

        #[test]
        fn any_text_is_read_or_refused(base in ".{0,40}", href in ".{0,60}") {
            let base = resolve(None, &base);
            if let Some(url) = resolve(base.as_ref(), &href) {
                let once = normalize(&url);
                if let Ok(again) = Url::parse(&once) {
                    prop_assert_eq!(normalize(&again), once);
                }
            }
        }
    }
}
