//! A page of a pipeline: typed blocks that the dashboard renders. A page shows nothing that a listing or `why` does
//! not.

use std::sync::Arc;

use super::Finder;
use super::chart::Chart;
pub use super::filter::{Choice, ChoiceLayout, FilterInput, PageFilter};
use super::table::Cell;
use super::view::{Action, Fact, State};
use crate::db::{self, Tx};
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

/// A page that a pipeline has on the dashboard.
pub struct Page {
    /// Its path behind `/`.
    pub slug: &'static str,
    /// Its title in the navigation.
    pub title: fn() -> Phrase,
    /// Loads its content in one transaction.
    pub load: Load<PageView>,
    /// The numbers of the page as rows, for downloads.
    pub sheet: Option<Load<Sheet>>,
}

/// Loads something for a page, in one transaction.
pub type Load<T> = fn(&Finder, &mut Tx<'_>, &PageQuery) -> db::Result<T>;

/// A page of this process beside those of the pipelines.
#[derive(Clone)]
pub struct ExtraPage {
    /// Its path behind `/`.
    pub slug: &'static str,
    /// Its title in the navigation.
    pub title: fn() -> Phrase,
    pub load: Arc<dyn Fn() -> PageView + Send + Sync>,
    /// Finds the HTML document behind `?document=`, for one of its frames.
    pub document: FindDocument,
}

/// The HTML document of that name, if there is one.
pub type FindDocument = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The query string of a page.
#[derive(Clone, Debug, Default)]
pub struct PageQuery(Vec<(String, String)>);

impl PageQuery {
    /// The value of a name; `None` if it is empty.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, value)| *known == name && !value.is_empty()).map(|(_, value)| value)
    }

    /// The values of a name that are not empty.
    pub fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let meant = self.iter().filter(move |(known, value)| *known == name && !value.is_empty());
        meant.map(|(_, value)| value)
    }

    /// The parsed value of a name; `None` if it cannot be parsed.
    pub fn parse<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.find(name)?.parse().ok()
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The query string with one value replaced: `?job=a&before=7`.
    pub fn with(&self, name: &str, value: impl ToString) -> String {
        let kept = self.iter().filter(|(known, value)| *known != name && !value.is_empty());
        let mut pairs = url::form_urlencoded::Serializer::for_suffix(String::from("?"), 1);
        pairs.extend_pairs(kept).append_pair(name, &value.to_string());
        pairs.finish()
    }
}

impl FromIterator<(String, String)> for PageQuery {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// The content of a page.
#[derive(Clone, Debug)]
pub struct PageView {
    pub title: Phrase,
    /// Filters, in one form above the blocks.
    pub filters: Vec<PageFilter>,
    /// From top to bottom.
    pub blocks: Vec<Block>,
}

impl PageView {
    /// An empty page.
    pub fn new(title: Phrase) -> Self {
        Self { title, filters: Vec::new(), blocks: Vec::new() }
    }
}

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// Facts about one thing.
    Facts {
        title: Phrase,
        facts: Vec<Fact>,
        /// Charts below the facts.
        charts: Vec<Chart>,
    },
    Table(TableBlock),
    /// Charts, beside each other if they fit.
    Charts(Vec<Chart>),
    /// Notes on how to read the page.
    Notes(Vec<Phrase>),
    /// Numbers to copy and download.
    Sheet(Sheet),
    /// Work in progress, or finished.
    Progress(Box<ProgressBlock>),
    /// Events, newest first, grouped by day.
    Timeline(Timeline),
    /// Things with a picture.
    Cards(Cards),
    /// Documents written by others.
    Frames {
        title: Phrase,
        frames: Vec<Frame>,
    },
    /// There is nothing yet.
    Empty {
        text: Phrase,
        /// A command that changes that, without the name of the program.
        command: Option<String>,
    },
}

/// A table for people.
#[derive(Clone, Debug)]
pub struct TableBlock {
    pub title: Phrase,
    pub columns: Vec<Phrase>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<TableRow>,
    /// The address of the next page, if there are more rows.
    pub next: Option<String>,
}

/// One row of a table.
#[derive(Clone, Debug, Default)]
pub struct TableRow {
    /// The state of its thing, shown as a mark before the first cell.
    pub state: Option<State>,
    /// A value for each column.
    pub cells: Vec<Value>,
    /// `word:name` of its thing for `why`; the row links to it.
    pub about: Option<String>,
    /// A small chart behind the other cells.
    pub chart: Option<Chart>,
    /// Text that opens below the row, with its heading.
    pub detail: Option<(Phrase, String)>,
    pub actions: Vec<Action>,
}

/// Rows of numbers with column headings.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Its name, also as a file.
    pub name: &'static str,
    pub title: Phrase,
    pub columns: Vec<Phrase>,
    /// A field for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// Work in progress, or finished.
#[derive(Clone, Debug)]
pub struct ProgressBlock {
    pub title: Phrase,
    /// The jobs that do the work: their progress reports update the bar, and its parts.
    pub jobs: Vec<String>,
    pub state: State,
    pub done: i64,
    pub total: i64,
    /// The progress in words.
    pub text: Phrase,
    /// Its `word:name` for `why`.
    pub about: String,
    pub actions: Vec<Action>,
    pub parts: TableBlock,
}

/// Events, newest first.
#[derive(Clone, Debug)]
pub struct Timeline {
    pub title: Phrase,
    pub entries: Vec<TimelineEntry>,
    /// The address of the next page, if there are more entries.
    pub next: Option<String>,
}

/// An event on a timeline.
#[derive(Clone, Debug)]
pub struct TimelineEntry {
    pub at: Timestamp,
    pub state: Option<State>,
    pub subject: Value,
    pub text: Phrase,
    /// Links to what came of it.
    pub links: Vec<Value>,
    /// How it was found, and what was done about it.
    pub notes: Vec<Phrase>,
    /// Its `word:name` for `why`.
    pub about: Option<String>,
    pub actions: Vec<Action>,
}

/// A document written by others, shown in a sandbox.
#[derive(Clone, Debug)]
pub struct Frame {
    pub title: Phrase,
    pub at: Timestamp,
    pub note: Phrase,
    /// The address of the document.
    pub address: String,
    /// Its text without markup.
    pub text: Phrase,
    /// Links to be shown below.
    pub links: Vec<Value>,
}

/// Things with a picture.
#[derive(Clone, Debug)]
pub struct Cards {
    pub title: Phrase,
    pub cards: Vec<Card>,
    /// The address of the next page, if there are more cards.
    pub next: Option<String>,
}

/// A thing with a picture that is drawn from its title.
#[derive(Clone, Debug)]
pub struct Card {
    pub title: String,
    /// The author.
    pub by: String,
    pub state: State,
    /// The state in words.
    pub said: Phrase,
    /// Further lines.
    pub lines: Vec<Value>,
    pub links: Vec<Value>,
    /// Its `word:name` for `why`.
    pub about: String,
    /// Text that opens below, with its heading.
    pub detail: Option<(Phrase, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_keeps_what_is_not_changed_and_escapes_what_others_wrote() {
        let pairs = [("person", "Ann"), ("person", "甲 & 乙"), ("before", "9"), ("text", "")];
        let query: PageQuery =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(query.list("person").collect::<Vec<_>>(), ["Ann", "甲 & 乙"]);
        assert_eq!((query.find("text"), query.parse::<i64>("before")), (None, Some(9)));
        let address = query.with("before", 7);
        assert_eq!(address, "?person=Ann&person=%E7%94%B2+%26+%E4%B9%99&before=7");
    }
}
