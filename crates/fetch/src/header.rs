//! Parses HTTP headers: `Retry-After`, `Link`, dates.

use std::time::{Duration, UNIX_EPOCH};
use stdx::phrase;
use stdx::phrase::Phrase;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LINK, RETRY_AFTER};
use url::Url;

use config::Secret;
use stdx::time::Timestamp;

/// The longest wait that we accept from a server; a typo in a header must not stop a source for years.
pub const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The delay of `Retry-After` (seconds or a date) from `now`, at most a day.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        value.parse().map_or(LONGEST_WAIT, Duration::from_secs)
    } else {
        http_date(value)?.since(now)
    };
    Some(wait.min(LONGEST_WAIT))
}

/// A date in any of HTTP's three formats.
pub fn http_date(text: &str) -> Option<Timestamp> {
    let at = httpdate::parse_http_date(text.trim()).ok()?;
    let millis = at.duration_since(UNIX_EPOCH).ok()?.as_millis();
    Some(Timestamp::from_millis(i64::try_from(millis).ok()?))
}

/// The secret after `prefix` as a header value that is not logged, or why it is invalid as one.
pub fn secret(secret: &Secret, prefix: &str) -> Result<HeaderValue, Phrase> {
    let revealed = secret.reveal().map_err(|missing| missing.phrase())?;
    let mut value = HeaderValue::from_str(&format!("{prefix}{}", revealed.expose()))
        .map_err(|_| phrase!("the secret cannot stand in a header", "秘密情報をヘッダーに入れられません"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The first header of that name, if it is visible ASCII.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|value| !value.is_empty())
}

/// The first target of a `Link` header (RFC 8288) with the relation `rel`, resolved against `base`.
pub fn link(headers: &HeaderMap, base: &Url, rel: &str) -> Option<Url> {
    let values = headers.get_all(LINK).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
    values.flat_map(|value| split_outside_quotes(value, ',')).find_map(|part| {
        let (target, rest) = part.trim().strip_prefix('<')?.split_once('>')?;
        let parameters = split_outside_quotes(rest, ';').into_iter().filter_map(|one| one.split_once('='));
        let (_, rels) = parameters.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("rel"))?;
        let mut rels = rels.trim().trim_matches('"').split_ascii_whitespace();
        rels.any(|own| own.eq_ignore_ascii_case(rel)).then(|| base.join(target.trim()).ok())?
    })
}

/// Splits at `separator`, but not inside `"…"` or `<…>`.
fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut quoted, mut escaped, mut in_target) = (0, false, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' if !in_target => quoted = !quoted,
            '<' if !quoted => in_target = true,
            '>' if !quoted => in_target = false,
            c if c == separator && !quoted && !in_target => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn retry_after_is_read_in_every_form_and_capped() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for (value, expected) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 15 Nov 2026 12:02:00 GMT", Some(120)),
            ("Sunday, 15-Nov-26 12:02:00 GMT", Some(120)),
            ("Sun Nov 15 12:02:00 2026", Some(120)),
            ("Sun, 15 Nov 2026 11:00:00 GMT", Some(0)),
            ("Mon, 15 Nov 2027 12:00:00 GMT", Some(86_400)),
            ("99999999999999999999999", Some(86_400)),
            ("-5", None),
            ("soon", None),
            ("", None),
        ] {
            let wait = retry_after(&with("retry-after", value), now).map(|wait| wait.as_secs());
            assert_eq!(wait, expected, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn link_targets_keep_commas_and_semicolons_in_their_places() {
        let base = Url::parse("https://git.example/api/v4/projects").unwrap();
        let headers = with(
            "link",
            "<https://git.example/a?x=1,2;3>; rel=\"next\", </feed>; rel=\"alternate foo\"; type=application/rss+xml; title=\"a, \\\"b\\\"; c\", <::bad; rel=x, <last>;rel=LAST",
        );
        for (rel, target) in [
            ("next", Some("https://git.example/a?x=1,2;3")),
            ("alternate", Some("https://git.example/feed")),
            ("foo", Some("https://git.example/feed")),
            ("x", None),
            ("b", None),
        ] {
            assert_eq!(link(&headers, &base, rel).as_ref().map(Url::as_str), target, "{rel}");
        }
    }
}
