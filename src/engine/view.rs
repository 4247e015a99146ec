//! What people see of one thing: title, state, facts, sections and actions.
//!
//! A view is data. The command line, the pages and the API render it in the language of the reader.

use std::cmp::Ordering;

use serde::Serialize;
use serde_json::Value as Json;

pub use super::action::Action;

use super::action::Verb;
use crate::ledger::Subject;
use crate::ledger::event::Event;
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;
use crate::word_enum;

/// What people see of one thing.
#[derive(Clone, Debug)]
pub struct View {
    /// Its kind: `blog`, `book`, `delivery` …
    pub kind: &'static str,
    /// Its unique name for `why`.
    pub name: String,
    /// What it is, in one line.
    pub title: Phrase,
    /// Its own title, if it has one: of an item, a book, a message.
    pub headline: Option<String>,
    pub state: Option<State>,
    /// Its progress in steps, if it has an end.
    pub stages: Vec<Stage>,
    pub facts: Vec<Fact>,
    /// A text that belongs to it, with a heading: a message as it is sent.
    pub text: Option<(Phrase, String)>,
    /// Lines of one kind: checks, runs, messages, events.
    pub sections: Vec<Section>,
    pub actions: Vec<Action>,
    /// The same for programs.
    pub data: Json,
}

/// One step of a thing's progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub name: Phrase,
    /// `Ok` if it was reached, `New` if it lies ahead; for the present step, the state of the thing.
    pub state: State,
}

/// A labelled value.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub label: Phrase,
    pub value: Value,
}

/// Lines of one kind, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    pub title: Phrase,
    pub lines: Vec<Line>,
}

/// One line of a section.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub at: Option<Timestamp>,
    pub text: Phrase,
    /// The thing that it is about, if that is another one.
    pub about: Option<Subject>,
}

impl View {
    /// A view with nothing but a title.
    pub fn new(kind: &'static str, name: impl ToString, title: Phrase, data: Json) -> Self {
        Self {
            kind,
            name: name.to_string(),
            title,
            headline: None,
            state: None,
            stages: Vec::new(),
            facts: Vec::new(),
            text: None,
            sections: Vec::new(),
            actions: Vec::new(),
            data,
        }
    }

    /// Sets its steps; it has reached step `here` of `names`, counted from 0.
    pub fn stages<const N: usize>(&mut self, names: [Phrase; N], here: usize) {
        let state = |index: usize| match index.cmp(&here) {
            Ordering::Less => State::Ok,
            // A step that was reached is not new.
            Ordering::Equal => self.state.filter(|state| *state != State::New).unwrap_or(State::Ok),
            Ordering::Greater => State::New,
        };
        let stages = names.into_iter().enumerate();
        self.stages = stages.map(|(index, name)| Stage { name, state: state(index) }).collect();
    }

    /// Adds a fact, unless its value is unknown.
    pub fn fact(&mut self, label: Phrase, value: impl Into<Value>) {
        let value = value.into();
        if value != Value::Nothing {
            self.facts.push(Fact { label, value });
        }
    }

    /// Adds a section, unless it is empty.
    pub fn section(&mut self, title: Phrase, lines: impl IntoIterator<Item = Line>) {
        let lines: Vec<Line> = lines.into_iter().collect();
        if !lines.is_empty() {
            self.sections.push(Section { title, lines });
        }
    }

    /// Adds an action.
    pub fn act(&mut self, verb: Verb, about: &Subject, label: Phrase, command: impl Into<String>) {
        self.actions.push(Action::new(verb, about, label, command));
    }

    /// Adds a command that shows more.
    pub fn command(&mut self, label: Phrase, command: impl Into<String>) {
        self.actions.push(Action::command(label, command));
    }
}

/// A thing and its events, for programs.
pub fn with_events(thing: &impl Serialize, events: &[Event]) -> Json {
    let mut data = serde_json::to_value(thing).unwrap_or_default();
    data["events"] = serde_json::to_value(events).unwrap_or_default();
    data
}

impl Line {
    /// A line about a moment.
    pub fn at(at: Timestamp, text: Phrase) -> Self {
        Self { at: Some(at), text, about: None }
    }

    /// The same line, about another thing.
    pub fn about(self, about: &Subject) -> Self {
        Self { about: Some(about.clone()), ..self }
    }
}

impl From<Phrase> for Line {
    fn from(text: Phrase) -> Self {
        Self { at: None, text, about: None }
    }
}

word_enum! {
    /// The state of a thing: one vocabulary for the command line, the pages and the API.
    pub enum State {
        /// All is well.
        Ok = "ok",
        /// It has not run yet.
        New = "new",
        /// It is running.
        Running = "running",
        /// It would start now.
        Due = "due",
        /// It waits: a server asked for it, or it failed a moment ago.
        Waiting = "waiting",
        /// The daily quota is used up.
        Quota = "quota",
        /// There is nothing more to collect.
        Done = "done",
        /// It fails.
        Failing = "failing",
        /// A person has to decide.
        Approval = "approval",
        Paused = "paused",
        /// It is switched off in the config.
        Disabled = "disabled",
        /// A setting is missing that a person has to provide.
        Setup = "setup",
    }
}

impl State {
    /// Its symbol, so that it does not depend on colour.
    pub fn mark(self) -> &'static str {
        match self {
            State::Ok => "●",
            State::New => "○",
            State::Running => "◐",
            State::Due => "▷",
            State::Waiting => "◔",
            State::Quota => "◇",
            State::Done => "■",
            State::Failing => "▲",
            State::Approval => "◆",
            State::Paused => "∥",
            State::Disabled => "–",
            State::Setup => "✕",
        }
    }

    /// In words.
    pub fn phrase(self) -> Phrase {
        match self {
            State::Ok => phrase!("OK", "正常"),
            State::New => phrase!("Not run yet", "未実行"),
            State::Running => phrase!("Running", "実行中"),
            State::Due => phrase!("Due", "実行待ち"),
            State::Waiting => phrase!("Waiting", "再試行待ち"),
            State::Quota => phrase!("Quota reached", "本日の上限"),
            State::Done => phrase!("All collected", "全件取得済み（枯渇）"),
            State::Failing => phrase!("Failing", "失敗"),
            State::Approval => phrase!("Needs approval", "確認待ち"),
            State::Paused => phrase!("Paused", "一時停止中"),
            State::Disabled => phrase!("Disabled", "無効"),
            State::Setup => phrase!("Needs setup", "設定不足"),
        }
    }
}
