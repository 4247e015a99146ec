//! Which addresses of a blog count.

use crate::parse::url::Url;

/// The patterns that addresses have to match, or must not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns {
    /// One of these must match, if there are any.
    pub include: Vec<String>,
    /// None of these may match.
    pub exclude: Vec<String>,
}

impl Patterns {
    /// Whether every address counts.
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Whether `url` counts.
    pub fn admit(&self, url: Option<&Url>) -> bool {
        let matches = |pattern: &String| url.is_some_and(|url| matches_pattern(pattern, url));
        (self.include.is_empty() || self.include.iter().any(matches)) && !self.exclude.iter().any(matches)
    }
}

/// `*` stands for any text; a pattern with a leading `/` is about path and query, any other about the whole address.
fn matches_pattern(pattern: &str, url: &Url) -> bool {
    let text = if pattern.starts_with('/') {
        &url[url::Position::BeforePath..url::Position::AfterQuery]
    } else {
        &url[..url::Position::AfterQuery]
    };
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_about_the_path_or_the_whole_address() {
        let url: Url = "https://example.com/blog/2026/a?x=1#top".parse().unwrap();
        for (pattern, expected) in [
            ("/blog/*", true),
            ("/blog", false),
            ("/blog/2026/a?x=1", true),
            ("/*/a*", true),
            ("/*/b*", false),
            ("https://example.com/*", true),
            ("*example.com*", true),
            ("*", true),
            ("*/a?x=1", true),
            ("*a*a*a*a*a*", false),
            ("", false),
        ] {
            assert_eq!(matches_pattern(pattern, &url), expected, "{pattern}");
        }
    }

    #[test]
    fn an_address_counts_if_it_is_included_and_not_excluded() {
        let patterns = Patterns { include: vec!["/blog/*".into()], exclude: vec!["*draft*".into()] };
        let admit = |text: &str| patterns.admit(Some(&text.parse().unwrap()));
        assert!(admit("https://example.com/blog/a"));
        assert!(!admit("https://example.com/about"));
        assert!(!admit("https://example.com/blog/draft-1"));
        assert!(!patterns.admit(None), "what has no address cannot be included");
        assert!(Patterns::default().admit(None));
    }
}
