//! HTML as a type: what is in it was escaped, or is our own.

use std::fmt;

use askama::filters::{Escaper as _, Html, HtmlSafe};

use crate::web::chart::Drawn;

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

    /// What our own charts drew; they escape their words themselves.
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

    /// Adds text, whatever it says.
    pub(in crate::web) fn push_text(&mut self, text: &str) {
        // Writing into a string cannot fail.
        let _ = Html.write_escaped_str(&mut self.0, text);
    }

    /// Adds text of others: signs in it that turn the direction of reading end with it.
    pub(super) fn push_foreign(&mut self, text: &str) {
        self.push_html("<bdi>");
        self.push_text(text);
        self.push_html("</bdi>");
    }
}
