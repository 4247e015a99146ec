//! HTTP addresses, with precise messages about invalid ones.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use url::Url;

use super::{BadValue, did_you_mean, text_value};
use stdx::phrase;
use stdx::phrase::Phrase;

/// An `http` or `https` address with a host and without credentials.
///
/// Boxed, because thousands of tables may have several such keys that are not set.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HttpUrl(Box<Url>);

impl Deref for HttpUrl {
    type Target = Url;

    fn deref(&self) -> &Url {
        &self.0
    }
}

impl From<HttpUrl> for Url {
    fn from(address: HttpUrl) -> Self {
        *address.0
    }
}

impl FromStr for HttpUrl {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = |why: Phrase| {
            let shown = crate::mask::blot_secrets(text);
            BadValue::new(phrase!(
                "`{shown}` is not a web address: {why}",
                "`{shown}` は Web アドレスではありません：{why}"
            ))
        };
        let bad_scheme = || {
            bad(phrase!(
                "it does not begin with https:// or http://",
                "https:// または http:// で始まっていません"
            ))
        };
        let trimmed = text.trim();
        let url = match Url::parse(trimmed) {
            Ok(url) => url,
            Err(url::ParseError::RelativeUrlWithoutBase) => {
                let guess = format!("https://{}", trimmed.trim_start_matches('/'));
                let bad = bad_scheme();
                let usable =
                    Url::parse(&guess).is_ok_and(|url| url.host_str().is_some_and(|host| host.contains('.')));
                return Err(if usable { bad.with_hint(did_you_mean(&guess)) } else { bad });
            }
            Err(err) => return Err(bad(Phrase::verbatim(err.to_string()))),
        };
        if !matches!(url.scheme(), "http" | "https") {
            // `example.com:8080` parses as scheme `example.com`.
            let bad = bad_scheme();
            let guess = format!("https://{trimmed}");
            return Err(
                if url.cannot_be_a_base() && Url::parse(&guess).is_ok() && url.scheme().contains('.') {
                    bad.with_hint(did_you_mean(&guess))
                } else {
                    bad
                },
            );
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(bad(phrase!("it has no host", "ホストがありません")));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad(phrase!(
                "it carries a user name or password, which would be printed with it",
                "ユーザー名やパスワードが含まれており、アドレスと一緒に表示されてしまいます"
            ))
            .with_hint(phrase!(
                "take them out of the address; keys such as `login` of a blog are for them",
                "アドレスから取り除き、ブログなら `login` など専用のキーに書いてください"
            )));
        }
        Ok(Self(url.into()))
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

text_value!(HttpUrl, "a web address", "Web アドレス", "https://example.com/");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back() {
        for text in [
            "https://example.com/",
            "http://127.0.0.1:8080/feed?x=1",
            "https://xn--wgv71a119e.jp/a",
            "http://[::1]/",
        ] {
            assert_eq!(text.parse::<HttpUrl>().unwrap().to_string(), text);
        }
        assert_eq!("https://日本語.jp".parse::<HttpUrl>().unwrap().as_str(), "https://xn--wgv71a119e.jp/");
    }

    #[test]
    fn a_wrong_address_says_what_is_wrong() {
        for (text, why, hint) in [
            ("example.com/feed", "does not begin with", Some("did you mean \"https://example.com/feed\"?")),
            (
                "example.com:8080/x",
                "does not begin with",
                Some("did you mean \"https://example.com:8080/x\"?"),
            ),
            ("//example.com", "does not begin with", Some("did you mean \"https://example.com\"?")),
            ("feed", "does not begin with", None),
            ("", "does not begin with", None),
            ("ftp://example.com/", "does not begin with", None),
            ("file:///etc/passwd", "does not begin with", None),
            ("https://", "empty host", None),
            (
                "https://user:pw@example.com/",
                "user name or password",
                Some("take them out of the address; keys such as `login` of a blog are for them"),
            ),
            ("https://exa mple.com/", "invalid", None),
        ] {
            let err = text.parse::<HttpUrl>().unwrap_err();
            assert!(err.message().to_string().contains(why), "{text}: {}", err.message());
            assert_eq!(err.hint().map(ToString::to_string).as_deref(), hint, "{text}");
            assert!(!err.message().to_string().contains("pw@"), "{}", err.message());
        }
    }
}
