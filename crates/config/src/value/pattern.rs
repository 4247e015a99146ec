//! Patterns that entries have to match, in their text or their address.

use std::fmt;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};
use url::Url;

use super::{BadValue, text_value};
use stdx::phrase;

/// The memory limit of one regular expression.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// A word or phrase, a regular expression between slashes, or a pattern of an address.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    form: Form,
}

#[derive(Clone)]
enum Form {
    /// In lower case; found anywhere in title or text.
    Word(String),
    /// Matched with title, text and address.
    Regex(Regex),
    /// `*` matches any text; with a leading `/` it is compared with path and query, else with the whole address.
    Address,
}

impl Pattern {
    /// As written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it only concerns the address.
    pub fn is_address(&self) -> bool {
        matches!(self.form, Form::Address)
    }

    /// Whether it matches one of `texts`, or the address.
    pub fn matches(&self, texts: &[&str], url: Option<&Url>) -> bool {
        match &self.form {
            Form::Word(word) => texts.iter().any(|text| text.to_lowercase().contains(word.as_str())),
            Form::Regex(regex) => {
                texts.iter().copied().chain(url.map(Url::as_str)).any(|text| regex.is_match(text))
            }
            Form::Address => url.is_some_and(|url| matches_address(&self.text, url)),
        }
    }
}

impl FromStr for Pattern {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let regex = text.strip_prefix('/').and_then(|rest| {
            let (body, options) = rest.rsplit_once('/')?;
            matches!(options, "" | "i").then_some((body, options == "i")).filter(|(body, _)| !body.is_empty())
        });
        let form = match regex {
            _ if text.trim().is_empty() => {
                return Err(BadValue::new(phrase!(
                    "an empty text is in every entry",
                    "空の文字列はすべての記事に一致します"
                ))
                .with_hint(phrase!("write a word", "キーワードを書きます")));
            }
            Some((body, is_caseless)) => {
                let built =
                    RegexBuilder::new(body).case_insensitive(is_caseless).size_limit(MAX_REGEX_BYTES).build();
                Form::Regex(built.map_err(|error| {
                    let error = error.to_string();
                    let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                    BadValue::new(phrase!(
                        "`{text}` is not a regular expression: {why}",
                        "`{text}` は正規表現ではありません：{why}"
                    ))
                    .with_hint(phrase!(
                        "without the slashes it is a word; with `*` it is about the address",
                        "スラッシュを外すとキーワードに、`*` を入れるとアドレスの条件になります"
                    ))
                })?)
            }
            None if text.contains('*') || text.starts_with('/') || text.contains("://") => Form::Address,
            None => Form::Word(text.trim().to_lowercase()),
        };
        Ok(Self { text: text.to_owned(), form })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

text_value!(
    Pattern,
    "a word, a regular expression between slashes, or an address with `*`",
    "キーワード、スラッシュで囲んだ正規表現、`*` を含むアドレスのいずれか",
    "/blog/*"
);

/// Patterns that entries have to match, and must not match.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patterns<'a> {
    /// At least one of these must match, if there are any.
    pub include: &'a [Pattern],
    /// None of these may match.
    pub exclude: &'a [Pattern],
}

impl Patterns<'_> {
    /// Whether there are no patterns, so that every entry matches.
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Whether all patterns only concern addresses.
    pub fn are_addresses(&self) -> bool {
        self.include.iter().chain(self.exclude).all(Pattern::is_address)
    }

    /// Whether an entry with `texts` at `url` matches.
    pub fn admit(&self, texts: &[&str], url: Option<&Url>) -> bool {
        let matches = |pattern: &Pattern| pattern.matches(texts, url);
        (self.include.is_empty() || self.include.iter().any(matches)) && !self.exclude.iter().any(matches)
    }
}

fn matches_address(pattern: &str, url: &Url) -> bool {
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

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_pattern_is_a_word_a_regular_expression_or_an_address() {
        let url: Url = "https://example.com/blog/2026/a?x=1#top".parse().unwrap();
        for (text, expected) in [
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
            ("rust", true),
            ("example", false),
            ("令和８年", true),
            ("/^rust [0-9]/i", true),
            ("/^rust/", false),
            ("/blog/", true),
        ] {
            let found = pattern(text).matches(&["Rust 2 released", "令和８年の報道"], Some(&url));
            assert_eq!(found, expected, "{text}");
        }
        assert!("/(/".parse::<Pattern>().unwrap_err().message().to_string().contains("unclosed group"));
        assert!(" ".parse::<Pattern>().is_err());
        assert!(format!("/{}/", "(a{99}){99}{99}").parse::<Pattern>().is_err(), "too large");
    }

    #[test]
    fn an_entry_counts_if_it_is_included_and_not_excluded() {
        let patterns =
            Patterns { include: &[pattern("/blog/*")], exclude: &[pattern("*draft*"), pattern("ads")] };
        let admit = |title: &str, url: &str| patterns.admit(&[title], Some(&url.parse().unwrap()));
        assert!(admit("a", "https://example.com/blog/a"));
        assert!(!admit("a", "https://example.com/about"));
        assert!(!admit("a", "https://example.com/blog/draft-1"));
        assert!(!admit("New ADS", "https://example.com/blog/a"));
        assert!(!patterns.admit(&[], None), "what has no address cannot be included by it");
        assert!(Patterns::default().admit(&[], None));
    }
}
