//! A page of a pipeline: typed blocks that the dashboard renders. A page tells nothing that a listing or `why` does not.

use std::collections::BTreeMap;

use super::Finder;
use super::view::{Fact, State};
use crate::db::{self, Tx};
use crate::phrase::{Phrase, Value};

/// A page that a pipeline has on the dashboard.
pub struct Page {
    /// Its address behind `/`.
    pub slug: &'static str,
    /// What the navigation calls it.
    pub title: fn() -> Phrase,
    /// Reads everything that it shows, in one transaction.
    pub load: fn(&Finder, &mut Tx<'_>, &PageQuery) -> db::Result<PageView>,
}

/// What stands behind the question mark of the address.
#[derive(Clone, Debug, Default)]
pub struct PageQuery(BTreeMap<String, String>);

impl PageQuery {
    /// The value of a name; nothing when it is empty.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The value of a name as something else; nothing when it is not one.
    pub fn parse<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.find(name)?.parse().ok()
    }

    /// Every name with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl FromIterator<(String, String)> for PageQuery {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// Everything that a page shows.
#[derive(Clone, Debug)]
pub struct PageView {
    /// Its heading.
    pub title: Phrase,
    /// What narrows down the blocks; one form above them.
    pub filters: Vec<PageFilter>,
    /// What it shows, from top to bottom.
    pub blocks: Vec<Block>,
}

impl PageView {
    /// A page with nothing but a heading.
    pub fn new(title: Phrase) -> Self {
        Self { title, filters: Vec::new(), blocks: Vec::new() }
    }
}

/// One field of the form above a page.
#[derive(Clone, Debug)]
pub struct PageFilter {
    /// Its name in the address.
    pub name: &'static str,
    /// What it narrows down by.
    pub label: Phrase,
    /// What can be chosen; without choices it is a field for text.
    pub choices: Vec<Choice>,
    /// What is chosen now.
    pub value: String,
}

/// Something that can be chosen.
#[derive(Clone, Debug)]
pub struct Choice {
    /// As it stands in the address.
    pub value: String,
    /// As people read it.
    pub label: Phrase,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// What is known about one thing.
    Facts {
        /// What they have in common.
        title: Phrase,
        /// The facts.
        facts: Vec<Fact>,
    },
    /// Rows of one sort.
    Table(TableBlock),
    /// Nothing is there yet: why, and the command that brings the first.
    Empty {
        /// Why.
        text: Phrase,
        /// Without the name of the program.
        command: Option<String>,
    },
}

/// Rows of one sort, for people.
#[derive(Clone, Debug)]
pub struct TableBlock {
    /// What the rows have in common.
    pub title: Phrase,
    /// Headings.
    pub columns: Vec<Phrase>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<TableRow>,
    /// The address of the rows after these, if there are more.
    pub next: Option<String>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct TableRow {
    /// Where its thing stands; shown as a mark before the first cell.
    pub state: Option<State>,
    /// A value for each column.
    pub cells: Vec<Value>,
    /// What means the thing of this row behind `why`: the row leads there.
    pub about: Option<String>,
}
