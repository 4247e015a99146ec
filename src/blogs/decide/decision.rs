//! The decision after a check: the state, the history and the changes to write.

use std::collections::HashSet;

use crate::blogs::events::BlogEvent;
use crate::blogs::model::{Detector, FoundEntry, State};
use crate::parse::Cut;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::word_enum;

#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The new state; `None` when only the time of the check changes.
    pub state: Option<Box<State>>,
    /// The row of the history.
    pub check: Check,
    /// Entries to add to those seen.
    pub record: Record,
    /// The changes to announce.
    pub changes: Vec<Change>,
    /// Events, for `why`.
    pub events: Vec<BlogEvent>,
    /// Pause the blog, for this reason.
    pub pause: Option<Phrase>,
}

/// Entries to add to those seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// All entries that were read.
    All,
    These(Vec<FoundEntry>),
}

impl Record {
    /// Adds more entries; `All` needs none.
    pub(super) fn add(&mut self, more: impl IntoIterator<Item = FoundEntry>) {
        match self {
            Record::These(entries) => entries.extend(more),
            Record::All => {}
        }
    }
}

/// A row of `check_history`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// The HTTP status that decided.
    pub http_status: Option<u16>,
    /// Whether nothing was parsed.
    pub skipped: bool,
    /// Whether something new was found.
    pub changed: bool,
    /// Hash of the addresses that were listed.
    pub url_fingerprint: Option<String>,
    pub error_message: Option<Phrase>,
    /// The part that exceeds a limit.
    pub cut: Option<Cut>,
}

/// A change to announce.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub code: Code,
    /// Whether it needs approval.
    pub held: bool,
    pub detail: Detail,
}

word_enum! {
    /// The kind of a change.
    pub enum Code {
        /// New entries.
        New = "new",
        /// It cannot be read.
        Failing = "failing",
        /// It can be read again.
        Recovered = "recovered",
        /// It is gone for good.
        Gone = "gone",
    }
}

impl Code {
    /// What it is called.
    pub fn phrase(self) -> Phrase {
        match self {
            Code::New => phrase!("new", "新着"),
            Code::Failing => phrase!("failing", "失敗"),
            Code::Recovered => phrase!("recovered", "復旧"),
            Code::Gone => phrase!("gone", "消滅"),
        }
    }
}

/// The details of a change, stored as JSON.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Detail {
    /// The new entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<FoundEntry>,
    /// How many more entries there are than stored here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detector: Option<Detector>,
    /// Why they are held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_because: Option<HoldReason>,
    /// Whether entries may have been missed in between.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gap: bool,
    /// English for programs; [`Detail::to_stored`] stores the whole phrase.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_error")]
    pub error: Option<Phrase>,
    /// How often in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Whether it is a reminder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

fn read_error<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Phrase>, D::Error> {
    let stored: Option<String> = serde::Deserialize::deserialize(deserializer)?;
    Ok(stored.as_deref().map(Phrase::from_stored))
}

impl Detail {
    /// The stored form: the error can be shown in any language later.
    pub fn to_stored(&self) -> serde_json::Value {
        let mut stored = serde_json::json!(self);
        if let Some(error) = &self.error {
            stored["error"] = error.to_stored().into();
        }
        stored
    }

    /// How many entries are new.
    pub fn count(&self) -> usize {
        self.entries.len() + self.more
    }
}

/// Why new entries need approval.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// More at once than `hold_above`.
    TooMany { entries: usize, hold_above: usize },
    /// Hardly any known address is still listed.
    FewLeft { left: usize, known: usize },
    /// No known entry is left, and no date distinguishes new entries from old ones.
    NoDates,
    /// As text, from an earlier version.
    #[serde(untagged)]
    Words(String),
}

impl HoldReason {
    /// For people.
    pub fn phrase(&self) -> Phrase {
        match self {
            HoldReason::TooMany { entries, hold_above } => phrase!(
                "{entries new entry} at once, more than {hold_above}",
                "一度に新着 {entries} 件（上限 {hold_above} 件）"
            ),
            HoldReason::FewLeft { left, known } => phrase!(
                "only {left} of {known} known addresses are left",
                "既知のアドレス {known} 件のうち {left} 件しか残っていません"
            ),
            HoldReason::NoDates => phrase!(
                "nothing of what the feed had is left, and its entries have no dates",
                "フィードの記事がすべて入れ替わり、日付もありません"
            ),
            HoldReason::Words(words) => words.into(),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Which of the entries were seen before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenEntries {
    /// Known keys.
    pub keys: HashSet<String>,
    /// Known comparison keys of addresses.
    pub url_keys: HashSet<String>,
    /// Keys of entries that are known under another key.
    pub renamed: HashSet<String>,
    /// Keys of entries that replace one that the feed had before: with its title and date, under another id and
    /// address.
    pub replacing: HashSet<String>,
}

impl SeenEntries {
    pub fn extend(&mut self, more: SeenEntries) {
        self.keys.extend(more.keys);
        self.url_keys.extend(more.url_keys);
        self.renamed.extend(more.renamed);
        self.replacing.extend(more.replacing);
    }

    /// Whether the entry was seen, by any of its keys or its address.
    pub fn knows(&self, entry: &FoundEntry) -> bool {
        self.keys.contains(&entry.key)
            || entry.url_key.as_ref().is_some_and(|key| self.url_keys.contains(key))
            || self.renamed.contains(&entry.key)
            || self.replacing.contains(&entry.key)
    }
}
