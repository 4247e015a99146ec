//! The form above a page: fields that narrow down what it shows.

use super::Finder;
use crate::phrase;
use crate::phrase::Phrase;

/// One field of the form above a page.
#[derive(Clone, Debug)]
pub struct PageFilter {
    /// Its name in the address.
    pub name: &'static str,
    /// What it narrows down by.
    pub label: Phrase,
    /// What can be put in.
    pub input: FilterInput,
}

impl PageFilter {
    /// A field for any text.
    pub fn text(name: &'static str, label: Phrase, value: impl Into<String>) -> Self {
        Self { name, label, input: FilterInput::Text(value.into()) }
    }

    /// A field for one of some choices.
    pub fn one(
        name: &'static str,
        label: Phrase,
        choices: impl IntoIterator<Item = Choice>,
        value: impl Into<String>,
    ) -> Self {
        let (choices, value) = (choices.into_iter().collect(), value.into());
        Self { name, label, input: FilterInput::One { choices, value, layout: ChoiceLayout::List } }
    }

    /// The same with few choices, all of them in view above the form.
    pub fn as_tabs(mut self) -> Self {
        if let FilterInput::One { layout, .. } = &mut self.input {
            *layout = ChoiceLayout::Tabs;
        }
        self
    }

    /// A field for one of the jobs, or of those of one kind.
    pub fn job(finder: &Finder, kind: Option<&str>, value: Option<&str>) -> Self {
        let jobs = finder.jobs.iter().filter(|job| kind.is_none_or(|kind| job.kind == kind));
        let all = Choice::any(phrase!("all jobs", "すべて"));
        let choices = all.chain(jobs.map(|job| Choice::named(job.name.as_str())));
        Self::one("job", phrase!("Job", "ジョブ"), choices, value.unwrap_or_default())
    }
}

/// What a field takes.
#[derive(Clone, Debug)]
pub enum FilterInput {
    /// Any text.
    Text(String),
    /// One of some choices; the first stands for no choice.
    One {
        /// What can be chosen.
        choices: Vec<Choice>,
        /// What is chosen.
        value: String,
        layout: ChoiceLayout,
    },
    /// Any number of choices.
    Many {
        /// What can be chosen.
        choices: Vec<Choice>,
        /// What is chosen.
        values: Vec<String>,
    },
}

/// How choices are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceLayout {
    /// In a list that opens.
    List,
    /// Beside each other, above the form.
    Tabs,
}

/// Something that can be chosen.
#[derive(Clone, Debug)]
pub struct Choice {
    /// As it stands in the address.
    pub value: String,
    /// As people read it.
    pub label: Phrase,
}

impl Choice {
    /// What stands for no choice, before all others.
    pub fn any(label: Phrase) -> impl Iterator<Item = Self> {
        std::iter::once(Self::new("", label))
    }

    /// A name that stands for itself.
    pub fn named(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { label: Phrase::verbatim(&name), value: name }
    }

    /// Words for a value of ours.
    pub fn new(value: impl Into<String>, label: Phrase) -> Self {
        Self { value: value.into(), label }
    }
}
