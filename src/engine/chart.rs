//! Charts as data: titles in both languages and numbers. `web` draws them, with a table of the same numbers behind each.

use jiff::civil::Date;

use crate::phrase::Phrase;

/// A chart, and its content in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub title: Phrase,
    /// What it shows, for screen readers.
    pub about: Phrase,
    pub figure: Figure,
}

/// The kinds of charts.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Bars side by side.
    Bars(Bars),
    /// Two areas, up and down.
    Mirror(Mirror),
    /// A square for each day.
    Calendar(Calendar),
    /// Counts by weekday, Monday first, and hour.
    PunchCard(Box<[[i64; 24]; 7]>),
    /// How many remain after each step.
    Funnel(Vec<FunnelStep>),
    /// A level below a limit.
    Meter(Meter),
    /// The newest checks or runs in a row.
    Strip(Vec<StripCell>),
}

/// One value for each label of the chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: Phrase,
    /// One for each label; missing values are 0.
    pub values: Vec<i64>,
}

/// How bar lengths follow from values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Proportional.
    #[default]
    Linear,
    /// For values that differ by orders of magnitude.
    Log,
}

/// A bar for each series at each label: side by side, or stacked where they would be too thin.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Labels of the x axis: mostly months.
    pub labels: Vec<String>,
    /// At most eight: more colours cannot be distinguished.
    pub series: Vec<Series>,
    pub scale: Scale,
}

/// Two series along the same labels, one drawn upwards and one downwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    /// Labels of the x axis: mostly months.
    pub labels: Vec<String>,
    pub up: Series,
    /// Drawn downwards; its values are not negative.
    pub down: Series,
}

/// Counts of days, a column for each week.
#[derive(Clone, Debug, PartialEq)]
pub struct Calendar {
    /// The first day drawn, with a count or not.
    pub first: Date,
    /// The last day drawn.
    pub last: Date,
    /// Days that have a count, in order.
    pub days: Vec<(Date, i64)>,
}

/// A step of a funnel: how many reached it, and why the others were dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct FunnelStep {
    pub name: Phrase,
    pub count: i64,
    /// Reasons for being dropped, with counts.
    pub dropped: Vec<(Phrase, i64)>,
}

/// How much of a limit is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    pub used: i64,
    pub limit: i64,
}

/// One check or run in a row of them, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct StripCell {
    pub mark: StripMark,
    /// What happened, and when.
    pub about: Phrase,
}

/// The outcome of a check or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StripMark {
    /// Nothing had to be downloaded.
    Unchanged,
    /// It was downloaded, and nothing was new.
    Same,
    /// Something was new.
    New,
    /// It failed.
    Failed,
    /// The daily quota was used up.
    Quota,
}
