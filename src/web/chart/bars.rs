//! Bars for each series at each label, side by side if there is room, else stacked.

use super::axis::{Axis, LETTER, at, compact, every, float, grouped};
use super::svg::{Anchor, Svg, paint};
use super::{HEIGHT, LEFT, SMALL, WIDTH};
use crate::engine::chart::{Bars, Scale, Series};
use crate::phrase::Speech;
use crate::text::{shorten, width};

/// More bars would be too thin to be distinguished.
const MOST_BARS: usize = 120;
const LEGEND_ROW: f64 = 20.0;
const BELOW: f64 = 24.0;

pub(super) fn draw(bars: &Bars, id: &str, speech: &Speech) -> Svg {
    let names: Vec<String> =
        bars.series.iter().map(|series| shorten(&speech.phrase(&series.name), 28)).collect();
    // One series needs no legend, and less room.
    let (wide, high, legend) = match names.len() {
        ..=1 => (SMALL, HEIGHT / 2.0, Vec::new()),
        _ => (WIDTH, HEIGHT, place_legend(&names)),
    };
    let top = legend.last().map_or(0.0, |(_, y)| y + LEGEND_ROW) + 10.0;
    let mut svg = Svg::new(wide, top + high + BELOW);
    svg.patterns(id, bars.series.len());
    for (number, ((x, y), name)) in legend.iter().zip(&names).enumerate() {
        svg.rect(&paint(id, number), (*x, *y), (14.0, 14.0), "");
        svg.text("c-text", (x + 20.0, y + 11.5), Anchor::Start, name);
    }
    let is_stacked = bars.scale == Scale::Linear && bars.labels.len() * bars.series.len() > MOST_BARS;
    let axis = Axis::new(find_largest(bars, is_stacked), high, bars.scale);
    let bottom = top + high;
    draw_grid(&mut svg, &axis, bottom, wide);
    let room = (wide - LEFT) / at(bars.labels.len().max(1));
    let each = every(&bars.labels, room);
    for (index, label) in bars.labels.iter().enumerate() {
        let x = LEFT + at(index) * room;
        if index.is_multiple_of(each) {
            svg.text("c-text", (x + room / 2.0, bottom + 17.0), Anchor::Middle, label);
        }
        let group = Group { x, room, bottom, index, label, axis: &axis };
        if is_stacked {
            group.draw_stack(&mut svg, id, &bars.series, &names);
        } else {
            group.draw_beside(&mut svg, id, &bars.series, &names);
        }
    }
    svg
}

/// Grid lines at round values, above the baseline `bottom`.
fn draw_grid(svg: &mut Svg, axis: &Axis, bottom: f64, wide: f64) {
    for tick in axis.ticks() {
        let y = bottom - axis.length(tick);
        let class = if tick > 0.0 { "c-grid" } else { "c-axis" };
        svg.line(class, (LEFT, y), (wide, y));
        svg.text("c-text", (LEFT - 8.0, y + 4.0), Anchor::End, &compact(tick));
    }
    svg.line("c-axis", (LEFT, bottom), (wide, bottom));
}

fn find_largest(bars: &Bars, is_stacked: bool) -> f64 {
    let value = |series: &Series, index: usize| float(series.values.get(index).copied().unwrap_or(0));
    let height = |index: usize| {
        let values = bars.series.iter().map(|series| value(series, index));
        if is_stacked { values.sum() } else { values.fold(0.0, f64::max) }
    };
    (0..bars.labels.len()).map(height).fold(0.0, f64::max)
}

/// The bars of one label.
struct Group<'a> {
    x: f64,
    room: f64,
    bottom: f64,
    index: usize,
    label: &'a str,
    axis: &'a Axis,
}

impl Group<'_> {
    fn value(&self, series: &Series) -> i64 {
        series.values.get(self.index).copied().unwrap_or(0)
    }

    fn tip(&self, name: &str, value: i64) -> String {
        format!("{name} · {} · {}", self.label, grouped(value))
    }

    fn draw_beside(&self, svg: &mut Svg, id: &str, series: &[Series], names: &[String]) {
        let used = self.room * 0.8;
        let each = (used / at(series.len().max(1))).min(34.0);
        let start = self.x + (self.room - each * at(series.len())) / 2.0;
        let gap = if each > 6.0 { 1.0 } else { 0.0 };
        for (number, (series, name)) in series.iter().zip(names).enumerate() {
            let value = self.value(series);
            let height = self.axis.length(float(value));
            let corner = (start + at(number) * each, self.bottom - height);
            svg.rect(&paint(id, number), corner, (each - gap, height), &self.tip(name, value));
        }
    }

    fn draw_stack(&self, svg: &mut Svg, id: &str, series: &[Series], names: &[String]) {
        let wide = (self.room * 0.7).min(40.0);
        let mut y = self.bottom;
        for (number, (series, name)) in series.iter().zip(names).enumerate() {
            let value = self.value(series);
            let height = self.axis.length(float(value));
            y -= height;
            let corner = (self.x + (self.room - wide) / 2.0, y);
            svg.rect(&paint(id, number), corner, (wide, height), &self.tip(name, value));
        }
    }
}

/// The positions of the legend's entries, in as many rows as needed.
fn place_legend(names: &[String]) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (LEFT, 0.0);
    let mut places = Vec::new();
    for name in names {
        let needed = 20.0 + at(width(name)) * LETTER + 18.0;
        if x + needed > WIDTH && x > LEFT {
            (x, y) = (LEFT, y + LEGEND_ROW);
        }
        places.push((x, y));
        x += needed;
    }
    places
}
