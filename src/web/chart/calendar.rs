//! Days as squares, a column for each week, darker the more there is.

use jiff::ToSpan;
use jiff::civil::Date;

use super::axis::{at, grouped};
use super::svg::{Anchor, Svg};
use super::words;
use crate::engine::chart::Calendar;
use crate::phrase::Speech;

const CELL: f64 = 18.0;
const LEFT: f64 = 34.0;
const TOP: f64 = 22.0;
/// A little over two years: more would be too small to see.
const MOST_WEEKS: i32 = 110;

pub(super) fn draw(calendar: &Calendar, speech: &Speech) -> Svg {
    let monday = |day: Date| day.saturating_sub(i64::from(day.weekday().to_monday_zero_offset()).days());
    let last = calendar.last.max(calendar.first);
    let end = monday(last);
    let earliest = end.saturating_sub((MOST_WEEKS - 1).weeks());
    let start = monday(calendar.first).max(earliest);
    let weeks = start.until(end).map_or(0, |span| span.get_days() / 7) + 1;
    let weeks = usize::try_from(weeks).unwrap_or(1);
    let mut svg = Svg::new(LEFT + at(weeks.max(20)) * CELL, TOP + 7.0 * CELL + 26.0);
    for (row, name) in words::weekdays(speech).iter().enumerate().step_by(2) {
        svg.text("c-text", (LEFT - 6.0, TOP + at(row) * CELL + 12.5), Anchor::End, name);
    }
    let shown = calendar.days.iter().filter(|(day, _)| *day >= start && *day <= last);
    let most = shown.clone().map(|(_, count)| *count).max().unwrap_or(0);
    let mut counts = shown.peekable();
    let (mut last_month, mut last_label) = (0, -3.0);
    for week in 0..weeks {
        let monday = start.saturating_add(i64::try_from(week).unwrap_or(0).weeks());
        let x = LEFT + at(week) * CELL;
        let first = monday.max(calendar.first);
        if first.month() != last_month {
            last_month = first.month();
            if at(week) - last_label >= 3.0 {
                svg.text("c-text", (x, TOP - 8.0), Anchor::Start, &words::month(first, speech));
                last_label = at(week);
            }
        }
        for row in 0..7 {
            let day = monday.saturating_add(i64::try_from(row).unwrap_or(0).days());
            if day < calendar.first || day > last {
                continue;
            }
            while counts.peek().is_some_and(|(known, _)| *known < day) {
                counts.next();
            }
            let count = counts.peek().filter(|(known, _)| *known == day).map_or(0, |(_, count)| *count);
            let class = format!("class=\"c-h{}\" rx=\"2\"", level(count, most));
            let corner = (x, TOP + at(row) * CELL);
            svg.rect(&class, corner, (CELL - 2.5, CELL - 2.5), &format!("{day} · {}", grouped(count)));
        }
    }
    draw_legend(&mut svg, speech);
    svg
}

fn draw_legend(svg: &mut Svg, speech: &Speech) {
    let y = TOP + 7.0 * CELL + 8.0;
    let (less, more) = (speech.choose("less", "少"), speech.choose("more", "多"));
    svg.text("c-text", (LEFT + 30.0, y + 10.5), Anchor::End, less);
    for number in 0..5 {
        let corner = (LEFT + 36.0 + at(number) * CELL, y);
        svg.rect(&format!("class=\"c-h{number}\" rx=\"2\""), corner, (CELL - 2.5, CELL - 2.5), "");
    }
    svg.text("c-text", (LEFT + 40.0 + 5.0 * CELL, y + 10.5), Anchor::Start, more);
}

/// 0, or one of four levels.
pub(super) fn level(count: i64, most: i64) -> i64 {
    if count <= 0 || most <= 0 {
        return 0;
    }
    // The square root: one busy day does not make all others look empty.
    let share = (super::axis::float(count) / super::axis::float(most)).sqrt();
    [0.25, 0.5, 0.75].into_iter().fold(1, |level, bound| if share > bound { level + 1 } else { level })
}
