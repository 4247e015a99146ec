//! Events about jobs.

use serde::{Deserialize, Serialize};

use super::RunOutcome;
use crate::ledger::event::EventDetail;
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// How a run of a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    pub code: RunOutcome,
    #[serde(with = "phrase::stored")]
    pub message: Phrase,
    pub began_at: Option<Timestamp>,
    #[serde(default)]
    pub new_count: u64,
}

impl RunEvent {
    /// The end of a run.
    pub fn new(code: RunOutcome, message: Phrase, began_at: Timestamp, new_count: u64) -> Self {
        Self { code, message, began_at: Some(began_at), new_count }
    }
}

impl EventDetail for RunEvent {
    const SUBJECT: &'static str = "job";

    fn phrase(&self) -> Phrase {
        let (ended, message) = (self.code.phrase(), &self.message);
        phrase!("{ended}: {message}", "{ended}：{message}")
    }
}

/// Other events about a job, whatever its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum JobEvent {
    /// A person paused it.
    Paused {
        /// Until when; `None` until it is resumed.
        until: Option<Timestamp>,
        #[serde(with = "phrase::stored")]
        why: Phrase,
    },
    /// A person resumed it.
    Resumed,
    /// Data of another program was imported.
    Imported {
        /// The other program.
        from: String,
        /// Rows of each table that were read, added and rejected.
        #[serde(default)]
        tables: serde_json::Value,
    },
}

impl EventDetail for JobEvent {
    const SUBJECT: &'static str = "job";

    fn phrase(&self) -> Phrase {
        match self {
            JobEvent::Paused { until: Some(until), why } => {
                phrase!("paused until {until}: {why}", "{until} まで一時停止中：{why}")
            }
            JobEvent::Paused { until: None, why } => phrase!("paused: {why}", "一時停止中：{why}"),
            JobEvent::Resumed => phrase!("resumed", "再開"),
            JobEvent::Imported { from, .. } => phrase!("imported from {from}", "{from} から取り込み"),
        }
    }
}
