//! Two areas along the same labels: one grows upwards, the other downwards, on the same scale.

use std::fmt::Write as _;

use super::axis::{Axis, at, compact, every, float, grouped};
use super::svg::{Anchor, Svg, short};
use super::{HALF, HEIGHT, LEFT};
use crate::engine::chart::{Mirror, Scale};
use crate::phrase::Speech;

/// Room for half of the last label.
const RIGHT: f64 = HALF - 28.0;
const TOP: f64 = 34.0;
const BELOW: f64 = 24.0;

pub(super) fn draw(mirror: &Mirror, speech: &Speech) -> Svg {
    let mut svg = Svg::new(HALF, TOP + HEIGHT + BELOW);
    let halves = [&mirror.up, &mirror.down];
    let largest = halves.map(|half| half.values.iter().copied().max().unwrap_or(0)).into_iter().max();
    let axis = Axis::new(float(largest.unwrap_or(0)), HEIGHT / 2.0, Scale::Linear);
    let middle = TOP + HEIGHT / 2.0;
    for tick in axis.ticks() {
        for side in [-1.0, 1.0] {
            let y = middle + side * axis.length(tick);
            svg.line(if tick > 0.0 { "c-grid" } else { "c-axis" }, (LEFT, y), (RIGHT, y));
            svg.text("c-text", (LEFT - 8.0, y + 4.0), Anchor::End, &compact(tick));
        }
    }
    let steps = mirror.labels.len().max(2) - 1;
    let room = (RIGHT - LEFT) / at(steps);
    let mut x = LEFT;
    for (half, side, class) in [(&mirror.up, -1.0, "c-up"), (&mirror.down, 1.0, "c-down")] {
        let name = speech.phrase(&half.name);
        let last = half.values.last().copied().unwrap_or(0);
        let about = format!("{name}: {}", grouped(last));
        svg.rect(&format!("class=\"{class}\""), (x, 4.0), (14.0, 14.0), "");
        svg.text("c-text", (x + 20.0, 15.5), Anchor::Start, &about);
        x += 40.0 + at(crate::text::width(&about)) * super::axis::LETTER;
        let path = area(&half.values, |value| middle + side * axis.length(float(value)), room, middle);
        if !path.is_empty() {
            svg.path(class, &path, &about);
        }
    }
    svg.line("c-axis", (LEFT, middle), (RIGHT, middle));
    let each = every(&mirror.labels, room);
    for (index, label) in mirror.labels.iter().enumerate().step_by(each) {
        let x = LEFT + at(index) * room;
        svg.text("c-text", (x, TOP + HEIGHT + 18.0), Anchor::Middle, label);
    }
    svg
}

/// The outline of an area on the baseline `middle`; a single value is a horizontal line.
fn area(values: &[i64], y: impl Fn(i64) -> f64, room: f64, middle: f64) -> String {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return String::new() };
    let mut path = format!("M{} {}", short(LEFT), short(middle));
    for (index, value) in values.iter().enumerate() {
        let _ = write!(path, "L{} {}", short(LEFT + at(index) * room), short(y(*value)));
    }
    let end = match values.len() {
        1 => RIGHT,
        many => LEFT + at(many - 1) * room,
    };
    if first == last || values.len() == 1 {
        let _ = write!(path, "L{} {}", short(end), short(y(*last)));
    }
    let _ = write!(path, "L{} {}Z", short(end), short(middle));
    path
}
