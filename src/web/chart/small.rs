//! Small inline charts: the usage of a limit, and a strip of checks.

use super::SMALL;
use super::axis::{at, float, grouped};
use super::svg::{Svg, short};
use crate::engine::chart::{Meter, StripCell, StripMark};
use crate::phrase::Speech;

const CELL: f64 = 9.0;
const STRIP_HEIGHT: f64 = 22.0;
/// A short row is padded, so that the cells of several rows have the same size.
const FEWEST_CELLS: usize = 30;

pub(super) fn draw_meter(meter: &Meter) -> Svg {
    let (wide, high) = (SMALL, 14.0);
    let mut svg = Svg::new(wide, high);
    svg.rect("class=\"c-track\" rx=\"3\"", (0.0, 2.0), (wide, high - 4.0), "");
    let share = match meter.limit {
        ..=0 => 1.0,
        limit => (float(meter.used.max(0)) / float(limit)).min(1.0),
    };
    let class = if share >= 1.0 { "c-full" } else { "c-bar" };
    let tip = format!("{} / {}", grouped(meter.used), grouped(meter.limit));
    svg.rect(&format!("class=\"{class}\" rx=\"3\""), (0.0, 2.0), (share * wide, high - 4.0), &tip);
    svg
}

pub(super) fn draw_strip(cells: &[StripCell], speech: &Speech) -> Svg {
    let mut svg = Svg::new(at(cells.len().max(FEWEST_CELLS)) * CELL, STRIP_HEIGHT);
    for (index, cell) in cells.iter().enumerate() {
        let (x, tip) = (at(index) * CELL, speech.phrase(&cell.about));
        let bar = |svg: &mut Svg, class: &str, height: f64| {
            svg.rect(&format!("class=\"{class}\""), (x, STRIP_HEIGHT - height), (CELL - 2.0, height), &tip);
        };
        // A different shape for each mark, so that nothing depends on colour.
        match cell.mark {
            StripMark::Unchanged => bar(&mut svg, "c-quiet", 4.0),
            StripMark::Same => bar(&mut svg, "c-quiet", 8.0),
            StripMark::New => bar(&mut svg, "c-bar", 18.0),
            StripMark::Failed => {
                let (left, right) = (short(x), short(x + CELL - 2.0));
                svg.path("c-failed", &format!("M{left} 8L{right} 20M{right} 8L{left} 20"), &tip);
            }
            StripMark::Quota => {
                let middle = short(x + (CELL - 2.0) / 2.0);
                let (left, right) = (short(x), short(x + CELL - 2.0));
                svg.path("c-full", &format!("M{middle} 8L{right} 14L{middle} 20L{left} 14Z"), &tip);
            }
        }
    }
    svg
}
