//! The widths of the glyphs of a font, which separate words and lines.

use std::collections::HashMap;

use super::document::PdfDocument;
use super::object::{Dict, Object};

/// The most widths of one font.
const MAX_WIDTHS: usize = 70_000;

/// The widths of space to tilde in the standard sans-serif and serif fonts.
const SANS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
const SERIF: [u16; 95] = [
    250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250, 333, 250, 278, 500, 500, 500, 500, 500,
    500, 500, 500, 500, 500, 278, 278, 564, 564, 564, 444, 921, 722, 667, 667, 722, 611, 556, 722, 722, 333,
    389, 722, 611, 889, 722, 722, 556, 722, 667, 556, 611, 722, 722, 944, 722, 722, 611, 333, 278, 333, 469,
    500, 333, 444, 500, 444, 500, 444, 333, 500, 500, 278, 278, 500, 278, 778, 500, 500, 500, 500, 333, 389,
    278, 500, 500, 722, 500, 500, 444, 480, 200, 480, 541,
];

/// The codes from `first` on, up to the largest.
fn codes(first: u32) -> impl Iterator<Item = u32> {
    first..=u32::MAX
}

/// Widths by code, in thousandths of the font's size.
#[derive(Clone, Debug)]
pub(super) struct Widths {
    known: HashMap<u32, f64>,
    ranges: Vec<(u32, u32, f64)>,
    usual: f64,
    /// The width of single-byte codes in fonts whose default width is that of an ideograph.
    narrow: Option<f64>,
}

impl Widths {
    /// From a simple font.
    pub(super) fn simple(document: &PdfDocument<'_>, font: &Dict) -> Self {
        let mut known = HashMap::new();
        let first = document.value(font, "FirstChar").size().unwrap_or(0) as u32;
        let scale = match document.value(font, "FontMatrix").array() {
            Some([Object::Number(scale), ..]) => scale * 1000.0,
            _ => 1.0,
        };
        if let Some(widths) = document.value(font, "Widths").array() {
            for (code, width) in codes(first).zip(widths).take(256) {
                if let Some(width) = document.resolve(width).number() {
                    known.insert(code, width * scale);
                }
            }
        }
        let name = document.value(font, "BaseFont");
        let name = String::from_utf8_lossy(name.name().unwrap_or_default()).into_owned();
        let mut usual = 500.0;
        if known.is_empty() {
            let table = match () {
                () if name.contains("Courier") => {
                    usual = 600.0;
                    None
                }
                () if name.contains("Times") => Some(&SERIF),
                () => Some(&SANS),
            };
            known = (0x20..)
                .zip(table.into_iter().flatten())
                .map(|(code, width)| (code, f64::from(*width)))
                .collect();
        }
        Self { known, ranges: Vec::new(), usual, narrow: None }
    }

    /// From a descendant font, by glyph number.
    pub(super) fn by_glyph(document: &PdfDocument<'_>, font: &Dict) -> Self {
        let usual = document.value(font, "DW").number().unwrap_or(1000.0);
        let mut widths = Self { known: HashMap::new(), ranges: Vec::new(), usual, narrow: None };
        let list = document.value(font, "W");
        let mut rest = list.array().unwrap_or_default();
        while let [first, second, tail @ ..] = rest {
            if document.budget.spend(1).is_none() || widths.len() >= MAX_WIDTHS {
                break;
            }
            let Some(first) = document.resolve(first).size() else { break };
            let first = first as u32;
            rest = match (document.resolve(second).as_ref(), tail) {
                (Object::Array(each), _) => {
                    for (glyph, width) in codes(first).zip(each) {
                        if document.budget.spend(1).is_none() || widths.len() >= MAX_WIDTHS {
                            break;
                        }
                        if let Some(width) = document.resolve(width).number() {
                            widths.known.insert(glyph, width);
                        }
                    }
                    tail
                }
                (Object::Number(last), [width, tail @ ..]) => {
                    if let Some(width) = document.resolve(width).number() {
                        widths.ranges.push((first, *last as u32, width));
                    }
                    tail
                }
                _ => break,
            };
        }
        widths.ranges.sort_by_key(|range| range.0);
        widths
    }

    /// A guess for fonts whose codes are characters: ideographs are square, others half as wide.
    pub(super) fn square() -> Self {
        Self { known: HashMap::new(), ranges: Vec::new(), usual: 1000.0, narrow: Some(500.0) }
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.known.len() + self.ranges.len()
    }

    /// The width of the code of `text`.
    pub(super) fn of(&self, code: u32, text: &str) -> f64 {
        if let Some(width) = self.known.get(&code) {
            return *width;
        }
        let after = self.ranges.partition_point(|range| range.0 <= code);
        if let Some(range) = self.ranges[..after].last().filter(|range| code <= range.1) {
            return range.2;
        }
        match (self.narrow, text.chars().next()) {
            (Some(narrow), Some('\0'..='\u{24F}' | '\u{FF61}'..='\u{FFDC}')) => narrow,
            _ => self.usual,
        }
    }
}
