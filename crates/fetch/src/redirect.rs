//! The rules for redirects; pure.

use percent_encoding::{AsciiSet, percent_encode};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION};
use url::Url;

use super::error::Error;
use super::guard::bad_scheme;
use stdx::phrase;
use stdx::phrase::Phrase;

/// The hops of a fetch so far.
#[derive(Debug)]
pub(super) struct Trail {
    /// The address of the next request, without user information.
    pub(super) url: Url,
    /// The target of the permanent redirects at the beginning of the chain, if any.
    pub(super) permanent_url: Option<Url>,
    /// Whether the chain has left its first origin, after which secrets are not sent any more.
    pub(super) left_origin: bool,
    all_permanent: bool,
    been: Vec<Url>,
    limit: usize,
}

impl Trail {
    pub(super) fn new(url: Url, limit: usize) -> Self {
        Self { been: Vec::new(), url, permanent_url: None, left_origin: false, all_permanent: true, limit }
    }

    /// Follows the response if it is a redirect; `Ok(false)` means that the chain ends here.
    ///
    /// A redirect from https to http is followed, since old blogs need it, but never counts as a permanent move;
    /// secrets are not sent, since it is another origin.
    pub(super) fn follow(&mut self, status: StatusCode, headers: &HeaderMap) -> Result<bool, Error> {
        let permanent = match status.as_u16() {
            301 | 308 => true,
            302 | 303 | 307 => false,
            _ => return Ok(false),
        };
        let Some(location) = headers.get(LOCATION) else { return Ok(false) };
        let next = target(&self.url, location.as_bytes())?;
        let before = std::mem::replace(&mut self.url, next);
        let downgrade = before.scheme() == "https" && self.url.scheme() == "http";
        self.left_origin |= before.origin() != self.url.origin();
        self.all_permanent &= permanent && !downgrade;
        if self.all_permanent {
            self.permanent_url = Some(self.url.clone());
        }
        self.been.push(before);
        if self.been.contains(&self.url) {
            return Err(Error::RedirectLoop { host: self.url.host_str().unwrap_or_default().to_owned() });
        }
        if self.been.len() > self.limit {
            return Err(Error::TooManyRedirects { limit: self.limit });
        }
        Ok(true)
    }
}

/// No ASCII byte needs encoding: the URL parser does the rest.
const NOTHING_MORE: &AsciiSet = &AsciiSet::EMPTY;

/// The address in a `Location` header, however it is encoded.
fn target(base: &Url, location: &[u8]) -> Result<Url, Error> {
    let text = match std::str::from_utf8(location) {
        Ok(text) => text.to_owned(),
        Err(_) => percent_encode(location, NOTHING_MORE).to_string(),
    };
    let bad = |why: Phrase| Error::BadUrl {
        why: phrase!("a redirect leads nowhere: {why}", "リダイレクト先が正しくありません：{why}"),
    };
    let mut url = base.join(text.trim()).map_err(|error| bad(error.to_string().into()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(bad_scheme(&url)));
    }
    // Credentials come from the config, never from a redirect.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn to(location: &[u8]) -> HeaderMap {
        HeaderMap::from_iter([(LOCATION, HeaderValue::from_bytes(location).unwrap())])
    }

    fn trail(url: &str) -> Trail {
        Trail::new(Url::parse(url).unwrap(), 3)
    }

    fn follow(trail: &mut Trail, status: u16, location: &str) -> Result<bool, Error> {
        trail.follow(StatusCode::from_u16(status).unwrap(), &to(location.as_bytes()))
    }

    #[test]
    fn locations_are_read_as_browsers_read_them() {
        let base = Url::parse("https://a.example/dir/page?q").unwrap();
        for (location, expected) in [
            ("/x".as_bytes(), "https://a.example/x"),
            (b"y#top", "https://a.example/dir/y"),
            (b"//b.example/z", "https://b.example/z"),
            (b"  https://b.example/a b ", "https://b.example/a%20b"),
            ("/日本".as_bytes(), "https://a.example/%E6%97%A5%E6%9C%AC"),
            (b"/\x93\xfa", "https://a.example/%93%FA"),
            (b"https://user:secret@b.example/", "https://b.example/"),
            (b"?page=2", "https://a.example/dir/page?page=2"),
            (b"\\\\b.example\\x", "https://b.example/x"),
        ] {
            assert_eq!(target(&base, location).unwrap().as_str(), expected);
        }
        for location in ["file:///etc/passwd", "gopher://x/", "data:,x", "http://", "http://[::1"] {
            assert!(matches!(target(&base, location.as_bytes()), Err(Error::BadUrl { .. })), "{location}");
        }
    }

    #[test]
    fn other_statuses_and_missing_locations_end_the_chain() {
        let mut trail = trail("https://a.example/");
        for status in [200, 300, 304, 305, 306, 404] {
            assert!(!follow(&mut trail, status, "/x").unwrap());
        }
        assert!(!trail.follow(StatusCode::FOUND, &HeaderMap::new()).unwrap());
    }

    #[test]
    fn only_an_unbroken_run_of_permanent_redirects_is_a_move() {
        for (hops, expected) in [
            (vec![(301, "/b")], Some("https://a.example/b")),
            (vec![(301, "/b"), (308, "/c")], Some("https://a.example/c")),
            (vec![(301, "/b"), (302, "/c"), (301, "/d")], Some("https://a.example/b")),
            (vec![(302, "/b"), (301, "/c")], None),
            (vec![(301, "http://a.example/b")], None),
        ] {
            let mut trail = trail("https://a.example/");
            for (status, location) in &hops {
                assert!(follow(&mut trail, *status, location).unwrap());
            }
            assert_eq!(trail.permanent_url.as_ref().map(Url::as_str), expected, "{hops:?}");
        }
    }

    #[test]
    fn circles_and_long_chains_end() {
        let mut circle = trail("https://a.example/1");
        assert!(follow(&mut circle, 302, "/2").unwrap());
        assert!(matches!(follow(&mut circle, 302, "/1"), Err(Error::RedirectLoop { .. })));
        assert!(matches!(
            follow(&mut trail("https://a.example/"), 302, "/"),
            Err(Error::RedirectLoop { .. })
        ));

        let mut long = trail("https://a.example/0");
        for hop in 1..=3 {
            assert!(follow(&mut long, 302, &format!("/{hop}")).unwrap());
        }
        assert!(matches!(follow(&mut long, 302, "/4"), Err(Error::TooManyRedirects { limit: 3 })));
    }

    #[test]
    fn a_chain_that_left_its_origin_never_counts_as_home_again() {
        let mut trail = trail("https://a.example/1");
        for (location, left) in
            [("/2", false), ("https://a.example:444/", true), ("https://a.example/3", true)]
        {
            assert!(follow(&mut trail, 302, location).unwrap());
            assert_eq!(trail.left_origin, left, "{location}");
        }
    }
}
