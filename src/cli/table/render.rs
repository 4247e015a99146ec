//! Renders a table as lines: as wide as the terminal, or one block per row if it is too narrow for columns.

use anstyle::{AnsiColor, Color, Effects, Style};

use super::wrap::wrap;
use super::{Cell, Column, Tone};
use tsuzuki::phrase::{Speech, Value};
use tsuzuki::text::{one_line, shorten, width};
use tsuzuki::time::Timestamp;

/// The least width of a long text; a table without that room becomes blocks.
const NARROWEST: usize = 20;
/// The same for a text that is wrapped.
const NARROWEST_WHOLE: usize = 32;

/// Spaces between two columns.
const GAP: usize = 2;

/// The target of a table.
pub(in crate::cli) struct Reader<'a> {
    pub(in crate::cli) speech: &'a Speech,
    pub(in crate::cli) now: Timestamp,
    /// Columns of the terminal; `None` for pipes and files, where moments are absolute and little is truncated.
    pub(in crate::cli) width: Option<usize>,
    pub(in crate::cli) has_colour: bool,
}

/// A table as lines, without control sequences except our own colours.
pub(in crate::cli) fn render(columns: &[Column], rows: &[Vec<Cell>], reader: &Reader<'_>) -> Vec<String> {
    let headings = list_headings(columns, reader);
    let texts: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| reader.text(cell)).collect()).collect();
    let natural: Vec<usize> = (0..columns.len())
        .map(|index| {
            let cells = texts.iter().filter_map(|row| row.get(index)).map(|text| width(text));
            let natural = cells.max().unwrap_or(0).max(width(&headings[index]));
            if reader.width.is_none() { natural.min(columns[index].most) } else { natural }
        })
        .collect();
    let all = || natural.iter().copied().enumerate().collect();
    let Some(shown) = reader.width.map_or_else(|| Some(all()), |width| fit(columns, &natural, width)) else {
        let texts = texts.iter().zip(rows);
        return texts.flat_map(|(texts, row)| render_block(columns, texts, row, reader)).collect();
    };
    let headings = headings.iter().map(|text| (text.as_str(), Tone::Plain));
    let mut lines = vec![reader.bold(&render_line(columns, headings, &shown, |text, _| text.to_owned()))];
    lines.extend(
        texts.iter().zip(rows).flat_map(|(texts, row)| render_row(columns, texts, row, &shown, reader)),
    );
    lines
}

/// One row as a line, or as several if a column is wrapped.
fn render_row(
    columns: &[Column],
    texts: &[String],
    row: &[Cell],
    shown: &[(usize, usize)],
    reader: &Reader<'_>,
) -> Vec<String> {
    let mut pieces: Vec<Vec<String>> = texts.iter().map(|text| vec![text.clone()]).collect();
    for (index, room) in shown.iter().filter(|(index, _)| columns[*index].is_whole && reader.width.is_some())
    {
        pieces[*index] = wrap(&texts[*index], *room);
    }
    let count = pieces.iter().map(Vec::len).max().unwrap_or(0);
    let line = |number: usize| {
        let cells = pieces.iter().zip(row);
        let cells = cells.map(|(pieces, cell)| (pieces.get(number).map_or("", String::as_str), cell.tone));
        render_line(columns, cells, shown, |text, tone| reader.paint(text, tone))
    };
    (0..count).map(line).collect()
}

fn list_headings(columns: &[Column], reader: &Reader<'_>) -> Vec<String> {
    let is_absolute = reader.width.is_none();
    let first_moment = columns.iter().position(|column| column.is_moment);
    let zone = reader.speech.zone.as_ref().and_then(|zone| zone.iana_name()).unwrap_or("UTC");
    let heading = |(index, column): (usize, &Column)| {
        let name = reader.speech.phrase(&column.name).to_uppercase();
        let label = column.label.as_deref().or((is_absolute && first_moment == Some(index)).then_some(zone));
        label.map_or(name.clone(), |label| format!("{name} ({label})"))
    };
    columns.iter().enumerate().map(heading).collect()
}

/// The shown columns and their widths; `None` when even the important ones do not fit.
fn fit(columns: &[Column], natural: &[usize], width: usize) -> Option<Vec<(usize, usize)>> {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    loop {
        if let Some(shared) = share(columns, natural, &shown, width) {
            return Some(shared);
        }
        let last = shown.iter().rposition(|index| columns[*index].is_secondary)?;
        shown.remove(last);
    }
}

/// Gives short columns their natural width, and long ones an equal part of the rest.
fn share(
    columns: &[Column],
    natural: &[usize],
    shown: &[usize],
    width: usize,
) -> Option<Vec<(usize, usize)>> {
    let (mut long, short): (Vec<usize>, Vec<usize>) =
        shown.iter().copied().partition(|index| columns[*index].is_long);
    let taken =
        short.iter().map(|index| natural[*index]).sum::<usize>() + GAP * shown.len().saturating_sub(1);
    let mut left = width.checked_sub(taken)?;
    let mut rooms: Vec<(usize, usize)> = short.into_iter().map(|index| (index, natural[index])).collect();
    long.sort_by_key(|index| natural[*index]);
    let mut waiting = long.len();
    for index in long {
        let room = natural[index].min(left / waiting);
        let narrowest = if columns[index].is_whole { NARROWEST_WHOLE } else { NARROWEST };
        if room < natural[index].min(narrowest) {
            return None;
        }
        rooms.push((index, room));
        (left, waiting) = (left - room, waiting - 1);
    }
    rooms.sort_unstable();
    Some(rooms)
}

fn render_line<'a>(
    columns: &[Column],
    cells: impl Iterator<Item = (&'a str, Tone)>,
    shown: &[(usize, usize)],
    paint: impl Fn(&str, Tone) -> String,
) -> String {
    let cells: Vec<(&str, Tone)> = cells.collect();
    let (mut line, mut blanks) = (String::new(), 0);
    for (index, room) in shown {
        let (text, tone) = cells.get(*index).copied().unwrap_or(("", Tone::Plain));
        let text = shorten(text, *room);
        let padding = room.saturating_sub(width(&text));
        let (before, after) = if columns[*index].is_number { (padding, 0) } else { (0, padding) };
        if !text.is_empty() {
            line.push_str(&" ".repeat(blanks + before));
            line.push_str(&paint(&text, tone));
            blanks = after + GAP;
        } else {
            blanks += padding + GAP;
        }
    }
    line
}

/// One row as lines: its first cell, and the others below it with their names.
fn render_block(columns: &[Column], texts: &[String], row: &[Cell], reader: &Reader<'_>) -> Vec<String> {
    let names: Vec<String> = columns.iter().map(|column| reader.speech.phrase(&column.name)).collect();
    let widest = names.iter().skip(1).map(|name| width(name)).max().unwrap_or(0);
    let room = reader.width.unwrap_or(usize::MAX).saturating_sub(widest + 2 * GAP).max(NARROWEST / 2);
    let first = texts.first().map(String::as_str).unwrap_or_default();
    let mut lines = vec![reader.bold(&if columns.first().is_some_and(|column| column.is_number) {
        format!("{} {first}", names[0])
    } else {
        first.to_owned()
    })];
    for (index, text) in texts.iter().enumerate().skip(1) {
        if text.is_empty() || row[index].value == Value::Nothing {
            continue;
        }
        for (number, piece) in wrap(text, room).iter().enumerate() {
            let name = if number == 0 { names[index].as_str() } else { "" };
            let gap = " ".repeat(widest - width(name) + GAP);
            lines.push(format!("  {name}{gap}{}", reader.paint(piece, row[index].tone)));
        }
    }
    lines.push(String::new());
    lines
}

impl Reader<'_> {
    fn text(&self, cell: &Cell) -> String {
        match (&cell.value, self.width) {
            (Value::Nothing, _) => "-".to_owned(),
            (Value::Moment(at), Some(_)) => self.speech.relative(*at, self.now),
            (Value::Moment(at), None) => self.speech.local_minute(*at),
            (value, _) => one_line(&self.speech.value(value)),
        }
    }

    fn bold(&self, text: &str) -> String {
        let bold = Style::new().bold();
        if self.has_colour { format!("{bold}{text}{bold:#}") } else { text.to_owned() }
    }

    fn paint(&self, text: &str, tone: Tone) -> String {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(Color::Ansi(colour)));
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => colour(AnsiColor::Green),
            Tone::Busy => colour(AnsiColor::Cyan),
            Tone::Warning => colour(AnsiColor::Yellow),
            Tone::Bad => colour(AnsiColor::Red),
            Tone::Faint => Style::new().effects(Effects::DIMMED),
        };
        if self.has_colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row;
    use super::*;
    use tsuzuki::engine::view::State;
    use tsuzuki::phrase;
    use tsuzuki::text::Language;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn lines(language: Language, width: Option<usize>, has_colour: bool) -> Vec<String> {
        let columns = [
            Column::left(phrase!("job", "ジョブ")),
            Column::left(phrase!("state", "状態")),
            Column::moment(phrase!("last run", "最終実行")),
            Column::moment(phrase!("last success", "最終成功")).secondary(),
            Column::right(phrase!("attempts", "送信回数")),
            Column::long(phrase!("last result", "前回の結果")),
        ];
        let rows = vec![
            row![
                "新刊",
                Cell::state(State::Failing, State::Failing.phrase()),
                at("2026-01-15T11:56:10Z"),
                Value::Nothing,
                3,
                "three of the shelves could not be reached at all",
            ],
            row![
                "code",
                Cell::state(State::Ok, State::Ok.phrase()),
                at("2026-01-14T09:00:00Z"),
                at("2026-01-14T09:00:00Z"),
                12,
                "ok"
            ],
        ];
        let speech = Speech { language, zone: Some(jiff::tz::TimeZone::get("Asia/Tokyo").unwrap()) };
        let now = at("2026-01-15T12:00:00Z");
        render(&columns, &rows, &Reader { speech: &speech, now, width, has_colour })
    }

    #[test]
    fn in_a_pipe_moments_are_absolute_nothing_is_cut_and_the_zone_is_named() {
        assert_eq!(
            lines(Language::En, None, false),
            [
                "JOB   STATE      LAST RUN (Asia/Tokyo)  LAST SUCCESS      ATTEMPTS  LAST RESULT",
                "新刊  ▲ Failing  2026-01-15 20:56       -                        3  three of the shelves could not be reached at all",
                "code  ● OK       2026-01-14 18:00       2026-01-14 18:00        12  ok",
            ]
        );
    }

    #[test]
    fn in_a_pipe_a_column_is_cut_where_it_says_so() {
        let speech = Speech::default();
        let reader =
            Reader { speech: &speech, now: at("2026-01-15T12:00:00Z"), width: None, has_colour: false };
        let columns = [
            Column::left(phrase!("job", "ジョブ")),
            Column::long(phrase!("last result", "前回の結果")).at_most(12),
        ];
        let rows = vec![vec![Cell::from("code"), Cell::from("three of the shelves")]];
        assert_eq!(render(&columns, &rows, &reader)[1], "code  three of th…");
    }

    #[test]
    fn on_a_terminal_long_texts_are_cut_first_then_columns_are_left_out() {
        for width in [60, 70, 80, 120] {
            for line in lines(Language::En, Some(width), false) {
                assert!(tsuzuki::text::width(&line) <= width, "{width}: {line}");
            }
        }
        assert_eq!(
            lines(Language::En, Some(65), false),
            [
                "JOB   STATE      LAST RUN   ATTEMPTS  LAST RESULT",
                "新刊  ▲ Failing  3 min ago         3  three of the shelves could…",
                "code  ● OK       1 d ago          12  ok",
            ]
        );
    }

    #[test]
    fn where_columns_do_not_fit_each_row_is_a_block() {
        assert_eq!(
            lines(Language::Ja, Some(40), false),
            [
                "新刊",
                "  状態        ▲ 失敗",
                "  最終実行    3 分前",
                "  送信回数    3",
                "  前回の結果  three of the shelves could",
                "              not be reached at all",
                "",
                "code",
                "  状態        ● 正常",
                "  最終実行    1 日前",
                "  最終成功    1 日前",
                "  送信回数    12",
                "  前回の結果  ok",
                "",
            ]
        );
    }

    #[test]
    fn what_nobody_can_do_without_goes_on_in_the_next_line() {
        let speech = Speech::default();
        let rendered = |width: Option<usize>| {
            let reader =
                Reader { speech: &speech, now: at("2026-01-15T12:00:00Z"), width, has_colour: false };
            let columns = [Column::left(phrase!("check", "項目")), Column::whole(phrase!("detail", "詳細"))];
            let rows =
                vec![row!["token", "not set; make one under Preferences, Development"], row!["a", "b"]];
            render(&columns, &rows, &reader)
        };
        assert_eq!(
            rendered(Some(42)),
            [
                "CHECK  DETAIL",
                "token  not set; make one under",
                "       Preferences, Development",
                "a      b",
            ]
        );
        assert_eq!(rendered(None)[1], "token  not set; make one under Preferences, Development");
        assert_eq!(rendered(Some(38))[0], "token", "too narrow for columns");
    }

    #[test]
    fn states_are_coloured_and_texts_of_others_are_not() {
        let lines = lines(Language::En, Some(120), true);
        assert!(lines[0].starts_with("\u{1b}[1mJOB"), "{lines:?}");
        assert!(lines[1].contains("\u{1b}[31m▲ Failing\u{1b}[0m"), "{lines:?}");
        assert!(lines[2].contains("\u{1b}[32m● OK\u{1b}[0m"), "{lines:?}");
        let hostile = Cell::from("\u{1b}[2Jgone");
        let rows = vec![vec![hostile]];
        let speech = Speech::default();
        let reader =
            Reader { speech: &speech, now: at("2026-01-15T12:00:00Z"), width: None, has_colour: true };
        assert_eq!(render(&[Column::left(phrase!("job", "ジョブ"))], &rows, &reader)[1], "[2Jgone");
    }
}
