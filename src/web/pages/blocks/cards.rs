//! Cards with a cover, drawn from title and author, because pages load no images from other sites.

use askama::Template;
use unicode_segmentation::UnicodeSegmentation;

use super::BlockContext;
use crate::engine::page::{Card, Cards};
use crate::hash::sha256_hex;
use crate::text::{one_line, shorten, width};
use crate::web::pages::render::Renderer;

/// Columns of a line on a cover; a full-width letter takes two.
const COLUMNS: usize = 16;
const MAX_LINES: usize = 6;
/// The number of cover colours; the same book always has the same.
const COLOURS: usize = 6;

#[derive(Template)]
#[template(path = "pages/blocks/cards.html")]
pub(super) struct CardsPart<'a> {
    r: &'a Renderer,
    cards: &'a Cards,
    covered: Vec<(&'a Card, Cover)>,
}

/// What a drawn cover shows.
struct Cover {
    colour: usize,
    lines: Vec<String>,
    by: String,
}

impl<'a> CardsPart<'a> {
    pub(super) fn new(context: &BlockContext<'a>, cards: &'a Cards) -> Self {
        let covered = cards.cards.iter().map(|card| (card, Cover::of(card))).collect();
        Self { r: context.r, cards, covered }
    }
}

impl Cover {
    fn of(card: &Card) -> Self {
        let colour = usize::from_str_radix(&sha256_hex(&card.about)[..4], 16).unwrap_or(0) % COLOURS;
        Self { colour, lines: wrap(&card.title), by: shorten(&card.by, COLUMNS + 2) }
    }

    /// The position of a line.
    fn y(&self, index: &usize) -> usize {
        44 + index * 21
    }
}

/// Wraps text to lines, between words if possible.
fn wrap(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in one_line(text).split_word_bounds() {
        let line = lines.last_mut().expect("there is always a last line");
        if width(line) + width(word.trim_end()) <= COLUMNS {
            line.push_str(word);
        } else if width(word) <= COLUMNS {
            lines.push(word.trim_start().to_owned());
        } else {
            let mut rest = String::new();
            for grapheme in word.graphemes(true) {
                if width(&rest) + width(grapheme) > COLUMNS {
                    lines.push(std::mem::take(&mut rest));
                }
                rest.push_str(grapheme);
            }
            lines.push(rest);
        }
    }
    lines.retain(|line| !line.trim().is_empty());
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES);
        if let Some(last) = lines.last_mut() {
            *last = shorten(&format!("{last}……"), COLUMNS);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_fit_on_a_cover_whatever_they_are() {
        assert_eq!(wrap("The Rust Programming Language"), ["The Rust ", "Programming ", "Language"]);
        assert_eq!(wrap("コンサルタントの仕事術"), ["コンサルタントの", "仕事術"]);
        assert_eq!(wrap(""), Vec::<String>::new());
        for hostile in ["x".repeat(10_000), "あ".repeat(1_000), "a b ".repeat(500), "\u{202e}\n\t".repeat(9)]
        {
            let lines = wrap(&hostile);
            assert!(lines.len() <= MAX_LINES, "{lines:?}");
            assert!(lines.iter().all(|line| width(line.trim_end()) <= COLUMNS), "{lines:?}");
        }
    }
}
