//! A page of a pipeline: typed blocks that the dashboard renders. A page tells nothing that a listing or `why` does not.

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
    /// Its address behind `/`.
    pub slug: &'static str,
    /// What the navigation calls it.
    pub title: fn() -> Phrase,
    /// Reads everything that it shows, in one transaction.
    pub load: Load<PageView>,
    /// The numbers of the page as rows, for downloads.
    pub sheet: Option<Load<Sheet>>,
}

/// Reads something of a page, in one transaction.
pub type Load<T> = fn(&Finder, &mut Tx<'_>, &PageQuery) -> db::Result<T>;

/// A page that one process has beside those of the pipelines.
#[derive(Clone)]
pub struct ExtraPage {
    /// Its address behind `/`.
    pub slug: &'static str,
    /// What the navigation calls it.
    pub title: fn() -> Phrase,
    /// Makes all that it shows.
    pub load: Arc<dyn Fn() -> PageView + Send + Sync>,
    /// An HTML document that one of its frames shows, by the name behind `?document=`.
    pub document: FindDocument,
}

/// The HTML of that name, if there is one.
pub type FindDocument = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What stands behind the question mark of the address.
#[derive(Clone, Debug, Default)]
pub struct PageQuery(Vec<(String, String)>);

impl PageQuery {
    /// The value of a name; nothing when it is empty.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, value)| *known == name && !value.is_empty()).map(|(_, value)| value)
    }

    /// Every value of a name that is not empty.
    pub fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let meant = self.iter().filter(move |(known, value)| *known == name && !value.is_empty());
        meant.map(|(_, value)| value)
    }

    /// The value of a name as something else; nothing when it is not one.
    pub fn parse<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.find(name)?.parse().ok()
    }

    /// Every name with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The same with one name meaning something else, as it stands in an address: `?job=a&before=7`.
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

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// What is known about one thing.
    Facts {
        /// What they have in common.
        title: Phrase,
        /// The facts.
        facts: Vec<Fact>,
        /// What is drawn below them.
        charts: Vec<Chart>,
    },
    /// Rows of one sort.
    Table(TableBlock),
    /// Charts, beside each other where there is room.
    Charts(Vec<Chart>),
    /// What is to be known to read the rest right.
    Notes(Vec<Phrase>),
    /// Numbers that can be copied and downloaded.
    Sheet(Sheet),
    /// Work that goes on, or has ended.
    Progress(Box<ProgressBlock>),
    /// What happened, newest first; it is shown by days.
    Timeline(Timeline),
    /// Things with a picture.
    Cards(Cards),
    /// Documents that somebody else wrote.
    Frames {
        /// What they have in common.
        title: Phrase,
        frames: Vec<Frame>,
    },
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
#[derive(Clone, Debug, Default)]
pub struct TableRow {
    /// Where its thing stands; shown as a mark before the first cell.
    pub state: Option<State>,
    /// A value for each column.
    pub cells: Vec<Value>,
    /// What means the thing of this row behind `why`: the row leads there.
    pub about: Option<String>,
    /// A small chart in a cell of its own, behind the others.
    pub chart: Option<Chart>,
    /// Text that can be opened below the row, with what it is.
    pub detail: Option<(Phrase, String)>,
    /// What a person can do about it.
    pub actions: Vec<Action>,
}

/// Rows of numbers, each behind a name.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// What it is called, also as a file.
    pub name: &'static str,
    /// Its heading.
    pub title: Phrase,
    /// Headings of its columns.
    pub columns: Vec<Phrase>,
    /// A field for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// Work that goes on, or has ended.
#[derive(Clone, Debug)]
pub struct ProgressBlock {
    /// What is done.
    pub title: Phrase,
    /// The jobs that do it: what one of them says of its progress moves the bar, and its parts.
    pub jobs: Vec<String>,
    /// Where it stands.
    pub state: State,
    /// How much of it is done …
    pub done: i64,
    /// … of so much.
    pub total: i64,
    /// The same in words.
    pub text: Phrase,
    /// What means it behind `why`.
    pub about: String,
    /// What a person can do about it.
    pub actions: Vec<Action>,
    /// Its parts.
    pub parts: TableBlock,
}

/// What happened, newest first.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// What the entries have in common.
    pub title: Phrase,
    /// The entries.
    pub entries: Vec<TimelineEntry>,
    /// The address of the entries after these, if there are more.
    pub next: Option<String>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct TimelineEntry {
    /// When.
    pub at: Timestamp,
    /// Where it stands.
    pub state: Option<State>,
    /// To whom.
    pub subject: Value,
    /// What.
    pub text: Phrase,
    /// What it brought.
    pub links: Vec<Value>,
    /// How it was found, and what became of it.
    pub notes: Vec<Phrase>,
    /// What means it behind `why`.
    pub about: Option<String>,
    /// What a person can do about it.
    pub actions: Vec<Action>,
}

/// A document that somebody else wrote, shown where it can do nothing.
#[derive(Clone, Debug)]
pub struct Frame {
    pub title: Phrase,
    pub at: Timestamp,
    pub note: Phrase,
    /// Where the document is.
    pub address: String,
    /// The same without markup.
    pub text: Phrase,
    /// Where it leads.
    pub links: Vec<Value>,
}

/// Things with a picture.
#[derive(Clone, Debug)]
pub struct Cards {
    /// What they have in common.
    pub title: Phrase,
    /// The things.
    pub cards: Vec<Card>,
    /// The address of those after these, if there are more.
    pub next: Option<String>,
}

/// A thing with a picture that is drawn from its title.
#[derive(Clone, Debug)]
pub struct Card {
    /// Its title.
    pub title: String,
    /// Who made it.
    pub by: String,
    /// Whether it was sent …
    pub state: State,
    /// … in words.
    pub said: Phrase,
    /// What else is to be known at a glance.
    pub lines: Vec<Value>,
    /// Where one can go from here.
    pub links: Vec<Value>,
    /// What means it behind `why`.
    pub about: String,
    /// Text that can be opened, with what it is.
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
