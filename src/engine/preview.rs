//! What a preview (`job test`) of a job found, for people and for programs; nothing of it is kept.

use serde::Serialize;
use serde_json::Value as Json;

use crate::phrase::Phrase;

/// Things that a preview names.
pub const MAX_NAMED: usize = 5;

/// Whether a preview of one item asks a model, which costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// It only shows the question.
    No,
    Ask,
}

/// What was found at everything that a job watches.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Preview {
    /// One for each source.
    pub items: Vec<PreviewItem>,
    /// What else is to be known, such as what the preview has cost.
    pub notes: Vec<Phrase>,
}

/// What was found at one source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PreviewItem {
    /// The source: a feed, a blog, a search, a branch.
    pub what: String,
    /// What was found there and what a run would do, in one line.
    pub found: Phrase,
    /// The first things of it, one line each.
    pub first: Vec<String>,
    /// Why it could not be read.
    pub error: Option<Phrase>,
    /// Everything that is known about it.
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
