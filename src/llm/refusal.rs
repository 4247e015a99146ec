//! Decides whether a failure without a stated cause is about the document or about all requests. The control question
//! is asked when two documents in a row are refused with the same message, and when the provider fails at one document
//! repeatedly.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The latest refusals and failures of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusals {
    /// The latest refusal for each purpose: their models differ, so a screening that works says nothing about
    /// summaries.
    #[serde(flatten)]
    pub(super) by_purpose: BTreeMap<String, Refusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failing: Option<FailingAt>,
}

/// A refusal, to compare the next one with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// The provider's message without digits, which differ from request to request.
    words: String,
    /// The refused document; `None` after several.
    about: Option<String>,
}

/// The document at which a provider has failed last, without an answer or with a server error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FailingAt {
    pub(super) about: String,
    /// How often in a row. Answers for other documents do not reset it: they make this document more suspect.
    count: u32,
}

impl FailingAt {
    /// Counts one more failure, this time at `about`.
    pub(super) fn again(last: Option<Self>, about: &str) -> Self {
        let before = last.filter(|last| last.about == about).map_or(0, |last| last.count);
        Self { about: about.to_owned(), count: before.saturating_add(1) }
    }

    /// Whether the document may be the cause. It is checked only now and then, as a provider may be down for days.
    pub(super) fn is_suspect(&self) -> bool {
        self.count == 3 || self.count.is_multiple_of(24)
    }
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    Document,
    Request,
}

/// Decides what the refusal `why` of `about` is about, given the last one; returns also what to compare the next one
/// with.
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
    fn a_document_is_suspect_at_the_third_failure_in_a_row_and_then_seldom() {
        let mut last = None;
        let mut suspect = Vec::new();
        for about in ["a", "a", "b", "a", "a", "a"].into_iter().chain(["a"; 45]) {
            let next = FailingAt::again(last, about);
            suspect.extend(next.is_suspect().then_some(next.count));
            last = Some(next);
        }
        assert_eq!(suspect, [3, 24, 48]);
    }

    #[test]
    fn what_older_versions_remember_is_read() {
        let old = r#"{"screen":{"words":"HTTP : bad","about":"a"}}"#;
        let read: Refusals = serde_json::from_str(old).unwrap();
        assert_eq!((read.by_purpose.len(), serde_json::to_string(&read).unwrap().as_str()), (1, old));
    }

    #[test]
    fn the_same_refusal_of_two_documents_in_a_row_is_about_the_request() {
        let mut last = None;
        for (why, about, blame) in [
            ("HTTP 400: bad thing 17", "a", Blame::Document),
            ("HTTP 400: bad thing 18", "a", Blame::Document),
            ("HTTP 400: another thing", "b", Blame::Document),
            ("HTTP 400: bad thing 19", "b", Blame::Document),
            ("HTTP 400: bad thing 20", "a", Blame::Request),
            // Once that is known, it is valid for all documents.
            ("HTTP 400: bad thing 21", "a", Blame::Request),
            ("HTTP 400: another thing", "a", Blame::Document),
        ] {
            let (found, next) = judge(last.as_ref(), why, about);
            assert_eq!(found, blame, "{why} of {about}");
            last = Some(next);
        }
    }
}
