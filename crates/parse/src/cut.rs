//! Why a document was read only in part.

/// The limit that was reached, or the end of a truncated document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// It has more entries than [`feed::ENTRY_LIMIT`](crate::feed::ENTRY_LIMIT).
    Entries,
    /// Its elements nest deeper than [`feed::DEPTH_LIMIT`](crate::feed::DEPTH_LIMIT).
    Nesting,
    /// It has more elements and text nodes than [`html::NODE_LIMIT`](crate::html::NODE_LIMIT).
    Nodes,
    /// It lists more addresses than are read.
    Addresses,
    /// It lists more sitemaps than are read.
    Sitemaps,
    /// It ends too early.
    End,
}
