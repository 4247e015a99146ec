//! Conditional requests: the validators of a version of a resource, and their comparison.

use reqwest::StatusCode;
use reqwest::header::{ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use url::Url;

/// Longer ones are ignored: they would be stored and sent with every request.
const LONGEST: usize = 1024;

/// `ETag` and `Last-Modified` of one resource, exactly as the server sent them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// The resource they belong to: the address of the answer, after redirects. `None` matches any hop.
    pub url: Option<Url>,
}

impl Validators {
    /// Whether there is neither an `ETag` nor a `Last-Modified`.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// Whether they belong to `url`, so that they may be sent to it.
    pub(super) fn hold_for(&self, url: &Url) -> bool {
        !self.is_empty() && self.url.as_ref().is_none_or(|own| same_resource(own, url))
    }

    /// Adds `If-None-Match` and `If-Modified-Since`.
    pub(super) fn write_to(&self, headers: &mut HeaderMap) {
        let value = |text: &Option<String>| text.as_deref().and_then(|text| HeaderValue::from_str(text).ok());
        if let Some(etag) = value(&self.etag) {
            headers.insert(IF_NONE_MATCH, etag);
        }
        if let Some(date) = value(&self.last_modified) {
            headers.insert(IF_MODIFIED_SINCE, date);
        }
    }

    /// The validators of an answer from `url`; only a 200 has any.
    pub(super) fn read(status: StatusCode, headers: &HeaderMap, url: &Url) -> Self {
        if status != StatusCode::OK {
            return Self::default();
        }
        let read = |name| {
            let text = super::header::text(headers, &name)?;
            (text.len() <= LONGEST).then(|| text.to_owned())
        };
        let found = Self { etag: read(ETAG), last_modified: read(LAST_MODIFIED), url: None };
        if found.is_empty() { found } else { Self { url: Some(url.clone()), ..found } }
    }

    /// Updates them from a 304 of `url`; what it does not repeat stays.
    pub(super) fn renewed(&self, headers: &HeaderMap, url: &Url) -> Self {
        let fresh = Self::read(StatusCode::OK, headers, url);
        Self {
            etag: fresh.etag.or_else(|| self.etag.clone()),
            last_modified: fresh.last_modified.or_else(|| self.last_modified.clone()),
            url: Some(url.clone()),
        }
    }

    /// Whether `headers` have the same *strong* tag: then the body is identical and need not be read.
    ///
    /// A weak tag only promises similarity, and `Last-Modified` has a precision of a second; neither is enough.
    pub(super) fn prove_unchanged(&self, headers: &HeaderMap) -> bool {
        match (&self.etag, super::header::text(headers, &ETAG)) {
            (Some(ours), Some(theirs)) => is_strong(ours) && ours == theirs,
            _ => false,
        }
    }
}

fn same_resource(one: &Url, other: &Url) -> bool {
    one[..url::Position::AfterQuery] == other[..url::Position::AfterQuery]
}

/// A quoted tag without `W/`; an unquoted one is not trusted.
fn is_strong(etag: &str) -> bool {
    etag.len() > 2 && etag.starts_with('"') && etag.ends_with('"') && !etag[1..etag.len() - 1].contains('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn only_an_equal_strong_tag_proves_that_nothing_changed() {
        for (ours, theirs, expected) in [
            ("\"a\"", "\"a\"", true),
            ("\"a\"", "\"b\"", false),
            ("W/\"a\"", "W/\"a\"", false),
            ("\"a\"", "W/\"a\"", false),
            ("a", "a", false),
            ("\"\"", "\"\"", false),
            ("\"a\" \"b\"", "\"a\" \"b\"", false),
        ] {
            let known = Validators { etag: Some(ours.to_owned()), ..Validators::default() };
            assert_eq!(known.prove_unchanged(&headers(&[("etag", theirs)])), expected, "{ours} {theirs}");
        }
        let dated = Validators { last_modified: Some("x".to_owned()), ..Validators::default() };
        assert!(!dated.prove_unchanged(&headers(&[("last-modified", "x")])));
    }

    #[test]
    fn validators_come_from_200_alone_and_a_304_renews_them() {
        let at = url("https://a.example/feed");
        let sent = headers(&[("etag", "\"1\""), ("last-modified", "Sun, 15 Nov 2026 12:00:00 GMT")]);
        for status in [404, 500, 206, 203] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Validators::read(status, &sent, &at), Validators::default());
        }
        let known = Validators::read(StatusCode::OK, &sent, &at);
        assert_eq!(known.etag.as_deref(), Some("\"1\""));
        let renewed = known.renewed(&headers(&[("etag", "\"2\"")]), &at);
        assert_eq!(renewed.etag.as_deref(), Some("\"2\""));
        assert_eq!(renewed.last_modified, known.last_modified);
    }

    #[test]
    fn a_monstrous_tag_is_not_kept() {
        let long = "x".repeat(LONGEST + 1);
        let found =
            Validators::read(StatusCode::OK, &headers(&[("etag", &long)]), &url("https://a.example/"));
        assert!(found.is_empty());
    }

    #[test]
    fn validators_go_only_to_the_resource_they_came_from() {
        let known = Validators {
            etag: Some("\"1\"".to_owned()),
            last_modified: None,
            url: Some(url("https://a.example/feed?x=1")),
        };
        assert!(known.hold_for(&url("https://a.example/feed?x=1#top")));
        assert!(!known.hold_for(&url("https://a.example/feed?x=2")));
        assert!(!known.hold_for(&url("http://a.example/feed?x=1")));
        assert!(Validators { url: None, ..known }.hold_for(&url("https://b.example/")));
        assert!(!Validators::default().hold_for(&url("https://b.example/")));
    }
}
