//! Writes SVG: escaped text, short numbers, and classes instead of colours, so that the style sheet decides the theme.

use std::fmt::Write as _;

use super::SMALL;
use crate::text::{escape_html, one_line};

pub(super) struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// The alignment of a text relative to its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { body: String::new(), width, height }
    }

    /// A rectangle with a tooltip; nothing if it is empty.
    pub(super) fn rect(&mut self, paint: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: &str) {
        if width <= 0.0 || height <= 0.0 {
            return;
        }
        let _ = write!(
            self.body,
            "<rect {paint} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            short(x),
            short(y),
            short(width),
            short(height)
        );
        self.end("rect", tip);
    }

    pub(super) fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64, tip: &str) {
        let _ = write!(
            self.body,
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"",
            short(x),
            short(y),
            short(radius)
        );
        self.end("circle", tip);
    }

    pub(super) fn path(&mut self, class: &str, d: &str, tip: &str) {
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{d}\"");
        self.end("path", tip);
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            short(x1),
            short(y1),
            short(x2),
            short(y2)
        );
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            short(x),
            short(y),
            clean(text)
        );
    }

    /// Patterns that distinguish series without colour; `id` makes their names unique on the page.
    pub(super) fn patterns(&mut self, id: &str, count: usize) {
        const HATCHES: [&str; 8] = [
            "",
            "M-2 2l4-4M0 8l8-8M6 10l4-4",
            "M-2 6l4 4M0 0l8 8M6-2l4 4",
            "M0 4h8",
            "M4 0v8",
            "M0 4h8M4 0v8",
            "M2 2h2v2h-2zM6 6h2v2h-2z",
            "M0 0l8 8M8 0l-8 8",
        ];
        self.body.push_str("<defs>");
        for (number, hatch) in HATCHES.iter().enumerate().take(count) {
            let _ = write!(
                self.body,
                "<pattern id=\"{id}-p{number}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
                 <rect class=\"c-s{number}\" width=\"8\" height=\"8\"/><path class=\"c-hatch\" d=\"{hatch}\"/></pattern>"
            );
        }
        self.body.push_str("</defs>");
    }

    fn end(&mut self, name: &str, tip: &str) {
        let _ = match tip {
            "" => write!(self.body, "/>"),
            tip => write!(self.body, "><title>{}</title></{name}>", clean(tip)),
        };
    }

    /// The whole element, with title and description.
    pub(super) fn finish(self, id: &str, title: &str, about: &str) -> String {
        format!(
            "<svg class=\"chart{5}\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{2}</title><desc id=\"{id}-d\">{3}</desc>{4}</svg>",
            short(self.width),
            short(self.height),
            clean(title),
            clean(about),
            self.body,
            if self.width <= SMALL { " small" } else { "" }
        )
    }
}

/// The fill of a series.
pub(super) fn paint(id: &str, number: usize) -> String {
    format!("fill=\"url(#{id}-p{number})\"")
}

/// Untrusted text on one line, escaped.
fn clean(text: &str) -> String {
    let allowed = |c: &char| !matches!(c, '\u{fffe}' | '\u{ffff}');
    escape_html(&one_line(text).chars().filter(allowed).collect::<String>())
}

/// A coordinate with one decimal at most.
pub(super) fn short(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    // Avoid a negative zero.
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}
