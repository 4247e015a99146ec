//! Charts as data: titles in both languages and numbers. `web` draws them, with a table of the same numbers behind each.

use jiff::civil::Date;

use crate::phrase::Phrase;

/// A drawing, and what it shows in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its heading.
    pub title: Phrase,
    /// What it shows, for those who cannot see it.
    pub about: Phrase,
    /// The numbers.
    pub figure: Figure,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Bars side by side.
    Bars(Bars),
    /// Two areas, up and down.
    Mirror(Mirror),
    /// A square for each day.
    Calendar(Calendar),
    /// Counts by weekday, Monday first, and hour.
    PunchCard([[i64; 24]; 7]),
    /// From many to few.
    Funnel(Vec<FunnelStep>),
    /// A level below a limit.
    Meter(Meter),
    /// The newest checks or runs in a row.
    Strip(Vec<StripCell>),
}

/// Values of one sort, one for each label of the chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it.
    pub name: Phrase,
    /// As many as there are labels; what is missing is nothing.
    pub values: Vec<i64>,
}

/// How lengths follow from values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Twice the value, twice the length.
    #[default]
    Linear,
    /// For values that differ by orders of magnitude.
    Log,
}

/// A bar for each series at each label: side by side, or on top of each other where they would be too thin.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What stands below the bars: mostly months.
    pub labels: Vec<String>,
    /// At most eight can be told apart.
    pub series: Vec<Series>,
    /// How heights follow from values.
    pub scale: Scale,
}

/// Two series along the same labels, one drawn upwards and one downwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    /// What stands below: mostly months.
    pub labels: Vec<String>,
    /// Upwards.
    pub up: Series,
    /// Downwards, though its values are not negative.
    pub down: Series,
}

/// Counts of days, a column for each week.
#[derive(Clone, Debug, PartialEq)]
pub struct Calendar {
    /// The first day that is drawn, with a count or not …
    pub first: Date,
    /// … and the last.
    pub last: Date,
    /// Days that have a count, in order.
    pub days: Vec<(Date, i64)>,
}

/// How many got so far, and why the others did not get further.
#[derive(Clone, Debug, PartialEq)]
pub struct FunnelStep {
    /// What they have reached.
    pub name: Phrase,
    /// How many did.
    pub count: i64,
    /// Reasons for going no further, each with how many.
    pub dropped: Vec<(Phrase, i64)>,
}

/// How much of a limit is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    /// So much is used …
    pub used: i64,
    /// … of so much.
    pub limit: i64,
}

/// One check or run in a row of them, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct StripCell {
    /// What came of it.
    pub mark: StripMark,
    /// What happened, with its moment.
    pub about: Phrase,
}

/// What came of a check or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StripMark {
    /// Nothing had to be read.
    Unchanged,
    /// It was read, and nothing was new.
    Same,
    /// Something was new.
    New,
    /// It failed.
    Failed,
    /// What is allowed for the day was used up.
    Quota,
}
