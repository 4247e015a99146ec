//! The result of an import, table by table, with the reasons for rejected rows.

use std::collections::BTreeMap;

use crate::phrase;
use crate::phrase::Phrase;

/// Different reasons per table; a hostile file may have any number.
const MOST_REASONS: usize = 20;

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// In the order of the import.
    pub tables: Vec<TableReport>,
    /// Further notices for the user.
    pub notices: Vec<Phrase>,
}

/// The result for the rows of one table.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TableReport {
    pub table: String,
    /// Rows in the source.
    pub found: u64,
    /// Rows that are new here, or would be.
    pub added: u64,
    /// Rows that were here already.
    pub known: u64,
    /// Rows that cannot be imported.
    pub refused: u64,
    /// Most frequent first.
    pub reasons: Vec<Reason>,
}

/// A reason why rows were rejected.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Reason {
    pub reason: Phrase,
    /// The number of rows.
    pub count: u64,
    /// The first of them, by its position in the table.
    pub first_row: u64,
}

impl Report {
    /// New rows over all tables.
    pub fn added(&self) -> u64 {
        self.tables.iter().map(|table| table.added).sum()
    }

    /// Rejected rows over all tables.
    pub fn refused(&self) -> u64 {
        self.tables.iter().map(|table| table.refused).sum()
    }

    /// Adds a notice for the user, unless it is there already.
    pub fn note(&mut self, notice: impl Into<Phrase>) {
        let notice = notice.into();
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }
}

/// Counts the rows of one table.
#[derive(Debug, Default)]
pub(super) struct TableCount {
    pub(super) found: u64,
    pub(super) added: u64,
    pub(super) known: u64,
    refused: u64,
    /// By the English text.
    reasons: BTreeMap<String, Reason>,
}

impl TableCount {
    /// Counts the present row as rejected.
    pub(super) fn refuse(&mut self, mut reason: Phrase) {
        self.refused += 1;
        let mut key = reason.to_string();
        if self.reasons.len() >= MOST_REASONS && !self.reasons.contains_key(&key) {
            reason = phrase!("for other reasons", "その他の理由");
            key = reason.to_string();
        }
        let first_row = self.found;
        self.reasons.entry(key).or_insert(Reason { reason, count: 0, first_row }).count += 1;
    }

    pub(super) fn finish(self, table: &str) -> TableReport {
        let mut reasons: Vec<Reason> = self.reasons.into_values().collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
        TableReport {
            table: table.to_owned(),
            found: self.found,
            added: self.added,
            known: self.known,
            refused: self.refused,
            reasons,
        }
    }
}
