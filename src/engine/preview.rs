//! What one look at what a job watches brought, for people and for programs; nothing of it is kept.

use serde::Serialize;
use serde_json::Value as Json;

/// Things that a look names.
pub const MAX_NAMED: usize = 5;

/// What a look at everything that a job watches brought.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Preview {
    /// One for each thing that was looked at.
    pub items: Vec<PreviewItem>,
    /// What else is to be known, such as what the look has cost.
    pub notes: Vec<String>,
}

/// What a look at one thing brought.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PreviewItem {
    /// What was looked at: a feed, a blog, a search, a branch.
    pub what: String,
    /// What was found there and what a run would do, in one line.
    pub found: String,
    /// The first things of it, one line each.
    pub first: Vec<String>,
    /// Why it could not be looked at.
    pub error: Option<String>,
    /// Everything that is known about it.
    pub detail: Json,
}

impl PreviewItem {
    /// A look that went well.
    pub fn fine(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { what: what.into(), found: found.into(), first: Vec::new(), error: None, detail: Json::Null }
    }

    /// A look that failed.
    pub fn failed(what: impl Into<String>, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::fine(what, "") }
    }
}
