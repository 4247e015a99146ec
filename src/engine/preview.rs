//! A preview of a job (`job test`), for people and for programs; nothing of it is saved.

use serde::Serialize;
use serde_json::Value as Json;

use crate::phrase::Phrase;

/// Things that a preview names.
pub const MAX_NAMED: usize = 5;

/// Whether a preview of one item calls the model, which costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Only show the prompt.
    No,
    Ask,
}

/// The preview of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Preview {
    /// One for each source.
    pub items: Vec<PreviewItem>,
    /// Further notes, such as the cost of the preview.
    pub notes: Vec<Phrase>,
}

/// The preview of one source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PreviewItem {
    /// The source: a feed, a blog, a search, a branch.
    pub what: String,
    /// What was found and what a run would do with it, in one line.
    pub found: Phrase,
    /// The first things found, one line each.
    pub first: Vec<String>,
    /// Why it could not be read.
    pub error: Option<Phrase>,
    /// All details.
    pub detail: Json,
}

impl PreviewItem {
    /// A source that could be read.
    pub fn fine(what: impl Into<String>, found: impl Into<Phrase>) -> Self {
        Self { what: what.into(), found: found.into(), first: Vec::new(), error: None, detail: Json::Null }
    }

    /// A source that could not be read.
    pub fn failed(what: impl Into<String>, error: impl Into<Phrase>) -> Self {
        Self { error: Some(error.into()), ..Self::fine(what, "") }
    }
}
