//! HTML as a type: its content is escaped or our own.

use std::borrow::Cow;
use std::fmt;

use askama::filters::{Escaper as _, Html, HtmlSafe};

use crate::text::width;
use crate::web::chart::Drawn;

/// The most consecutive combining marks.
const MOST_MARKS: usize = 8;

/// HTML that is safe to show as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::web) struct Markup(pub(super) String);

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}

impl Markup {
    /// HTML that our own templates made.
    pub(in crate::web) fn from_template(template: &impl askama::Template) -> askama::Result<Self> {
        template.render().map(Self)
    }

    /// The SVG of our charts, which escape their text themselves.
    pub(in crate::web) fn from_chart(drawn: Drawn) -> Self {
        Self(drawn.svg)
    }

    pub(in crate::web) fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds HTML of our own.
    pub(in crate::web) fn push_html(&mut self, html: &'static str) {
        self.0.push_str(html);
    }

    /// Adds text, escaped.
    pub(in crate::web) fn push_text(&mut self, text: &str) {
        // Writing into a string cannot fail.
        let _ = Html.write_escaped_str(&mut self.0, text);
    }

    /// Adds untrusted text: isolates direction marks, and limits combining marks that would cover the lines above and
    /// below.
    pub(super) fn push_foreign(&mut self, text: &str) {
        self.push_html("<bdi>");
        self.push_text(&without_piles(text));
        self.push_html("</bdi>");
    }
}

/// Removes combining marks beyond what any script needs.
fn without_piles(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut piled = 0;
    let is_kept = |letter: &char| {
        piled = if width(letter.encode_utf8(&mut [0; 4])) == 0 { piled + 1 } else { 0 };
        piled <= MOST_MARKS
    };
    Cow::Owned(text.chars().filter(is_kept).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_are_piled_on_one_letter_are_cut_and_those_of_real_scripts_stay() {
        let shown = |text: &str| {
            let mut markup = Markup::default();
            markup.push_foreign(text);
            markup.0
        };
        assert_eq!(
            shown(&format!("a{}b", "\u{301}".repeat(300))),
            format!("<bdi>a{}b</bdi>", "\u{301}".repeat(8))
        );
        for real in ["กี่ครั้ง", "בְּרֵאשִׁ֖ית", "བསྒྲུབས", "が", "👩‍👩‍👧‍👦"]
        {
            assert_eq!(shown(real), format!("<bdi>{real}</bdi>"));
        }
    }
}
