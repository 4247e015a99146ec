//! What a pipeline is to the rest of the program: everything that is to be known of it stands in its descriptor.
//!
//! `app` lists the descriptors; nothing else names a pipeline.

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
    /// Its name in the config file, and the struct that its table is read into.
    pub kind: Kind,
    /// What it does, in a few words for help texts and questions.
    pub about: fn() -> Phrase,
    /// How often its jobs run by default.
    pub every: Duration,
    /// Makes a job of its table.
    pub make: Make,
    /// Registers what it does when its messages have ended.
    pub topics: fn(Topics) -> Topics,
    /// What a job does that has no channel, and what lists what it brings.
    pub without_channel: WithoutChannel,
    /// What is wrong with its jobs taken together.
    pub check_jobs: fn(&[config::Job]) -> Problems,
    /// What should be better in the table of a job, though it can be used.
    pub list_warnings: fn(&config::Job, &Config) -> Problems,
    /// Deletes at most so many rows of history that are older than a moment; each answers how many went.
    pub prune: &'static [Prune],
    /// Daily limits that hold without being configured, by the name of the provider.
    pub quotas: &'static [(&'static str, u32)],
    /// What it needs a model for, if it does.
    pub uses: Uses,
    /// The parts of a run that `run --step` can do alone.
    pub steps: &'static [&'static str],
    /// Resumes what of a job was paused beside the job itself; `true` if something was.
    pub resume: fn(&mut Tx<'_>, &JobName) -> db::Result<bool>,
    /// Options of `job add` that are its own.
    pub flags: &'static [Flag],
    /// A commented example for `init`.
    pub example: Example,
    /// Where its secrets are to be had.
    pub secrets: &'static [SecretHint],
    /// What a job would do better with, and the key that is missing.
    pub lacks: fn(&Section) -> Option<(Phrase, &'static str)>,
    /// What `why` and the pages can show of it.
    pub things: &'static [&'static Thing],
    pub tables: &'static [&'static Table],
    /// Its pages on the dashboard.
    pub pages: &'static [&'static Page],
    /// What can be exported of it that is not rows.
    pub documents: &'static [ExportDocument],
    /// What its events say.
    pub words: &'static [Words],
    /// What it found, for feeds and the search.
    pub list_findings: ListFindings,
    /// What other processes are doing for it beside runs of jobs.
    pub list_busy: fn(&mut Tx<'_>) -> db::Result<Vec<String>>,
    /// What it has rows of that the config does not name any more.
    pub list_left: fn(&mut Tx<'_>, &Config) -> db::Result<Vec<Left>>,
    /// What of it needs a person, beside its messages.
    pub list_needs: ListNeeds,
    /// Brings up to date what its pages show and is too much to count for each reader; the daemon calls it again and again.
    pub refresh: Refresh,
}

/// Brings up to date what pages show.
pub type Refresh = for<'a> fn(&'a Config, &'a Db, &'a Clock) -> Boxed<'a, db::Result<()>>;

/// For pipelines whose pages read rows alone.
pub const NOTHING_TO_REFRESH: Refresh = |_, _, _| Box::pin(std::future::ready(Ok(())));

/// What needs a person.
pub type ListNeeds = fn(&mut Tx<'_>) -> db::Result<Vec<Notice>>;

/// Makes a job of its table.
pub type Make = fn(&config::Job, &JobEnv) -> Result<Arc<dyn Collector>, Problems>;

/// Deletes at most so many rows that are older than a moment; answers how many went.
pub type Prune = fn(&mut Tx<'_>, Timestamp, usize) -> db::Result<u64>;

/// What an event says; `None` if it is not one of those.
pub type Words = fn(&Event) -> Option<Phrase>;

/// What a job does that has no channel.
pub struct WithoutChannel {
    /// What it leaves out, if anything.
    pub instead: fn() -> Phrase,
    /// The command that lists what it brings.
    pub listing: &'static str,
}

/// What a pipeline uses of what the config can hold.
#[derive(Clone, Copy, Default)]
pub struct Uses {
    /// It asks a model.
    pub llm: bool,
    /// `job test` counts against a quota, which has to be written.
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
    /// The example of a language.
    pub fn of(&self, language: Language) -> &'static str {
        language.choose(self.en, self.ja)
    }
}

/// A sort of thing that has a name of its own.
pub struct Thing {
    /// The word before its name.
    pub word: &'static str,
    /// Those that a name may stand for.
    pub find: Find,
    /// Names that the config gives.
    pub list_configured: fn(&Config) -> Vec<String>,
    /// Names that rows have.
    pub list_stored: fn(&mut Tx<'_>) -> db::Result<Vec<String>>,
    /// The command that lists them.
    pub listed_by: &'static str,
    /// The command that resumes one that is paused.
    pub resume: Option<&'static str>,
    /// Does something to the one of that name.
    pub act: Act,
}

/// Finds the things that a name may stand for.
pub type Find = fn(&Finder, &mut Tx<'_>, &str) -> db::Result<Vec<View>>;

impl Thing {
    /// Things that are found by name alone and can only be looked at.
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

/// A document that `export` writes.
pub struct ExportDocument {
    /// Its name behind `export`.
    pub name: &'static str,
    /// What it holds, for the help text.
    pub about: &'static str,
    /// Makes it, of one job or of all; without a database of what the config says alone.
    pub render: Render,
}

/// Makes a document of one job or of all.
pub type Render = for<'a> fn(&'a Config, Option<&'a Db>, Option<&'a str>) -> Boxed<'a, db::Result<Rendered>>;

/// A document that was made.
pub struct Rendered {
    pub text: String,
    /// How many things it holds.
    pub count: usize,
    /// What it does not hold.
    pub left_out: Option<Phrase>,
}

/// Something that has rows but is not in the config any more.
pub struct Left {
    /// The job that it belonged to.
    pub job: String,
    /// The word of its sort.
    pub word: &'static str,
    pub name: String,
    pub last_at: Timestamp,
}
