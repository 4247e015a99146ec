//! Weekdays by hours: a dot for each, larger the more there is.

use super::axis::{at, float, grouped};
use super::svg::{Anchor, Svg};
use super::words;
use crate::phrase::Speech;

const CELL: f64 = 34.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 6.0;

pub(super) fn draw(counts: &[[i64; 24]; 7], speech: &Speech) -> Svg {
    let mut svg = Svg::new(LEFT + 24.0 * CELL, TOP + 7.0 * CELL + 24.0);
    let most = counts.iter().flatten().copied().max().unwrap_or(0).max(1);
    for (row, (name, hours)) in words::weekdays(speech).iter().zip(counts).enumerate() {
        let y = TOP + (at(row) + 0.5) * CELL;
        svg.text("c-text", (LEFT - 8.0, y + 4.0), Anchor::End, name);
        svg.line("c-grid", (LEFT, y + CELL / 2.0), (LEFT + 24.0 * CELL, y + CELL / 2.0));
        for (hour, count) in hours.iter().enumerate().filter(|(_, count)| **count > 0) {
            // The area, not the radius, follows the count.
            let radius = ((float(*count) / float(most)).sqrt() * CELL * 0.46).max(1.5);
            let tip = format!("{name} {hour}:00 · {}", grouped(*count));
            svg.circle("c-dot", (LEFT + (at(hour) + 0.5) * CELL, y), radius, &tip);
        }
    }
    for hour in (0..24).step_by(3) {
        let x = LEFT + (at(hour) + 0.5) * CELL;
        svg.text("c-text", (x, TOP + 7.0 * CELL + 17.0), Anchor::Middle, &format!("{hour}"));
    }
    svg
}
