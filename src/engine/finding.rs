//! Found things, whichever pipeline found them: for feeds, and for a search over everything.

use regex::{Regex, RegexBuilder};

use super::Finder;
use super::things::delivery;
use crate::channel::{self, outbox};
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::ledger::Subject;
use crate::text::shorten;
use crate::time::Timestamp;

/// The newest rows of each kind that a search covers, so that it takes equally long however much is stored.
pub const SEARCHED: usize = 5_000;
/// Hits of each sort that are shown.
pub const SHOWN: usize = 20;
/// Words and letters of a search that count: what a person types is shorter, and each word costs every row.
const MAX_WORDS: usize = 16;
const MAX_LETTERS: usize = 500;
/// Width of a message's title.
const MESSAGE_WIDTH: usize = 80;

/// Something that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundThing {
    /// Its `word:name` for `why`.
    pub about: String,
    pub title: String,
    /// Where it is on the web.
    pub link: Option<String>,
    /// When it was published, or found.
    pub at: Option<Timestamp>,
    pub summary: Option<String>,
    /// Other text to search in: authors, numbers, addresses.
    pub names: Vec<String>,
}

/// The newest findings of one job or of all, newest first.
pub type ListFindings = fn(&mut Tx<'_>, Option<&JobName>, usize) -> db::Result<Vec<FoundThing>>;

/// The words of a search. A match contains all of them, in any order, also inside longer words.
#[derive(Clone, Debug)]
pub struct SearchWords(Vec<Regex>);

impl SearchWords {
    /// Splits a text into words; `None` if there are none.
    pub fn new(text: &str) -> Option<Self> {
        let end = text.char_indices().nth(MAX_LETTERS).map_or(text.len(), |(end, _)| end);
        let word = |word: &str| RegexBuilder::new(&regex::escape(word)).case_insensitive(true).build().ok();
        let words: Vec<Regex> = text[..end].split_whitespace().take(MAX_WORDS).filter_map(word).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    fn are_in<'a>(&self, texts: impl Iterator<Item = &'a str> + Clone) -> bool {
        self.0.iter().all(|word| texts.clone().any(|text| word.is_match(text)))
    }

    fn fit(&self, finding: &FoundThing) -> bool {
        let FoundThing { title, link, summary, names, .. } = finding;
        let texts = [Some(title), link.as_ref(), summary.as_ref()].into_iter().flatten().chain(names);
        self.are_in(texts.map(String::as_str))
    }
}

impl Finder {
    /// Everything that contains all of `words`, by kind: names in the config, found things, messages; newest first.
    pub fn search(&self, tx: &mut Tx<'_>, words: &SearchWords) -> db::Result<Vec<FoundThing>> {
        let mut hits = Vec::new();
        for thing in &self.things {
            let names = (thing.list_configured)(&self.config).into_iter();
            let named = |name: String| FoundThing {
                about: Subject::new(thing.word, &name).to_string(),
                title: name,
                link: None,
                at: None,
                summary: None,
                names: Vec::new(),
            };
            hits.extend(names.map(named).filter(|finding| words.fit(finding)).take(SHOWN));
        }
        for pipeline in self.pipelines {
            let findings = (pipeline.list_findings)(tx, None, SEARCHED)?.into_iter();
            hits.extend(findings.filter(|finding| words.fit(finding)).take(SHOWN));
        }
        let messages = outbox::list(tx, &outbox::DeliveryFilter::default(), SEARCHED)?;
        let has_words = |row: &&outbox::Row| {
            let text = channel::as_text(&row.payload);
            words.are_in([text.as_str(), &row.recipient, &row.channel, &row.subject].into_iter())
        };
        hits.extend(messages.iter().filter(has_words).take(SHOWN).map(of_message));
        Ok(hits)
    }
}

/// The title of a message is how it begins.
fn of_message(row: &outbox::Row) -> FoundThing {
    FoundThing {
        about: Subject::delivery(row.id).to_string(),
        title: shorten(&delivery::headline(row), MESSAGE_WIDTH),
        link: None,
        at: Some(row.created_at),
        summary: None,
        names: vec![row.recipient.clone(), row.channel.clone(), row.subject.clone()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(title: &str, names: &[&str]) -> FoundThing {
        FoundThing {
            about: "item:1".to_owned(),
            title: title.to_owned(),
            link: Some("https://a.example/News".to_owned()),
            at: None,
            summary: None,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn parts_of_words_are_found_in_any_language_order_and_case() {
        let title = "総務省 第12回電気通信会議";
        for (text, fits) in [
            ("電気通信", true),
            ("会議　総務", true),
            ("NEWS 第12回", true),
            ("甲野", true),
            ("会議 乙野", false),
            ("議総", false),
            ("%", false),
            ("_", false),
        ] {
            let words = SearchWords::new(text).unwrap();
            assert_eq!(words.fit(&finding(title, &["甲野 太郎"])), fits, "{text}");
        }
        assert!(SearchWords::new(" \u{3000} ").is_none());
    }

    #[test]
    fn a_search_of_thousands_of_words_costs_no_more_than_one_of_a_few() {
        let count = |text: &str| SearchWords::new(text).map_or(0, |words| words.0.len());
        assert_eq!(count(&"w ".repeat(9_000)), MAX_WORDS);
        assert_eq!(count(&"ab".repeat(200)), 1);
        let long = "会".repeat(30_000);
        assert!(SearchWords::new(&long).unwrap().fit(&finding(&"会".repeat(MAX_LETTERS), &[])));
    }
}
