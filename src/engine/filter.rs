//! The form above a page: fields that filter what it shows.

use super::Finder;
use crate::phrase;
use crate::phrase::Phrase;

/// One field of the form above a page.
#[derive(Clone, Debug)]
pub struct PageFilter {
    /// Its name in the query string.
    pub name: &'static str,
    pub label: Phrase,
    pub input: FilterInput,
}

impl PageFilter {
    /// A field for any text.
    pub fn text(name: &'static str, label: Phrase, value: impl Into<String>) -> Self {
        Self { name, label, input: FilterInput::Text(value.into()) }
    }

    /// A field with several choices.
    pub fn one(
        name: &'static str,
        label: Phrase,
        choices: impl IntoIterator<Item = Choice>,
        value: impl Into<String>,
    ) -> Self {
        let (choices, value) = (choices.into_iter().collect(), value.into());
        Self { name, label, input: FilterInput::One { choices, value, layout: ChoiceLayout::List } }
    }

    /// The same, shown as tabs above the form: for few choices.
    pub fn as_tabs(mut self) -> Self {
        if let FilterInput::One { layout, .. } = &mut self.input {
            *layout = ChoiceLayout::Tabs;
        }
        self
    }

    /// A field for a job, optionally only jobs of one kind.
    pub fn job(finder: &Finder, kind: Option<&str>, value: Option<&str>) -> Self {
        let jobs = finder.jobs.iter().filter(|job| kind.is_none_or(|kind| job.kind == kind));
        let all = Choice::any(phrase!("all jobs", "すべて"));
        let choices = all.chain(jobs.map(|job| Choice::named(job.name.as_str())));
        Self::one("job", phrase!("Job", "ジョブ"), choices, value.unwrap_or_default())
    }
}

/// The input of a field.
#[derive(Clone, Debug)]
pub enum FilterInput {
    /// Any text.
    Text(String),
    /// One of several choices; the first means no filter.
    One {
        choices: Vec<Choice>,
        /// The selected one.
        value: String,
        layout: ChoiceLayout,
    },
    /// Any number of choices.
    Many {
        choices: Vec<Choice>,
        /// The selected ones.
        values: Vec<String>,
    },
}

/// How choices are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceLayout {
    /// A drop-down list.
    List,
    /// Tabs above the form.
    Tabs,
}

/// A choice of a field.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its value in the query string.
    pub value: String,
    /// Its label for people.
    pub label: Phrase,
}

impl Choice {
    /// The choice that means no filter, to be put first.
    pub fn any(label: Phrase) -> impl Iterator<Item = Self> {
        std::iter::once(Self::new("", label))
    }

    /// A choice whose value is also its label.
    pub fn named(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { label: Phrase::verbatim(&name), value: name }
    }

    /// A choice whose label differs from its value.
    pub fn new(value: impl Into<String>, label: Phrase) -> Self {
        Self { value: value.into(), label }
    }
}
