//! A refusal that does not say whether the document or the request is wrong: the same one of two documents in a row points at the
//! request, and then the control question tells.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The last refusal of each purpose: models differ, and a screening that works says nothing about summaries.
pub(super) type Refusals = BTreeMap<String, Refusal>;

/// A refusal to compare the next one with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// What the provider said, without figures: they differ from request to request.
    words: String,
    /// What was refused; nothing once several were.
    about: Option<String>,
}

/// Whom a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    Document,
    Request,
}

/// Whom the refusal `why` of `about` blames, given the last one, and what to compare the next one with.
pub(super) fn judge(last: Option<&Refusal>, why: &str, about: &str) -> (Blame, Refusal) {
    let words: String = why.chars().filter(|c| !c.is_numeric()).collect();
    match last.filter(|last| last.words == words) {
        Some(last) if last.about.as_deref() != Some(about) => {
            (Blame::Request, Refusal { words, about: None })
        }
        _ => (Blame::Document, Refusal { words, about: Some(about.to_owned()) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_refusal_of_two_documents_in_a_row_is_about_the_request() {
        let mut last = None;
        for (why, about, blame) in [
            ("HTTP 400: bad thing 17", "a", Blame::Document),
            ("HTTP 400: bad thing 18", "a", Blame::Document),
            ("HTTP 400: another thing", "b", Blame::Document),
            ("HTTP 400: bad thing 19", "b", Blame::Document),
            ("HTTP 400: bad thing 20", "a", Blame::Request),
            // Once that is known, it stays known whoever is asked about.
            ("HTTP 400: bad thing 21", "a", Blame::Request),
            ("HTTP 400: another thing", "a", Blame::Document),
        ] {
            let (found, next) = judge(last.as_ref(), why, about);
            assert_eq!(found, blame, "{why} of {about}");
            last = Some(next);
        }
    }
}
