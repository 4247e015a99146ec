//! What the rest of the program knows of a pipeline: its descriptor.
//!
//! Only `app` names pipelines, in a list of these.

use std::sync::Arc;
use std::time::Duration;

use super::action::{Act, ActionOutcome};
use super::finding::ListFindings;
use super::job::Boxed;
use super::notice::Notice;
use super::{Collector, Finder, JobEnv, Page, Table, View};
use crate::channel::outbox::Topics;
use crate::config::{self, Config, Flag, Kind, Problems, Section};
use crate::db::{self, Db, Tx};
use crate::fetch::SecretHint;
use crate::id::JobName;
use crate::ledger::event::Event;
use crate::phrase::Phrase;
use crate::text::Language;
use crate::time::{Clock, Timestamp};

/// A pipeline.
pub struct Pipeline {
    /// Its name in the config file, and the struct of its table.
    pub kind: Kind,
    /// What it does, in a few words for help texts and questions.
    pub about: fn() -> Phrase,
    /// How often its jobs run by default.
    pub every: Duration,
    /// Makes a job from its table.
    pub make: Make,
    /// Registers what to do when a message was delivered, skipped or has failed.
    pub topics: fn(Topics) -> Topics,
    /// What a job without a channel does.
    pub without_channel: WithoutChannel,
    /// Checks all of its jobs together.
    pub check_jobs: fn(&[config::Job]) -> Problems,
    /// Lists possible improvements to the table of a job that is valid.
    pub list_warnings: fn(&config::Job, &Config) -> Problems,
    /// Each deletes at most so many rows that are older than a moment, and returns how many were deleted.
    pub prune: &'static [Prune],
    /// Default daily limits, by provider.
    pub quotas: &'static [(&'static str, u32)],
    /// What it needs of the config.
    pub uses: Uses,
    /// The parts of a run that `run --step` can do alone.
    pub steps: &'static [&'static str],
    /// Resumes what was paused for a job beside the job itself; `true` if something was.
    pub resume: fn(&mut Tx<'_>, &JobName) -> db::Result<bool>,
    /// Its own options of `job add`.
    pub flags: &'static [Flag],
    /// A commented example for `init`.
    pub example: Example,
    /// Where to get its secrets.
    pub secrets: &'static [SecretHint],
    /// A setting that would improve a job: what for, and its key.
    pub lacks: fn(&Section) -> Option<(Phrase, &'static str)>,
    /// The kinds of things that `why` and the pages can show.
    pub things: &'static [&'static Thing],
    pub tables: &'static [&'static Table],
    /// Its pages on the dashboard.
    pub pages: &'static [&'static Page],
    /// Exports that are not rows.
    pub documents: &'static [ExportDocument],
    /// Words its events.
    pub words: &'static [Words],
    /// Lists what it found, for feeds and the search.
    pub list_findings: ListFindings,
    /// Work of other processes besides runs of jobs.
    pub list_busy: fn(&mut Tx<'_>) -> db::Result<Vec<String>>,
    /// Lists things in the database that the config no longer has.
    pub list_left: fn(&mut Tx<'_>, &Config) -> db::Result<Vec<Left>>,
    /// Lists what needs a person, beside messages.
    pub list_needs: ListNeeds,
    /// Precomputes what its pages show and is too much to count for each request; the daemon calls it repeatedly.
    pub refresh: Refresh,
}

/// Precomputes what pages show.
pub type Refresh = for<'a> fn(&'a Config, &'a Db, &'a Clock) -> Boxed<'a, db::Result<()>>;

/// For pipelines whose pages only read rows.
pub const NOTHING_TO_REFRESH: Refresh = |_, _, _| Box::pin(std::future::ready(Ok(())));

/// Lists what needs a person.
pub type ListNeeds = fn(&mut Tx<'_>) -> db::Result<Vec<Notice>>;

/// Makes a job from its table.
pub type Make = fn(&config::Job, &JobEnv) -> Result<Arc<dyn Collector>, Problems>;

/// Deletes at most so many rows that are older than a moment; returns how many were deleted.
pub type Prune = fn(&mut Tx<'_>, Timestamp, usize) -> db::Result<u64>;

/// Words an event; `None` if it belongs to something else.
pub type Words = fn(&Event) -> Option<Phrase>;

/// What a job without a channel does.
pub struct WithoutChannel {
    /// What it leaves out, if anything.
    pub instead: fn() -> Phrase,
    /// The command that lists what it collects.
    pub listing: &'static str,
}

/// What a pipeline needs of the config.
#[derive(Clone, Copy, Default)]
pub struct Uses {
    /// It calls a model.
    pub llm: bool,
    /// `job test` counts against a quota, so that it has to write to the database.
    pub quota_for_tests: bool,
}

/// A commented example of a job.
pub struct Example {
    /// With English comments.
    pub en: &'static str,
    /// With Japanese comments.
    pub ja: &'static str,
}

impl Example {
    /// The example in a language.
    pub fn of(&self, language: Language) -> &'static str {
        language.choose(self.en, self.ja)
    }
}

/// A kind of thing that has names.
pub struct Thing {
    /// The word before the colon of `word:name`.
    pub word: &'static str,
    /// Finds the things that a name may refer to.
    pub find: Find,
    /// Names from the config.
    pub list_configured: fn(&Config) -> Vec<String>,
    /// Names from the database.
    pub list_stored: fn(&mut Tx<'_>) -> db::Result<Vec<String>>,
    /// The command that lists them.
    pub listed_by: &'static str,
    /// The command that resumes one that is paused.
    pub resume: Option<&'static str>,
    /// Applies an action to the thing of that name.
    pub act: Act,
}

/// Finds the things that a name may refer to.
pub type Find = fn(&Finder, &mut Tx<'_>, &str) -> db::Result<Vec<View>>;

impl Thing {
    /// A kind of thing without actions and without a list of names.
    pub const fn new(word: &'static str, find: Find, listed_by: &'static str) -> Self {
        Self {
            word,
            find,
            list_configured: |_| Vec::new(),
            list_stored: |_| Ok(Vec::new()),
            listed_by,
            resume: None,
            act: |_, _, _, _| Ok(ActionOutcome::Unknown),
        }
    }
}

/// A document for `export`.
pub struct ExportDocument {
    /// Its name as an argument of `export`.
    pub name: &'static str,
    /// Its content, for the help text.
    pub about: &'static str,
    /// Renders it for one job or all. Without a database it contains only what the config says.
    pub render: Render,
}

/// Renders a document for one job or all.
pub type Render = for<'a> fn(&'a Config, Option<&'a Db>, Option<&'a str>) -> Boxed<'a, db::Result<Rendered>>;

/// A rendered document.
pub struct Rendered {
    pub text: String,
    pub count: usize,
    /// What is not contained.
    pub left_out: Option<Phrase>,
}

/// Something in the database that is no longer in the config.
pub struct Left {
    /// The job that it belonged to.
    pub job: String,
    /// The word of its kind.
    pub word: &'static str,
    pub name: String,
    pub last_at: Timestamp,
}
