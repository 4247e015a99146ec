//! Filters books by the words, names and dates of the config. Pure.

use super::config::{Keys, Words};
use super::model::Book;

/// The filters of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookFilter {
    include: Words,
    exclude: Words,
    earliest: Option<String>,
}

impl BookFilter {
    /// From the keys of a job.
    pub fn of(keys: &Keys) -> Self {
        let lowered = |words: &Words| {
            let lower = |list: &[String]| list.iter().map(|word| word.to_lowercase()).collect();
            Words {
                words: lower(&words.words),
                authors: lower(&words.authors),
                publishers: lower(&words.publishers),
            }
        };
        Self {
            include: lowered(&keys.include),
            exclude: lowered(&keys.exclude),
            earliest: keys.earliest.clone(),
        }
    }

    /// Whether every book matches.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a book matches.
    pub fn fits(&self, book: &Book) -> bool {
        let description = book.description.as_deref().unwrap_or_default();
        let text = format!("{}\n{description}", book.title).to_lowercase();
        let authors = book.authors.join("\n").to_lowercase();
        let publisher = book.publisher.as_deref().unwrap_or_default().to_lowercase();
        let lists = |words: &Words| {
            let found = |list: &[String], text: &str| list.iter().any(|word| text.contains(word.as_str()));
            [
                (words.words.is_empty(), found(&words.words, &text)),
                (words.authors.is_empty(), found(&words.authors, &authors)),
                (words.publishers.is_empty(), found(&words.publishers, &publisher)),
            ]
        };
        let is_included = lists(&self.include).into_iter().all(|(is_empty, is_found)| is_empty || is_found);
        let is_excluded = lists(&self.exclude).into_iter().any(|(_, is_found)| is_found);
        is_included && !is_excluded && self.is_recent(book.published_date.as_deref())
    }

    /// Dates may lack their month or day, and come as libraries write them (`c2019`, `[2019]`, `2019-05-??`): compares
    /// only the parts that both have.
    fn is_recent(&self, published: Option<&str>) -> bool {
        let Some(earliest) = &self.earliest else { return true };
        let published = published.unwrap_or_default().trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = published.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(published.len());
        let length = earliest.len().min(end);
        length > 0 && published[..length] >= earliest[..length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| text.to_lowercase()).collect()
    }

    #[test]
    fn a_book_is_wanted_by_its_words_names_and_date() {
        let book = super::super::mail::tests::sample(0); // 本の題 0, 著者 & 一郎, 架空書房, 2026-01-15
        let words = |words: &[&str]| Words { words: list(words), ..Words::default() };
        let authors = |names: &[&str]| Words { authors: list(names), ..Words::default() };
        let publishers = |names: &[&str]| Words { publishers: list(names), ..Words::default() };
        let none = Words::default;
        for (number, (include, exclude, earliest, expected)) in [
            (none(), none(), None, true),
            (words(&["題"]), none(), None, true),
            (words(&["説明"]), none(), None, true),
            (words(&["<SCRIPT>", "nothing"]), none(), None, true),
            (words(&["nothing"]), none(), None, false),
            (authors(&["一郎"]), none(), None, true),
            (authors(&["二郎"]), none(), None, false),
            (Words { authors: list(&["二郎"]), ..words(&["題"]) }, none(), None, false),
            (none(), words(&["題"]), None, false),
            (none(), publishers(&["架空"]), None, false),
            (none(), publishers(&["実在"]), None, true),
            (none(), none(), Some("2026"), true),
            (none(), none(), Some("2026-01-15"), true),
            (none(), none(), Some("2026-01-16"), false),
            (none(), none(), Some("2027"), false),
        ]
        .into_iter()
        .enumerate()
        {
            let wanted = BookFilter { include, exclude, earliest: earliest.map(str::to_owned) };
            assert_eq!(wanted.fits(&book), expected, "line {number}: {wanted:?}");
        }
        let recent = BookFilter { earliest: Some("2024-04-01".into()), ..BookFilter::default() };
        for (published, expected) in [
            (Some("2024"), true),
            (Some("2023"), false),
            (Some("2024-03"), false),
            (None, false),
            (Some("c2019"), false),
            (Some("[2019]"), false),
            (Some("c2024"), true),
            (Some("2024-04-??"), true),
            (Some("2024-03-??"), false),
            (Some("201?"), false),
            (Some("2024年5月"), true),
            (Some("2023年5月"), false),
            (Some("n.d."), false),
        ] {
            let book = Book { published_date: published.map(str::to_owned), ..book.clone() };
            assert_eq!(recent.fits(&book), expected, "{published:?}");
        }
    }
}
