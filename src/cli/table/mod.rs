//! Tables for people: columns, and cells that may have a tone.

mod render;
mod wrap;

pub(super) use render::{Reader, render};
pub(super) use wrap::wrap_line;

use tsuzuki::engine::view::State;
use tsuzuki::phrase;
use tsuzuki::phrase::{Phrase, Value};

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: Phrase,
    label: Option<String>,
    is_number: bool,
    is_moment: bool,
    is_long: bool,
    is_whole: bool,
    is_secondary: bool,
    /// The greatest width without a terminal.
    most: usize,
}

impl Column {
    /// A column of words.
    pub(crate) fn left(name: Phrase) -> Self {
        Self {
            name,
            label: None,
            is_number: false,
            is_moment: false,
            is_long: false,
            is_whole: false,
            is_secondary: false,
            most: usize::MAX,
        }
    }

    /// A column of numbers.
    pub(crate) fn right(name: Phrase) -> Self {
        Self { is_number: true, ..Self::left(name) }
    }

    /// A column of moments; the heading of the first names their zone, unless they are relative.
    pub(crate) fn moment(name: Phrase) -> Self {
        Self { is_moment: true, ..Self::left(name) }
    }

    /// A column of texts that are truncated at the terminal's width, and without a terminal only by
    /// [`Column::at_most`].
    pub(crate) fn long(name: Phrase) -> Self {
        Self { is_long: true, ..Self::left(name) }
    }

    /// A column of texts that are never truncated, but wrapped at the terminal's width.
    pub(crate) fn whole(name: Phrase) -> Self {
        Self { is_whole: true, ..Self::long(name) }
    }

    /// Truncates the column at this width without a terminal, too.
    pub(crate) fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Hides the column if a terminal is too narrow for all columns.
    pub(crate) fn secondary(self) -> Self {
        Self { is_secondary: true, ..self }
    }

    /// Adds a word in brackets after the name.
    pub(crate) fn labelled(self, label: &str) -> Self {
        Self { label: Some(label.to_owned()), ..self }
    }
}

/// One cell of a row.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    value: Value,
    tone: Tone,
}

/// The emphasis of a cell. Words and marks express the same without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Busy,
    Warning,
    Bad,
    Faint,
}

impl<T: Into<Value>> From<T> for Cell {
    fn from(value: T) -> Self {
        Self { value: value.into(), tone: Tone::Plain }
    }
}

impl Cell {
    /// A value with a tone.
    pub(crate) fn toned(value: impl Into<Value>, tone: Tone) -> Self {
        Self { value: value.into(), tone }
    }

    /// A state: its mark, and words about it.
    pub(crate) fn state(state: State, words: Phrase) -> Self {
        let mark = state.mark();
        Self::toned(phrase!("{mark} {words}", "{mark} {words}"), tone_of(state))
    }

    /// Yes or no.
    pub(crate) fn flag(is_so: bool) -> Self {
        if is_so { phrase!("yes", "はい") } else { phrase!("no", "いいえ") }.into()
    }
}

/// The tone of a state.
pub(super) fn tone_of(state: State) -> Tone {
    match state {
        State::Ok | State::Done => Tone::Good,
        State::New | State::Running | State::Due => Tone::Busy,
        State::Waiting | State::Quota | State::Approval => Tone::Warning,
        State::Failing | State::Setup => Tone::Bad,
        State::Paused | State::Disabled => Tone::Faint,
    }
}

/// Makes a row of values that convert into cells.
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($crate::cli::table::Cell::from($cell)),*] };
}
pub(super) use row;
