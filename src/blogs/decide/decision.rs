//! What comes of a check: what to remember, what to write down, what to tell.

use std::collections::HashSet;

use crate::blogs::events::BlogEvent;
use crate::blogs::model::{Detector, FoundEntry, State};
use crate::parse::Cut;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;
use crate::word_enum;

/// What a check means.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to remember; `None` when only the time of the check is new.
    pub state: Option<Box<State>>,
    /// The row of the history.
    pub check: Check,
    /// What joins the memory of everything seen.
    pub record: Record,
    /// What is worth telling.
    pub changes: Vec<Change>,
    /// What happened, for `why`.
    pub events: Vec<BlogEvent>,
    /// The blog is to be left alone, for this reason.
    pub pause: Option<Phrase>,
}

/// What joins the memory of everything seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Everything that was read.
    All,
    These(Vec<FoundEntry>),
}

impl Record {
    /// Adds more; what is read as a whole takes only what it reads.
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
    /// Whether nothing had to be read.
    pub skipped: bool,
    /// Whether something new was found.
    pub changed: bool,
    /// Hash of the addresses that were listed.
    pub url_fingerprint: Option<String>,
    pub error_message: Option<Phrase>,
    /// What was left out at a limit.
    pub cut: Option<Cut>,
}

/// Something worth telling.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub code: Code,
    /// Whether a person is to look at it first.
    pub held: bool,
    /// What there is to say.
    pub detail: Detail,
}

word_enum! {
    /// What happened to a blog that is worth telling.
    pub enum Code {
        /// It has something new.
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

/// What there is to say about a change; stored as JSON until it is told.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Detail {
    /// The new entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<FoundEntry>,
    /// How many more there are than are kept here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Who found them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detector: Option<Detector>,
    /// Why they are held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_because: Option<HoldReason>,
    /// Whether entries may have been missed in between.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gap: bool,
    /// For programs in English; [`Detail::to_stored`] keeps all of it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_error")]
    pub error: Option<Phrase>,
    /// How often in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Whether it was told before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

fn read_error<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Phrase>, D::Error> {
    let stored: Option<String> = serde::Deserialize::deserialize(deserializer)?;
    Ok(stored.as_deref().map(Phrase::from_stored))
}

impl Detail {
    /// As it is stored: what went wrong can be shown in any language later.
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

/// Why a person has to approve what is new.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// More at once than a reader can take.
    TooMany { entries: usize, hold_above: usize },
    /// Hardly any of the addresses that were known is listed any more.
    FewLeft { left: usize, known: usize },
    /// Nothing of what was known is left, and no date tells new entries from old ones.
    NoDates,
    /// In the words of an earlier version.
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

/// What the long memory knows of the entries in question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenEntries {
    /// Keys that it has.
    pub keys: HashSet<String>,
    /// Addresses that it has, as compared.
    pub url_keys: HashSet<String>,
    /// Keys of entries that it has under another key.
    pub renamed: HashSet<String>,
    /// Keys of entries that stand in the place of one that the feed had until now: with its title and date, under another id and
    /// at another address.
    pub replacing: HashSet<String>,
}

impl SeenEntries {
    /// Adds what the memory has of other entries.
    pub fn extend(&mut self, more: SeenEntries) {
        self.keys.extend(more.keys);
        self.url_keys.extend(more.url_keys);
        self.renamed.extend(more.renamed);
        self.replacing.extend(more.replacing);
    }

    /// Whether the entry was seen, under any of its keys or at its address.
    pub fn knows(&self, entry: &FoundEntry) -> bool {
        self.keys.contains(&entry.key)
            || entry.url_key.as_ref().is_some_and(|key| self.url_keys.contains(key))
            || self.renamed.contains(&entry.key)
            || self.replacing.contains(&entry.key)
    }
}
