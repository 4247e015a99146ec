//! What people are shown of one thing: a title, a state, facts, lines below them, and what can be done about it.
//!
//! A view is data. The command line, the pages and the API render it, each in the language of its reader.

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

/// Everything that people are shown of one thing.
#[derive(Clone, Debug)]
pub struct View {
    /// What sort of thing it is: `blog`, `book`, `delivery` …
    pub kind: &'static str,
    /// What means this thing and no other behind `why`.
    pub name: String,
    /// What it is, in one line.
    pub title: Phrase,
    /// Its own title, if it has one: of an item, a book, a message.
    pub headline: Option<String>,
    /// Where it stands, if it has a state of its own.
    pub state: Option<State>,
    /// Its way from the first step to the last, if it has an end.
    pub stages: Vec<Stage>,
    /// What is known about it.
    pub facts: Vec<Fact>,
    /// A text that belongs to it, with what it is: a message as it is sent.
    pub text: Option<(Phrase, String)>,
    /// Lines of one sort: checks, runs, messages, events.
    pub sections: Vec<Section>,
    /// What a person can do about it.
    pub actions: Vec<Action>,
    /// The same for programs.
    pub data: Json,
}

/// One step of the way of a thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub name: Phrase,
    /// `Ok` when it was reached, `New` when it lies ahead; the state of the thing where it is now.
    pub state: State,
}

/// One thing that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it is about.
    pub label: Phrase,
    /// What is known.
    pub value: Value,
}

/// Lines of one sort, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What they have in common.
    pub title: Phrase,
    pub lines: Vec<Line>,
}

/// One line of a section.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// When, if it is about a moment.
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

    /// Lays out its way: it has come as far as the step `here` of `names`, counted from 0, where it stands as it does.
    pub fn stages<const N: usize>(&mut self, names: [Phrase; N], here: usize) {
        let state = |index: usize| match index.cmp(&here) {
            Ordering::Less => State::Ok,
            // Nothing has gone wrong where it is only new.
            Ordering::Equal => self.state.filter(|state| *state != State::New).unwrap_or(State::Ok),
            Ordering::Greater => State::New,
        };
        let stages = names.into_iter().enumerate();
        self.stages = stages.map(|(index, name)| Stage { name, state: state(index) }).collect();
    }

    /// Adds a fact; nothing for what is not known.
    pub fn fact(&mut self, label: Phrase, value: impl Into<Value>) {
        let value = value.into();
        if value != Value::Nothing {
            self.facts.push(Fact { label, value });
        }
    }

    /// Adds lines of one sort; nothing when there are none.
    pub fn section(&mut self, title: Phrase, lines: impl IntoIterator<Item = Line>) {
        let lines: Vec<Line> = lines.into_iter().collect();
        if !lines.is_empty() {
            self.sections.push(Section { title, lines });
        }
    }

    /// Adds something that a person can do.
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
    /// Where a thing stands: one vocabulary for every face.
    pub enum State {
        /// All is well.
        Ok = "ok",
        /// It has not run yet.
        New = "new",
        /// It is at work.
        Running = "running",
        /// It would start now.
        Due = "due",
        /// It waits, because somebody asked for it or because it failed a moment ago.
        Waiting = "waiting",
        /// What is allowed today is used up.
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
        /// Something is missing that a person has to provide.
        Setup = "setup",
    }
}

impl State {
    /// The sign that stands for it, so that it does not depend on colour.
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

    /// Its word.
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
