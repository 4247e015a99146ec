//! Charts as SVG, drawn on the server: pure functions from numbers to text, each with a table of the same numbers.
//!
//! Colours are classes (`chart.css`), so that both themes and print work; series differ by pattern, too.

mod axis;
mod bars;
mod calendar;
mod funnel;
mod mirror;
mod punch_card;
mod small;
mod svg;
mod words;

use crate::engine::chart::{Chart, Figure};
use crate::phrase;
use crate::phrase::Speech;
pub(super) use axis::grouped;

/// Room for the numbers of the axis.
const LEFT: f64 = 52.0;
const WIDTH: f64 = 1_120.0;
const HALF: f64 = 540.0;
/// The width of charts that are readable on a phone.
const SMALL: f64 = 400.0;
const HEIGHT: f64 = 230.0;

/// A drawn chart with its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) svg: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Draws a chart; `id` is unique on its page.
pub(super) fn draw(chart: &Chart, id: &str, speech: &Speech) -> Drawn {
    let svg = match &chart.figure {
        Figure::Bars(bars) => bars::draw(bars, id, speech),
        Figure::Mirror(mirror) => mirror::draw(mirror, speech),
        Figure::Calendar(calendar) => calendar::draw(calendar, speech),
        Figure::PunchCard(counts) => punch_card::draw(counts, speech),
        Figure::Funnel(steps) => funnel::draw(steps, speech),
        Figure::Meter(meter) => small::draw_meter(meter),
        Figure::Strip(cells) => small::draw_strip(cells, speech),
    };
    let (columns, rows) = tabulate(&chart.figure, speech);
    Drawn { svg: svg.finish(id, &speech.phrase(&chart.title), &speech.phrase(&chart.about)), columns, rows }
}

/// The numbers of a chart as text.
fn tabulate(figure: &Figure, speech: &Speech) -> (Vec<String>, Vec<Vec<String>>) {
    let say = |phrase| speech.phrase(&phrase);
    let value = |values: &[i64], index: usize| grouped(values.get(index).copied().unwrap_or(0));
    match figure {
        Figure::Bars(bars) => {
            let names = bars.series.iter().map(|series| speech.phrase(&series.name));
            let row = |(index, label): (usize, &String)| {
                let values = bars.series.iter().map(|series| value(&series.values, index));
                std::iter::once(label.clone()).chain(values).collect()
            };
            let columns = std::iter::once(say(phrase!("Period", "期間"))).chain(names).collect();
            (columns, bars.labels.iter().enumerate().map(row).collect())
        }
        Figure::Mirror(mirror) => {
            let row = |(index, label): (usize, &String)| {
                vec![label.clone(), value(&mirror.up.values, index), value(&mirror.down.values, index)]
            };
            let columns = vec![
                say(phrase!("Period", "期間")),
                speech.phrase(&mirror.up.name),
                speech.phrase(&mirror.down.name),
            ];
            (columns, mirror.labels.iter().enumerate().map(row).collect())
        }
        Figure::Calendar(calendar) => {
            let row = |(day, count): &(jiff::civil::Date, i64)| vec![day.to_string(), grouped(*count)];
            (
                vec![say(phrase!("Day", "日付")), say(phrase!("Count", "件数"))],
                calendar.days.iter().map(row).collect(),
            )
        }
        Figure::PunchCard(counts) => {
            let row = |(name, hours): (&&str, &[i64; 24])| {
                std::iter::once((*name).to_owned()).chain(hours.iter().map(|count| grouped(*count))).collect()
            };
            let hours = (0..24).map(|hour| hour.to_string());
            let columns = std::iter::once(say(phrase!("Weekday", "曜日"))).chain(hours).collect();
            (columns, words::weekdays(speech).iter().zip(counts.iter()).map(row).collect())
        }
        Figure::Funnel(steps) => {
            let mut rows = Vec::new();
            for step in steps {
                rows.push(vec![speech.phrase(&step.name), grouped(step.count)]);
                let dropped = step.dropped.iter();
                rows.extend(
                    dropped.map(|(why, count)| vec![format!("− {}", speech.phrase(why)), grouped(*count)]),
                );
            }
            (vec![say(phrase!("Step", "段階")), say(phrase!("Count", "件数"))], rows)
        }
        Figure::Meter(meter) => (
            vec![say(phrase!("Used", "使用")), say(phrase!("Limit", "上限"))],
            vec![vec![grouped(meter.used), grouped(meter.limit)]],
        ),
        Figure::Strip(cells) => (
            vec![say(phrase!("Check", "確認"))],
            cells.iter().map(|cell| vec![speech.phrase(&cell.about)]).collect(),
        ),
    }
}

#[cfg(test)]
mod tests;
