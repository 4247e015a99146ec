//! What a book is: its ISBN-13, which every table is keyed by, and what is known about it.

use std::fmt;
use std::str::FromStr;

use crate::config::value::BadValue;
use crate::db::{FromCell, ToValue, Value};
use crate::phrase;
use crate::phrase::Phrase;

/// A provider of books, as `books.source` names it.
pub const GOOGLE_BOOKS: &str = "google_books";

/// Thirteen digits that begin with 978 or 979, with a valid check digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Isbn13(String);

impl Isbn13 {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Parses an ISBN-13, or converts an ISBN-10; ignores hyphens and spaces.
impl FromStr for Isbn13 {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = |why: Phrase| {
            let text: String = text.chars().take(40).collect();
            BadValue::new(phrase!("`{text}` is not an ISBN: {why}", "`{text}` は ISBN ではありません：{why}"))
        };
        let not_digits = || bad(phrase!("it has something else than digits", "数字以外の文字があります"));
        let wrong_check = || bad(phrase!("its check digit is wrong", "チェックディジットが違います"));
        let digits: String = text
            .chars()
            .filter(|c| !matches!(c, ' ' | '-' | '\u{2010}'..='\u{2015}' | '\u{2212}'))
            .map(|c| c.to_ascii_uppercase())
            .collect();
        let values = |digits: &str| -> Option<Vec<u32>> { digits.chars().map(|c| c.to_digit(10)).collect() };
        if !digits.is_ascii() {
            return Err(not_digits());
        }
        match digits.len() {
            13 => {
                let values = values(&digits).ok_or_else(not_digits)?;
                if !(digits.starts_with("978") || digits.starts_with("979")) {
                    return Err(bad(phrase!(
                        "it begins with neither 978 nor 979",
                        "978 でも 979 でも始まっていません"
                    )));
                }
                if check_digit(&values[..12]) == values[12] { Ok(Self(digits)) } else { Err(wrong_check()) }
            }
            10 => {
                let (body, check) = digits.split_at(9);
                let values = values(body).ok_or_else(not_digits)?;
                let check = match check {
                    "X" => 10,
                    check => check.parse().map_err(|_| not_digits())?,
                };
                let sum: u32 = values.iter().zip((2..=10).rev()).map(|(value, weight)| value * weight).sum();
                if !(sum + check).is_multiple_of(11) {
                    return Err(wrong_check());
                }
                let whole: Vec<u32> = [9, 7, 8].into_iter().chain(values).collect();
                Ok(Self(format!("978{body}{}", check_digit(&whole))))
            }
            _ => Err(bad(phrase!("it has neither 13 nor 10 digits", "13 桁でも 10 桁でもありません"))),
        }
    }
}

/// The last digit that makes the first twelve an ISBN-13.
fn check_digit(first_twelve: &[u32]) -> u32 {
    let sum: u32 =
        first_twelve.iter().zip([1, 3].into_iter().cycle()).map(|(value, weight)| value * weight).sum();
    (10 - sum % 10) % 10
}

impl fmt::Display for Isbn13 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ToValue for Isbn13 {
    fn to_value(&self) -> Value<'_> {
        self.0.to_value()
    }
}

/// A stored ISBN is not validated: other programs may have written the row.
impl FromCell for Isbn13 {
    const WANTED: &'static str = "an ISBN";

    fn from_cell(cell: &Value<'_>) -> Option<Self> {
        String::from_cell(cell).map(Self)
    }
}

/// Where to read about a book, or to buy it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BookLink {
    pub label: String,
    pub url: String,
}

/// A book. Fields that a provider leaves out are `None` and never overwrite known values.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Book {
    pub isbn13: Isbn13,
    /// Its title with its subtitle; its ISBN when the provider names none.
    pub title: String,
    pub authors: Vec<String>,
    pub publisher: Option<String>,
    /// When, as the provider writes it: `2026`, `2026-01` or `2026-01-15`.
    pub published_date: Option<String>,
    /// As plain text.
    pub description: Option<String>,
    /// Its cover, over https.
    pub cover_url: Option<String>,
    pub links: Vec<BookLink>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn isbns_are_checked_and_converted() {
        for (text, isbn) in [
            ("9784101010014", Ok("9784101010014")),
            ("978-4-10-101001-4", Ok("9784101010014")),
            ("4101010013", Ok("9784101010014")),
            ("4-10-101001-3", Ok("9784101010014")),
            ("080442957X", Ok("9780804429573")),
            ("080442957x", Ok("9780804429573")),
            ("9791034304455", Ok("9791034304455")),
            ("9784101010013", Err("its check digit is wrong")),
            ("4101010014", Err("its check digit is wrong")),
            ("X804429570", Err("it has something else than digits")),
            ("9771234567003", Err("it begins with neither 978 nor 979")),
            ("97841010100１4", Err("it has something else than digits")),
            ("410101ほ3", Err("it has something else than digits")),
            ("", Err("it has neither 13 nor 10 digits")),
            ("PKEY:0123", Err("it has neither 13 nor 10 digits")),
        ] {
            let read = text.parse::<Isbn13>();
            let read = read.as_ref().map(Isbn13::as_str).map_err(ToString::to_string);
            let wanted = isbn.map_err(|why| format!("`{text}` is not an ISBN: {why}"));
            assert_eq!(read, wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_wrong_digit_is_noticed(body in "97[89][0-9]{9}", place in 0usize..13, other in 1u32..10) {
            let values: Vec<u32> = body.chars().map(|c| c.to_digit(10).unwrap()).collect();
            let isbn = format!("{body}{}", check_digit(&values));
            prop_assert!(isbn.parse::<Isbn13>().is_ok());
            let mut digits: Vec<u32> = isbn.chars().map(|c| c.to_digit(10).unwrap()).collect();
            digits[place] = (digits[place] + other) % 10;
            let wrong: String = digits.iter().map(ToString::to_string).collect();
            prop_assert!(wrong.parse::<Isbn13>().is_err(), "{}", wrong);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,20}") {
            let _ = text.parse::<Isbn13>();
        }
    }
}
