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
        /// Leave a thing alone until it is resumed.
        Pause = "pause",
        /// End a pause.
        Resume = "resume",
        /// Try again what failed or was given up.
        Retry = "retry",
        /// Let go what is held.
        Approve = "approve",
        /// Decide against something.
        Skip = "skip",
        /// Say that a message has arrived.
        Confirm = "confirm",
        /// Forget how far a job has read.
        Reset = "reset",
        /// Give up what a run has not done yet.
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
    /// The verb, and the thing that it is done to; a command without them only shows something.
    pub deed: Option<(Verb, Subject)>,
}

impl Action {
    /// Something that can be done with a button, too.
    pub fn new(verb: Verb, about: &Subject, label: Phrase, command: impl Into<String>) -> Self {
        Self { label, command: command.into(), deed: Some((verb, about.clone())) }
    }

    /// A command that shows more.
    pub fn command(label: Phrase, command: impl Into<String>) -> Self {
        Self { label, command: command.into(), deed: None }
    }
}

/// A verb that somebody asks for.
#[derive(Clone, Copy, Debug)]
pub struct Deed {
    /// What is to be done.
    pub verb: Verb,
    /// Whether the person has said yes to what it forgets.
    pub is_confirmed: bool,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionOutcome {
    /// It is done.
    Done(Phrase),
    /// As things stand, it cannot be done.
    Refused(Phrase),
    /// It forgets this; whoever wants it has to say so.
    Unconfirmed(Phrase),
    /// A job has to be started, which takes longer than a transaction.
    Start(JobName),
    /// There is no such thing, or nothing of the sort can be done to it.
    Unknown,
}

/// Does something to the thing of a name.
pub type Act = fn(&Finder, &mut Tx<'_>, &str, Deed) -> db::Result<ActionOutcome>;

impl Finder {
    /// Does something to the thing that a word and a name behind a colon stand for.
    pub fn act(&self, tx: &mut Tx<'_>, about: &str, deed: Deed) -> db::Result<ActionOutcome> {
        let Some((word, name)) = about.split_once(':') else { return Ok(ActionOutcome::Unknown) };
        match self.things.iter().find(|thing| thing.word == word) {
            Some(thing) => (thing.act)(self, tx, name, deed),
            None => Ok(ActionOutcome::Unknown),
        }
    }
}
