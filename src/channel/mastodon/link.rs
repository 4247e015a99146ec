//! Links in posts, escaped so that Mastodon links the whole address and finds no mention in it.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

/// Characters that end a link within its path, or begin a mention after it.
const IN_PATH: &AsciiSet = &CONTROLS.add(b'(').add(b')').add(b'@');
/// The same for the query, where Mastodon allows fewer characters.
const IN_QUERY: &AsciiSet =
    &IN_PATH.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'`').add(b'{').add(b'}');
/// The same for the fragment, where a question mark would end a path.
const IN_FRAGMENT: &AsciiSet = &IN_QUERY.add(b'?');

/// `url` escaped for a post: it has the same target, and Mastodon links all of it.
///
/// A feed may contain `https://example.com/x)@somebody@example.net`: unescaped, the link would end before the
/// parenthesis and `somebody` would be mentioned.
pub(super) fn in_post(url: &Url) -> String {
    let mut url = url.clone();
    // Mastodon does not link addresses with a user name. Setting it fails for addresses that cannot have one.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    // The path ends before the question mark, and has to end in an allowed character there, too.
    let path = ending_well(utf8_percent_encode(url.path(), IN_PATH).to_string(), false);
    url.set_path(&path);
    let query = url.query().filter(|query| !query.is_empty());
    let query = query.map(|query| utf8_percent_encode(query, IN_QUERY).to_string());
    url.set_query(query.as_deref());
    let fragment = url.fragment().filter(|fragment| !fragment.is_empty());
    let fragment = fragment.map(|fragment| utf8_percent_encode(fragment, IN_FRAGMENT).to_string());
    url.set_fragment(fragment.as_deref());
    ending_well(url.into(), query.is_some())
}

/// Escapes the last character if Mastodon would not include it in the link.
fn ending_well(mut text: String, is_query: bool) -> String {
    if let Some(last) = text.pop() {
        if may_end(last, is_query) {
            text.push(last);
        } else {
            text.extend(utf8_percent_encode(&last.to_string(), NON_ALPHANUMERIC));
        }
    }
    text
}

/// Whether a link may end with `c`. A trailing equals sign of a query is allowed and has a meaning, so it is kept.
fn may_end(c: char, is_query: bool) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-') || (is_query && matches!(c, '=' | '&'))
}

/// Whether two texts are the same address apart from escapes, which servers rewrite.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    match (plain(one), plain(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

fn plain(text: &str) -> Option<Vec<u8>> {
    let mut url = Url::parse(text).ok()?;
    if url.query() == Some("") {
        url.set_query(None);
    }
    if url.fragment() == Some("") {
        url.set_fragment(None);
    }
    Some(percent_decode_str(url.as_str()).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::channel::count::{URL_CHARS, count};

    #[test]
    fn a_link_is_one_link_to_mastodon_and_nothing_else() {
        for (link, shown) in [
            ("https://example.com/a", "https://example.com/a"),
            ("https://example.com", "https://example.com/"),
            ("https://example.com/a?b=c&d=#e", "https://example.com/a?b=c&d=#e"),
            ("https://example.com/%E7%B6%9A", "https://example.com/%E7%B6%9A"),
            // It would mention somebody.
            (
                "https://evil.example/x)@victim@mastodon.social",
                "https://evil.example/x%29%40victim%40mastodon.social",
            ),
            (
                "https://evil.example/?x{@victim@mastodon.social",
                "https://evil.example/?x%7B%40victim%40mastodon.social",
            ),
            (
                "https://evil.example/#x)@victim@mastodon.social",
                "https://evil.example/#x%29%40victim%40mastodon.social",
            ),
            ("https://x:)@victim.example/", "https://victim.example/"),
            // It would end early.
            ("https://example.com/a_(b", "https://example.com/a_%28b"),
            ("https://example.com/a_(b)", "https://example.com/a_%28b%29"),
            ("https://example.com/a.", "https://example.com/a%2E"),
            ("https://example.com/a=", "https://example.com/a%3D"),
            ("https://example.com/100%", "https://example.com/100%25"),
            ("https://example.com/~", "https://example.com/%7E"),
            ("https://example.com/a...", "https://example.com/a..%2E"),
            ("https://example.com/a?", "https://example.com/a"),
            ("https://example.com/a#", "https://example.com/a"),
            ("https://example.com/a?q=", "https://example.com/a?q="),
            ("https://example.com/a.?b", "https://example.com/a%2E?b"),
            ("https://example.com/a#b.?c", "https://example.com/a#b.%3Fc"),
            ("https://example.com/a?q=!", "https://example.com/a?q=%21"),
            ("https://example.com/a?q={1}|2^", "https://example.com/a?q=%7B1%7D|2%5E"),
        ] {
            let url = Url::parse(link).unwrap();
            assert_eq!(in_post(&url), shown);
            assert_eq!(count(&in_post(&url), URL_CHARS), URL_CHARS, "{shown}");
            assert_eq!(count(&format!("{shown} x"), URL_CHARS), URL_CHARS + 2, "{shown}");
        }
        assert_ne!(
            count("https://evil.example/x)@victim@mastodon.social", URL_CHARS),
            URL_CHARS,
            "as written it is more than a link"
        );
    }

    #[test]
    fn an_address_is_the_same_however_it_is_escaped() {
        let ours = "https://example.com/a_%28b%29?c=%40d";
        for (other, is_ours) in [
            (ours, true),
            ("https://example.com/a_(b)?c=@d", true),
            ("https://EXAMPLE.com/a_%28b)?c=%40d", true),
            ("https://example.com/a_%28b?c=%40d", false),
            ("https://example.com/a_%28b%29", false),
            ("not an address", false),
        ] {
            assert_eq!(is_same(ours, other), is_ours, "{other}");
        }
        assert!(is_same("https://example.com/a?", "https://example.com/a"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn no_address_is_more_than_a_link(rest in "[/?#a-z()@.=%{}|^~!*'\\[\\];:,&$_+あ \"<>`-]{0,40}") {
            let url = Url::parse(&format!("https://example.com/{rest}")).unwrap();
            let shown = in_post(&url);
            prop_assert_eq!(count(&shown, URL_CHARS), URL_CHARS, "{}", shown);
            prop_assert_eq!(in_post(&Url::parse(&shown).unwrap()), shown.clone(), "a second time changes nothing");
            prop_assert!(is_same(&shown, url.as_str()), "{} is not {}", shown, url);
        }
    }
}
