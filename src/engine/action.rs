//! What a person can do about a thing: named once, and offered by the command line, the pages and the API alike.

use super::Finder;
use crate::db::{self, Tx};
use crate::id::JobName;
use crate::ledger::Subject;
use crate::phrase::Phrase;
use crate::word_enum;

word_enum! {
    /// What can be done.
    pub enum Verb {
        /// Run a job now.
        Run = "run",
        /// Stop it until somebody resumes it.
        Pause = "pause",
        /// End a pause.
        Resume = "resume",
        /// Try again what failed or was given up.
        Retry = "retry",
        /// Release what is held.
        Approve = "approve",
        /// Discard it: it is never sent.
        Skip = "skip",
        /// Record that a message has arrived.
        Confirm = "confirm",
        /// Reset the cursors of a job, so that it starts over.
        Reset = "reset",
        /// Drop the rest of a run.
        Cancel = "cancel",
    }
}

/// What a person can do, with the command that does it.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// What it does, in a few words.
    pub label: Phrase,
    /// The command without the name of the program.
    pub command: String,
    /// The verb and the thing it applies to; `None` for a command that only shows something.
    pub deed: Option<(Verb, Subject)>,
}

impl Action {
    /// An action that the pages can offer as a button, too.
    pub fn new(verb: Verb, about: &Subject, label: Phrase, command: impl Into<String>) -> Self {
        Self { label, command: command.into(), deed: Some((verb, about.clone())) }
    }

    /// A command that only shows more.
    pub fn command(label: Phrase, command: impl Into<String>) -> Self {
        Self { label, command: command.into(), deed: None }
    }
}

/// A requested action.
#[derive(Clone, Copy, Debug)]
pub struct Deed {
    pub verb: Verb,
    /// Whether the person has confirmed that data may be lost.
    pub is_confirmed: bool,
}

/// The outcome of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionOutcome {
    Done(Phrase),
    /// Not possible in the present state.
    Refused(Phrase),
    /// It loses this; the request has to be repeated with a confirmation.
    Unconfirmed(Phrase),
    /// A job has to be started, which takes longer than a transaction.
    Start(JobName),
    /// There is no such thing, or it does not support the verb.
    Unknown,
}

/// Applies an action to the thing of that name.
pub type Act = fn(&Finder, &mut Tx<'_>, &str, Deed) -> db::Result<ActionOutcome>;

impl Finder {
    /// Applies an action to a thing, given as `word:name`.
    pub fn act(&self, tx: &mut Tx<'_>, about: &str, deed: Deed) -> db::Result<ActionOutcome> {
        let Some((word, name)) = about.split_once(':') else { return Ok(ActionOutcome::Unknown) };
        match self.things.iter().find(|thing| thing.word == word) {
            Some(thing) => (thing.act)(self, tx, name, deed),
            None => Ok(ActionOutcome::Unknown),
        }
    }
}
