//! Two normal forms of an address for comparison: the same address, or the same page.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::{Url, is_web};

/// The normal form of an address: equal for two spellings of the same address, and stable when applied again.
///
/// - Scheme and host in lower case, host names in punycode without a final dot, default ports left out, dot
///   segments resolved, an empty path is `/`. A final slash stays: `/a` and `/a/` can be two pages.
/// - Percent-encoding: hex digits in upper case, unreserved characters decoded, a stray `%` encoded.
/// - The fragment is left out, except `#!…`, which names the page on sites that route in the browser.
/// - Parameters that only say where the visitor came from (`utm_…`, `fbclid`, …), or in which session (`PHPSESSID`,
///   `;jsessionid=…`), are left out, the others are sorted by name; values of one name keep their order, because programs read
///   them as a list.
/// - Other addresses than `http` and `https` only lose their fragment; `file:` loses the host before a drive letter,
///   which parsing it again would remove.
pub fn normalize(url: &Url) -> String {
    if !is_web(url) {
        let mut plain = url.clone();
        plain.set_fragment(None);
        return Url::parse(plain.as_str()).unwrap_or(plain).into();
    }
    format!("{}:{}", url.scheme(), comparison_key(url))
}

/// The key of the page at an address: its normal form without the scheme, `//host/path?query`.
///
/// A site that moves from `http` to `https` keeps its pages. `www.` stays: it can be another site.
pub fn comparison_key(url: &Url) -> String {
    let Some(host) = url.host_str().filter(|_| is_web(url)) else { return normalize(url) };
    let mut key = String::with_capacity(url.as_str().len());
    key.push_str("//");
    if !url.username().is_empty() || url.password().is_some() {
        key.push_str(url.username());
        if let Some(password) = url.password() {
            key.push(':');
            key.push_str(password);
        }
        key.push('@');
    }
    key.push_str(without_root_dot(host));
    if let Some(port) = url.port() {
        key.push(':');
        key.push_str(&port.to_string());
    }
    push_normal_escapes(&mut key, without_session(url.path()));
    push_query(&mut key, url.query().unwrap_or_default());
    if let Some(route) = url.fragment().filter(|fragment| fragment.starts_with('!')) {
        key.push('#');
        push_normal_escapes(&mut key, route);
    }
    key
}

/// Removes the final dot of `example.com.`; a host that consists of dots stays.
pub(super) fn without_root_dot(host: &str) -> &str {
    host.strip_suffix('.').filter(|name| !name.is_empty() && !name.ends_with('.')).unwrap_or(host)
}

fn push_query(key: &mut String, query: &str) {
    let mut kept: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let mut normal = String::with_capacity(pair.len());
        push_normal_escapes(&mut normal, pair);
        let (name, value) = normal.split_once('=').unwrap_or((&normal, ""));
        if !is_tracking(name) && !is_session(name, value) {
            kept.push((name.to_owned(), normal));
        }
    }
    kept.sort_by(|a, b| a.0.cmp(&b.0));
    for (at, (_, pair)) in kept.iter().enumerate() {
        key.push(if at == 0 { '?' } else { '&' });
        key.push_str(pair);
    }
}

/// Appends `text` with upper-case escapes, unreserved characters decoded, and stray `%` encoded.
fn push_normal_escapes(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match escaped_byte(rest.as_bytes()) {
            Some(byte) => {
                push_byte(out, byte);
                rest = &rest[2..];
            }
            None => out.push_str("%25"),
        }
    }
    out.push_str(rest);
}

/// The byte of the two hex digits at the start of `digits`.
pub(crate) fn escaped_byte(digits: &[u8]) -> Option<u8> {
    let high = char::from(*digits.first()?).to_digit(16)?;
    let low = char::from(*digits.get(1)?).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}

fn push_byte(out: &mut String, byte: u8) {
    if is_unreserved(byte) {
        out.push(char::from(byte));
    } else {
        out.push_str(percent_encoding::percent_encode_byte(byte));
    }
}

/// Characters that mean the same escaped and unescaped (RFC 3986 §2.3).
pub(crate) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Prefixes of parameters that identify a campaign.
const TRACKING_PREFIXES: [&str; 6] = ["utm_", "hsa_", "mtm_", "pk_", "piwik_", "matomo_"];

/// Parameters that identify a click, a mail or a visitor, not the page.
static TRACKING_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let names = "__hsfp __hssc __hstc __s _ga _gl _hsenc _hsmi _openstat cvid dclid epik fb_action_ids \
         fb_action_types fb_ref fb_source fbclid gad_source gbraid gclid gclsrc hsctatracking igsh igshid \
         irclickid li_fat_id mc_cid mc_eid mibextid mkt_tok ml_subscriber ml_subscriber_hash msclkid \
         oly_anon_id oly_enc_id rb_clickid ref_src ref_url s_cid srsltid ttclid twclid vero_id wbraid \
         yclid ysclid";
    names.split(' ').collect()
});

fn is_tracking(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TRACKING_NAMES.contains(name.as_str()) || TRACKING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Session parameters, which servers use for clients without cookies, such as ours.
fn is_session(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "phpsessid" | "jsessionid" | "sessionid" | "session_id" | "cfid" | "cftoken" => true,
        // `sid` is also used for stories and sections, which have short values.
        "sid" => value.len() >= 26 && value.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        _ => name.starts_with("aspsessionid"),
    }
}

/// The path without the session that Java servers append to it.
fn without_session(path: &str) -> &str {
    const MARK: &str = ";jsessionid=";
    let at = path
        .rfind(';')
        .filter(|at| path.get(*at..*at + MARK.len()).is_some_and(|start| start.eq_ignore_ascii_case(MARK)));
    at.filter(|at| !path[*at..].contains('/')).map_or(path, |at| &path[..at])
}
